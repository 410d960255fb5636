"""The characteristic score of every span, by head (Kim, Li and Lee, 2021).

A span is as good as its words are near to what they have in common, the mean of their attention::

    s(i, j) = -Σ_{i <= x < j} H(p_x, c) / w,   c = Σ_{i <= x < j} p_x / w,   w = j - i

``p_x`` is how word ``x`` spreads its attention over the sentence's words. The score stands at
``[i, j-1]`` of a head's matrix, where ``score: spans`` reads it; of several heads the mean is
taken. See :mod:`attree.scoring.pairs` for the parser and its source, and
:mod:`attree.rivals.head_trees` for the authors' ensemble, which is of trees.

Decided: ``H`` is the Hellinger distance ``sqrt(1 - Σ sqrt(p c))``, one of the two that the authors
use, since it takes a matrix product where the Jensen-Shannon distance takes words⁴ logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attree.association.sources import AttentionSource

if TYPE_CHECKING:
    import torch

#: Cells (words × spans) of the heads that are taken at a time: 64 MB.
_CELLS = 16_000_000


def scores(attention: torch.Tensor, words: Sequence[int]) -> torch.Tensor:
    """(batch, heads, words, words) → the same, the score of span ``[i, j)`` at ``[i, j-1]``."""
    import torch

    of_spans = torch.zeros_like(attention)
    for row, n in enumerate(words):
        step = max(1, _CELLS // (n * n * (n + 1) // 2))
        for heads in torch.arange(attention.shape[1]).split(step):
            of_spans[row, heads, :n, :n] = _of_sentence(attention[row, heads, :n, :n])
    return of_spans


def _of_sentence(attention: torch.Tensor) -> torch.Tensor:
    """(heads, words, words) → the same, of one sentence."""
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


#: Matrices that hold a score for every span.
CHARACTERISTIC = AttentionSource(scores)
