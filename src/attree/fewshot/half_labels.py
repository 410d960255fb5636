"""Guess labels for the spans of half-known trees that have none.

A half-known tree gives some of its phrases, and hardly ever says that a span is no phrase. Training
on the given spans alone would teach that every span is a phrase. So we estimate which share of the
phrases of each label is given::

    g(label) = given / expected,    expected: as many as whole trees have, in as many spans

or one half where there is no whole tree. A span of which nothing is known then has the label ::

    q(label | i, j) ∝ p(label | i, j) (1 − g(label)),    g(empty) = 0

where ``p`` is first the rate of the label, then what was fitted to the guess before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from attree.fewshot.gold import SOME

if TYPE_CHECKING:
    from attree.fewshot.label_fit import LabelledSpans

#: The share of phrases that are given where no whole tree says how many there are.
_HALF = 0.5
#: Phrases by which a label's share is drawn to that of all labels.
_PRIOR = 4.0
_MOST = 0.98


class Guess:
    """What the spans may be that have no known label.

    Args:
        blocks: all spans.
        n_labels: how many labels there are, the empty one first.
    """

    def __init__(self, blocks: Sequence[LabelledSpans], n_labels: int) -> None:
        given, whole = torch.zeros(2, n_labels), torch.zeros(2, n_labels)
        mass = torch.zeros(2)
        for spans in blocks:
            given += _counted(spans, (spans.target > 0) & spans.half, n_labels)
            whole += _counted(spans, (spans.target >= 0) & ~spans.half, n_labels)
            mass += _masses(spans)
        rates = torch.where(whole[:, 1:].sum(1, keepdim=True) > 0, whole, given / _HALF)
        rates[:, 0] = torch.where(whole[:, 0] > 0, whole[:, 0], mass - rates[:, 1:].sum(1))
        self.rates = rates.clamp(min=1e-3) / rates.clamp(min=1e-3).sum(1, keepdim=True)
        expected = self.rates * mass[:, None]
        of_all = (given.sum(1) / expected[:, 1:].sum(1).clamp(min=1e-6)).clamp(max=_MOST)
        self.shares = (given + _PRIOR * of_all[:, None]) / (expected + _PRIOR)
        self.shares = self.shares.clamp(max=_MOST).index_fill(1, torch.tensor([0]), 0.0)

    def first(self, spans: LabelledSpans) -> Tensor:
        """(unknown, labels): of a block, by the rates of the labels."""
        word = (spans.kind == 1).long()[spans.unknown]
        return self._of(spans, self.rates[word])

    def of(self, spans: LabelledSpans, logits: Tensor) -> Tensor:
        """(unknown, labels): of a block, by the (spans, labels) scores of the labels."""
        return self._of(spans, logits[spans.unknown].softmax(-1))

    def _of(self, spans: LabelledSpans, chances: Tensor) -> Tensor:
        rows = spans.unknown
        some = spans.target[rows] == SOME
        found = chances * (1.0 - self.shares)[(spans.kind == 1).long()[rows]]
        found = torch.where(some[:, None], chances, found)
        found[some, 0] = 0.0
        return found / found.sum(1, keepdim=True).clamp(min=1e-30)


def _counted(spans: LabelledSpans, chosen: Tensor, n_labels: int) -> Tensor:
    """(2, labels): weights of labels on chosen spans of two words and more, and on words."""
    chosen = chosen & (spans.kind != 2)
    places = ((spans.kind == 1).long()[chosen], spans.target[chosen])
    return torch.zeros(2, n_labels).index_put(places, spans.weight[chosen], accumulate=True)


def _masses(spans: LabelledSpans) -> Tensor:
    """(2,): expected spans of half-known trees, of two words and more, and words."""
    chosen = spans.half & (spans.kind != 2)
    places = ((spans.kind == 1).long()[chosen],)
    return torch.zeros(2).index_put(places, spans.weight[chosen], accumulate=True)
