"""A supervised span parser on the frozen encoder: boundary differences → MLP → chart with margin.

In the manner of Kitaev, Cao and Klein (2019, *Multilingual Constituency Parsing with Self-Attention
and Pre-Training*), the article's Berkeley row. A span is what lies between its two ends::

    v(i, j) = (f_j - f_i, b_i - b_j),   s(i, j) = w · relu(norm(M v(i, j))) + c

with ``f_k`` the state of the word before boundary ``k`` and ``b_k`` that of the word after it. A
tree scores the sum of its spans; one that is no constituent scores 0, so that trees need not be
binary. The loss is the margin of the best wrong tree, every wrong decision costing 1::

    max_T (s(T) + Δ(T, gold)) - s(gold)

Decided: the encoder stays frozen, as for every few-shot parser here, where theirs is trained along
and has further layers on top; one label, since trees are scored without labels.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attree.encoder.load import Encoder
from attree.fewshot.gold import GoldBatch
from attree.fewshot.parts import BoundaryReader, Shape, dropout
from attree.fewshot.recipes import TrainingPlan
from attree.fewshot.scores import SpanScores, best_trees, existing

#: Hidden units, as in the authors' program.
_HIDDEN = 250

#: Numbers of hidden units computed at once while nothing is trained: 16 MB.
_AT_ONCE = 4_000_000


class SpanPart(BoundaryReader):
    """Scores of spans by a perceptron over the differences of their boundaries.

    Args:
        width: of a state, all layers of them together.
        size: hidden units.
        rate: dropout on the states.
        layers: hidden states read.
    """

    reads_layers = True

    def __init__(self, width: int, size: int, *, rate: float, layers: tuple[int, ...] = ()) -> None:
        super().__init__(rate, layers)
        self.before = nn.Linear(width, size, bias=False)
        self.after = nn.Linear(width, size, bias=False)
        self.first = nn.Parameter(torch.zeros(size))
        self.norm, self.last = nn.LayerNorm(size), nn.Linear(size, 1)

    @classmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return the layers and the sizes."""
        size = plan.size or _HIDDEN
        return {"layers": list(plan.layers), "hidden": encoder.hidden_size, "size": size}

    @classmethod
    def sizes(cls, shape: Shape, width: int) -> tuple[int, int]:
        """Return the width and the hidden units."""
        return width, shape["size"]

    def start(self, encoder: Encoder, plan: TrainingPlan) -> None:
        """Draw the first weights from the plan's seed."""
        generator = torch.Generator().manual_seed(plan.seed)
        with torch.no_grad():
            for weights in (self.before.weight, self.after.weight, self.last.weight):
                bound = math.sqrt(1.0 / weights.shape[1])
                weights.uniform_(-bound, bound, generator=generator)
            self.last.bias.zero_()

    def scores(
        self,
        features: tuple[Tensor, Tensor],
        n_words: Tensor,
        generator: torch.Generator | None = None,
    ) -> SpanScores:
        """Score every span of a batch."""
        before, after = (dropout(side, self.rate, generator) for side in features)
        # the first layer is linear: of a difference it is the difference
        at = self.before(before) - self.after(after)
        rows = at.shape[1]
        if not torch.is_grad_enabled():
            rows = max(1, _AT_ONCE // at.numel())
        found = [self._of(at, start) for start in at.split(rows, dim=1)]
        span = torch.cat(found, dim=1).double() * existing(n_words, at.shape[1])
        return SpanScores(torch.zeros_like(span), span, n_words)

    def _of(self, ends: Tensor, starts: Tensor) -> Tensor:
        """(batch, starts, ends): the scores of spans from some boundaries to all."""
        between = ends[:, None, :, :] - starts[:, :, None, :] + self.first
        found: Tensor = self.last(self.norm(between).relu())[..., 0]
        return found


def chart_margin(scores: SpanScores, gold: GoldBatch, score: str, margin: float) -> Tensor:
    """``max_T (s(T) + Δ) - s(gold)``: the hinge loss of a tree, 0 or more.

    ``T`` is a binary tree some of whose spans are constituents. ``Δ`` counts those of its spans
    that are one and should not be, or should be one and are not. The whole sentence is in every
    tree and counts on neither side.
    """
    inner = existing(scores.n_words, scores.span.shape[1])
    inner[range(len(inner)), 0, scores.n_words] = False
    bracket = gold.brackets & inner
    # the better of "a constituent" and "none", of which the wrong one gains 1
    either = torch.where(bracket, scores.span.clamp(min=1.0), (scores.span + 1.0).clamp(min=0.0))
    either = either * inner
    trees = best_trees(either.detach(), scores.n_words)
    tree, start, end = (
        torch.from_numpy(part.astype(np.int64)).to(either.device)
        for part in (trees.tree_of, trees.starts, trees.ends)
    )
    found = either.new_zeros(len(either)).index_add(0, tree, either[tree, start, end])
    return found - (scores.span * bracket).sum((1, 2))
