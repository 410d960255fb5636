"""Measure how well a parser's span probabilities are calibrated, and find a better temperature.

Among predicted spans of a probability near p, a share p should be right, that is, be in the gold
tree. A temperature T divides all span scores before the probabilities are computed::

    p_T(tree) = exp(Σ s(i, j) / T) / Z_T
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from attree.training.parser import TrainedParser
from attree.training.parts import Batch
from attree.training.scores import SpanScores, likelihoods
from attree.trees.trees import Trees

#: Temperatures tried; 1 leaves probabilities as they are.
TEMPERATURES = tuple(round(0.1 * step, 1) for step in range(5, 51))

#: Number of bins of equal width between probabilities 0 and 1.
BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Spans of similar probability: their number, mean probability, and the share that is right."""

    bin: int
    spans: int
    likely: float
    right: float


class Confidence:
    """Compare the spans of a parser's trees with gold trees, leaving out whole sentences.

    Args:
        parser: one trained as a tree CRF.
        sentences: batches of features, each with its gold trees.
    """

    def __init__(self, parser: TrainedParser, sentences: Iterable[tuple[Batch, Trees]]) -> None:
        self._scored: list[tuple[SpanScores, Trees, NDArray[np.bool_]]] = []
        right = []
        for batch, gold in sentences:
            trees = parser.trees(batch)
            part = trees.starts != 0
            part |= trees.ends != trees.n_words[trees.tree_of]
            part &= trees.ends - trees.starts > 1
            self._scored.append((parser.span_scores(batch), trees, part))
            right.append(np.isin(_keys(trees), _keys(gold))[part])
        self.right: NDArray[np.bool_] = np.concatenate([np.zeros(0, np.bool_), *right])

    @torch.inference_mode()
    def likely(self, temperature: float = 1.0) -> NDArray[np.float64]:
        """Return the probability of each span, (spans,)."""
        chances = [
            likelihoods(replace(scores, span=scores.span / temperature), trees)[part]
            for scores, trees, part in self._scored
        ]
        return np.concatenate([np.zeros(0), *chances])

    def bins(self, temperature: float = 1.0) -> list[Bin]:
        """Group the spans by probability into bins, leaving out empty bins."""
        likely = self.likely(temperature)
        numbers = np.minimum((likely * BINS).astype(int), BINS - 1)
        return [
            Bin(number, int(mask.sum()), float(likely[mask].mean()), float(self.right[mask].mean()))
            for number, mask in ((number, numbers == number) for number in range(BINS))
            if mask.any()
        ]

    def error(self, temperature: float = 1.0) -> float:
        """Return the expected calibration error: mean ``|likely − right|`` of bins, by spans."""
        bins = self.bins(temperature)
        wrong = sum(group.spans * abs(group.likely - group.right) for group in bins)
        return wrong / max(self.right.size, 1)

    def temperature(self) -> float:
        """Return the temperature that makes the observed right and wrong spans most likely."""

        def loss(temperature: float) -> float:
            chance = np.clip(self.likely(temperature), 1e-9, 1 - 1e-9)
            return -float(np.log(np.where(self.right, chance, 1 - chance)).sum())

        return min(TEMPERATURES, key=loss)


def _keys(trees: Trees) -> NDArray[np.int64]:
    """Return a number for each span, (spans,), equal for equal spans of the same tree."""
    side = int(trees.n_words.max(initial=0)) + 1
    return (trees.tree_of.astype(np.int64) * side + trees.starts) * side + trees.ends
