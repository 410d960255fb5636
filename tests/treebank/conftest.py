"""The command ``attree treebank``, run in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from attree import cli


class Result:
    """What a call printed, and its exit status or message."""

    def __init__(self, out: str, err: str, status: object) -> None:
        self.out, self.err, self.status = out, err, status


@pytest.fixture
def attree(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Return a function that runs the command in ``tmp_path``."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Result:
        monkeypatch.setattr("sys.argv", ["attree", "treebank", *arguments])
        status: object = 0
        try:
            cli.main()
        except SystemExit as end:
            status = end.code
        captured = capsys.readouterr()
        errors = [one for one in captured.err.splitlines() if one.startswith("attree: error: ")]
        status = "\n".join(errors) or status
        return Result(captured.out, captured.err, status or 0)

    return run
