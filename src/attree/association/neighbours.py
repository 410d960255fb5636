"""All distances of neighbouring words among which Kim et al. choose, as one source.

Kim, Choi, Edmiston and Lee (2020, *Are Pre-trained Language Models Aware of Phrases?*) compare the
words on the two sides of every gap and split where they differ most. A *candidate* is a distance in
a layer, or in one of its heads; the candidate with the best sentence F1 on development trees is the
parser. Its recipe here: ``score: adjacent`` (or ``adjacent_right``, with their bias), ``decoder:
greedy``, ``heads: best``, ``rank_by: sentence_f1``.

The units of layer ``l`` (0-based: its attention, and its output hidden states)::

    0 cos   1 L1   2 L2   3 mean Hellinger   4 mean JSD   5… Hellinger, then JSD, of each head

A word's state is the mean over its pieces; attention to a word is the sum over its pieces, and
attention from it the mean. Where the authors' program and the paper differ, we follow the program:
the encoder reads no ``[CLS]`` and ``[SEP]``; ``cos`` is ``(1 + cos) / 2``, a similarity used as a
distance; the Jensen-Shannon distance has reversed divergences, ``sqrt((KL(m|p) + KL(m|q)) / 2)``
with ``m = (p + q) / 2``; the embeddings are no candidate. The sources ``states…`` and ``heads-…``
follow the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from attree.association.sources import piece_to_word

if TYPE_CHECKING:
    from attree.encoder.load import Encoder, EncoderOutput
    from attree.encoder.pieces import Pieces
    from attree.encoder.source import Head

#: Added to attention before a logarithm, as in the authors' program.
_FLOOR = 1e-8

#: Number of units of states, and of those of a layer as a whole: also two means over heads.
_OF_STATES, _OF_LAYER = 3, 5


class NeighbourSource:
    """Matrices of minus the distance of neighbours (an :class:`attree…sources.AssociationSource`).

    Only the two diagonals beside the main one are not 0.
    """

    def shape(self, n_layers: int, n_heads: int) -> tuple[int, int]:
        """Return the number of layers, and of candidates in a layer."""
        return n_layers, _OF_LAYER + 2 * n_heads

    def matrices(
        self, encoder: Encoder, pieces: Sequence[Pieces], units: Sequence[Head]
    ) -> torch.Tensor:
        """Return float32 (batch, units, words, words)."""
        heads = sorted({head for unit in units for head in _heads_of(unit, encoder.n_heads)})
        states = sorted({layer + 1 for layer, number in units if number < _OF_STATES})
        plain = [_without_specials(sentence) for sentence in pieces]
        output = encoder.run(plain, heads=heads, states=states)
        columns = {head: number for number, head in enumerate(heads)}
        of_units = [_distances(output, unit, columns, encoder.n_heads) for unit in units]
        distances = torch.stack(of_units, dim=1)
        return -(distances.diag_embed(1) + distances.diag_embed(-1))


def _without_specials(sentence: Pieces) -> Pieces:
    of_words = sentence.word_of >= 0
    return replace(sentence, ids=sentence.ids[of_words], word_of=sentence.word_of[of_words])


def _heads_of(unit: Head, n_heads: int) -> list[Head]:
    """Return the heads whose attention a unit reads."""
    layer, number = unit
    if number < _OF_STATES:
        return []
    if number < _OF_LAYER:
        return [(layer, head) for head in range(n_heads)]
    return [(layer, (number - _OF_LAYER) % n_heads)]


def _distances(
    output: EncoderOutput, unit: Head, columns: dict[Head, int], n_heads: int
) -> torch.Tensor:
    """Return a unit's distances of neighbouring words, (batch, words - 1)."""
    layer, number = unit
    if number < _OF_STATES:
        states = output.states[layer + 1].float()
        return STATES[number](piece_to_word(output.batch) @ states)
    chosen = [columns[head] for head in _heads_of(unit, n_heads)]
    is_jsd = number == _OF_LAYER - 1 or number >= _OF_LAYER + n_heads
    compare = _jensen_shannon if is_jsd else _hellinger
    return compare(output.attention[:, chosen], output.batch.n_words).mean(1)


def _cosine(states: torch.Tensor) -> torch.Tensor:
    return (1.0 + torch.cosine_similarity(states[:, :-1], states[:, 1:], dim=-1)) / 2.0


def _norm(order: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def distance(states: torch.Tensor) -> torch.Tensor:
        return torch.linalg.vector_norm(states[:, :-1] - states[:, 1:], ord=order, dim=-1)

    return distance


#: Distances by unit number: (batch, words, size) → (batch, words - 1).
STATES = (_cosine, _norm(1), _norm(2))


def _hellinger(attention: torch.Tensor, n_words: torch.Tensor) -> torch.Tensor:
    """Return distances (batch, heads, words - 1) of attention (batch, heads, words, words)."""
    roots = attention.sqrt()
    return (roots[:, :, :-1] - roots[:, :, 1:]).norm(dim=-1) / math.sqrt(2)


def _jensen_shannon(attention: torch.Tensor, n_words: torch.Tensor) -> torch.Tensor:
    """Do as :func:`_hellinger`, ignoring padding."""
    is_word = torch.arange(attention.shape[-1], device=attention.device) < n_words[:, None]
    floored = attention + _FLOOR * is_word[:, None, None]
    logs = (floored / floored.sum(-1, keepdim=True).clamp_(min=_FLOOR)).clamp_(min=1e-12).log()
    middle = (attention[:, :, :-1] + attention[:, :, 1:]) / 2
    mean_log = (logs[:, :, :-1] + logs[:, :, 1:]) / 2
    divergence = (torch.xlogy(middle, middle) - middle * mean_log).sum(-1)
    return divergence.clamp_(min=0.0).sqrt_()


NEIGHBOURS = NeighbourSource()
