"""Gold trees: what is collapsed, what is refused, and which spans cross a bracket."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attree.training.gold import gold_batch, gold_tree
from tests.refusals import refused
from tests.training import reference


def test_unary_chains_collapse_and_wide_nodes_factor_to_the_right():
    spans = [(0, 5), (0, 5), (0, 1), (1, 3), (1, 3), (2, 3)]
    tree = gold_tree(5, spans, name="t")
    assert tree.brackets.tolist() == [[0, 5], [1, 3]]
    assert sorted(tree.splits.tolist()) == [[0, 1, 5], [1, 3, 5]]
    left = gold_tree(5, spans, name="t", factor="left")
    assert sorted(left.splits.tolist()) == [[0, 1, 3], [0, 3, 4], [0, 4, 5]]


def test_the_whole_sentence_is_always_a_bracket():
    assert gold_tree(4, [(1, 3)], name="t").brackets.tolist() == [[0, 4], [1, 3]]


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 9))
def test_allowed_spans_are_those_that_cross_nothing(seed: int, n: int):
    brackets = reference.random_tree(np.random.default_rng(seed), 0, n)
    allowed = gold_batch([gold_tree(n, brackets, name="t")]).allowed[0]
    for i in range(n):
        for j in range(i + 1, n + 1):
            crossing = any(reference.crosses((i, j), bracket) for bracket in brackets)
            assert bool(allowed[i, j]) == (not crossing)


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ([(0, 4), (0, 2), (1, 3)], "crossing-spans x.mrg:3"),
        ([], "no-brackets x.mrg:3"),
        ([(0, 5)], "span-outside x.mrg:3 4"),
    ],
)
def test_bad_trees_are_named(spans: list[tuple[int, int]], said: str):
    with refused(*said.split()):
        gold_tree(4, spans, name="x.mrg:3")
