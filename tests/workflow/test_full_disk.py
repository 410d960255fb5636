"""A disk that is full, under every rule's own command."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import MakeDisk
from tests.workflow.conftest import RULE_OF_OUTPUT, Checkout

#: Those of the normal suite; the others take their time.
NORMAL = ("treebank", "attention_all", "score", "crosslingual_table")
RULES = [
    rule if rule in NORMAL else pytest.param(rule, marks=pytest.mark.full)
    for rule in sorted(set(RULE_OF_OUTPUT.values()))
]


@pytest.fixture(scope="module")
def commands(finished: Checkout) -> dict[str, str]:
    """Rule → the command of one of its jobs."""
    targets = ("all", "corpus", "comparison", "grammars")
    plan = finished.plan(*targets, "--forceall", "--printshellcmds")
    found: dict[str, str] = {}
    for rule, body in re.findall(r"^(?:local)?rule (\w+):\n(.*?)(?=\n\n)", plan.text, re.M | re.S):
        for line in re.findall(r"^Shell command: (.*)$", body, re.M):
            found.setdefault(rule, line)
    return found


@pytest.fixture
def full(make_disk: MakeDisk) -> Path:
    """A file system on which files can be made, and no byte written."""
    disk = make_disk("16k")
    with (disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="space"):
        while True:
            filler.write(bytes(4096))
    return disk


def moved(command: str, disk: Path) -> str:
    """Let what ``command`` writes lie on ``disk``, and its log go to its error stream."""
    words = re.split(r" \d?> ", command)[0].split()
    for place, word in enumerate(words[:-1]):
        if word in ("--output", "--output-prefix", "--rejected"):
            words[place + 1] = str(disk / shlex.split(words[place + 1])[0])
    return " ".join(words)


def written(disk: Path) -> Iterator[Path]:
    """Yield what stands on ``disk`` beside the filler and locks."""
    for path in disk.rglob("*"):
        if path.is_file() and path.name not in ("filler", "lock") and path.name[-5:] != ".lock":
            yield path


@pytest.mark.parametrize("rule", RULES)
def test_a_full_disk_is_one_line_and_nothing_half_written(
    finished: Checkout, commands: dict[str, str], full: Path, rule: str
) -> None:
    command = moved(commands[rule], full)

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=finished.folder,
            env=finished.environment,
            capture_output=True,
            text=True,
        )

    ran = run()
    assert ran.returncode == 1, ran.stderr
    assert "the disk is full" in ran.stderr.splitlines()[-1]
    assert "Traceback" not in ran.stderr
    assert list(written(full)) == []
    subprocess.run(["mount", "-o", "remount,size=64m", str(full)], check=True)
    ran = run()
    assert ran.returncode == 0, ran.stderr
    assert list(written(full))
