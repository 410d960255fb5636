"""Averages against all trees of a sentence."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.decoding import average as module
from attree.decoding.average import average
from attree.decoding.fixed import fixed_trees
from attree.trees.trees import Trees
from tests.evaluation.reference import random_tree
from tests.refusals import refused
from tests.scoring.reference import all_trees, spans

Spans = set[tuple[int, int]]


def distinct(found: Iterable[tuple[int, int]], n: int) -> Spans:
    long = {tuple(span) for span in found if span[1] - span[0] > 1}
    return long | ({(0, n)} if n > 1 else set())


def f1(one: Spans, other: Spans) -> float:
    return 2 * len(one & other) / (len(one) + len(other))


def members(rng: np.random.Generator, lengths: list[int], count: int) -> list[Trees]:
    return [
        Trees.from_spans(
            lengths,
            [sorted(random_tree(rng, n, binary=bool(rng.integers(2))), key=lambda s: (s[0], -s[1]))
             for n in lengths],
        )
        for _ in range(count)
    ]  # fmt: skip


def all_nary(n: int) -> list[Spans]:
    """Return every tree over n words as its spans, the whole sentence among them."""
    inner = [(i, j) for i in range(n) for j in range(i + 2, n + 1) if j - i < n]
    found = []
    for size in range(n - 1):
        for chosen in itertools.combinations(inner, size):
            crossing = any(a[0] < b[0] < a[1] < b[1] for a in chosen for b in chosen)
            if not crossing:
                found.append({(0, n), *chosen})
    return found


@given(st.lists(st.integers(2, 6), min_size=1, max_size=4), st.integers(1, 4), st.integers(0, 999))
def test_no_binary_tree_agrees_better(lengths: list[int], count: int, seed: int) -> None:
    each = members(np.random.default_rng(seed), lengths, count)
    found = average(each)
    for place, n in enumerate(lengths):
        given = [distinct(one.of(place).spans, n) for one in each]

        def mean(tree: Spans, given: list[Spans] = given) -> float:
            return sum(f1(tree, one) for one in given) / len(given)

        best = max(mean(distinct(spans(tree), n)) for tree in all_trees(0, n))
        assert mean(distinct(found.of(place).spans, n)) == pytest.approx(best)
        assert len(found.of(place).spans) == n - 1


@given(st.integers(2, 5), st.integers(1, 4), st.integers(0, 999), st.sampled_from([0, 0.3, 0.5, 1]))
def test_no_tree_has_a_higher_sum_above_the_threshold(
    n: int, count: int, seed: int, threshold: float
) -> None:
    each = members(np.random.default_rng(seed), [n], count)
    given = [distinct(one.of(0).spans, n) for one in each]

    def total(tree: Spans) -> float:
        shares = (sum(span in one for one in given) / count for span in tree - {(0, n)})
        return sum(share - threshold for share in shares)

    found = average(each, threshold=threshold).of(0)
    assert total(distinct(found.spans, n)) == pytest.approx(max(map(total, all_nary(n))))
    assert (0, n) in found.spans


def test_one_binary_parser_is_its_own_average() -> None:
    alone = fixed_trees("random_uniform_tree", [1, 2, 0, 9, 30, 5], seed=1)
    assert average([alone]) == alone
    assert average([alone], threshold=0.5) == alone


def test_a_span_is_scored_by_the_share_of_parsers_that_have_it() -> None:
    left, right = (fixed_trees(f"{side}_branching", [4]) for side in ("left", "right"))
    found = average([left, left, right])
    assert found == left
    assert found.scores is not None
    assert found.scores.tolist() == pytest.approx([1, 2 / 3, 2 / 3])
    majority = average([left, left, right], threshold=0.7)
    assert [tuple(span) for span in majority.of(0).spans] == [(0, 4)]


@pytest.mark.parametrize("threshold", [None, 0.4])
def test_a_weight_is_as_many_equal_parsers(threshold: float | None) -> None:
    one, two, three = members(np.random.default_rng(1), [3, 12, 1, 7, 2, 9] * 5, 3)
    repeated = average([one, two, two, three], threshold=threshold)
    assert average([one, two, three], threshold=threshold, weights=[1, 2, 1]) == repeated
    assert average([one, two, three], threshold=threshold) != repeated


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    each = members(np.random.default_rng(0), [3, 12, 1, 7, 2, 0, 9] * 5, 3)
    whole = average(each)
    monkeypatch.setattr(module, "_CELLS_AT_A_TIME", 100)
    assert average(each) == whole


def test_each_parser_has_a_weight() -> None:
    one = fixed_trees("balanced", [3, 4])
    for weights in ([], [1.0], [1.0, 0.0], [1.0, np.nan]):
        with refused("bad-weights", "2"):
            average([one, one], weights=weights)
