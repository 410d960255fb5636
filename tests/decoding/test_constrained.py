"""The tree of one sentence under constraints, and the k best, against all trees, by any decoder."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attree.base.errors import NotFiniteError
from attree.decoding import DECODERS
from attree.decoding.batch import decode
from attree.decoding.constrained import SplitChart
from attree.decoding.decoders import MAXIMISED, span_marginals
from attree.trees.constraints import Constraints
from tests import drawn
from tests.decoding.test_decoders import log_probabilities
from tests.refusals import refused
from tests.scoring.reference import SPLITS, splits_of
from tests.training import reference
from tests.training.reference import Span

RECIPES = st.tuples(st.sampled_from(sorted(SPLITS)), st.sampled_from(sorted(DECODERS)))


def example(seed: int, n: int, score: str, decoder: str) -> tuple[np.ndarray, SplitChart]:
    matrix = np.random.default_rng(seed).normal(0, 1, (n, n))
    recipe = {"association": "raw", "score": score, "decoder": decoder}
    return matrix, SplitChart.of(matrix.ravel(), [n], **recipe)


def wanted(matrix: np.ndarray, chart: SplitChart, score: str) -> Callable[[Iterable[Span]], float]:
    """What the decoder maximises over trees."""
    n = len(matrix)

    def split(i: int, k: int, j: int) -> float:
        return SPLITS[score](matrix, i, k, j)

    if chart.decoder == "marginal_chart":
        likely = span_marginals(chart.scores).reshape(n + 1, n + 1)
        return lambda tree: sum(likely[span] for span in tree)
    value = log_probabilities(split) if chart.decoder == "normalised_chart" else split
    return lambda tree: sum(value(*each) for each in splits_of(sorted(tree, key=pre_order)))


def pre_order(span: Span) -> tuple[int, int]:
    return span[0], -span[1]


def found(chart: SplitChart, constraints: Constraints) -> set[Span]:
    tree = chart.trees(constraints).of(0)
    assert list(tree.spans) == sorted(tree.spans, key=pre_order)
    return set(tree.spans)


@settings(max_examples=80)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 6), recipe=RECIPES)
def test_the_tree_is_the_best_of_those_that_keep_to_the_constraints(seed, n, recipe):
    matrix, chart = example(seed, n, *recipe)
    constraints = drawn.constraints(seed, n)
    those = drawn.best_trees(constraints, n)
    shown = found(chart, constraints)
    candidates = [tree for tree in those if tree - set(constraints.forbidden) == shown]
    assert candidates, "required spans are in, forbidden ones are out, the rest is binary"
    if chart.decoder != "greedy":
        value = wanted(matrix, chart, recipe[0])
        best = max(map(value, those))
        assert max(map(value, candidates)) == pytest.approx(best, abs=1e-8)


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 7), recipe=RECIPES)
def test_without_constraints_it_is_the_decoder_s_own_tree(seed, n, recipe):
    matrix, chart = example(seed, n, *recipe)
    own = decode(matrix.ravel(), [n], score=recipe[0], decoder=recipe[1], scored=True)
    for _ in range(2):  # asking changes nothing
        again = chart.trees(Constraints())
        assert again == own
        np.testing.assert_allclose(again.scores, own.scores)


def test_greedy_looks_as_far_down_as_the_constraints_reach():
    """The first split would be at 1, and leave two words after it that must not be together."""
    matrix = np.array([[9.0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 1, 1], [0, 1, 1, 1]])
    recipe = {"association": "raw", "score": "outside", "decoder": "greedy"}
    chart = SplitChart.of(matrix.ravel(), [4], **recipe)
    assert (1, 4) in found(chart, Constraints())
    constraints = Constraints(forbidden=((1, 3), (2, 4)))
    assert found(chart, constraints) == {(0, 4), (0, 3), (0, 2)}


def test_every_decoder_keeps_to_constraints():
    assert set(MAXIMISED) == set(DECODERS)


def test_what_has_no_distribution_says_so():
    _, chart = example(0, 4, "outside", "greedy")
    with refused("no-distribution"):
        chart.marginals(Constraints())
    with pytest.raises(NotFiniteError):
        recipe = {"association": "raw", "score": "outside", "decoder": "greedy"}
        SplitChart.of(np.full(9, np.nan), [3], **recipe)


CHARTS = sorted(set(DECODERS) - {"greedy"})
CHART_RECIPES = st.tuples(st.sampled_from(sorted(SPLITS)), st.sampled_from(CHARTS))


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
@given(
    seed=st.integers(0, 10_000), n=st.integers(1, 7), recipe=CHART_RECIPES, k=st.integers(1, 500)
)
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
@given(seed=st.integers(0, 10_000), n=st.integers(2, 30), recipe=CHART_RECIPES)
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
