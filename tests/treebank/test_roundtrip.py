"""Any tree, written in brackets or as a table and read again, is the same tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nltk
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.base.schemas import REJECTED, SENTENCES_SCHEMA, read_table, write_table
from attree.treebank import table as tables
from attree.treebank.brackets import bracketed, read, read_spmrl
from attree.treebank.sentence import Rejected, Sentence, Span, SplitSettings
from attree.treebank.table import from_table, split_table, table_of_rejected, to_table
from tests.refusals import refused
from tests.treebank.reference import nltk_spans

_LABELS = st.sampled_from(["S", "NP", "VP", "-X-", "Ssub", "ROOT2"])
# no escape sequences of its own, no white space that parts tokens, no lone surrogates
_WORDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\\- \t\n\r\f\v"), min_size=1
)
_TAGS = st.sampled_from(["NN", "DT", ".", "-LRB-", "$,", "*"])


@st.composite
def sentences(draw: st.DrawFn, words: st.SearchStrategy[str] = _WORDS) -> Sentence:
    """Draw words, and phrases that nest."""
    n = draw(st.integers(1, 8))
    spans: list[Span] = []
    waiting = [(0, n)]
    while waiting:
        start, end = waiting.pop()
        for _ in range(draw(st.integers(1 if (start, end) == (0, n) else 0, 2))):
            spans.append((start, end, draw(_LABELS)))
        if end - start > 1:
            split = draw(st.integers(start + 1, end - 1))
            waiting += [(split, end), (start, split)]
    return Sentence(
        tuple(draw(words) for _ in range(n)), tuple(draw(_TAGS) for _ in range(n)),
        tuple(spans), "f", 1,
    )  # fmt: skip


def write(sentence: Sentence) -> str:
    return bracketed(sentence.words, sentence.tags, sentence.spans)


@given(sentences())
def test_written_and_read_again(sentence: Sentence) -> None:
    text = write(sentence)
    assert list(read(text, "f", SplitSettings())) == [sentence]
    assert list(read_spmrl(f"(VROOT {text})", "f", SplitSettings())) == [sentence]


@given(st.lists(sentences(), min_size=1, max_size=5), st.data())
def test_one_broken_tree_costs_no_other(many: list[Sentence], data: Any) -> None:
    lines = [write(sentence) for sentence in many] * 2 + ["(S (A a))"]
    hurt = data.draw(st.integers(0, len(lines) - 1))
    places = [i for i, character in enumerate(lines[hurt]) if character in "()"]
    place = data.draw(st.sampled_from(places))
    lines[hurt] = lines[hurt][:place] + lines[hurt][place + 1 :]
    found = list(read("\n".join(lines), "f", SplitSettings()))
    good = [item.line for item in found if isinstance(item, Sentence)]
    expected = [line + 1 for line in range(len(lines)) if line != hurt]
    assert [line for line in good if line != hurt + 1] == expected
    assert any(isinstance(item, Rejected) and item.line == hurt + 1 for item in found)


@given(sentences(words=st.text("abcäß·'", min_size=1)))
def test_nltk_reads_the_same(sentence: Sentence) -> None:
    tree = nltk.Tree.fromstring(write(sentence))
    spans: list[Span] = []
    assert nltk_spans(tree, 0, spans) == len(sentence.words)
    assert tuple(spans) == sentence.spans
    assert tuple(tree.leaves()) == sentence.words


@given(st.text("()ab #\n<\\-*", max_size=60))
def test_any_text_is_read_or_rejected(text: str) -> None:
    lines = text.count("\n") + 1
    for item in list(read(text, "f", SplitSettings())) + list(
        read_spmrl(text, "f", SplitSettings())
    ):
        assert 1 <= item.line <= lines
        if isinstance(item, Sentence):
            assert len(item.words) == len(item.tags) > 0
            assert all(0 <= start < end <= len(item.words) for start, end, _ in item.spans)


@given(st.lists(sentences(), max_size=5))
def test_there_and_back(many: list[Sentence]) -> None:
    table = to_table(many)
    assert table.schema == SENTENCES_SCHEMA
    assert table["sentence"].to_pylist() == list(range(len(many)))
    assert list(from_table(table)) == many


def test_chunks_and_rejected_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tables, "_ROWS", 2)
    many = [Sentence((f"w{i}", "\x00"), ("A", "B"), ((0, 2, "S"),), "f", i) for i in range(5)]
    items = [item for one in many for item in (one, Rejected("g", one.line, "no", "failed"))]
    read, left = split_table(items)
    rejected = table_of_rejected(left)
    assert list(from_table(read)) == many
    assert rejected.schema == REJECTED
    assert rejected["line"].to_pylist() == [0, 1, 2, 3, 4]
    write_table(tmp_path / "t.parquet", read, schema=SENTENCES_SCHEMA, metadata={"a": 1})
    back, metadata = read_table(tmp_path / "t.parquet", schema=SENTENCES_SCHEMA)
    assert list(from_table(back)) == many
    assert metadata == {"a": 1}


def test_no_rows() -> None:
    read, rejected = to_table([]), table_of_rejected([])
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
    with refused("span-order"):
        bracketed(("a", "b", "c"), ("A", "B", "C"), spans)
