"""Tags of words, by a linear classifier over the states at a word's two ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attree.encoder.load import Encoder
from attree.errors import NotFiniteError
from attree.fewshot.labels import LabelPart, NameReader
from attree.fewshot.recipes import TrainingPlan
from attree.fewshot.scores import SpanScores
from attree.trees import Trees


class TagPart(NameReader):
    """Scores of tags, linear in the states on both sides of where a word begins and ends.

    A tree has the tag of the highest score on each word; the span scores are 0. It is fitted
    beside the labels (:mod:`attree.fewshot.label_fit`), and empty where trees have no tags.
    It reads the layers of the labels; nothing in it is trained by steps.
    """

    #: Where a word begins, where it ends.
    ends = 2
    biases = 1

    @classmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return the layers of the labels, and the tags of the plan's trees."""
        return {**LabelPart.shape(plan, encoder), "names": list(plan.tags)}

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
