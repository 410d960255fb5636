"""One sentence's scores, kept: a tree in milliseconds for whatever is known of it by now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.trees.constraints import Constraints
from attree.trees.tree import Tree
from attree.trees.trees import Trees

if TYPE_CHECKING:
    from attree.decoding.k_best import Ranked

_NOTHING = Constraints()


class SentenceScores(Protocol):
    """What kinds of parsers keep of one sentence."""

    def trees(self, constraints: Constraints) -> Trees:
        """Return the one tree that keeps to constraints."""

    def best(self, k: int) -> Ranked:
        """Return the best k trees, or all where there are fewer."""

    def marginals(self, constraints: Constraints) -> NDArray[np.float64]:
        """(n + 1, n + 1): the probability of every phrase under constraints."""

    def entropy(self) -> float:
        """Return the entropy of the distribution over binary trees, in nats."""


class Candidate(NamedTuple):
    """One of the best trees of a sentence.

    Attributes:
        tree: the tree.
        score: what the parser's decoder maximises, summed over the tree: split scores; of
            ``normalised_chart`` the log of the tree's probability; of ``minimum_risk`` the number
            of spans expected to be right, without the whole sentence; of ``labelled_risk`` that of
            labels, less the threshold for each label; of ``optional_chart`` span scores. None of a
            sentence that has but one tree.
        probability: of the tree among all binary trees, or all labelled ones; None where the parser
            has no distribution over trees. Where the score is an expected number of right spans or
            labels it may rank trees otherwise than this does: the tree that is most often right as
            a whole need not be the one with the most right parts.
    """

    tree: Tree
    score: float | None
    probability: float | None

    def brackets(self) -> str:
        """Return the tree on one line (see :meth:`attree.trees.tree.Tree.brackets`)."""
        return self.tree.brackets()


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

    def best(self, k: int) -> list[Candidate]:
        """Return the best k trees, all different, best first; fewer where there are fewer.

        The first is that of :meth:`Parser.parse`. Exact, by a lazy search
        (:mod:`attree.decoding.k_best`).

        Raises:
            AttreeError: ``k`` is below 1, or the parser does not compare whole trees: it decides
                split by split.
        """
        if k < 1:
            raise AttreeError(f"{k} trees are asked for", fix="ask for 1 or more")
        found = self.scores.best(k)
        chances: Sequence[float | None] = found.probabilities or [None] * len(found.scores)
        trees = found.trees.each([self.words] * len(found.scores))
        return list(map(Candidate, trees, found.scores, chances))

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
