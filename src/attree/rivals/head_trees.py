"""The tree of each head as a matrix, so that the mean of some is the ensemble of their trees.

Kim, Li and Lee (2021, *Multilingual Chart-based Constituency Parse Extraction from Pre-trained
Language Models*) let each of the K best heads parse by itself, write its tree as syntactic
distances, and split where the mean of the distances is greatest::

    d(k) = Σ_heads height of the head's node that parts words k-1 and k / K

A unit is a head with a measure ``f`` of how far two words are apart; of layer ``l`` (0-based)::

    0…   Jensen-Shannon, of each head     then   Hellinger, of each head

so that the K best are chosen among all pairs of both, as theirs are. A matrix holds ``-d(k)`` at
``[k-1, k]`` and ``[k, k-1]``. The recipe: ``score: adjacent``, ``decoder: greedy``, ``heads:
best:20``, ``rank_by: sentence_f1``. One head's distances give the head's own tree.

Three ways to a head's tree: *top-down* splits where neighbours are farthest apart, *pair* and
*characteristic* sum a score over the spans of a tree by a chart (:mod:`attree.scoring.pairs`,
:mod:`attree.rivals.characteristic`).

From the published description: the ensemble, K = 20 and the choice over measures and heads.
Decided: heights by Shen et al. (:mod:`attree.decoding.batch`); ties go to the smaller split;
the encoder reads its special pieces, and what attention falls on them is left out; the
characteristic score has the Hellinger distance alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attree.association.sources import HELLINGER, JENSEN_SHANNON
from attree.decoding import Recipe
from attree.rivals import characteristic

if TYPE_CHECKING:
    import torch

    from attree.encoder.load import Encoder
    from attree.encoder.pieces import Pieces
    from attree.encoder.source import Head

#: Attention (batch, heads, words, words) and the words of each sentence → what a tree is read from.
Measure = Callable[["torch.Tensor", Sequence[int]], "torch.Tensor"]


@dataclass(frozen=True, slots=True)
class HeadTrees:
    """Matrices of minus the distances of trees (an `AssociationSource`).

    Args:
        measures: how far words are apart; each makes a unit of each head.
        recipe: how a head parses.
    """

    measures: tuple[Measure, ...]
    recipe: Recipe

    def shape(self, n_layers: int, n_heads: int) -> tuple[int, int]:
        """Every head of every layer, once a measure."""
        return n_layers, len(self.measures) * n_heads

    def matrices(
        self, encoder: Encoder, pieces: Sequence[Pieces], units: Sequence[Head]
    ) -> torch.Tensor:
        """Return float32 (batch, units, words, words), 0 but beside the diagonal."""
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
        """(batch, units, words, words) of what trees are read from → of minus their distances."""
        import numpy as np
        import torch

        from attree.decoding.batch import decode, syntactic_distances

        distances = torch.zeros(scores.shape)
        values = scores.cpu().numpy()
        for row, n in enumerate(words):
            of_sentence = values[row, :, :n, :n]
            broken = not np.isfinite(of_sentence).all()
            # whoever reads the matrix tells of a sentence that is not a number
            flat = np.zeros(of_sentence.size) if broken else of_sentence.ravel()
            trees = decode(flat, [n], len(of_sentence), **self.recipe.settings())
            far = torch.from_numpy(syntactic_distances(trees)).reshape(len(of_sentence), n - 1)
            matrix = far.diag_embed(1) + far.diag_embed(-1)
            distances[row, :, :n, :n] = torch.nan if broken else -matrix.float()
        return distances


_MEASURES = (JENSEN_SHANNON.compare, HELLINGER.compare)

TOP_DOWN = HeadTrees(_MEASURES, Recipe("raw", "adjacent", "greedy"))
PAIR = HeadTrees(_MEASURES, Recipe("raw", "pair", "chart"))
CHARACTERISTIC = HeadTrees((characteristic.scores,), Recipe("raw", "spans", "chart"))
