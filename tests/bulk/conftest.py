"""A tiny encoder, a corpus with every kind of bad line in it, and `attree parse` as a process."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import Ran, attree
from tests.encoder.checkpoints import TEXT, save

#: Small shards and batches, so that a run takes a few seconds.
OPTIONS = ("--shard-lines", "50", "--tokens-per-batch", "32", "--to", "brackets")

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


class Parse:
    """Runs ``attree parse`` with the tiny encoder."""

    def __init__(self, encoder: Path) -> None:
        self.encoder = encoder

    def words(self, inputs: Path, output: Path, *options: str) -> list[str]:
        """Return the words of the command; ``options`` come instead of the usual ones."""
        usual = {
            "--encoder": str(self.encoder),
            "--heads": "list:0.1,1.2",
            "--threads": "1",
            "--tokenizer": "whitespace",
            "--too-long": "skip",
        }
        fixed = [word for item in usual.items() if item[0] not in options for word in item]
        return ["parse", str(inputs), "--output", str(output), *fixed, *options]

    def start(
        self, inputs: Path, output: Path, *options: str, **environment: str
    ) -> subprocess.Popen[str]:
        """Start it in a process of its own, which leads its group."""
        program = str(Path(sys.executable).with_name("attree"))
        return subprocess.Popen(
            [program, *self.words(inputs, output, *options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            start_new_session=True,
        )

    @contextlib.contextmanager
    def running(
        self, inputs: Path, output: Path, *options: str, **environment: str
    ) -> Iterator[subprocess.Popen[str]]:
        """Start it, and at the end kill it and its group if it is still there."""
        process = self.start(inputs, output, *options, **environment)
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def __call__(self, inputs: Path, output: Path, *options: str) -> Ran:
        """Run it to its end, in this process."""
        return attree(*self.words(inputs, output, *options))

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
    """1,000 lines of one to twenty words, every fiftieth of them bad."""
    path = tmp_path_factory.mktemp("corpus") / "lines.txt"
    path.write_bytes(corpus_bytes(1000))
    return path


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """A text that takes a while."""
    path = tmp_path / "long.txt"
    path.write_text("the old man who lived near the harbour walked\n" * 50_000)
    return path


@dataclass(frozen=True)
class Undisturbed:
    """What a run with OPTIONS leaves, and the seconds from its first shard to its last."""

    content: dict[str, bytes]
    seconds: float


@pytest.fixture(scope="session")
def undisturbed(
    parse: Parse, corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> Undisturbed:
    """A run of the corpus that nobody disturbs."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    parse.ok(corpus, out, *OPTIONS)
    times = [path.stat().st_mtime for path in (out / "trees").iterdir()]
    return Undisturbed(tree_bytes(out), max(times) - min(times))


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


def wait_until(true: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait for something to become true; fail if it does not."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)
