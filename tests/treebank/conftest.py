"""The command ``attree treebank``, run in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import command_line


@dataclass(frozen=True)
class Result:
    """What a call printed, and its exit status, or the line of its error."""

    out: str
    err: str
    status: object


@pytest.fixture
def attree(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Return a function that runs the command in ``tmp_path``."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Result:
        done = command_line.attree("treebank", *words)
        errors = [one for one in done.err.splitlines() if one.startswith("attree: error: ")]
        return Result(done.out, done.err, "\n".join(errors) or done.status)

    return run
