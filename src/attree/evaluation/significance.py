"""Whether a difference in F1 could be chance: paired bootstrap over sentences (Efron 1979).

Sentences are drawn with replacement, the same for both parsers. The difference on each draw is
compared with the observed difference (Berg-Kirkpatrick, Burkett and Klein 2012).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attree.base.errors import AttreeError

#: Number of resamples of the sentences in tables.
RESAMPLES = 2000
#: Sentences drawn at a time; they take a few MB.
_DRAWN_AT_A_TIME = 500_000


class Difference(NamedTuple):
    """A difference between two parsers, in percentage points.

    Attributes:
        difference: the first one's score minus the other's.
        p: two-sided p value: the share of resamples whose difference is at least as far from the
            observed one as that is from 0; both counts are raised by one, so that p is never 0.
        low, high: the middle 95 % of the resampled differences.
    """

    difference: float
    p: float
    low: float
    high: float


def corpus_f1_parts(counts: ArrayLike, *, root: bool = True) -> NDArray[np.float64]:
    """Return the numerator and denominator that each sentence adds to corpus F1.

    Args:
        counts: (sentences, 3): spans in both trees, in gold, in predicted, with the whole sentence,
            as in a table of scores; or brackets, as
            :func:`attree.evaluation.labels.label_confusion` counts them.
        root: whether the whole sentence counts; if not, it is subtracted from all three.

    Returns:
        float64 (sentences, 2).
    """
    matched, gold, predicted = np.asarray(counts, dtype=np.int64).T
    if not root:
        scored = (gold > 0).astype(np.int64)
        matched, gold, predicted = matched - scored, gold - scored, predicted - scored
    return np.stack([2.0 * matched, 1.0 * (gold + predicted)], axis=1)


def paired_bootstraps(
    parts: NDArray[np.float64], *, resamples: int = 10_000, seed: int = 0
) -> dict[tuple[int, int], Difference]:
    """Compare every pair of parsers on the same draws of the sentences.

    Args:
        parts: float64 (parsers, sentences, 2), numerator and denominator of each sentence: a
            parser's score is the ratio of their sums, in percent.
        resamples: number of draws of all sentences.
        seed: equal seeds give equal results.

    Returns:
        (position of the first parser, of the second) → their difference, the lower first.

    Raises:
        AttreeError: a parser has no sentence that can be scored.
    """
    parsers = len(parts)
    if not (parts[:, :, 1].sum(axis=1) > 0).all():
        raise AttreeError(
            "nothing-to-score", "no sentence can be scored", fix="compare on longer sentences"
        )
    sums = _resampled_sums(np.concatenate(list(parts), axis=1), resamples, seed)
    drawn = _percent(sums.reshape(resamples, parsers, 2))
    whole = _percent(parts.sum(axis=1))
    return {
        (i, j): _as_difference(float(whole[i] - whole[j]), drawn[:, i] - drawn[:, j])
        for i, j in itertools.combinations(range(parsers), 2)
    }


def interval(
    parts: NDArray[np.float64], *, resamples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Return the middle 95 % of one parser's score in percent over draws of the sentences.

    Args:
        parts: float64 (sentences, 2); all arguments as for :func:`paired_bootstraps`.
    """
    low, high = np.quantile(_percent(_resampled_sums(parts, resamples, seed)), [0.025, 0.975])
    return float(low), float(high)


def _as_difference(observed: float, drawn: NDArray[np.float64]) -> Difference:
    # rounding must not make an equal difference smaller
    as_far = np.abs(drawn - observed) >= abs(observed) - 1e-9
    low, high = np.quantile(drawn, [0.025, 0.975])
    p = (1 + int(as_far.sum())) / (1 + drawn.size)
    return Difference(observed, p, float(low), float(high))


def _resampled_sums(values: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    generator, n = np.random.default_rng(seed), len(values)
    sums = np.empty((resamples, values.shape[1]))
    step = max(1, _DRAWN_AT_A_TIME // n)
    for first in range(0, resamples, step):
        rows = generator.integers(n, size=(min(step, resamples - first), n))
        times = np.stack([np.bincount(row, minlength=n) for row in rows])
        sums[first : first + len(rows)] = times @ values
    return sums


def _percent(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ratio of the two entries of the last axis, in percent; 0 if the second is 0."""
    up, down = sums[..., 0], sums[..., 1]
    return np.asarray(100.0 * np.divide(up, down, out=np.zeros_like(up), where=down > 0))
