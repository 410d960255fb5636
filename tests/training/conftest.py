"""A tiny encoder, and a treebank whose trees can be learned from it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from attree.base.schemas import SENTENCES_SCHEMA, read_table, write_table
from attree.cli.main import app
from attree.encoder.source import find_encoder, resolve
from attree.training.gold import GoldTrees, read_trees
from tests.command_line import CliRunner, Result
from tests.encoder.checkpoints import save
from tests.training import reference

WORDS = ("the", "old", "man", "lived", "near", "harbour", "cat", "chased", "mice", "rain", "home")


def table(path: Path, count: int, seed: int, *, longest: int = 9) -> Path:
    """Write a SENTENCES table of random words and trees."""
    generator = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        n = int(generator.integers(1, longest + 1))
        spans = reference.random_tree(generator, 0, n) or [(0, n)]
        words = [WORDS[w] for w in generator.integers(0, len(WORDS), n)]
        rows.append(
            {
                "sentence": number,
                "file": f"{path.stem}.mrg",
                "line": number + 1,
                "words": words,
                "tags": [word[0].upper() for word in words],
                "starts": [start for start, _ in spans],
                "ends": [end for _, end in spans],
                "labels": ["X"] * len(spans),
            }
        )
    made = pa.Table.from_pylist(rows, schema=SENTENCES_SCHEMA)
    metadata = {"language": "toy", "split": path.stem}
    write_table(path, made, schema=SENTENCES_SCHEMA, metadata=metadata)
    return path


def read(path: Path, rows: Iterable[int]) -> GoldTrees:
    """Read some trees of a table."""
    return read_trees(read_table(path)[0], list(rows))


def run(*arguments: object, ok: bool = True) -> Result:
    """Call a command in this process, and expect that it ends well, or that it does not."""
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert (done.exit_code == 0) == ok, done.output
    return done


def train_into(
    output: Path, sentences: Path, encoder: Path | None, *options: object, ok: bool = True
) -> Result:
    """Train a parser by the command, on few trees and in few steps if nothing else is asked."""
    usual = {"--trees": 5, "--steps": 3, "--device": "cpu", "--encoder": encoder}
    given = {name: value for name, value in usual.items() if name not in options and value}
    more = [word for pair in given.items() for word in pair]
    return run("train", "--sentences", sentences, "--output", output, *options, *more, ok=ok)


@pytest.fixture(scope="session")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table(tmp_path_factory.mktemp("toy") / "dev.parquet", 40, 0)


@pytest.fixture(scope="session")
def resolved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The JSON description of a tiny BERT."""
    folder = tmp_path_factory.mktemp("encoder")
    resolve(save("bert", folder / "checkpoint")).write(folder / "bert.json")
    return folder / "bert.json"


@pytest.fixture(scope="session")
def encoder(resolved: Path):
    from attree.encoder.load import load_encoder

    return load_encoder(find_encoder(resolved), device="cpu", threads=1)


@pytest.fixture
def trees(treebank: Path) -> GoldTrees:
    """Twelve trees of three words and more."""
    words = read_table(treebank)[0]["words"].to_pylist()
    return read(treebank, [row for row, one in enumerate(words) if len(one) > 2][:12])
