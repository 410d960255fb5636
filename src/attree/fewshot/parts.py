"""What a parser's span scores are summed from: each part reads some features and has weights.

A part is a ``torch.nn.Module`` with ``scores(batch, generator)``, which gives
:class:`~attree.fewshot.scores.SpanScores`; a generator asks for dropout. Adding a part is adding a
class and its line in :mod:`attree.fewshot.scorer`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attree.fewshot.projection import FLOOR, Projection, StateBatch, association_of
from attree.fewshot.scores import SpanScores, existing, span_scores

#: how the heads are put together → what is taken of each matrix, of the weights, and of the sum
COMBINATIONS = {
    # Σ w log(A): scores are linear in the weights, any sign may be learned
    "log": (lambda a: (a + FLOOR).log(), lambda w: w, lambda a: a),
    # the article's Σ w A, w a distribution that starts uniform, whose log is the association
    "article": (lambda a: a, lambda w: w.softmax(-1), lambda a: (a + FLOOR).log()),
    "raw": (lambda a: a, lambda w: w, lambda a: a),
}


@dataclass(frozen=True, slots=True)
class Batch:
    """Features of a batch of sentences, laid out for every part.

    Attributes:
        n_words: (sentences,) int64.
        states: for the projection; None if there is none.
        before, after: (sentences, words + 1, width) states on the two sides of every boundary
            between words, special tokens at the ends; None without a boundary part.
        attention: (sentences, heads, words, words), zero-padded; None without head weights.
    """

    n_words: Tensor
    states: StateBatch | None = None
    before: Tensor | None = None
    after: Tensor | None = None
    attention: Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that the features take."""
        states = None if self.states is None else self.states.states
        tensors = (states, self.before, self.after, self.attention)
        return sum(tensor.nbytes for tensor in tensors if tensor is not None)

    def square(self) -> Tensor:
        """(sentences, words, words): True where both words exist."""
        places = torch.arange(int(self.n_words.max()), device=self.n_words.device)
        words = places < self.n_words[:, None]
        return words[:, :, None] & words[:, None, :]


def dropout(values: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Drop ``rate`` of ``values`` and scale the rest up; leave them alone without a generator."""
    if generator is None or rate == 0.0:
        return values
    kept = torch.rand(values.shape, generator=generator, device=generator.device) >= rate
    return values * kept.to(values) / (1.0 - rate)


class ProjectionPart(nn.Module):
    """Span scores of a trained association: ``s_in − s_out`` of its log (FPOA, FPIO, tree CRF).

    Args:
        projection: the query and key.
        association: ``log`` or ``raw``.
        rate: dropout on the hidden states.
    """

    def __init__(self, projection: Projection, *, association: str, rate: float) -> None:
        super().__init__()
        self.projection, self.kind, self.rate = projection, association, rate

    def association(self, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        """(sentences, words, words): the association, zero-padded."""
        assert batch.states is not None
        raw = self.projection(batch.states, dropout(batch.states.states, self.rate, generator))
        return association_of(raw, batch.states.words(), self.kind)

    def scores(self, batch: Batch, generator: torch.Generator | None = None) -> SpanScores:
        """Span scores of the sentences."""
        return span_scores(self.association(batch, generator), batch.n_words)


class BoundaryPart(nn.Module):
    """Linear scores of a span's two ends: ``w₁·h_i + w₂·h_{i−1} + w₃·h_{j−1} + w₄·h_j``.

    ``h`` are hidden states of the words on both sides of where a span begins and ends (the piece
    next to the boundary). The start is zero, so that the association speaks first.

    Args:
        width: of the states, all layers of them together.
        rate: dropout on the states.
    """

    def __init__(self, width: int, *, rate: float) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(width, 4))
        self.rate = rate

    def scores(self, batch: Batch, generator: torch.Generator | None = None) -> SpanScores:
        """Span scores of the sentences."""
        assert batch.before is not None
        assert batch.after is not None
        before = dropout(batch.before, self.rate, generator) @ self.weights[:, :2]
        after = dropout(batch.after, self.rate, generator) @ self.weights[:, 2:]
        begins, ends = (before[..., 0] + after[..., 0]), (before[..., 1] + after[..., 1])
        span = begins.double()[:, :, None] + ends.double()[:, None, :]
        span = span * existing(batch.n_words, span.shape[1])
        return SpanScores(torch.zeros_like(span), span, batch.n_words)


class HeadPart(nn.Module):
    """Span scores of a learned combination of the encoder's own heads.

    Args:
        heads: how many, all layers together.
        combination: a name in :data:`COMBINATIONS`.
        separate: other weights for the outside score than for the inside one.
        first: what every weight starts at.
    """

    def __init__(self, heads: int, *, combination: str, separate: bool, first: float) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.full((2 if separate else 1, heads), first))
        self.combination = combination

    def associations(self, batch: Batch) -> list[Tensor]:
        """The combined matrices (sentences, words, words): one, or the inside and the outside."""
        assert batch.attention is not None
        before, weigh, after = COMBINATIONS[self.combination]
        mixed = torch.einsum("wh,bhij->wbij", weigh(self.weights), before(batch.attention))
        return [after(matrix) * batch.square() for matrix in mixed]

    def scores(self, batch: Batch, generator: torch.Generator | None = None) -> SpanScores:
        """Span scores of the sentences; there is no dropout."""
        inside, *outside = self.associations(batch)
        return span_scores(inside, batch.n_words, outside[0] if outside else None)


def added(parts: list[SpanScores]) -> SpanScores:
    """Sum the span scores of several parts; the rectangle table is that of the first."""
    first, *others = parts
    span = first.span
    for other in others:
        span = span + other.span
    return SpanScores(first.table, span, first.n_words)
