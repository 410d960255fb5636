"""Tags of words, by a linear classifier over the states at a word's two ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attree.encoder.load import Encoder
from attree.errors import NotFiniteError
from attree.fewshot.labels import LabelPart
from attree.fewshot.parts import BoundaryReader, Shape
from attree.fewshot.recipes import TrainingPlan
from attree.fewshot.scores import SpanScores
from attree.trees import Trees


class TagPart(BoundaryReader):
    """Scores of tags, linear in the states on both sides of where a word begins and ends.

    A tree has the tag of the highest score on each word; the span scores are 0. It is fitted
    beside the labels (:mod:`attree.fewshot.label_fit`), and empty where trees have no tags.

    Args:
        names: the tags.
        width: of a state, all layers of them together.
        rate: unused; nothing here is trained by steps.
        layers: hidden states read, those of the labels.
    """

    def __init__(
        self, names: tuple[str, ...], width: int, *, rate: float, layers: tuple[int, ...]
    ) -> None:
        super().__init__(rate, layers)
        self.names = names
        #: where a word begins, where it ends
        self.weights = nn.Parameter(torch.zeros(2, 2 * width, len(names)))
        self.bias = nn.Parameter(torch.zeros(1, len(names)))

    @classmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return the layers of the labels, and the tags of the plan's trees."""
        return {**LabelPart.shape(plan, encoder), "names": list(plan.tags)}

    @classmethod
    def sizes(cls, shape: Shape, width: int) -> tuple[tuple[str, ...], int]:
        """Return the tags and the width."""
        return tuple(shape["names"]), width

    def scores(
        self,
        features: tuple[Tensor, Tensor],
        n_words: Tensor,
        generator: torch.Generator | None = None,
    ) -> SpanScores:
        """Score every tag of every word of a batch."""
        sentences, boundaries, _ = features[0].shape
        none = features[0].new_zeros((sentences, boundaries, boundaries), dtype=torch.float64)
        if not self.names:
            return SpanScores(none, none, n_words)
        begin, end = (torch.cat(features, -1) @ weights for weights in self.weights)
        found = begin[:, :-1] + end[:, 1:] + self.bias[0]
        return SpanScores(none, none, n_words, tags=found, tag_names=self.names)


def with_tags(trees: Trees, scores: SpanScores) -> Trees:
    """Return trees of a batch with the best tag of each word, as they are without scores of tags.

    Raises:
        NotFiniteError: a sentence's scores are NaN or infinite.
    """
    if scores.tags is None:
        return trees
    place = torch.arange(scores.tags.shape[1], device=scores.tags.device)
    words = scores.tags[place < scores.n_words[:, None]]
    if not words.sum().isfinite():
        raise NotFiniteError("a sentence's tag scores are NaN or infinite")
    codes = words.argmax(-1).int().cpu().numpy()
    return replace(trees, tags=codes, tag_names=scores.tag_names)
