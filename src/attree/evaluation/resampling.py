"""Whether scores and their differences could be chance: bootstrap over sentences (Efron 1979).

Sentences are drawn with replacement, the same for both parsers. The difference on each draw is
compared with the observed difference (Berg-Kirkpatrick, Burkett and Klein 2012).
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.evaluation import HEADINGS
from attree.evaluation.metrics import Scored

#: Number of resamples of the sentences.
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


def intervals(scores: Scored) -> dict[str, tuple[float, float]]:
    """Return metric → 95 % interval in percent of the scores that tables always show."""
    n, rng = len(scores.sentence), np.random.default_rng(0)
    parts = np.concatenate([scores.parts(metric) for metric in HEADINGS], axis=1)
    step = max(1, _DRAWN_AT_A_TIME // max(n, 1))
    sizes = (min(step, RESAMPLES - first) for first in range(0, RESAMPLES, step))
    even = np.full(n, 1 / max(n, 1))
    sums = np.concatenate([rng.multinomial(n, even, size=size) @ parts for size in sizes])
    middle = (1 - 0.95) / 2, (1 + 0.95) / 2
    with np.errstate(invalid="ignore"):
        limits = np.nanquantile(100.0 * sums[:, ::2] / sums[:, 1::2], middle, axis=0)
    return dict(zip(HEADINGS, map(tuple, limits.T.tolist()), strict=True))


def every_difference(
    names: Sequence[str], parsers: Sequence[Scored]
) -> dict[str, dict[tuple[int, int], Difference]]:
    """Compare every two parsers by paired bootstrap; return metric → positions → difference.

    Raises:
        AttreeError: the parsers are scored on different sentences.
    """
    for name, scores in zip(names, parsers, strict=True):
        if not np.array_equal(scores.sentence, parsers[0].sentence):
            problem = f"{name} is scored on other sentences than {names[0]} "
            problem += f"({scores.sentence.size:,} and {parsers[0].sentence.size:,})"
            raise AttreeError("other-sentences", problem, fix="use the same split and max_words")
    return {
        metric: paired_bootstraps(np.stack([scores.parts(metric) for scores in parsers]))
        for metric in HEADINGS
        if parsers
    }


def paired_bootstraps(
    parts: NDArray[np.float64], *, resamples: int = RESAMPLES, seed: int = 0
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
        problem = "no sentence can be scored"
        raise AttreeError("nothing-to-score", problem, fix="compare on longer sentences")
    sums = _resampled_sums(np.concatenate(list(parts), axis=1), resamples, seed)
    drawn = _percent(sums.reshape(resamples, parsers, 2))
    whole = _percent(parts.sum(axis=1))
    return {
        (i, j): _as_difference(float(whole[i] - whole[j]), drawn[:, i] - drawn[:, j])
        for i, j in itertools.combinations(range(parsers), 2)
    }


def interval(parts: NDArray[np.float64]) -> tuple[float, float]:
    """Return the middle 95 % of a score in percent over draws of the sentences.

    Args:
        parts: float64 (sentences, 2), as for :func:`paired_bootstraps`.
    """
    return _middle(_percent(_resampled_sums(parts, RESAMPLES, seed=0)))


def _middle(drawn: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def _as_difference(observed: float, drawn: NDArray[np.float64]) -> Difference:
    # rounding must not make an equal difference smaller
    as_far = np.abs(drawn - observed) >= abs(observed) - 1e-9
    return Difference(observed, (1 + int(as_far.sum())) / (1 + drawn.size), *_middle(drawn))


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
