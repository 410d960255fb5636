"""Any tree, written and read again, is the same tree; and nltk reads the same one."""

from __future__ import annotations

from typing import Any

import nltk
from hypothesis import given
from hypothesis import strategies as st

from attree.treebank.brackets import bracketed, read, read_spmrl
from attree.treebank.sentence import Rejected, Sentence, Span, SplitSettings
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
