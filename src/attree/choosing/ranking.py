"""Rank sentences, those to annotate first in front."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: For each sentence wanted, this many of the most uncertain are compared for diversity.
_COMPARED = 5


@dataclass(frozen=True, slots=True)
class SentenceMeasures:
    """A parser's measures of sentences.

    Attributes:
        unsure: (sentences,) entropy of the distribution over trees, in nats per word; NaN for
            sentences that cannot be parsed, which are never chosen.
        vectors: (sentences, hidden) means of the words' states.
        brackets: (sentences,) int64, brackets of the proposed trees: the cost of annotation.
    """

    unsure: NDArray[np.float64]
    vectors: NDArray[np.float32]
    brackets: NDArray[np.int64]


def at_random(measured: SentenceMeasures, count: int) -> NDArray[np.int64]:
    """Return the first ``count`` sentences; they were drawn at random."""
    return np.arange(len(measured.brackets))[:count]


def most_uncertain(measured: SentenceMeasures, count: int) -> NDArray[np.int64]:
    """Return the sentences with the highest entropy per word."""
    order = np.argsort(-np.nan_to_num(measured.unsure, nan=-1.0), kind="stable")
    return order[: min(count, int(np.isfinite(measured.unsure).sum()))]


def diverse(measured: SentenceMeasures, count: int) -> NDArray[np.int64]:
    """Return uncertain sentences that are unlike each other.

    Of the ``5 × count`` most uncertain sentences the first is chosen, then always the one whose
    vector is farthest (by cosine) from the nearest of those chosen.
    """
    near = most_uncertain(measured, _COMPARED * count)
    vectors = measured.vectors[near].astype(np.float64)
    vectors -= vectors.mean(0) if len(near) else 0.0
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    chosen: list[int] = []
    distance = np.full(len(near), np.inf)
    while len(chosen) < min(count, len(near)):
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, 1.0 - vectors @ vectors[chosen[-1]])
        distance[chosen] = -np.inf
    return near[chosen]
