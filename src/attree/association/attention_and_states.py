"""Attention heads and layers of hidden states as sources of association.

A head gives its attention, or how much alike the attention of two words is: what falls on special
pieces is left out and the rest made to sum to 1, as in the authors' program. A layer gives how much
alike the states of two words are, each the mean over the word's pieces; layer 0 is that of the
embeddings. The similarities are those of Kim et al. (2020, *Are Pre-trained Language Models Aware
of Phrases?*): distances with a minus sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from attree.encoder.load import Encoder
    from attree.encoder.pieces import PieceBatch, Pieces
    from attree.encoder.source import Head


@dataclass(frozen=True, slots=True)
class AttentionSource:
    """Matrices of attention heads (a :class:`attree.association.sources.AssociationSource`).

    Args:
        compare: makes of the heads' attention, and the words of each sentence, what the source
            gives, of the same shape.
    """

    compare: Callable[[torch.Tensor, Sequence[int]], torch.Tensor]

    def shape(self, n_layers: int, n_heads: int) -> tuple[int, int]:
        """Every head of every layer."""
        return n_layers, n_heads

    def matrices(
        self, encoder: Encoder, pieces: Sequence[Pieces], units: Sequence[Head]
    ) -> torch.Tensor:
        """Return float32 (batch, heads, words, words)."""
        n_words = [sentence.n_words for sentence in pieces]
        return self.compare(encoder.run(pieces, heads=units).attention, n_words)


def _jensen_shannon(attention: torch.Tensor, n_words: Sequence[int]) -> torch.Tensor:
    """Return ``-sqrt(JSD(p, q))`` of every two rows, ``JSD = H((p+q)/2) - (H(p) + H(q))/2``.

    One row is compared with all at a time: all pairs at once would take words³ of memory.
    """
    import torch

    rows = _distributions(attention)
    entropy = -torch.xlogy(rows, rows).sum(-1)
    divergence = torch.empty_like(rows)
    for word in range(rows.shape[2]):
        between = (rows + rows[:, :, word : word + 1]) / 2
        mixed = -torch.xlogy(between, between).sum(-1)
        divergence[:, :, word] = mixed - (entropy + entropy[:, :, word : word + 1]) / 2
    return -divergence.clamp_(min=0.0).sqrt_()


def _hellinger(attention: torch.Tensor, n_words: Sequence[int]) -> torch.Tensor:
    """Return ``-|sqrt(p) - sqrt(q)| / sqrt(2)`` of every two rows."""
    import torch

    roots = _distributions(attention).sqrt()
    return -torch.cdist(roots, roots, compute_mode="donot_use_mm_for_euclid_dist") / math.sqrt(2)


def _distributions(attention: torch.Tensor) -> torch.Tensor:
    return attention / attention.sum(-1, keepdim=True).clamp_(min=1e-12)


PLAIN = AttentionSource(lambda attention, n_words: attention)
JENSEN_SHANNON = AttentionSource(_jensen_shannon)
HELLINGER = AttentionSource(_hellinger)


@dataclass(frozen=True, slots=True)
class StatesSource:
    """Matrices of layers of hidden states (an `AssociationSource`).

    Args:
        compare: (batch, words, size) → (batch, words, words), the similarity of every two words.
    """

    compare: Callable[[torch.Tensor], torch.Tensor]

    def shape(self, n_layers: int, n_heads: int) -> tuple[int, int]:
        """Embeddings and every layer, one unit each."""
        return n_layers + 1, 1

    def matrices(
        self, encoder: Encoder, pieces: Sequence[Pieces], units: Sequence[Head]
    ) -> torch.Tensor:
        """Return float32 (batch, layers, words, words)."""
        import torch

        output = encoder.run(pieces, states=[layer for layer, _ in units])
        mean = piece_to_word(output.batch)
        states = (output.states[layer].float() for layer, _ in units)
        return torch.stack([self.compare(mean @ layer) for layer in states], dim=1)


def piece_to_word(batch: PieceBatch) -> torch.Tensor:
    """Return float32 (batch, words, pieces), which takes the mean over each word's pieces."""
    import torch

    words = torch.arange(batch.max_words, device=batch.ids.device)
    belongs = (batch.word_of[:, None, :] == words[:, None]).float()
    return belongs / belongs.sum(-1, keepdim=True).clamp_(min=1.0)


def _cosine(states: torch.Tensor) -> torch.Tensor:
    """Return ``(1 + cos) / 2``, from 0 to 1, which has a logarithm."""
    import torch

    unit = torch.nn.functional.normalize(states, dim=-1)
    return ((1.0 + unit @ unit.transpose(1, 2)) / 2.0).clamp_(0.0, 1.0)


def _manhattan(states: torch.Tensor) -> torch.Tensor:
    import torch

    return -torch.cdist(states, states, p=1.0)


def _euclidean(states: torch.Tensor) -> torch.Tensor:
    import torch

    return -torch.cdist(states, states, compute_mode="donot_use_mm_for_euclid_dist")


COSINE = StatesSource(_cosine)
MANHATTAN = StatesSource(_manhattan)
EUCLIDEAN = StatesSource(_euclidean)
