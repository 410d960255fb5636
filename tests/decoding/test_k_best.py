"""The k best trees against the enumeration of all trees, whatever the decoder."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from attree.decoding import DECODERS
from attree.decoding.constrained import SplitChart
from attree.trees.constraints import Constraints
from tests.decoding.test_constrained import example, wanted
from tests.refusals import refused
from tests.scoring.reference import SPLITS
from tests.training import reference

CHARTS = sorted(set(DECODERS) - {"greedy"})
RECIPES = st.tuples(st.sampled_from(sorted(SPLITS)), st.sampled_from(CHARTS))


def catalan(n: int) -> int:
    """Count the binary trees of n words."""
    return math.comb(2 * n - 2, n - 1) // n


def spans_of(chart: SplitChart, k: int) -> tuple[list[frozenset[reference.Span]], list[float]]:
    found = chart.best(k)
    trees = [found.trees.of(place) for place in range(len(found.trees))]
    for tree in trees:
        assert list(tree.spans) == sorted(tree.spans, key=lambda span: (span[0], -span[1]))
    return [frozenset(tree.spans) for tree in trees], found.scores


@settings(max_examples=80)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 7), recipe=RECIPES, k=st.integers(1, 500))
def test_they_are_the_best_of_all_trees(seed, n, recipe, k):
    matrix, chart = example(seed, n, *recipe)
    if recipe[1] == "marginal_chart":
        likely = wanted(matrix, chart, recipe[0])
        # a decoder adds the marginals of both parts of each split: all but the whole sentence's
        value = lambda tree: likely(tree - {(0, n)})  # noqa: E731
    else:
        value = wanted(matrix, chart, recipe[0])
    found, scores = spans_of(chart, k)
    assert len(found) == len(set(found)) == min(k, catalan(n))
    best = sorted(map(value, reference.trees(0, n)), reverse=True)[:k]
    np.testing.assert_allclose(scores, best, atol=1e-9)
    np.testing.assert_allclose([value(tree) for tree in found], best, atol=1e-9)


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 30), recipe=RECIPES)
def test_the_first_is_the_decoder_s_own_tree(seed, n, recipe):
    _, chart = example(seed, n, *recipe)
    own = chart.trees(Constraints())
    first = chart.best(3).trees.take([0])
    assert first == own
    np.testing.assert_allclose(first.scores, own.scores)


def test_ties_take_the_smallest_split_first_and_every_tree_comes_once() -> None:
    recipe = {"association": "raw", "score": "inside_outside", "decoder": "chart"}
    chart = SplitChart.of(np.zeros(36), [6], **recipe)
    found, scores = spans_of(chart, 1000)
    assert len(found) == len(set(found)) == catalan(6)
    assert set(scores) == {0.0}
    assert found[0] == {(i, 6) for i in range(5)}


def test_long_sentences_and_asking_changes_nothing() -> None:
    _, chart = example(0, 400, "inside_outside", "chart")
    found, scores = spans_of(chart, 50)
    assert len(set(found)) == 50 and scores == sorted(scores, reverse=True)
    assert spans_of(chart, 3) == (found[:3], scores[:3])
    assert chart.trees(Constraints()).of(0).spans == chart.best(1).trees.of(0).spans


def test_greedy_splits_compare_no_trees() -> None:
    _, chart = example(0, 5, "outside", "greedy")
    with refused("no-whole-trees"):
        chart.best(2)
