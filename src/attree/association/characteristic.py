"""The characteristic score of every span, for each head (Kim, Li and Lee, 2021).

A span's score is minus the mean distance of its words' attention from the mean attention::

    s(i, j) = -Σ_{i <= x < j} H(p_x, c) / w,   c = Σ_{i <= x < j} p_x / w,   w = j - i

``p_x`` is the attention of word ``x`` over the sentence's words. The score is at ``[i, j-1]`` of a
head's matrix, where ``score: spans`` reads it; scores of several heads are averaged. See
:mod:`attree.scoring.pairs` for the parser and its source, and
:mod:`attree.association.head_trees` for the authors' ensemble, which is of trees.

``H`` is the Hellinger distance ``sqrt(1 - Σ sqrt(p c))``, one of the two that the authors use. We
chose it because it takes a matrix product; the Jensen-Shannon distance takes words⁴ logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attree.association.sources import AttentionSource

if TYPE_CHECKING:
    import torch

#: Cells (words × spans) of the heads computed at a time: 64 MB.
_CELLS = 16_000_000


def scores(attention: torch.Tensor, words: Sequence[int]) -> torch.Tensor:
    """Return the scores of spans ``[i, j)`` at ``[i, j-1]``, (batch, heads, words, words)."""
    import torch

    of_spans = torch.zeros_like(attention)
    for row, n in enumerate(words):
        step = max(1, _CELLS // (n * n * (n + 1) // 2))
        for heads in torch.arange(attention.shape[1]).split(step):
            of_spans[row, heads, :n, :n] = _of_sentence(attention[row, heads, :n, :n])
    return of_spans


def _of_sentence(attention: torch.Tensor) -> torch.Tensor:
    """Return the span scores of one sentence, (heads, words, words)."""
    import torch

    n = attention.shape[-1]
    rows = attention / attention.sum(-1, keepdim=True).clamp_(min=1e-12)
    first, last = torch.triu_indices(n, n, offset=1, device=rows.device)
    sums = torch.nn.functional.pad(rows.double().cumsum(1), (0, 0, 1, 0))
    width = (last + 1 - first)[:, None]
    centre = ((sums[:, last + 1] - sums[:, first]) / width).clamp_(min=0.0).float()
    alike = rows.sqrt() @ centre.sqrt().transpose(1, 2)  # (heads, words, spans)
    word = torch.arange(n, device=rows.device)[:, None]
    within = (first <= word) & (word <= last)
    distances = (1.0 - alike).clamp_(min=0.0).sqrt_() * within
    of_spans = torch.zeros_like(attention)
    of_spans[:, first, last] = -distances.sum(1) / width[:, 0]
    return of_spans


#: Source of matrices that hold a score for every span.
CHARACTERISTIC = AttentionSource(scores)
