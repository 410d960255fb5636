"""Decoders against the worked examples, enumeration, and plain loops."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attree.decoding.batch import decode
from attree.decoding.decoders import span_marginals
from attree.decoding.kernels import add_best, add_best_with_cross
from attree.scoring.tables import split_scores
from tests.scoring.reference import (
    SPLITS,
    Matrix,
    Spans,
    all_trees,
    attention,
    matrices,
    pairs,
    s_span,
    spans,
    splits_of,
)

Scored = Callable[[int, int, int], float]

#: key of the worked examples → association, score, decoder
WORKED = {
    "upoa_greedy": ("raw", "outside", "greedy"),
    "upoa_chart": ("raw", "outside", "chart"),
    "upio_greedy": ("raw", "inside_outside", "greedy"),
    "upio_chart": ("raw", "inside_outside", "chart"),
    "upio_chart_log": ("log", "inside_outside", "chart"),
    "upio_normalised_chart_log": ("log", "inside_outside", "normalised_chart"),
}


def parse(a: Matrix, score: str, decoder: str, association: str = "raw") -> Spans:
    found = decode(a.ravel(), [len(a)], association=association, score=score, decoder=decoder)
    return pairs(found)


def greedy_by_definition(split: Scored, i: int, j: int) -> Spans:
    """Split at the first best k, then each part again, with no table."""
    if j - i < 2:
        return []
    best = max(range(i + 1, j), key=lambda k: split(i, k, j))  # max takes the first
    left, right = (greedy_by_definition(split, *part) for part in ((i, best), (best, j)))
    return [(i, j), *left, *right]


def log_probabilities(split: Scored) -> Scored:
    """Return ``log p(k | i, j)``, the log-softmax over the splits of a span."""

    def log_p(i: int, k: int, j: int) -> float:
        scores = [split(i, other, j) for other in range(i + 1, j)]
        return split(i, k, j) - float(np.logaddexp.reduce(scores))

    return log_p


@pytest.mark.parametrize("parser", WORKED)
def test_worked_examples(parser: str) -> None:
    file = Path(__file__).parents[1] / "worked_examples.json"
    for example in json.loads(file.read_text(encoding="utf-8"))["examples"]:
        association, score, decoder = WORKED[parser]
        found = parse(np.array(example["association"]), score, decoder, association)
        assert sorted(found) == sorted(map(tuple, example[parser]))


@given(matrices(2), st.sampled_from(sorted(SPLITS)))
def test_greedy_splits_every_span_at_its_best_point(a: Matrix, score: str) -> None:
    found = parse(a, score, "greedy")
    for i, k, j in splits_of(found):
        best = max(SPLITS[score](a, i, other, j) for other in range(i + 1, j))
        assert SPLITS[score](a, i, k, j) == pytest.approx(best, abs=1e-12)


@given(matrices(2))
def test_greedy_on_outside_association_takes_the_first_of_equal_splits(a: Matrix) -> None:
    """Sums of float16 values and one division are exact or rounded alike, so ties are ties."""
    n = len(a)
    assert parse(a, "outside", "greedy") == greedy_by_definition(
        lambda i, k, j: SPLITS["outside"](a, i, k, j), 0, n
    )


@settings(max_examples=100)
@given(
    matrices(2),
    st.sampled_from(sorted(SPLITS)),
    st.sampled_from([("chart", lambda split: split), ("normalised_chart", log_probabilities)]),
)
def test_charts_find_the_best_of_all_binary_trees(a: Matrix, score: str, decoder) -> None:
    """By the sum of split scores, or by the probability of the splits, top down."""
    name, scored_by = decoder
    value = scored_by(lambda i, k, j: SPLITS[score](a, i, k, j))
    found = splits_of(parse(a, score, name))
    each = [sum(value(*split) for split in tree) for tree in all_trees(0, len(a))]
    assert sum(value(*split) for split in found) == pytest.approx(max(each), abs=1e-11)


@settings(max_examples=40)
@given(matrices(2), st.sampled_from(sorted(SPLITS)))
def test_marginal_chart_finds_the_tree_of_highest_span_marginals(a: Matrix, score: str) -> None:
    n = len(a)
    log_p = log_probabilities(lambda i, k, j: SPLITS[score](a, i, k, j))
    trees = all_trees(0, n)
    chances = [np.exp(sum(log_p(*split) for split in tree)) for tree in trees]
    assert sum(chances) == pytest.approx(1.0)
    marginal = np.zeros((n + 1, n + 1))
    for tree, chance in zip(trees, chances, strict=True):
        for i, j in spans(tree):
            marginal[i, j] += chance
    table = span_marginals(split_scores(a.ravel(), np.array([n]), score)).reshape(n + 1, n + 1)
    assert np.triu(table) == pytest.approx(marginal, abs=1e-12)
    assert (table == table.T).all()
    best = max(sum(marginal[span] for span in spans(tree)) for tree in trees)
    found = parse(a, score, "marginal_chart")
    assert sum(marginal[span] for span in found) == pytest.approx(best, abs=1e-11)


@given(st.integers(2, 30), st.integers(0, 10_000))
def test_upio_chart_is_cky_over_the_sum_of_span_scores(n: int, seed: int) -> None:
    a = attention(n, seed)
    best: dict[tuple[int, int], float] = {}
    for width in range(1, n + 1):
        for i in range(n - width + 1):
            j = i + width
            parts = [best[i, k] + best[k, j] for k in range(i + 1, j)]
            best[i, j] = s_span(a, i, j) + max(parts, default=0.0)
    found = parse(a, "inside_outside", "chart")
    words = sum(s_span(a, i, i + 1) for i in range(n))
    assert sum(s_span(a, i, j) for i, j in found) + words == pytest.approx(best[0, n], abs=1e-9)


@given(st.integers(0, 40), st.integers(0, 10_000))
def test_upoa_greedy_recovers_a_tree_from_the_heights_of_its_common_ancestors(
    n: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)

    def grow(i: int, j: int) -> tuple[Spans, int]:
        """Fill in the heights of a random tree; return its spans and its own height."""
        if j - i < 2:
            return [], 0
        k = int(rng.integers(i + 1, j))
        (left, high_left), (right, high_right) = grow(i, k), grow(k, j)
        height = 1 + max(high_left, high_right)
        a[i:k, k:j] = a[k:j, i:k] = -height
        return [(i, j), *left, *right], height

    a = np.zeros((n, n))
    wanted, _ = grow(0, n)
    assert parse(a, "outside", "greedy") == wanted


@pytest.mark.parametrize("decoder", ["greedy", "chart", "normalised_chart", "marginal_chart"])
@pytest.mark.parametrize("score", sorted(SPLITS))
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ties_take_the_smallest_split(decoder: str, score: str, dtype: type) -> None:
    # a word by itself scores 0 in the scores of Kim, Li and Lee, whatever the association
    for value in (0.0,) if score in ("pair", "spans") else (0.0, 0.25):
        a = np.full((7, 7), value, dtype)
        found = parse(a, score, decoder)
        if decoder in ("greedy", "chart"):
            assert found == [(i, 7) for i in range(6)]
        else:
            assert len(list(splits_of(found))) == 6


def test_uniform_attention_of_any_length_is_a_tie() -> None:
    for n in (3, 6, 11, 25, 49):
        a = np.full((n, n), 1 / n, np.float16)
        for score, decoder in (("outside", "greedy"), ("inside_outside", "chart")):
            assert parse(a, score, decoder) == [(i, n) for i in range(n - 1)]


def test_chart_with_only_terms_is_the_chart_with_a_cross_term_of_zero() -> None:
    """Two loops fill the chart, with a cross term and without: they must agree cell by cell."""
    n_words = np.array([2, 3, 8, 21])
    values = np.concatenate([attention(n, n).ravel() for n in n_words])
    terms = split_scores(values, n_words, "inside").terms
    others = terms.copy()
    add_best(n_words, terms)
    add_best_with_cross(n_words, np.zeros_like(terms), others)
    assert others == pytest.approx(terms, abs=1e-12)


@given(matrices(1, 6))
def test_reversing_the_words_reverses_the_tree(a: Matrix) -> None:
    """Where the best tree is unique, the mirrored matrix has the mirrored one."""
    n = len(a)
    a = a + np.random.default_rng(0).random((n, n))  # no ties
    for score, decoder in (("outside", "greedy"), ("inside_outside", "chart")):
        mirrored = parse(a[::-1, ::-1].copy(), score, decoder)
        assert sorted((n - j, n - i) for i, j in mirrored) == sorted(parse(a, score, decoder))


@given(matrices(1, 7))
def test_transposing_and_scaling_change_no_tree(a: Matrix) -> None:
    for score, decoder in (("outside", "greedy"), ("inside_outside", "greedy")):
        wanted = parse(a, score, decoder)
        assert parse(a.T.copy(), score, decoder) == wanted
        assert parse(8.0 * a, score, decoder) == wanted
