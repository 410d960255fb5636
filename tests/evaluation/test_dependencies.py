"""Headed precision and recall of subtrees: against the definitions read word for word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.evaluation.metrics import phrases_and_subtrees
from attree.trees.trees import Trees

Spans = list[tuple[int, int]]
#: Words of a sentence: heads, which are punctuation, and predicted spans.
Drawn = tuple[list[int], list[bool], Spans]


@st.composite
def sentences(draw: st.DrawFn) -> Drawn:
    n = draw(st.integers(1, 8))
    order = draw(st.permutations(range(n)))
    heads = [-1] * n
    for place in range(1, n):
        heads[order[place]] = order[draw(st.integers(0, place - 1))]
    punctuation = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    every = [(start, end) for start in range(n) for end in range(start + 1, n + 1)]
    return heads, punctuation, draw(st.lists(st.sampled_from(every), max_size=9))


def trimmed(words: set[int], punctuation: list[bool]) -> tuple[int, int] | None:
    """The span of words that are side by side, without punctuation at its edges."""
    real = [word for word in words if not punctuation[word]]
    if len(words) != max(words) + 1 - min(words) or len(real) == 0:
        return None
    start, end = min(real), max(real) + 1
    return (start, end) if end - start > 1 else None


def counted(heads: list[int], punctuation: list[bool], spans: Spans) -> list[int]:
    whole = trimmed(set(range(len(heads))), punctuation)
    phrases = {trimmed(set(range(*span)), punctuation) for span in spans} - {None, whole}
    headed = 0
    for phrase in phrases:
        inside = range(*phrase) if phrase else range(0)
        out = [k for k in inside if not punctuation[k] and heads[k] not in inside]
        headed += len(out) == 1

    def below(word: int) -> set[int]:
        return {word}.union(*(below(k) for k, head in enumerate(heads) if head == word))

    subtrees = [trimmed(below(word), punctuation) for word in range(len(heads))]
    subtrees = [span for span in subtrees if span not in (None, whole)]
    found = [span for span in subtrees if span in phrases]
    return [headed, len(phrases), len(found), len(subtrees)]


@given(st.lists(sentences(), min_size=1, max_size=5))
def test_counts_are_those_of_the_definitions(drawn: list[Drawn]) -> None:
    trees = Trees.from_spans([len(heads) for heads, _, _ in drawn], [spans for *_, spans in drawn])
    heads = np.array([head for heads, _, _ in drawn for head in heads], np.int32)
    punctuation = np.array([is_it for _, marks, _ in drawn for is_it in marks])
    found = phrases_and_subtrees(trees, heads, punctuation)
    assert found.tolist() == [counted(*sentence) for sentence in drawn]


@pytest.mark.parametrize(
    ("span", "headed"),
    [((0, 2), 0), ((1, 3), 1), ((1, 4), 1), ((2, 3), None), ((0, 3), None)],
    ids=["subject and object", "object and verb", "with the full stop", "a word", "all words"],
)
def test_a_subject_with_its_object_has_two_heads_outside(
    span: tuple[int, int], headed: int | None
) -> None:
    """``Kedi fareyi kovaladı .``: cat, mouse, chased."""
    heads, punctuation = [2, 2, -1, 2], [False, False, False, True]
    trees = Trees.from_spans([4], [[span]])
    found = phrases_and_subtrees(trees, np.array(heads, np.int32), np.array(punctuation))
    assert found[0, :2].tolist() == ([0, 0] if headed is None else [headed, 1])
