"""What long work says of itself, in a log and on a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

from attree.base import progress as module
from attree.base.progress import progress


def test_a_log_has_plain_lines_with_rate_and_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([100.0, 105.0, 110.0, 120.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(seconds))
    with progress("corpus", total=9_000, unit="lines", done=8_000) as advance:
        advance(50)
        advance(450)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "corpus: 8,500 of 9,000 lines, 50 a second, 0:00:10 left",
        "corpus: 8,500 of 9,000 lines, 25 a second, 0:00:20 left",
    ]


def test_a_terminal_has_a_bar_with_a_rate() -> None:
    code = (
        "import time\n"
        "from attree.base.progress import progress\n"
        "with progress('corpus', total=30, unit='lines', done=10) as advance:\n"
        "    for _ in range(4):\n"
        "        time.sleep(0.2)\n"
        "        advance(5)\n"
    )
    main, side = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen([sys.executable, "-c", code], stderr=side, env=environment)
    os.close(side)
    shown = b""
    try:
        while part := os.read(main, 4096):
            shown += part
    except OSError:  # the other side is closed
        pass
    assert process.wait() == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert "30/30 lines, " in text
    assert re.search(r"lines, [\d.]+/s", text)
    assert all(len(line.rstrip()) <= 80 for line in re.split(r"[\r\n]+", text))
