"""The losses a parser is trained by: a registry over padded batches of associations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from attree.errors import AttreeError
from attree.fewshot.gold import GoldBatch
from attree.fewshot.inside import log_partition
from attree.fewshot.scores import SPLIT_SCORES, SpanScores

#: (scores, gold, split score's name, margin) → (trees,) losses
Loss = Callable[[SpanScores, GoldBatch, str, float], Tensor]


def _split_table(scores: SpanScores, gold: GoldBatch, score: str) -> tuple[Tensor, Tensor, Tensor]:
    """Scores of every split of every gold span: (spans, splits), which of them exist, and gold's.

    Every gold span is a row and every place of a split a column: rows are as long as the longest
    span, so that a batch is one gather whatever the lengths.
    """
    widest = int((gold.end - gold.start).max()) if len(gold.tree) else 2
    offsets = torch.arange(1, widest, device=gold.start.device)
    exists = offsets < (gold.end - gold.start)[:, None]
    start, end = gold.start[:, None], gold.end[:, None]
    split = torch.minimum(start + offsets, end - 1)
    values = SPLIT_SCORES[score](scores, gold.tree[:, None], start, split, end)
    return values, exists, (gold.split - gold.start - 1)[:, None]


def _by_tree(losses: Tensor, gold: GoldBatch) -> Tensor:
    return losses.new_zeros(len(gold.names)).index_add(0, gold.tree, losses)


def likelihood(scores: SpanScores, gold: GoldBatch, score: str, margin: float) -> Tensor:
    """``−Σ log p(split | span)`` over gold spans; p is the softmax over the span's splits."""
    values, exists, target = _split_table(scores, gold, score)
    chances = values.masked_fill(~exists, -torch.inf).log_softmax(1)
    return _by_tree(-chances.gather(1, target)[:, 0], gold)


def margin_loss(scores: SpanScores, gold: GoldBatch, score: str, margin: float) -> Tensor:
    """``Σ max(0, margin + s(span, k) − s(span, k*))`` over gold spans and splits ``k ≠ k*``."""
    values, exists, target = _split_table(scores, gold, score)
    short = (margin + values - values.gather(1, target)).clamp(min=0)
    counted = exists.scatter(1, target, False)
    return _by_tree((short * counted).sum(1), gold)


def tree_crf(scores: SpanScores, gold: GoldBatch, score: str, margin: float) -> Tensor:
    """``log Z − log Z(trees compatible with gold)``, a tree's score the sum of its ``s_span``.

    Every binary tree that crosses no gold bracket is compatible.

    Raises:
        AttreeError: a tree that no binary tree is compatible with (its brackets cross).
    """
    free = log_partition(scores.span, scores.n_words)
    compatible = log_partition(scores.span, scores.n_words, gold.allowed)
    impossible = torch.isneginf(compatible)
    if impossible.any():
        name = gold.names[int(impossible.nonzero()[0])]
        raise AttreeError(f"tree {name} has crossing brackets", fix="leave it out of training")
    return free - compatible


@dataclass(frozen=True, slots=True)
class Objective:
    """A loss and the parser it makes when nothing else is asked.

    Attributes:
        loss: the loss of each tree of a batch.
        decoder: how the trained scores are decoded by default.
        dropout: on the hidden states.
        heads: heads of the projection, as many as the encoder's if 0.
    """

    loss: Loss
    decoder: str
    dropout: float
    heads: int


OBJECTIVES: dict[str, Objective] = {
    "likelihood": Objective(likelihood, "normalised_chart", 0.1, 1),
    "margin": Objective(margin_loss, "greedy", 0.3, 1),
    "tree_crf": Objective(tree_crf, "chart", 0.3, 0),
}
