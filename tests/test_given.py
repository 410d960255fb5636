"""What people give for sentences: tables stay, treebank files are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from attree.cli import app
from attree.errors import AttreeError
from attree.given import as_tables
from attree.schemas import SENTENCES, read_table
from tests.command_line import CliRunner

TREE = "(S (NP (DT the) (NN cat)) (VP (VBD sat)) (. .))\n"


def test_a_treebank_file_becomes_the_table_that_attree_treebank_writes(tmp_path: Path) -> None:
    mine = tmp_path / "mine.mrg"
    mine.write_text(TREE * 3)
    table = tmp_path / "mine.parquet"
    CliRunner().invoke(app, ["treebank", str(mine), "--output", str(table)])
    with as_tables([mine, table]) as (made, kept):
        assert kept == table
        read, about = read_table(made, schema=SENTENCES)
        wanted, other = read_table(table, schema=SENTENCES)
        assert read.equals(wanted)
        assert about["punctuation"] == other["punctuation"] == "ptb"
    assert not made.exists()
    assert table.exists()


def test_sentences_that_are_not_read_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.mrg"
    mine.write_text(TREE * 20 + "(S (NP\n")
    with as_tables([mine]) as (made,):
        assert read_table(made)[0].num_rows == 20
    assert capsys.readouterr().err.startswith(f"{mine}:21: ")


def test_a_table_without_its_suffix_is_a_table(tmp_path: Path) -> None:
    mine = tmp_path / "mine.mrg"
    mine.write_text(TREE)
    with as_tables([mine]) as (made,):
        bare = made.rename(tmp_path / "table")
    with as_tables([bare]) as (kept,):
        assert kept == bare


def test_what_is_neither_is_told(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("no trees")
    with pytest.raises(AttreeError, match="the format is not known"), as_tables([other]):
        pass
