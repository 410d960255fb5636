"""Hidden states as sources: how much alike the states of two words are, layer by layer.

The state of a word is the mean over its pieces; layer 0 is that of the embeddings. The similarities
are those of Kim et al. (2020, *Are Pre-trained Language Models Aware of Phrases?*), distances with
a minus sign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from attree.encoder.load import Encoder
    from attree.encoder.pieces import PieceBatch, Pieces
    from attree.encoder.source import Head


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
        found = [self.compare(mean @ output.states[layer].float()) for layer, _ in units]
        return torch.stack(found, dim=1)


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
