"""Attention heads as sources: their attention, or how much alike the attention of two words is.

The two similarities are those of Kim et al. (2020, *Are Pre-trained Language Models Aware of
Phrases?*): minus the distance of the distributions that two words spread their attention by. What
falls on special pieces is left out and the rest made to sum to 1, as in the authors' program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from attree.encoder.load import Encoder
    from attree.encoder.pieces import Pieces
    from attree.encoder.source import Head


@dataclass(frozen=True, slots=True)
class AttentionSource:
    """Matrices of attention heads (a :class:`attree.association.sources.AssociationSource`).

    Args:
        compare: makes of the heads' attention what the source gives, of the same shape.
    """

    compare: Callable[[torch.Tensor], torch.Tensor]

    def shape(self, n_layers: int, n_heads: int) -> tuple[int, int]:
        """Every head of every layer."""
        return n_layers, n_heads

    def matrices(
        self, encoder: Encoder, pieces: Sequence[Pieces], units: Sequence[Head]
    ) -> torch.Tensor:
        """Return float32 (batch, heads, words, words)."""
        return self.compare(encoder.run(pieces, heads=units).attention)


def _as_it_is(attention: torch.Tensor) -> torch.Tensor:
    return attention


def _jensen_shannon(attention: torch.Tensor) -> torch.Tensor:
    """Return ``-sqrt(JSD(p, q))`` of every two rows, ``JSD = H((p+q)/2) - (H(p) + H(q))/2``.

    One row is compared with all at a time: all pairs at once would take words³ of memory.
    """
    import torch

    rows = _distributions(attention)
    entropy = -torch.xlogy(rows, rows).sum(-1)
    found = torch.empty_like(rows)
    for word in range(rows.shape[2]):
        between = (rows + rows[:, :, word : word + 1]) / 2
        mixed = -torch.xlogy(between, between).sum(-1)
        found[:, :, word] = mixed - (entropy + entropy[:, :, word : word + 1]) / 2
    return -found.clamp_(min=0.0).sqrt_()


def _hellinger(attention: torch.Tensor) -> torch.Tensor:
    """Return ``-|sqrt(p) - sqrt(q)| / sqrt(2)`` of every two rows."""
    import torch

    roots = _distributions(attention).sqrt()
    return -torch.cdist(roots, roots, compute_mode="donot_use_mm_for_euclid_dist") / math.sqrt(2)


def _distributions(attention: torch.Tensor) -> torch.Tensor:
    return attention / attention.sum(-1, keepdim=True).clamp_(min=1e-12)


PLAIN = AttentionSource(_as_it_is)
JENSEN_SHANNON = AttentionSource(_jensen_shannon)
HELLINGER = AttentionSource(_hellinger)
