"""Orders of sentences, the first to be annotated first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: As many of the most uncertain sentences for each one wanted are compared for diversity.
_COMPARED = 5


@dataclass(frozen=True, slots=True)
class SentenceMeasures:
    """What is known of each sentence.

    Attributes:
        unsure: (sentences,) entropy of the distribution over trees, nats a word; NaN of sentences
            that cannot be parsed, which are never chosen.
        vectors: (sentences, hidden) means of their states.
        brackets: (sentences,) int64, of the trees proposed: what annotating them costs.
    """

    unsure: NDArray[np.float64]
    vectors: NDArray[np.float32]
    brackets: NDArray[np.int64]


def at_random(measured: SentenceMeasures, count: int) -> NDArray[np.int64]:
    """Return the sentences as they were drawn."""
    return np.arange(len(measured.brackets))[:count]


def most_uncertain(measured: SentenceMeasures, count: int) -> NDArray[np.int64]:
    """Return the sentences of the highest entropy a word."""
    order = np.argsort(-np.nan_to_num(measured.unsure, nan=-1.0), kind="stable")
    return order[: min(count, int(np.isfinite(measured.unsure).sum()))]


def diverse(measured: SentenceMeasures, count: int) -> NDArray[np.int64]:
    """Return uncertain sentences that lie far from each other.

    Of the ``5 × count`` most uncertain ones the first is taken, then always the one that is
    farthest, by the cosine of the vectors, from the nearest of those taken.
    """
    near = most_uncertain(measured, _COMPARED * count)
    vectors = measured.vectors[near].astype(np.float64)
    vectors -= vectors.mean(0) if len(near) else 0.0
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    taken: list[int] = []
    distance = np.full(len(near), np.inf)
    while len(taken) < min(count, len(near)):
        taken.append(int(distance.argmax()))
        distance = np.minimum(distance, 1.0 - vectors @ vectors[taken[-1]])
        distance[taken] = -np.inf
    return near[taken]
