"""Each head's tree as a matrix, so that averaging matrices combines the heads' trees.

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
*pair* and *characteristic* maximise a sum of span scores by a chart (:mod:`attree.scoring.pairs`,
:mod:`attree.association.characteristic`).

The ensemble, K = 20 and the choice among distances and heads follow the published description. We
decided the rest: heights by Shen et al. (:mod:`attree.decoding.batch`); ties go to the smaller
split; the encoder reads its special pieces, and attention to them is left out; the characteristic
score uses the Hellinger distance alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attree.association import characteristic
from attree.association.sources import HELLINGER, JENSEN_SHANNON
from attree.decoding import Recipe

if TYPE_CHECKING:
    import torch

    from attree.encoder.load import Encoder
    from attree.encoder.pieces import Pieces
    from attree.encoder.source import Head

#: Attention (batch, heads, words, words), number of words of each sentence → matrices to parse.
Measure = Callable[["torch.Tensor", Sequence[int]], "torch.Tensor"]


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

    def matrices(
        self, encoder: Encoder, pieces: Sequence[Pieces], units: Sequence[Head]
    ) -> torch.Tensor:
        """Return float32 (batch, units, words, words), 0 except beside the diagonal."""
        import torch

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

    def _distances(self, scores: torch.Tensor, words: Sequence[int]) -> torch.Tensor:
        """Parse matrices; return minus the trees' distances, (batch, units, words, words)."""
        import numpy as np
        import torch

        from attree.decoding.batch import decode, syntactic_distances

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


_MEASURES = (JENSEN_SHANNON.compare, HELLINGER.compare)

TOP_DOWN = HeadTrees(_MEASURES, Recipe("raw", "adjacent", "greedy"))
PAIR = HeadTrees(_MEASURES, Recipe("raw", "pair", "chart"))
CHARACTERISTIC = HeadTrees((characteristic.scores,), Recipe("raw", "spans", "chart"))
