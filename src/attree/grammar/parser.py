"""Parse with a grammar: find the tree with the highest expected number of right spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from attree.base.errors import AttreeError, NotFiniteError
from attree.base.process import use_threads
from attree.decoding.constrained import SplitChart
from attree.encoder.pieces import Pieces
from attree.grammar.folder import read_grammar
from attree.grammar.model import CompoundPCFG, Vocabulary
from attree.training.scores import best_trees, expected_right
from attree.trees.constraints import NOTHING_KNOWN, Known
from attree.trees.trees import Trees

#: Sentences parsed together.
_AT_A_TIME = 16


@dataclass(frozen=True, slots=True)
class Marginals:
    """The probabilities of the spans of a batch.

    Attributes:
        likely: float64 (batch, n + 1, n + 1), ``[i, j)`` at ``[i, j]``, 0 past the sentence.
        n_words: int64 (batch,).
    """

    likely: NDArray[np.float64]
    n_words: NDArray[np.int64]


class GrammarModel:
    """A grammar (a :class:`attree.parsers.batches.Model`); its vocabulary takes an encoder's place.

    Args:
        grammar: the weights.
        vocabulary: the words.
    """

    labelled = tagged = has_distribution = False
    trained = None

    def __init__(self, grammar: CompoundPCFG, vocabulary: Vocabulary) -> None:
        self.grammar = grammar
        self.encoder: Any = vocabulary

    def features(self, pieces: Sequence[Pieces]) -> Marginals:
        """Compute the probability of every span, sentences of one length together."""
        n_words = np.array([sentence.n_words for sentence in pieces], np.int64)
        side = int(n_words.max(initial=0)) + 1
        likely = np.zeros((len(pieces), side, side))
        for n in np.unique(n_words[n_words > 1]):
            rows = np.flatnonzero(n_words == n)
            for chunk in np.array_split(rows, -(-rows.size // _AT_A_TIME)):
                words = torch.from_numpy(np.stack([pieces[row].ids for row in chunk]))
                marginals = self.grammar.marginals(words.long())
                likely[chunk, : n + 1, : n + 1] = marginals.double().numpy()
        return Marginals(likely, n_words)

    def trees(self, features: Marginals, known: Known = NOTHING_KNOWN) -> Trees:
        """Decode by minimum risk; the score of a span is its probability.

        Raises:
            NotFiniteError: a probability is NaN.
        """
        likely = features.likely
        if not np.isfinite(likely).all():
            raise NotFiniteError("not-finite", "a sentence's probabilities are not finite")
        trees = best_trees(torch.from_numpy(likely), torch.from_numpy(features.n_words))
        constrained = {row: self.chart(features, row).trees(spans) for row, spans in known.items()}
        trees = trees.replaced(constrained)
        return replace(trees, scores=likely[trees.tree_of, trees.starts, trees.ends])

    def chart(self, features: Marginals, row: int = 0) -> SplitChart:
        """Return the chart of one sentence of a batch."""
        side = int(features.n_words[row]) + 1
        likely = features.likely[row : row + 1, :side, :side]
        return SplitChart(expected_right(likely, features.n_words[row : row + 1]), "chart")

    def associations(self, features: Marginals) -> list[NDArray[np.float32]]:
        """Raise an error: a grammar has no association."""
        problem, fix = "a grammar has no association between words", "take a parser of an encoder"
        raise AttreeError("no-association", problem, fix=fix)


@dataclass(frozen=True, slots=True)
class GrammarFolder:
    """The folder of a grammar that ``attree grammar train`` wrote."""

    folder: Path
    language: ClassVar[str] = ""

    def load(self, *, threads: int | None) -> GrammarModel:
        """Load the weights; a grammar runs on the CPU, whatever the device."""
        use_threads(threads)
        return GrammarModel(*read_grammar(self.folder)[:2])


def find_grammar(folder: Path, _: object) -> GrammarFolder:
    """Find the grammar in a folder, as :data:`attree.parsers.find.KINDS` has it."""
    return GrammarFolder(folder)
