"""Labels of spans and tags of words: the parts that score them.

The probability of a labelled tree is that of its binary tree times, for each of its spans, that of
the label given the span::

    p(tree, labels) = exp(Σ s(i, j)) / Z · Π p(label | i, j)

where a span that only binarisation makes has the empty label. The labels have a distribution of
their own at each span, so the structure need not pay for them however few the trees.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attree.encoder.load import Encoder
from attree.errors import NotFiniteError
from attree.fewshot.parts import BoundaryReader, Shape, dropout
from attree.fewshot.recipes import TrainingPlan
from attree.fewshot.scores import SpanScores
from attree.trees import Trees


class NameReader(BoundaryReader):
    """A part that scores names, linear in the states on both sides of the boundaries it reads.

    Args:
        names: what may be found: labels, tags.
        width: of a state, all layers of them together.
        rate: dropout on the states.
        layers: hidden states read.
    """

    #: How many boundaries have weights of their own, and how many biases there are.
    ends: ClassVar[int]
    biases: ClassVar[int]

    def __init__(
        self, names: tuple[str, ...], width: int, *, rate: float, layers: tuple[int, ...]
    ) -> None:
        super().__init__(rate, layers)
        self.names = names
        self.weights = nn.Parameter(torch.zeros(self.ends, 2 * width, len(names)))
        self.bias = nn.Parameter(torch.zeros(self.biases, len(names)))

    @torch.no_grad()
    def carry(self, other: NameReader) -> None:
        """Take the weights of those names that another parser's part has too, if it reads alike."""
        if (self.layers, self.weights.shape[:2]) != (other.layers, other.weights.shape[:2]):
            return
        theirs = {name: place for place, name in enumerate(other.names)}
        both = [(here, theirs[x]) for here, x in enumerate(self.names) if x in theirs]
        here, there = ([pair[side] for pair in both] for side in (0, 1))
        self.weights[..., here] = other.weights[..., there]
        self.bias[..., here] = other.bias[..., there]

    @classmethod
    def sizes(cls, shape: Shape, width: int) -> tuple[tuple[str, ...], int]:
        """Return the names and the width."""
        return tuple(shape["names"]), width


class LabelPart(NameReader):
    """Probabilities of labels, linear in the states at a span's two ends before the softmax.

    A word by itself has other weights than a span, and the whole sentence a further bias. The span
    scores are 0. The empty label is the first of the names.
    """

    #: Where a span begins, where it ends, where a word begins, where it ends.
    ends = 4
    #: Of a span, of a word, and added for the whole sentence.
    biases = 3

    @classmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return the layers, by default a third of the way up, and the labels of the trees."""
        usual = plan.layers if plan.recipe.wide else (encoder.n_layers // 3,)
        layers = plan.recipe.label_layers or usual
        return {"layers": list(layers), "hidden": encoder.hidden_size, "names": ["", *plan.labels]}

    def logits(
        self,
        features: tuple[Tensor, Tensor],
        n_words: Tensor,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """(sentences, words + 1, words + 1, labels), before the softmax."""
        both = dropout(torch.cat(features, -1), self.rate, generator)
        begin, end, word_begin, word_end = (both @ weights for weights in self.weights)
        spans = begin[:, :, None] + end[:, None] + self.bias[0]
        sentence = torch.arange(len(n_words), device=n_words.device)
        spans[sentence, 0, n_words] += self.bias[2]
        place = torch.arange(spans.shape[1] - 1, device=spans.device)
        spans[:, place, place + 1] = word_begin[:, :-1] + word_end[:, 1:] + self.bias[1]
        return spans

    def scores(
        self,
        features: tuple[Tensor, Tensor],
        n_words: Tensor,
        generator: torch.Generator | None = None,
    ) -> SpanScores:
        """Score every label of every span of a batch."""
        labels = self.logits(features, n_words, generator)
        none = labels.new_zeros(labels.shape[:3], dtype=torch.float64)
        return SpanScores(none, none, n_words, labels, self.names)


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
