"""Span and split scores of padded batches of association matrices, and decoding them to trees.

Split scores are defined in :mod:`attree.scoring`, for associations on disk. Training and decoding
also need a differentiable function of each, in :data:`TERMS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from attree.base.errors import NotFiniteError
from attree.base.registry import choose
from attree.decoding import DECODERS
from attree.decoding.constrained import decode_under
from attree.decoding.decoders import binary_trees
from attree.scoring.tables import SplitScores
from attree.training.inside import marginals
from attree.trees.constraints import Constraints
from attree.trees.trees import Trees


def rectangle_table(association: Tensor) -> Tensor:
    """Return the sum over ``[:i, :j]`` at [i, j], float64 (batch, n + 1, n + 1)."""
    return functional.pad(association.double().cumsum(1).cumsum(2), (1, 0, 1, 0))


def square_sums(table: Tensor) -> Tensor:
    """Return ``Σ a[i:j, i:j]`` at [i, j], from a rectangle table; (batch, n + 1, n + 1)."""
    corner = table.diagonal(dim1=1, dim2=2)
    return corner[:, None, :] + corner[:, :, None] - table - table.transpose(1, 2)


def told_by_heads(odds: Tensor, phrase: Tensor) -> Tensor:
    """Return what dependencies add to the logits of every label but the empty one, (…).

    They first add ``phrase[…, 0]``. Then the probability ``p`` that the span has a label becomes
    ``p exp(phrase[…, 1])``, so that labels that are very sure do not outweigh two heads.

    Args:
        odds: (…), log odds of any label.
        phrase: (…, 2), nats to add, and the logarithm of a probability.
    """
    reward, headed = phrase.unbind(-1)
    odds = (odds + reward).double()
    likely = (functional.logsigmoid(odds) + headed).clamp(max=-1e-12)
    lower = likely - torch.log(-torch.expm1(likely)) - odds
    return reward + torch.where(headed < 0, lower, 0.0).to(reward)


def headed_by(words: Tensor, heads: Tensor, n_words: Tensor) -> Tensor:
    """Return how much of the heads that a span is expected to have are certain words.

    That is ``Σ q(w) p(w) / Σ p(w)`` over words ``w`` of the span, ``p(w)`` the probability that the
    head of ``w`` lies outside.

    Args:
        words: (sentences, words), ``q(w)``, the probability that it is one of these words.
        heads: (sentences, words, words + 1), log probability of each word's head.
        n_words: (sentences,).

    Returns:
        (sentences, n + 1, n + 1), from 0 to 1.
    """
    real = torch.arange(words.shape[1], device=words.device) < n_words[:, None]
    each = torch.stack((words, torch.ones_like(words))) * real
    inside = each[..., None] * heads[..., :-1].exp()
    counts = functional.pad(each.double().cumsum(-1), (1, 0))
    those, all_heads = (
        count[:, None, :] - count[:, :, None] - square_sums(rectangle_table(within))
        for count, within in zip(counts, inside, strict=True)
    )
    # a span of no word with a head outside is no subtree whatever its label
    return (those / all_heads.clamp(min=0.05)).clamp(0.0, 1.0)


def span_mask(n_words: Tensor, side: int) -> Tensor:
    """Return a mask of the spans [i, j) that lie within their sentence, (batch, side, side)."""
    bound = torch.arange(side, device=n_words.device)
    return (bound[:, None] < bound[None, :]) & (bound[None, None, :] <= n_words[:, None, None])


@dataclass(frozen=True, slots=True)
class SpanScores:
    """Scores of every span of every sentence in a batch.

    Attributes:
        table: (batch, n + 1, n + 1), the association's rectangle table.
        span: (batch, n + 1, n + 1), ``s_span(i, j) = s_in − s_out``; cells with ``i ≥ j`` or past
            the sentence are 0.
        n_words: (batch,).
        labels: (batch, n + 1, n + 1, labels), logits of the labels of each span, if the parser has
            labels.
        label_names: names of the labels, the empty one first.
        tags: (batch, words, tags), scores of the tags of each word, if the parser has tags.
        tag_names: names of the tags.
        phrase: (batch, n + 1, n + 1, 2), what dependencies say of each span, if the parser has
            them: see :func:`told_by_heads`.
        heads: (batch, words, words + 1), log probability of each word's head, a root's in the last
            column, if the parser has dependencies.
    """

    table: Tensor
    span: Tensor
    n_words: Tensor
    labels: Tensor | None = None
    label_names: tuple[str, ...] = ()
    tags: Tensor | None = None
    tag_names: tuple[str, ...] = ()
    phrase: Tensor | None = None
    heads: Tensor | None = None

    def take(self, row: int) -> SpanScores:
        """Return the scores of one sentence of the batch, without padding."""
        rows, n = slice(row, row + 1), int(self.n_words[row])
        return replace(
            self,
            table=self.table[rows, : n + 1, : n + 1],
            span=self.span[rows, : n + 1, : n + 1],
            n_words=self.n_words[rows],
            labels=None if self.labels is None else self.labels[rows, : n + 1, : n + 1],
            tags=None if self.tags is None else self.tags[rows, :n],
            phrase=None,
            heads=None,
        )


def span_scores(inside: Tensor, n_words: Tensor, outside: Tensor | None = None) -> SpanScores:
    """Score spans by ``s_in − s_out``: ``s_in = Σ a[i:j, i:j] / w²``, ``s_out`` the mean outside.

    ``s_out = (Σ a[i:j, :] + Σ a[:, i:j] − 2 Σ a[i:j, i:j]) / (2wn − 2w²)`` and 0 for the whole
    sentence; ``w = j − i``, ``n`` the sentence's own length, whatever the padding.

    Args:
        inside: (batch, words, words) associations for ``s_in``, zero-padded.
        n_words: (batch,).
        outside: associations for ``s_out``, if different (separate head weights).
    """
    square = leaving = square_sums(table := rectangle_table(inside))
    if outside is not None:
        leaving = square_sums(table := rectangle_table(outside))
    position = torch.arange(table.shape[1], device=table.device)
    width = (position[None, :] - position[:, None]).clamp(min=1)
    margin = table[:, :, -1] + table[:, -1, :]
    out = margin[:, None, :] - margin[:, :, None] - 2 * leaving
    room = (2 * width * (n_words[:, None, None] - width)).clamp(min=1)
    span = square / width**2 - (out / room).masked_fill(width >= n_words[:, None, None], 0.0)
    return SpanScores(table, span * span_mask(n_words, table.shape[1]), n_words)


def _both_sides(span: Tensor) -> Tensor:
    """Return split terms that are the scores of the spans on either side."""
    above = span.triu(1)
    return above + above.transpose(1, 2)


#: split score → its left and right terms as in :mod:`attree.scoring.tables`, (batch, n + 1, n + 1):
#: ``left(i, k)`` at ``[k, i]``, ``right(k, j)`` at ``[k, j]``; None if it is the cross term alone.
TERMS: dict[str, Callable[[SpanScores], Tensor] | None] = {
    "outside": None,
    "inside_outside": lambda scores: _both_sides(scores.span),
}


def split_values(
    scores: SpanScores, score: str, b: Tensor, i: Tensor, k: Tensor, j: Tensor
) -> Tensor:
    """Return ``left(i, k) + right(k, j) + cross(i, k, j)`` of sentences ``b``, broadcast.

    Args:
        scores: of the sentences.
        score: a name of :data:`TERMS`.
        b, i, k, j: sentence, start, split and end of each.
    """
    terms = TERMS[score]
    if terms is not None:
        table = terms(scores)
        return table[b, k, i] + table[b, k, j]
    square = square_sums(scores.table)
    across = square[b, i, j] - square[b, i, k] - square[b, k, j]
    return -across / (2 * (k - i) * (j - k)).clamp(min=1)


def split_tables(scores: SpanScores, score: str) -> SplitScores:
    """Return the split scores of a batch in the form that decoders read."""
    n_words = scores.n_words.cpu().numpy()
    terms_of = TERMS[score]
    if terms_of is None:
        sums = _flat(scores.table + scores.table.transpose(1, 2), n_words)
        return SplitScores(n_words, sums, np.zeros(0), has_cross=True)
    terms = _flat(terms_of(scores), n_words)
    return SplitScores(n_words, np.zeros_like(terms), terms, has_cross=False)


def decode(
    scores: SpanScores,
    score: str,
    decoder: str,
    threshold: float = 0.0,
    constraints: Constraints | None = None,
) -> Trees:
    """Parse a batch.

    Args:
        scores: of the sentences, padded.
        score: a name of :data:`TERMS`; ``minimum_risk`` always takes span marginals.
        decoder: a name of :data:`attree.decoding.DECODERS`; or ``minimum_risk``: the tree with the
            highest expected number of right spans under the distribution over trees (for parsers
            trained with ``tree_crf``); or ``optional_chart``: the tree with the highest sum of
            positive scores, without spans of scores of 0 or less.
        threshold: spans of a lower marginal are left out, so that trees need not be binary.
        constraints: for a batch of one sentence.

    Returns:
        trees; the score of a span is ``s_span``. They have marginals only if these were needed.

    Raises:
        NotFiniteError: a sentence's scores are NaN or infinite.
    """
    span = scores.span.detach().cpu().numpy()
    if not np.isfinite(span.sum()):
        raise NotFiniteError("not-finite", "a sentence's span scores are NaN or infinite")
    n_words = scores.n_words.cpu().numpy()
    risk, optional = decoder == "minimum_risk", decoder == "optional_chart"
    penalised = span if constraints is None else span + constraints.penalties(int(n_words[0]))
    likely = marginals(penalised, n_words) if risk or threshold > 0 else None
    if risk and likely is not None:
        split = expected_right(likely, n_words)
    elif optional:
        split = expected_right(np.maximum(span, 0.0), n_words)
    else:
        split = split_tables(scores, score)
    trees = _decode(split, "chart" if risk or optional else decoder, constraints)
    values = span[trees.tree_of, trees.starts, trees.ends]
    trees = replace(trees, scores=values)
    # required spans stay, whatever their scores and rounding
    required = np.zeros(values.size, bool)
    for start, end in constraints.chains() if constraints else ():
        required |= (trees.starts == start) & (trees.ends == end)
    if optional:
        kept = required | (values > 0) | _is_whole(trees)
        trees, required = trees.keep(kept), required[kept]
    if likely is None:
        return trees
    chances = _look_up(likely, trees)
    return replace(trees, marginals=chances).keep((chances >= threshold) | required)


def expected_right(likely: NDArray[np.float64], n_words: NDArray[np.int64]) -> SplitScores:
    """Return split scores that sum to a tree's expected number of right spans, less the root."""
    terms = _flat(_both_sides(torch.from_numpy(likely)), n_words)
    return SplitScores(n_words, np.zeros_like(terms), terms, has_cross=False)


def best_trees(span: Tensor, n_words: Tensor) -> Trees:
    """Return the binary trees with the highest sums of ``span``, as in :class:`SpanScores`."""
    words = n_words.cpu().numpy()
    return _decode(expected_right(span.cpu().double().numpy(), words), "chart", None)


def _is_whole(trees: Trees) -> NDArray[np.bool_]:
    """Return a mask of the spans that are whole sentences, (spans,) bool."""
    whole: NDArray[np.bool_] = (trees.starts == 0) & (trees.ends == trees.n_words[trees.tree_of])
    return whole


def likelihoods(scores: SpanScores, trees: Trees) -> NDArray[np.float64]:
    """Return the marginal of each span of a batch's trees, (spans,), 1 for whole sentences."""
    span, n_words = scores.span.detach().cpu().numpy(), scores.n_words.cpu().numpy()
    return _look_up(marginals(span, n_words), trees)


def _look_up(likely: NDArray[np.float64], trees: Trees) -> NDArray[np.float64]:
    chances: NDArray[np.float64] = likely[trees.tree_of, trees.starts, trees.ends]
    # despite rounding, the whole sentence must pass every threshold
    chances[_is_whole(trees)] = 1.0
    return chances


def _flat(tables: Tensor, n_words: NDArray[np.int64]) -> NDArray[np.float64]:
    """Flatten padded (batch, n + 1, n + 1) tables to the cells of each sentence, in order."""
    values = tables.detach().cpu().numpy()
    parts = [table[: n + 1, : n + 1].ravel() for table, n in zip(values, n_words, strict=True)]
    return np.concatenate(parts)


def _decode(scores: SplitScores, decoder: str, constraints: Constraints | None) -> Trees:
    if constraints is not None:
        return decode_under(scores, decoder, constraints)
    return binary_trees(scores.n_words, partial(choose(DECODERS, decoder, what="decoder"), scores))
