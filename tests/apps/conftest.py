"""An encoder, treebanks, and ``attree evaluate`` called in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from attree.cli.main import app
from attree.encoder.source import resolve
from tests.command_line import CliRunner, Result
from tests.encoder.checkpoints import save
from tests.training.conftest import table

#: Of French labels, all with other words.
TREES = [f"( (SENT (NP (D a) (N w{n})) (VN (V b) (NP (D c) (N d{n})))) )" for n in range(9)]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)


def evaluate(*arguments: object) -> Result:
    return run("evaluate", *arguments)


def write(path: Path, trees: list[str]) -> Path:
    path.write_text("".join(f"{tree}\n" for tree in trees))
    return path


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """The description of an encoder."""
    path = tmp_path / "bert.json"
    resolve(save("bert", tmp_path / "checkpoint")).write(path)
    return path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Sentence tables to train and to test on."""
    train, test = tmp_path / "train.parquet", tmp_path / "test.parquet"
    return table(train, 12, seed=0), table(test, 8, seed=1)
