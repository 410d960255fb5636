"""``attree evaluate --train --test``: parsers trained on a few trees, and their F1."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from attree.cli import app
from attree.encoder.source import resolve
from attree.errors import AttreeError
from attree.evaluate.training import Treebank
from attree.evaluation.baselines import fixed_parses
from attree.evaluation.metrics import score
from attree.parses import Parses
from attree.treebank.sentence import Settings
from tests.encoder.checkpoints import save
from tests.fewshot.conftest import table


def run(*arguments: object) -> Result:
    given = ["evaluate", *map(str, arguments)]
    return CliRunner().invoke(app, given, catch_exceptions=False, standalone_mode=False)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return (
        table(tmp_path / "train.parquet", 12, seed=0),
        table(tmp_path / "test.parquet", 8, seed=1),
    )


def test_each_number_of_trees_is_a_row_beside_the_baselines(
    tmp_path: Path, files: tuple[Path, Path]
) -> None:
    resolve(save("bert", tmp_path / "checkpoint")).write(tmp_path / "bert.json")
    train, test = files
    how = ("--encoder", tmp_path / "bert.json", "--trees", "3,6", "--draws", 2, "--steps", 2)
    shown = run("--train", train, "--test", test, *how, "--device", "cpu").stdout
    rows = [line.split() for line in shown.splitlines() if line.strip()[-3:-2] == "."]
    assert [" ".join(row[:-3]) for row in rows] == [
        "tree-crf-full, 3 trees",
        "tree-crf-full, 6 trees",
        "right branching",
        "left branching",
        "balanced",
        "binary ceiling",
    ]
    gold = Parses.gold(Treebank.read(test, Settings()).table)
    right = score(gold, fixed_parses("right_branching", gold)).counts
    assert float(rows[2][-3]) == pytest.approx(right.corpus_f1, abs=0.005)
    assert float(rows[0][-3]) <= float(rows[-1][-3])
    assert "Means of 2 draws of trees" in " ".join(shown.split())


def test_trees_in_both_files_are_refused(tmp_path: Path, files: tuple[Path, Path]) -> None:
    resolve(save("bert", tmp_path / "checkpoint")).write(tmp_path / "bert.json")
    how = ("--encoder", tmp_path / "bert.json", "--trees", 3, "--steps", 1)
    with pytest.raises(AttreeError, match="pass --allow-overlap"):
        run("--train", files[0], "--test", files[0], *how)
    shown = run("--train", files[0], "--test", files[0], *how, "--allow-overlap").stdout
    assert "tree-crf-full, 3 trees" in shown


def test_what_is_evaluated_must_be_clear(files: tuple[Path, Path]) -> None:
    train, test = files
    for given in ((), ("--train", train), (train,), (train, "--gold", test, "--test", test)):
        with pytest.raises(AttreeError, match="it is not clear what to evaluate"):
            run(*given)
    with pytest.raises(AttreeError, match="--trees ten is not numbers of trees"):
        run("--train", train, "--test", test, "--trees", "ten")
