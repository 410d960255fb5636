"""Intervals of F1 and differences between parsers, by bootstrap over the sentences of a table."""

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
from attree.evaluation.significance import (
    RESAMPLES,
    Difference,
    corpus_f1_parts,
    paired_bootstraps,
)

#: The seed of the draws.
SEED = 0
_AT_ONCE = 4_000_000
_MIDDLE = [(1 - 0.95) / 2, (1 + 0.95) / 2]

#: The counts of :class:`attree.evaluation.counts.Counts` that sentences add up to.
PARTS = ("gold", "predicted", "matched", "scored", "sentence_f1_sum", "sentence_f1_count")


@dataclass(frozen=True, slots=True)
class SentenceCounts:
    """The counts of a parser's F1, sentence by sentence.

    Attributes:
        sentence: int32 (sentences,), numbers of the sentences.
        n_words: int32 (sentences,), words.
        parts: float64 (sentences, 6), the counts of :data:`PARTS`.
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
    def of(cls, columns: Mapping[str, NDArray[Any]], f1: NDArray[np.float64]) -> SentenceCounts:
        """Take columns of a table of scores, and each sentence's F1 (0 to 1, or NaN)."""
        parts = [columns[name] for name in ("gold", "predicted", "matched")]
        parts += [columns["gold"] > 0, np.nan_to_num(f1), ~np.isnan(f1)]
        order = np.argsort(columns["sentence"], kind="stable")
        sentence, n_words = columns["sentence"][order], columns["n_words"][order]
        return cls(sentence, n_words, np.stack(parts, axis=1).astype(float)[order])

    def f1(self, weights: NDArray[Any] | None = None) -> dict[str, NDArray[np.float64]]:
        """Return metric → F1 in percent, (resamples,).

        Args:
            weights: (resamples, sentences), how often each sentence is drawn; once if None.
        """
        if weights is None:
            weights = np.ones((1, len(self.parts)))
        counts = Counts(**dict(zip(PARTS, (weights @ self.parts).T, strict=True)))
        return {metric: getattr(counts, metric) for metric in HEADINGS}

    def corpus_f1(self, chosen: NDArray[np.bool_]) -> float | None:
        """Return corpus F1 of the chosen sentences in percent; None if none of them is scored."""
        f1 = self.f1(chosen[None])["corpus_f1"][0]
        return None if np.isnan(f1) else float(f1)

    def ratio(self, metric: str) -> NDArray[np.float64]:
        """Return (sentences, 2): the numerators and denominators that add up to a metric."""
        if metric == "sentence_f1":
            return self.parts[:, [PARTS.index("sentence_f1_sum"), PARTS.index("sentence_f1_count")]]
        counts = self.parts[:, [PARTS.index(name) for name in ("matched", "gold", "predicted")]]
        return corpus_f1_parts(counts, root={"corpus_f1": True, "corpus_f1_no_root": False}[metric])


def intervals(scores: SentenceCounts) -> dict[str, tuple[float, float]]:
    """Return metric → 95 % interval of F1 in percent, by bootstrap over sentences."""
    n, rng = len(scores.parts), np.random.default_rng(SEED)
    chunk = max(1, _AT_ONCE // max(n, 1))
    drawn = [
        scores.f1(rng.multinomial(n, np.full(n, 1 / max(n, 1)), size=min(chunk, RESAMPLES - first)))
        for first in range(0, RESAMPLES, chunk)
    ]
    limits = {}
    for metric in HEADINGS:
        low, high = np.nanquantile(np.concatenate([f1[metric] for f1 in drawn]), _MIDDLE)
        limits[metric] = float(low), float(high)
    return limits


def differences(first: SentenceCounts, second: SentenceCounts) -> dict[str, Difference]:
    """Compare two parsers by paired bootstrap; return metric → difference."""
    pairs = every_difference(("the first", "the second"), (first, second))
    return {metric: pair_differences[0, 1] for metric, pair_differences in pairs.items()}


def every_difference(
    names: Sequence[str], parsers: Sequence[SentenceCounts]
) -> dict[str, dict[tuple[int, int], Difference]]:
    """Compare every two parsers by paired bootstrap; return metric → positions → difference.

    Raises:
        AttreeError: the parsers are scored on different sentences.
    """
    for name, scores in zip(names, parsers, strict=True):
        if not np.array_equal(scores.sentence, parsers[0].sentence):
            raise AttreeError(
                "other-sentences",
                f"{name} is scored on other sentences than {names[0]} "
                f"({scores.sentence.size:,} and {parsers[0].sentence.size:,})",
                fix="score every parser on the same split, with the same max_words",
            )
    return {
        metric: paired_bootstraps(
            np.stack([scores.ratio(metric) for scores in parsers]), resamples=RESAMPLES, seed=SEED
        )
        for metric in HEADINGS
    }
