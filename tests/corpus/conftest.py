"""A tiny encoder, a corpus with every kind of bad line in it, and `attree parse` as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.encoder.checkpoints import TEXT, save

#: One bad line of each kind, and the status it gets.
BAD_LINES = {
    b"": "empty",
    b"   ": "empty",
    b"the \xff cat": "undecodable",
    b"the \x00 cat": "control",
    b"the \x1b[0m cat": "control",
    b"cat " * 70: "too_long",
    b"x" * (2 << 20): "too_long",
}


@dataclass(frozen=True)
class Ran:
    """A process that has ended."""

    status: int
    out: str
    err: str


class Parse:
    """Runs ``attree parse`` with the tiny encoder."""

    def __init__(self, encoder: Path) -> None:
        self.encoder = encoder

    def command(self, inputs: Path, output: Path, *options: str) -> list[str]:
        """Return the command line; ``options`` come instead of the usual ones."""
        usual = {
            "--encoder": str(self.encoder),
            "--heads": "list:0.1,1.2",
            "--threads": "1",
            "--tokenizer": "whitespace",
            "--too-long": "skip",
        }
        fixed = [word for item in usual.items() if item[0] not in options for word in item]
        program = [str(Path(sys.executable).with_name("attree")), "parse"]
        return [*program, str(inputs), "--output", str(output), *fixed, *options]

    def start(
        self, inputs: Path, output: Path, *options: str, **environment: str
    ) -> subprocess.Popen[str]:
        """Start it in a process group of its own."""
        return subprocess.Popen(
            self.command(inputs, output, *options),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            start_new_session=True,
        )

    def __call__(self, inputs: Path, output: Path, *options: str) -> Ran:
        """Run it to its end."""
        process = self.start(inputs, output, *options)
        out, err = process.communicate(timeout=240)
        return Ran(process.returncode, out, err)

    def ok(self, inputs: Path, output: Path, *options: str) -> Ran:
        """Run it; it must succeed."""
        ran = self(inputs, output, *options)
        assert ran.status == 0, ran.err
        return ran


@pytest.fixture(scope="session")
def parse(tmp_path_factory: pytest.TempPathFactory) -> Parse:
    """``attree parse`` with a tiny random encoder."""
    folder = tmp_path_factory.mktemp("encoder")
    save("bert", folder)
    return Parse(folder)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2,000 lines of one to twenty words, every fiftieth of them bad."""
    path = tmp_path_factory.mktemp("corpus") / "lines.txt"
    path.write_bytes(corpus_bytes(2000))
    return path


def corpus_bytes(lines: int) -> bytes:
    """Return a corpus; the same for the same number of lines."""
    random = np.random.default_rng(7)
    words = " ".join(TEXT).split()
    bad = list(BAD_LINES)
    found = []
    for number in range(lines):
        if number % 50 == 17:
            found.append(bad[(number // 50) % (len(bad) - 1)])  # not the 2 MB line
        else:
            found.append(" ".join(random.choice(words, random.integers(1, 20))).encode())
    return b"\n".join(found) + b"\n"


def tree_bytes(folder: Path) -> dict[str, bytes]:
    """Return name → content of everything that a run leaves for its readers."""
    files = sorted(p for name in ("trees", "brackets") for p in (folder / name).rglob("*"))
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def wait_until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for something to become true; fail if it does not."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process and its group, if it is still there."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
