"""The commands, from a treebank file to a table of parses."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from attree.base.schemas import PARSES_SCHEMA, read_table
from attree.cli import grammar as command
from attree.rivals.grammar.options import GrammarRecipe, Sizes
from tests.refusals import refused
from tests.workflow.conftest import TOY, TREES

_SIZES = {field.name for field in fields(Sizes)}
SMALL = GrammarRecipe(
    sizes=Sizes(**{key: value for key, value in TOY.items() if key in _SIZES}),
    **{key: TOY[key] for key in ("epochs", "least", "held_out")},
)


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    path = tmp_path / "mine.mrg"
    path.write_text(TREES, encoding="utf-8")
    return path


def test_from_a_treebank_to_parses(trees: Path, tmp_path: Path) -> None:
    command.train([trees], output=tmp_path / "out", threads=1, recipe=SMALL)
    parses = tmp_path / "parses.parquet"
    command.parse([trees], grammar=tmp_path / "out", output=parses)
    table, about = read_table(parses, schema=PARSES_SCHEMA)
    assert table["status"].to_pylist() == ["ok"] * 6
    for n, starts in zip(*(table[key].to_pylist() for key in ("n_words", "starts")), strict=True):
        assert len(starts) == n - 1
    assert about["selection"] == "words of mine (no trees, seed 0)"
    assert about["language"] == "mine"


def test_text_and_trees_are_read_together(
    trees: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "more.txt").write_text("a cat slept\na cat slept\nyes\n", encoding="utf-8")
    both = [trees, tmp_path / "more.txt"]
    command.train(both, output=tmp_path / "out", threads=1, recipe=SMALL)
    told = re.search(
        r"(\d+) sentences to .* and (\d+) held out, (\d+) that", capsys.readouterr().err
    )
    assert told and sum(map(int, told.groups())) == 6 + 3 and told[3] == "1"
    said = (tmp_path / "out/grammar.json").read_text(encoding="utf-8")
    assert '"slept"' in said and '"more.txt"' in said


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    with refused("missing-file", file="none.mrg"):
        command.train([tmp_path / "none.mrg"], output=tmp_path / "out")
    with refused("missing-file", file="grammar.json"):
        command.parse(
            [tmp_path / "x.parquet"], grammar=tmp_path / "none", output=tmp_path / "y.parquet"
        )
