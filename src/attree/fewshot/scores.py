"""Span and split scores of padded batches of association matrices, differentiable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


def rectangle_table(association: Tensor) -> Tensor:
    """(batch, n, n) → (batch, n + 1, n + 1): cell [i, j] is the sum over ``[:i, :j]``, float64."""
    sums = association.double().cumsum(1).cumsum(2)
    return functional.pad(sums, (1, 0, 1, 0))


def square_sums(table: Tensor) -> Tensor:
    """(batch, n + 1, n + 1): cell [i, j] is ``Σ a[i:j, i:j]``, from a rectangle table."""
    corner = table.diagonal(dim1=1, dim2=2)
    return corner[:, None, :] + corner[:, :, None] - table - table.transpose(1, 2)


def existing(n_words: Tensor, side: int) -> Tensor:
    """(batch, side, side) bool: True for the spans [i, j) that lie within their sentence."""
    place = torch.arange(side, device=n_words.device)
    return (place[:, None] < place[None, :]) & (place[None, None, :] <= n_words[:, None, None])


@dataclass(frozen=True, slots=True)
class SpanScores:
    """Scores of every span of every sentence in a batch.

    Attributes:
        table: (batch, n + 1, n + 1), the association's rectangle table.
        span: (batch, n + 1, n + 1), ``s_span(i, j) = s_in − s_out``; cells with ``i ≥ j`` or past
            the sentence are 0.
        n_words: (batch,).
    """

    table: Tensor
    span: Tensor
    n_words: Tensor


def span_scores(inside: Tensor, n_words: Tensor, outside: Tensor | None = None) -> SpanScores:
    """Score spans: ``s_in = Σ a[i:j, i:j] / w²``, ``s_out`` the mean of the cells that leave it.

    ``s_out = (Σ a[i:j, :] + Σ a[:, i:j] − 2 Σ a[i:j, i:j]) / (2wn − 2w²)`` and 0 for the whole
    sentence; ``w = j − i``, ``n`` the sentence's own length, whatever the padding.

    Args:
        inside: (batch, words, words) associations, zero-padded; scored inside.
        n_words: (batch,).
        outside: those scored outside, where they are others (separate head weights).
    """
    square = leaving = square_sums(table := rectangle_table(inside))
    if outside is not None:
        leaving = square_sums(table := rectangle_table(outside))
    place = torch.arange(table.shape[1], device=table.device)
    width = (place[None, :] - place[:, None]).clamp(min=1)
    margin = table[:, :, -1] + table[:, -1, :]
    out = margin[:, None, :] - margin[:, :, None] - 2 * leaving
    room = (2 * width * (n_words[:, None, None] - width)).clamp(min=1)
    whole = width >= n_words[:, None, None]
    span = square / width**2 - (out / room).masked_fill(whole, 0.0)
    return SpanScores(table, span * existing(n_words, table.shape[1]), n_words)


def _outside(scores: SpanScores, b: Tensor, i: Tensor, k: Tensor, j: Tensor) -> Tensor:
    """``d(i,k,j)``: minus the mean of the cells between the two parts."""
    square = square_sums(scores.table)
    across = square[b, i, j] - square[b, i, k] - square[b, k, j]
    return -across / (2 * (k - i) * (j - k)).clamp(min=1)


def _inside_outside(scores: SpanScores, b: Tensor, i: Tensor, k: Tensor, j: Tensor) -> Tensor:
    """``s_span(i,k) + s_span(k,j)``."""
    return scores.span[b, i, k] + scores.span[b, k, j]


#: split score by name, as in :mod:`attree.scoring`: (scores, batch, start, split, end) → score
SPLIT_SCORES: dict[str, Callable[[SpanScores, Tensor, Tensor, Tensor, Tensor], Tensor]] = {
    "outside": _outside,
    "inside_outside": _inside_outside,
}
