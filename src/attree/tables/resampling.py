"""How sure a figure is: intervals of F1, and differences of two parsers, by paired bootstrap."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attree.errors import AttreeError
from attree.evaluation.counts import Counts
from attree.schemas import SCORES, read_table
from attree.tables import METRICS

#: Resamples of the sentences, and the seed that draws them: equal input gives equal intervals.
RESAMPLES, SEED = 2000, 0
_AT_ONCE = 4_000_000

#: What a sentence adds to :class:`attree.evaluation.counts.Counts`.
_PARTS = ("gold", "predicted", "matched", "scored", "sentence_f1_sum", "sentence_f1_count")

F1s = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class SentenceScores:
    """What the F1 of a parser is made of, sentence by sentence.

    Attributes:
        sentence: int32 (sentences,), their numbers.
        parts: float64 (sentences, 6), of :data:`_PARTS`: they add up to counts.
    """

    sentence: NDArray[np.int32]
    parts: NDArray[np.float64]

    @classmethod
    def read(cls, path: Path) -> SentenceScores:
        """Read a table that ``attree score`` wrote."""
        table, _ = read_table(path, schema=SCORES, what="table of scores")
        columns = {name: table[name].to_numpy() for name in table.schema.names}
        each = columns["sentence_f1"].astype(np.float64) / 100
        parts = [columns[name] for name in ("gold", "predicted", "matched")]
        parts += [columns["gold"] > 0, np.nan_to_num(each), ~np.isnan(each)]
        order = np.argsort(columns["sentence"], kind="stable")
        return cls(columns["sentence"][order], np.stack(parts, axis=1).astype(float)[order])

    def f1(self, weights: NDArray[np.int64] | None = None) -> F1s:
        """Return metric → F1 in percent, one a resample.

        Args:
            weights: int64 (resamples, sentences), how often each sentence is drawn; once if None.
        """
        if weights is None:
            weights = np.ones((1, len(self.parts)), np.int64)
        counts = Counts(**dict(zip(_PARTS, (weights @ self.parts).T, strict=True)))
        return {metric: getattr(counts, metric) for metric in METRICS}


def intervals(scores: SentenceScores, level: float = 0.95) -> dict[str, tuple[float, float]]:
    """Return metric → the interval of its F1 in percent by percentile bootstrap over sentences."""
    found = _resampled(scores)[0]
    return {metric: _interval(values, level) for metric, values in found.items()}


@dataclass(frozen=True, slots=True)
class Difference:
    """Parser a less parser b in one metric, in points of F1, with its 95 % interval.

    Attributes:
        a, b: F1 in percent.
        low, high: of ``a - b``.
        p: two-sided: twice the share of resamples in which the worse parser is not the worse.
    """

    a: float
    b: float
    low: float
    high: float
    p: float


def differences(a: SentenceScores, b: SentenceScores) -> dict[str, Difference]:
    """Compare two parsers on the same sentences: metric → difference.

    Raises:
        AttreeError: they are not scores of the same sentences.
    """
    if not np.array_equal(a.sentence, b.sentence):
        raise AttreeError(
            f"the two tables score different sentences ({a.sentence.size:,} and "
            f"{b.sentence.size:,})",
            fix="compare two parsers on one split, scored with the same max_words",
        )
    ours, theirs = _resampled(a, b)
    whole = a.f1(), b.f1()
    found = {}
    for metric, values in ours.items():
        gap = values - theirs[metric]
        low, high = _interval(gap, 0.95)
        tails = min(float((gap <= 0).mean()), float((gap >= 0).mean()))
        p = min(1.0, 2 * max(tails, 1 / RESAMPLES))
        first, second = (float(one[metric][0]) for one in whole)
        found[metric] = Difference(first, second, low, high, p)
    return found


def _resampled(*parsers: SentenceScores) -> list[F1s]:
    """Return the F1 of every parser on the same resamples of the sentences."""
    n = len(parsers[0].parts)
    rng = np.random.default_rng(SEED)
    chunk = max(1, _AT_ONCE // max(n, 1))
    found: list[list[F1s]] = [[] for _ in parsers]
    for first in range(0, RESAMPLES, chunk):
        size = min(chunk, RESAMPLES - first)
        weights = rng.multinomial(n, np.full(n, 1 / max(n, 1)), size=size)
        for parser, values in zip(parsers, found, strict=True):
            values.append(parser.f1(weights))
    return [
        {metric: np.concatenate([part[metric] for part in values]) for metric in values[0]}
        for values in found
    ]


def _interval(values: NDArray[np.float64], level: float) -> tuple[float, float]:
    low, high = np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
