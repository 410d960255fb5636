"""Sources of association: what of an encoder is compared to say how much two words belong together.

A source has *units*, each of which gives a word × word matrix of every sentence: the heads of the
encoder, ``(layer, head)``, or its layers of hidden states, ``(layer, 0)``. Everything after it
(shards, ranking, selections, parsers) knows units only. Adding a source is adding an object with
the two methods of :class:`AssociationSource` and its line in :data:`SOURCES`.

Importing this module imports no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from attree.base.errors import AttreeError
from attree.base.registry import choose

if TYPE_CHECKING:
    import torch

    from attree.encoder.load import Encoder
    from attree.encoder.pieces import Pieces
    from attree.encoder.source import Head

#: source → its :class:`AssociationSource`. Distances are given as similarities, with a minus sign.
SOURCES = {
    "heads": "attree.association.attention_and_states:PLAIN",
    "heads-jsd": "attree.association.attention_and_states:JENSEN_SHANNON",
    "heads-hellinger": "attree.association.attention_and_states:HELLINGER",
    "states": "attree.association.attention_and_states:COSINE",
    "states-l1": "attree.association.attention_and_states:MANHATTAN",
    "states-l2": "attree.association.attention_and_states:EUCLIDEAN",
    "heads-characteristic": "attree.rivals.characteristic:CHARACTERISTIC",
    "neighbours": "attree.rivals.neighbours:NEIGHBOURS",
    "trees-top-down": "attree.rivals.head_trees:TOP_DOWN",
    "trees-pair": "attree.rivals.head_trees:PAIR",
    "trees-characteristic": "attree.rivals.head_trees:CHARACTERISTIC",
}

#: What sources run that parse, and no other: their names begin so.
_PARSING, _TREES = ("attree.decoding", "attree.scoring"), "trees-"

#: The source where none is named.
HEADS = "heads"


class AssociationSource(Protocol):
    """How matrices are made of what an encoder gives."""

    def shape(self, n_layers: int, n_heads: int) -> tuple[int, int]:
        """Return how many layers and heads of each the units of such an encoder have."""

    def matrices(
        self, encoder: Encoder, pieces: Sequence[Pieces], units: Sequence[Head]
    ) -> torch.Tensor:
        """Run the encoder over one batch and return the matrices of some units.

        Returns:
            float32 (batch, units, words, words), the higher the more two words belong together;
            past a sentence's words meaningless.
        """


def load_source(name: str) -> AssociationSource:
    """Import and return a source.

    Raises:
        AttreeError: there is none of this name; the line lists those that there are.
    """
    source: AssociationSource = choose(SOURCES, name, what="source")
    return source


def spared(sources: Iterable[str]) -> tuple[str, ...]:
    """Return the packages that none of these sources runs, though one of the registry does."""
    return () if any(name.startswith(_TREES) for name in sources) else _PARSING


def units(source: str, n_layers: int, n_heads: int) -> list[Head]:
    """Return every unit that an encoder has of a source, by layer, then head."""
    layers, heads = load_source(source).shape(n_layers, n_heads)
    return [(layer, head) for layer in range(layers) for head in range(heads)]


def checked(source: str, heads: Sequence[Head], n_layers: int, n_heads: int) -> list[Head]:
    """Return units sorted, each once, after checking that an encoder has them.

    Args:
        source: whose units they are.
        heads: the units.
        n_layers, n_heads: of the encoder.
    """
    return within(heads, *load_source(source).shape(n_layers, n_heads))


def within(heads: Sequence[Head], n_layers: int, n_heads: int) -> list[Head]:
    """Return units sorted, each once, after checking that a grid of layers and heads has them."""
    for layer, head in heads:
        if not (0 <= layer < n_layers and 0 <= head < n_heads):
            fix = f"layers are 0 to {n_layers - 1}, heads 0 to {n_heads - 1}, both from 0"
            raise AttreeError("no-such-head", f"there is no head {layer}.{head}", fix=fix)
    return sorted(set(heads))
