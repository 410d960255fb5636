"""Sentences as tables, and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.base.errors import AttreeError
from attree.base.schemas import REJECTED, SENTENCES_SCHEMA, read_table, write_table
from attree.treebank import table as tables
from attree.treebank.brackets import bracketed
from attree.treebank.sentence import Rejected, Sentence
from attree.treebank.table import TableBuilder, from_table, to_table
from tests.treebank.test_roundtrip import sentences


@given(st.lists(sentences(), max_size=5))
def test_there_and_back(many: list[Sentence]) -> None:
    table = to_table(many)
    assert table.schema == SENTENCES_SCHEMA
    assert table["sentence"].to_pylist() == list(range(len(many)))
    assert list(from_table(table)) == many


def test_chunks_and_rejected_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tables, "_ROWS", 2)
    builder = TableBuilder()
    many = [Sentence((f"w{i}", "\x00"), ("A", "B"), ((0, 2, "S"),), "f", i) for i in range(5)]
    for one in many:
        builder.add(one)
        builder.add(Rejected("g", one.line, "no", "failed"))
    read, rejected = builder.tables()
    assert list(from_table(read)) == many
    assert rejected.schema == REJECTED
    assert rejected["line"].to_pylist() == [0, 1, 2, 3, 4]
    write_table(tmp_path / "t.parquet", read, schema=SENTENCES_SCHEMA, metadata={"a": 1})
    back, metadata = read_table(tmp_path / "t.parquet", schema=SENTENCES_SCHEMA)
    assert list(from_table(back)) == many
    assert metadata == {"a": 1}


def test_no_rows() -> None:
    read, rejected = TableBuilder().tables()
    assert (read.schema, rejected.schema) == (SENTENCES_SCHEMA, REJECTED)


def test_bracketed() -> None:
    words, tags = ("a b", "(", "c"), ("A", "", "C")
    text = bracketed(words, tags, ((0, 2, "NP"), (0, 1, "X")))
    assert text == "( (NP (X (A a_b)) (X -LRB-)) (C c))"
    assert bracketed(("x",), ("N",), ()) == "(N x)"
    deep = tuple((i, 5000, "S") for i in range(5000))
    assert bracketed(("w",) * 5000, ("N",) * 5000, deep).count("(") == 10_000


@pytest.mark.parametrize("spans", [((0, 2, "A"), (1, 3, "B")), ((1, 2, "A"), (0, 3, "S"))])
def test_bracketed_refuses_what_is_no_tree(spans: tuple[tuple[int, int, str], ...]) -> None:
    with pytest.raises(AttreeError):
        bracketed(("a", "b", "c"), ("A", "B", "C"), spans)
