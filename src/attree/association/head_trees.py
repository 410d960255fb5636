"""Sources of Kim et al.: each head's tree as a matrix, and distances of neighbouring words.

Averaging the matrices of `HeadTrees` combines the heads' trees.

Kim, Li and Lee (2021, *Multilingual Chart-based Constituency Parse Extraction from Pre-trained
Language Models*) parse with each of the K best heads separately, write each tree as syntactic
distances, and split where the mean of the distances is greatest::

    d(k) = Σ_heads height of the head's node that separates words k-1 and k / K

A unit is a head with a distance ``f`` between words. The units of layer ``l`` (0-based) are::

    0…   Jensen-Shannon, of each head     then   Hellinger, of each head

so the K best are chosen among all pairs of head and distance, as theirs are. A matrix holds
``-d(k)`` at ``[k-1, k]`` and ``[k, k-1]``. The recipe: ``score: adjacent``, ``decoder: greedy``,
``heads: best:20``, ``rank_by: sentence_f1``. One head's distances give the head's own tree.

A head's tree is found in one of three ways: *top-down* splits where neighbours are farthest apart;
*pair* and *characteristic* maximise a sum of span scores by a chart (:mod:`attree.scoring.spans`).
The characteristic score of a span is minus the mean distance of its words' attention from the mean
attention::

    s(i, j) = -Σ_{i <= x < j} H(p_x, c) / w,   c = Σ_{i <= x < j} p_x / w,   w = j - i

``p_x`` is the attention of word ``x`` over the sentence's words, and ``H`` the Hellinger distance
``sqrt(1 - Σ sqrt(p c))``, one of the two that the authors use. We chose it because it takes a
matrix product; the Jensen-Shannon distance takes words⁴ logarithms. As a source by itself the score
is at ``[i, j-1]`` of a head's matrix, where ``score: spans`` reads it; several heads are averaged.

The ensemble, K = 20 and the choice among distances and heads follow the published description. We
decided the rest: heights by Shen et al. (:mod:`attree.decoding.batch`); ties go to the smaller
split; the encoder reads its special pieces, and attention to them is left out.

All distances of neighbouring words among which they chose before are one source, `NEIGHBOURS`:
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
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from attree.association.sources import HELLINGER, JENSEN_SHANNON, AttentionSource
from attree.decoding import Recipe
from attree.decoding.batch import decode, syntactic_distances

if TYPE_CHECKING:
    from attree.encoder.load import Encoder, EncoderOutput
    from attree.encoder.pieces import Pieces
    from attree.encoder.source import Head


#: Cells (words × spans) of the heads computed at a time: 64 MB.
_CELLS = 16_000_000

#: Attention (batch, heads, words, words), number of words of each sentence → matrices to parse.
Measure = Callable[[Tensor, Sequence[int]], Tensor]


@dataclass(frozen=True, slots=True)
class HeadTrees:
    """Matrices of minus the distances of trees (an `AssociationSource`).

    Args:
        measures: distances between words; each makes a unit of each head.
        recipe: of a head's parser.
    """

    measures: tuple[Measure, ...]
    recipe: Recipe

    def shape(self, n_layers: int, n_heads: int) -> tuple[int, int]:
        """Return the number of layers, and of units in a layer: each head with each measure."""
        return n_layers, len(self.measures) * n_heads

    def matrices(self, encoder: Encoder, pieces: Sequence[Pieces], units: Sequence[Head]) -> Tensor:
        """Return float32 (batch, units, words, words), 0 except beside the diagonal."""
        n_heads, words = encoder.n_heads, [sentence.n_words for sentence in pieces]
        heads = sorted({(layer, number % n_heads) for layer, number in units})
        column = {head: number for number, head in enumerate(heads)}
        attention = encoder.run(pieces, heads=heads).attention
        matrices = torch.zeros(len(pieces), len(units), *attention.shape[2:])
        for number, measure in enumerate(self.measures):
            by_it = [index for index, (_, unit) in enumerate(units) if unit // n_heads == number]
            read = [column[units[index][0], units[index][1] % n_heads] for index in by_it]
            matrices[:, by_it] = self._distances(measure(attention[:, read], words), words)
        return matrices

    def _distances(self, scores: Tensor, words: Sequence[int]) -> Tensor:
        """Parse matrices; return minus the trees' distances, (batch, units, words, words)."""

        distances = torch.zeros(scores.shape)
        values = scores.cpu().numpy()
        for row, n in enumerate(words):
            of_sentence = values[row, :, :n, :n]
            broken = not np.isfinite(of_sentence).all()
            # the reader of the matrix raises an error for NaN
            flat = np.zeros(of_sentence.size) if broken else of_sentence.ravel()
            trees = decode(flat, [n], len(of_sentence), **self.recipe.settings())
            heights = torch.from_numpy(syntactic_distances(trees)).reshape(len(of_sentence), n - 1)
            matrix = heights.diag_embed(1) + heights.diag_embed(-1)
            distances[row, :, :n, :n] = torch.nan if broken else -matrix.float()
        return distances


def scores(attention: Tensor, words: Sequence[int]) -> Tensor:
    """Return the scores of spans ``[i, j)`` at ``[i, j-1]``, (batch, heads, words, words)."""
    of_spans = torch.zeros_like(attention)
    for row, n in enumerate(words):
        step = max(1, _CELLS // (n * n * (n + 1) // 2))
        for heads in torch.arange(attention.shape[1]).split(step):
            of_spans[row, heads, :n, :n] = _of_sentence(attention[row, heads, :n, :n])
    return of_spans


def _of_sentence(attention: Tensor) -> Tensor:
    """Return the span scores of one sentence, (heads, words, words)."""
    n = attention.shape[-1]
    rows = attention / attention.sum(-1, keepdim=True).clamp_(min=1e-12)
    first, last = torch.triu_indices(n, n, offset=1, device=rows.device)
    sums = torch.nn.functional.pad(rows.double().cumsum(1), (0, 0, 1, 0))
    width = (last + 1 - first)[:, None]
    centre = ((sums[:, last + 1] - sums[:, first]) / width).clamp_(min=0.0).float()
    alike = rows.sqrt() @ centre.sqrt().transpose(1, 2)  # (heads, words, spans)
    word = torch.arange(n, device=rows.device)[:, None]
    distances = (1.0 - alike).clamp_(min=0.0).sqrt_() * ((first <= word) & (word <= last))
    of_spans = torch.zeros_like(attention)
    of_spans[:, first, last] = -distances.sum(1) / width[:, 0]
    return of_spans


_MEASURES = (JENSEN_SHANNON.compare, HELLINGER.compare)

TOP_DOWN = HeadTrees(_MEASURES, Recipe("raw", "adjacent", "greedy"))
PAIR = HeadTrees(_MEASURES, Recipe("raw", "pair", "chart"))
CHARACTERISTIC = HeadTrees((scores,), Recipe("raw", "spans", "chart"))

#: Source of matrices that hold a score for every span.
SCORES_OF_SPANS = AttentionSource(scores)


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

    def matrices(self, encoder: Encoder, pieces: Sequence[Pieces], units: Sequence[Head]) -> Tensor:
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


def _distances(output: EncoderOutput, unit: Head, columns: dict[Head, int], n_heads: int) -> Tensor:
    """Return a unit's distances of neighbouring words, (batch, words - 1)."""
    layer, number = unit
    if number < _OF_STATES:
        return STATES[number](output.batch.piece_to_word() @ output.states[layer + 1].float())
    chosen = [columns[head] for head in _heads_of(unit, n_heads)]
    is_jsd = number == _OF_LAYER - 1 or number >= _OF_LAYER + n_heads
    compare = _jensen_shannon if is_jsd else _hellinger
    return compare(output.attention[:, chosen], output.batch.n_words).mean(1)


def _cosine(states: Tensor) -> Tensor:
    return (1.0 + torch.cosine_similarity(states[:, :-1], states[:, 1:], dim=-1)) / 2.0


def _norm(states: Tensor, order: float) -> Tensor:
    return torch.linalg.vector_norm(states[:, :-1] - states[:, 1:], ord=order, dim=-1)


#: Distances by unit number: (batch, words, size) → (batch, words - 1).
STATES = (_cosine, partial(_norm, order=1), partial(_norm, order=2))


def _hellinger(attention: Tensor, n_words: Tensor) -> Tensor:
    """Return distances (batch, heads, words - 1) of attention (batch, heads, words, words)."""
    roots = attention.sqrt()
    return (roots[:, :, :-1] - roots[:, :, 1:]).norm(dim=-1) / math.sqrt(2)


def _jensen_shannon(attention: Tensor, n_words: Tensor) -> Tensor:
    """Do as :func:`_hellinger`, ignoring padding."""
    is_word = torch.arange(attention.shape[-1], device=attention.device) < n_words[:, None]
    floored = attention + _FLOOR * is_word[:, None, None]
    logs = (floored / floored.sum(-1, keepdim=True).clamp_(min=_FLOOR)).clamp_(min=1e-12).log()
    middle = (attention[:, :, :-1] + attention[:, :, 1:]) / 2
    mean_log = (logs[:, :, :-1] + logs[:, :, 1:]) / 2
    return (torch.xlogy(middle, middle) - middle * mean_log).sum(-1).clamp_(min=0.0).sqrt_()


NEIGHBOURS = NeighbourSource()
