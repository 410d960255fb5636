"""How sure a figure is: intervals of F1, and differences of two parsers, by paired bootstrap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.base.schemas import SCORES_SCHEMA, read_table
from attree.evaluation import HEADINGS
from attree.evaluation.counts import Counts
from attree.evaluation.significance import Difference, corpus_f1_parts, paired_bootstraps

#: Resamples of the sentences, and the seed that draws them: equal input gives equal intervals.
RESAMPLES, SEED = 2000, 0
_AT_ONCE = 4_000_000
_MIDDLE = [(1 - 0.95) / 2, (1 + 0.95) / 2]

#: What a sentence adds to :class:`attree.evaluation.counts.Counts`.
PARTS = ("gold", "predicted", "matched", "scored", "sentence_f1_sum", "sentence_f1_count")

F1s = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class SentenceCounts:
    """What the F1 of a parser is made of, sentence by sentence.

    Attributes:
        sentence: int32 (sentences,), their numbers.
        n_words: int32 (sentences,).
        parts: float64 (sentences, 6), of :data:`PARTS`: they add up to counts.
    """

    sentence: NDArray[np.int32]
    n_words: NDArray[np.int32]
    parts: NDArray[np.float64]

    @classmethod
    def read(cls, path: Path) -> SentenceCounts:
        """Read a table that ``attree score`` wrote."""
        table, _ = read_table(path, schema=SCORES_SCHEMA)
        columns = {name: table[name].to_numpy() for name in table.schema.names}
        return cls.of(columns, columns["sentence_f1"].astype(np.float64) / 100)

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]], each: NDArray[np.float64]) -> SentenceCounts:
        """Take the columns of such a table, and each sentence's F1 (of 1, or NaN)."""
        parts = [columns[name] for name in ("gold", "predicted", "matched")]
        parts += [columns["gold"] > 0, np.nan_to_num(each), ~np.isnan(each)]
        order = np.argsort(columns["sentence"], kind="stable")
        sentence, n_words = columns["sentence"][order], columns["n_words"][order]
        return cls(sentence, n_words, np.stack(parts, axis=1).astype(float)[order])

    def where(self, kept: NDArray[np.bool_]) -> SentenceCounts:
        """Return some of the sentences."""
        return SentenceCounts(self.sentence[kept], self.n_words[kept], self.parts[kept])

    def f1(self, weights: NDArray[np.int64] | None = None) -> F1s:
        """Return metric → F1 in percent, one a resample.

        Args:
            weights: int64 (resamples, sentences), how often each sentence is drawn; once if None.
        """
        if weights is None:
            weights = np.ones((1, len(self.parts)), np.int64)
        counts = Counts(**dict(zip(PARTS, (weights @ self.parts).T, strict=True)))
        return {metric: getattr(counts, metric) for metric in HEADINGS}

    def ratio(self, metric: str) -> NDArray[np.float64]:
        """Return (sentences, 2), numerator and denominator of each sentence's share in a metric."""
        if metric == "sentence_f1":
            return self.parts[:, [PARTS.index("sentence_f1_sum"), PARTS.index("sentence_f1_count")]]
        counts = self.parts[:, [PARTS.index(name) for name in ("matched", "gold", "predicted")]]
        return corpus_f1_parts(counts, root=metric == "corpus_f1")


def intervals(scores: SentenceCounts) -> dict[str, tuple[float, float]]:
    """Return metric → the 95 % interval of its F1 in percent by bootstrap over sentences."""
    found = {}
    for metric, values in _resampled(scores).items():
        low, high = np.nanquantile(values, _MIDDLE)
        found[metric] = float(low), float(high)
    return found


def differences(a: SentenceCounts, b: SentenceCounts) -> dict[str, Difference]:
    """Compare two parsers on the same sentences: metric → difference (paired bootstrap).

    Raises:
        AttreeError: they are not scores of the same sentences.
    """
    if not np.array_equal(a.sentence, b.sentence):
        raise AttreeError(
            f"the two tables score different sentences ({a.sentence.size:,} and "
            f"{b.sentence.size:,})",
            fix="compare two parsers on one split, scored with the same max_words",
        )
    return {metric: found[0, 1] for metric, found in every_difference([a, b]).items()}


def every_difference(
    parsers: Sequence[SentenceCounts],
) -> dict[str, dict[tuple[int, int], Difference]]:
    """Compare every two of several parsers on the same sentences: metric → places → difference."""
    return {
        metric: paired_bootstraps(
            np.stack([one.ratio(metric) for one in parsers]), resamples=RESAMPLES, seed=SEED
        )
        for metric in HEADINGS
    }


def _resampled(scores: SentenceCounts) -> F1s:
    """Return metric → the F1 of each resample of the sentences."""
    n = len(scores.parts)
    rng = np.random.default_rng(SEED)
    chunk = max(1, _AT_ONCE // max(n, 1))
    found: list[F1s] = []
    for first in range(0, RESAMPLES, chunk):
        size = min(chunk, RESAMPLES - first)
        weights = rng.multinomial(n, np.full(n, 1 / max(n, 1)), size=size)
        found.append(scores.f1(weights))
    return {metric: np.concatenate([part[metric] for part in found]) for metric in HEADINGS}
