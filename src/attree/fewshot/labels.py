"""Labels of spans: the part that scores them, and the likelihood of labelled trees.

The probability of a labelled tree is that of its binary tree times, for each of its spans, that of
the label given the span::

    p(tree, labels) = exp(Σ s(i, j)) / Z · Π p(label | i, j)

where a span that only binarisation makes has the empty label. The labels have a distribution of
their own at each span, so the structure need not pay for them however few the trees.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attree.encoder.load import Encoder
from attree.fewshot.gold import SOME, UNSAID, GoldBatch
from attree.fewshot.inside import log_partition
from attree.fewshot.parts import BoundaryReader, Shape, dropout
from attree.fewshot.recipes import TrainingPlan
from attree.fewshot.scores import SpanScores


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


def labelled_tree_crf(scores: SpanScores, gold: GoldBatch, score: str, margin: float) -> Tensor:
    """``−log p(gold labels and brackets)``, summed over the binary trees that cross no bracket.

    What a half-known tree does not say is summed over too.
    """
    assert scores.labels is not None
    said = _said(gold, scores.label_names, tuple(scores.span.shape)).to(scores.span.device)
    chances = scores.labels.log_softmax(-1)
    found = chances.gather(-1, said.clamp(min=0)[..., None])[..., 0].double()
    if (said < 0).any():
        labelled = chances[..., 1:].logsumexp(-1).double()
        found = torch.where(said == SOME, labelled, found.masked_fill(said == UNSAID, 0.0))
    place = torch.arange(found.shape[1] - 1, device=found.device)
    words = (found[:, place, place + 1] * (place < scores.n_words[:, None])).sum(1)
    free = log_partition(scores.span, scores.n_words)
    return free - log_partition(scores.span + found, scores.n_words, gold.allowed) - words


def _said(gold: GoldBatch, names: tuple[str, ...], shape: tuple[int, ...]) -> Tensor:
    """Return the label of every span, :data:`SOME` or :data:`UNSAID`."""
    code = {name: place for place, name in enumerate(names)}
    target = torch.zeros(shape, dtype=torch.int64)
    for table, tree in zip(target, gold.trees, strict=True):
        said, other = tree.said(code)
        table.fill_(other)
        for (start, end), label in said.items():
            table[start, end] = label
    return target
