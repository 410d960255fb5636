"""Split scores out of the tables equal the equations of the method."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from attree.scoring import SCORES
from attree.scoring.prefix import prefix_sums
from attree.scoring.tables import SplitScores, split_scores, transform
from tests.refusals import refused
from tests.scoring.reference import SPLITS, Matrix, attention, matrices, s_in, s_span


def split(scores: SplitScores, i: int, k: int, j: int) -> float:
    """Look up ``split(i, k, j)`` of a lone sentence as :mod:`attree.scoring.tables` says."""
    side = int(scores.n_words[0]) + 1
    found = 0.0
    if scores.has_terms:
        terms = scores.terms.reshape(side, side)
        found += terms[k, i] + terms[k, j]
    if scores.has_cross:
        sums = scores.prefix.reshape(side, side)
        across = sums[j, k] - sums[k, k] - sums[j, i] + sums[k, i]
        found -= across / (2 * (k - i) * (j - k))
    return found


@given(matrices(2, 8))
def test_every_split_of_every_span_has_the_score_of_the_equations(a: Matrix) -> None:
    n = len(a)
    for score in SCORES:
        tables = split_scores(a.ravel(), np.array([n]), score)
        assert tables.not_finite == -1
        for i in range(n):
            for j in range(i + 2, n + 1):
                for k in range(i + 1, j):
                    wanted = SPLITS[score](a, i, k, j)
                    assert split(tables, i, k, j) == pytest.approx(wanted, abs=1e-12)


@given(matrices())
def test_prefix_sums_are_those_of_plain_sums(a: Matrix) -> None:
    n = len(a)
    both = a + a.T
    for dtype in (np.float16, np.float32, np.float64):
        found, bad = prefix_sums(a.astype(dtype).ravel(), np.array([n]))
        table = found.reshape(n + 1, n + 1)
        assert bad == -1
        for i in range(n + 1):
            for j in range(i + 1):
                assert table[i, j] == both[:i, :j].sum()  # exact: the values are of float16


def test_every_half_is_read_as_numpy_reads_it() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)]
    found, _ = prefix_sums(finite, np.ones(finite.size, np.int64))
    assert np.array_equal(found.reshape(-1, 4)[:, 3], 2.0 * finite.astype(np.float64))
    for one in halves[~np.isfinite(halves)][::97]:
        assert prefix_sums(np.array([0.5, one], np.float16), np.ones(2, np.int64))[1] == 1


def test_root_has_no_outside() -> None:
    a = attention(6)
    terms = split_scores(a.ravel(), np.array([6]), "inside_outside").terms.reshape(7, 7)
    assert terms[0, 6] == pytest.approx(s_in(a, 0, 6)) == pytest.approx(s_span(a, 0, 6))


def test_uniform_attention_scores_every_span_exactly_alike() -> None:
    a = np.full((9, 9), 1 / 9, np.float16)
    terms = split_scores(a.ravel(), np.array([9]), "inside_outside").terms.reshape(10, 10)
    inner = np.triu(np.ones((10, 10), bool), 1)
    inner[0, 9] = False
    assert (terms[inner] == 0.0).all()


def test_log_is_of_the_mean_with_a_floor() -> None:
    a = np.array([0.0, 0.5, 1.0], np.float16)
    assert transform(a, "log") == pytest.approx(np.log(a.astype(np.float64) + 1e-6), rel=1e-15)
    assert np.isnan(transform(np.array([-1.0]), "log")).all()
    assert transform(a, "raw") is a


def test_unknown_names_are_refused() -> None:
    with refused("unknown-name", "raw"):
        transform(np.ones(1), "sqrt")
    with refused("unknown-name", "outer", "outside"):
        split_scores(np.ones(1), np.array([1]), "outer")
