"""Binarisation against a naive recursion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from attree.treebank.binarise import binarise
from attree.treebank.sentence import Sentence
from tests.refusals import refused
from tests.treebank.test_roundtrip import sentences


def naive(n: int, spans: set[tuple[int, int]]) -> set[tuple[int, int, int]]:
    """Binarise by recursion over the children of each node."""
    nodes = {span for span in spans if span[1] - span[0] > 1} | {(0, n)}

    def children(node: tuple[int, int]) -> list[tuple[int, int]]:
        inner = [s for s in nodes if s != node and node[0] <= s[0] and s[1] <= node[1]]
        tops = [
            s for s in inner if not any(o != s and o[0] <= s[0] and s[1] <= o[1] for o in inner)
        ]
        covered = {word for start, end in tops for word in range(start, end)}
        words = [(word, word + 1) for word in range(*node) if word not in covered]
        return sorted(tops + words)

    def split(parts: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
        if len(parts) < 2:
            return []
        here = (parts[0][0], parts[1][0], parts[-1][1])
        return [here, *split(parts[:1]), *split(parts[1:])]

    return {one for node in nodes if n > 1 for one in split(children(node))}


@given(sentences())
def test_against_a_naive_recursion(sentence: Sentence) -> None:
    n = len(sentence.words)
    spans = [(start, end) for start, end, _ in sentence.spans]
    found = binarise(n, spans)
    assert found.shape == (n - 1, 3)
    assert found.dtype == np.int32
    rows = [tuple(map(int, row)) for row in found]
    assert set(rows) == naive(n, set(spans))
    assert rows == sorted(rows, key=lambda row: (row[0], -row[2]))  # pre-order


def test_wide_nodes_branch_right() -> None:
    assert binarise(4, [(0, 4)]).tolist() == [[0, 1, 4], [1, 2, 4], [2, 3, 4]]
    assert binarise(1, [(0, 1)]).shape == (0, 3)


def test_deep_and_wide_trees() -> None:
    n = 10_000
    deep = [(i, n) for i in range(n - 1)]
    assert len(binarise(n, deep)) == len(binarise(n, [])) == n - 1


@pytest.mark.parametrize("spans", [[(0, 3), (2, 5)], [(1, 4), (0, 2)]])
def test_crossing_spans(spans: list[tuple[int, int]]) -> None:
    with refused("crossing-spans"):
        binarise(5, spans)


@pytest.mark.parametrize("span", [(-1, 2), (3, 6), (0, 6)])
def test_spans_outside_of_the_sentence(span: tuple[int, int]) -> None:
    with refused("span-outside", "5"):
        binarise(5, [span])
