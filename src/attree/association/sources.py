"""Sources of association: ways to measure with an encoder how much two words belong together.

A source has *units*, each of which gives a word × word matrix for a sentence: the encoder's heads,
``(layer, head)``, or its layers of hidden states, ``(layer, 0)``. All later steps (shards, ranking,
selections, parsers) know only units. To add a source, write an object with the two methods of
:class:`AssociationSource` and add it to :data:`SOURCES`.

A head gives its attention, or the similarity of the attention of two words: attention to special
pieces is left out and the rest normalised to sum to 1, as in the authors' program. A layer gives
the similarity of the states of two words, each the mean over the word's pieces; layer 0 is the
embeddings. The similarities are those of Kim et al. (2020, *Are Pre-trained Language Models Aware
of Phrases?*): negative distances. Other articles' sources have files of their own.

Importing this module imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from attree.base.errors import AttreeError
from attree.base.registry import choose

if TYPE_CHECKING:
    from torch import Tensor

    from attree.encoder.load import Encoder
    from attree.encoder.pieces import Pieces
    from attree.encoder.source import Head

#: source → its :class:`AssociationSource`
SOURCES = {
    "heads": "attree.association.sources:PLAIN",
    "heads-jsd": "attree.association.sources:JENSEN_SHANNON",
    "heads-hellinger": "attree.association.sources:HELLINGER",
    "states": "attree.association.sources:STATES",
    "heads-characteristic": "attree.association.head_trees:SCORES_OF_SPANS",
    "neighbours": "attree.association.head_trees:NEIGHBOURS",
    "trees-top-down": "attree.association.head_trees:TOP_DOWN",
    "trees-pair": "attree.association.head_trees:PAIR",
    "trees-characteristic": "attree.association.head_trees:CHARACTERISTIC",
}

#: The default source.
HEADS = "heads"


class AssociationSource(Protocol):
    """Computes association matrices with an encoder."""

    def shape(self, n_layers: int, n_heads: int) -> tuple[int, int]:
        """Return the numbers of layers, and of heads per layer, of the units of an encoder."""

    def matrices(self, encoder: Encoder, pieces: Sequence[Pieces], units: Sequence[Head]) -> Tensor:
        """Run the encoder over one batch and return the matrices of some units.

        Returns:
            float32 (batch, units, words, words), higher for words that belong together; undefined
            past a sentence's words.
        """


def load_source(name: str) -> AssociationSource:
    """Import and return a source.

    Raises:
        AttreeError: there is no source of this name; the message lists all sources.
    """
    return choose(SOURCES, name, what="source")


def not_run_by(sources: Iterable[str]) -> tuple[str, ...]:
    """Return the modules of other sources than these."""
    modules = {name: entry.partition(":")[0] for name, entry in SOURCES.items()}
    run = {__name__, *(modules[name] for name in sources)}
    return tuple(sorted({module for module in modules.values() if module not in run}))


def units(source: str, n_layers: int, n_heads: int) -> list[Head]:
    """Return every unit of a source for an encoder, by layer, then head."""
    layers, heads = load_source(source).shape(n_layers, n_heads)
    return [(layer, head) for layer in range(layers) for head in range(heads)]


def check_heads(source: str, heads: Sequence[Head], n_layers: int, n_heads: int) -> list[Head]:
    """Check that an encoder has units of a source; return them sorted, each once.

    Args:
        source: the source.
        heads: its units.
        n_layers, n_heads: size of the encoder.
    """
    return within(heads, *load_source(source).shape(n_layers, n_heads))


def within(heads: Sequence[Head], n_layers: int, n_heads: int) -> list[Head]:
    """Check that units lie in a grid of layers and heads; return them sorted, each once."""
    for layer, head in heads:
        if not (0 <= layer < n_layers and 0 <= head < n_heads):
            fix = f"layers are 0 to {n_layers - 1}, heads 0 to {n_heads - 1}"
            raise AttreeError("no-such-head", f"there is no head {layer}.{head}", fix=fix)
    return sorted(set(heads))


@dataclass(frozen=True, slots=True)
class AttentionSource:
    """Matrices of attention heads (an `AssociationSource`).

    Args:
        compare: maps the heads' attention (batch, heads, words, words), and the number of words of
            each sentence, to association of the same shape.
    """

    compare: Callable[[Tensor, Sequence[int]], Tensor]

    def shape(self, n_layers: int, n_heads: int) -> tuple[int, int]:
        """Return all layers and heads."""
        return n_layers, n_heads

    def matrices(self, encoder: Encoder, pieces: Sequence[Pieces], units: Sequence[Head]) -> Tensor:
        """Return float32 (batch, heads, words, words)."""
        n_words = [sentence.n_words for sentence in pieces]
        return self.compare(encoder.run(pieces, heads=units).attention, n_words)


def _jensen_shannon(attention: Tensor, n_words: Sequence[int]) -> Tensor:
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


def _hellinger(attention: Tensor, n_words: Sequence[int]) -> Tensor:
    """Return ``-|sqrt(p) - sqrt(q)| / sqrt(2)`` of every two rows."""
    import torch

    roots = _distributions(attention).sqrt()
    return -torch.cdist(roots, roots, compute_mode="donot_use_mm_for_euclid_dist") / math.sqrt(2)


def _distributions(attention: Tensor) -> Tensor:
    return attention / attention.sum(-1, keepdim=True).clamp_(min=1e-12)


PLAIN = AttentionSource(lambda attention, n_words: attention)
JENSEN_SHANNON = AttentionSource(_jensen_shannon)
HELLINGER = AttentionSource(_hellinger)


class StatesSource:
    """How alike words' hidden states in a layer are (an `AssociationSource`)."""

    def shape(self, n_layers: int, n_heads: int) -> tuple[int, int]:
        """Return one unit for the embeddings and one per layer."""
        return n_layers + 1, 1

    def matrices(self, encoder: Encoder, pieces: Sequence[Pieces], units: Sequence[Head]) -> Tensor:
        """Return float32 (batch, layers, words, words)."""
        import torch

        output = encoder.run(pieces, states=[layer for layer, _ in units])
        mean = output.batch.piece_to_word()
        states = (output.states[layer].float() for layer, _ in units)
        return torch.stack([_cosine(mean @ layer) for layer in states], dim=1)


def _cosine(states: Tensor) -> Tensor:
    """Return ``(1 + cos) / 2``, which lies between 0 and 1, so that logarithms are defined."""
    import torch

    unit = torch.nn.functional.normalize(states, dim=-1)
    return ((1.0 + unit @ unit.transpose(1, 2)) / 2.0).clamp_(0.0, 1.0)


STATES = StatesSource()
