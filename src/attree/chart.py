"""One sentence's scores, kept: a tree in milliseconds for whatever is known of it by now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from attree.constraints import Constraints
from attree.tree import Tree
from attree.trees import Trees

_NOTHING = Constraints()


class SentenceScores(Protocol):
    """What kinds of parsers keep of one sentence."""

    def trees(self, constraints: Constraints) -> Trees:
        """Return the one tree that keeps to constraints."""

    def marginals(self, constraints: Constraints) -> NDArray[np.float64]:
        """(n + 1, n + 1): the probability of every phrase under constraints."""

    def entropy(self) -> float:
        """Return the entropy of the distribution over binary trees, in nats."""


@dataclass(frozen=True, slots=True)
class Chart:
    """What a parser makes of one sentence, before a tree is picked; of :meth:`Parser.chart`.

    Nothing here runs the encoder again.

    Attributes:
        words: of the sentence.
        scores: of its spans.
    """

    words: tuple[str, ...]
    scores: SentenceScores

    def tree(self, constraints: Constraints | None = None) -> Tree:
        """Return the best tree that keeps to constraints.

        A required span is in the tree, with its label if trees have labels; one whose label is not
        known has the best label but the empty one. A forbidden span is never in the tree. Without
        constraints it is the tree of :meth:`Parser.parse`.

        Raises:
            AttreeError: a span outside the sentence.
        """
        return self.scores.trees(constraints or _NOTHING).of(0, self.words)

    def marginals(self, constraints: Constraints | None = None) -> NDArray[np.float64]:
        """Return how probable each span is as a phrase of the tree.

        Where trees have labels, a span counts if it has one; and words have probabilities only
        there. Of a required span it is 1, of one that is forbidden or crosses a required one 0.

        Returns:
            (n + 1, n + 1) float64, span ``[i, j)`` at ``[i, j]``.

        Raises:
            AttreeError: the parser has no distribution over trees, or a span outside the sentence.
        """
        return self.scores.marginals(constraints or _NOTHING)

    @property
    def entropy(self) -> float:
        """``H = −Σ p(tree) log p(tree)`` over the binary trees of the sentence, in nats.

        Raises:
            AttreeError: the parser has no distribution over trees.
        """
        return self.scores.entropy()

    @property
    def entropy_per_word(self) -> float:
        """:attr:`entropy` by the number of words: how unsure the parser is."""
        return self.entropy / len(self.words)
