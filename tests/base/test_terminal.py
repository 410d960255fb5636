"""What reaches a terminal, and what long work says of itself there and in a log."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.base import terminal
from attree.base.terminal import in_json, progress


def test_a_log_has_plain_lines_with_rate_and_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([100.0, 105.0, 110.0, 120.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(seconds))
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
        "from attree.base.terminal import progress\n"
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
    assert re.search(r"corpus: 25 of 30 lines, [\d.]+ a second, 0:00:00 left", text)
    assert re.search(r"corpus: 30 of 30 lines, [\d.]+ a second", text)
    assert all(len(line.rstrip()) <= 80 for line in re.split(r"[\r\n]+", text))


@given(st.dictionaries(st.text(), st.text()), st.sampled_from([None, 2]))
def test_json_is_the_same_value_in_printable_characters(value: object, indent: int | None) -> None:
    text = in_json(value, indent=indent)
    assert json.loads(text) == value
    text.encode("utf-8")


def test_json_has_letters_as_they_are_and_no_control_character() -> None:
    assert in_json(["hún 中 ✓"]) == '["hún 中 ✓"]'
    assert in_json(["\x1b\x9b\u202e\ud800\n"]) == r'["\u001b\u009b\u202e\ud800\n"]'
