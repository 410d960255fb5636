"""A trained parser bound to its encoder: word pieces → features → tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from attree.encoder.load import Encoder
from attree.encoder.pieces import Pieces
from attree.errors import AttreeError
from attree.fewshot.decoders import likelihoods
from attree.fewshot.parser import TrainedParser
from attree.fewshot.parts import Batch, ProjectionPart
from attree.trees import Trees


class TrainedModel:
    """A parser that ``attree train`` made (a :class:`attree.parser.Model`).

    Args:
        trained: the weights.
        encoder: the one it was trained with.
        threshold: spans of a lower marginal are dropped, so that trees need not be binary; 0 keeps
            all.

    Raises:
        AttreeError: another encoder.
    """

    def __init__(self, trained: TrainedParser, encoder: Encoder, threshold: float = 0.0) -> None:
        trained.check(encoder)
        self.trained, self.encoder, self.threshold = trained, encoder, threshold

    def features(self, pieces: Sequence[Pieces]) -> Batch:
        """Run the encoder and lay out what the scorer reads."""
        return self.trained.features(self.encoder, pieces)

    def trees(self, features: Batch) -> Trees:
        """Decode; the score of a span is its span score."""
        trees = self.trained.trees(features)
        if self.threshold <= 0:
            return trees
        likely = likelihoods(self.trained.span_scores(features), trees)
        return trees.keep(likely >= self.threshold)

    @torch.inference_mode()
    def associations(self, features: Batch) -> list[NDArray[np.float32]]:
        """Return each sentence's trained association; of a log association its exponential."""
        part = dict(self.trained.scorer.parts.items()).get("projection")
        if not isinstance(part, ProjectionPart):
            raise AttreeError("this parser has no trained association", fix="choose fpio or fpoa")
        found = part.association(features).float().cpu().numpy()
        found = np.exp(found) if part.kind == "log" else found
        return [each[:n, :n] for each, n in zip(found, features.n_words.tolist(), strict=True)]
