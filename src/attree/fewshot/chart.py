"""The scores of one sentence by a trained parser, kept."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from attree.constraints import Constraints
from attree.decoding.constrained import SplitChart, no_distribution
from attree.decoding.k_best import Ranked
from attree.fewshot.inside import entropy, log_partitions, marginals
from attree.fewshot.label_trees import (
    best_labelled,
    best_optional,
    decode_labelled,
    phrase_marginals,
)
from attree.fewshot.labels import with_tags
from attree.fewshot.recipes import FewShotRecipe
from attree.fewshot.scores import SpanScores, decode, expected_right, likelihoods, split_tables
from attree.trees import Trees


def decoded(
    scores: SpanScores,
    recipe: FewShotRecipe,
    threshold: float = 0.0,
    constraints: Constraints | None = None,
) -> Trees:
    """Return the trees of a batch, with marginals if the parser has a distribution over trees.

    Args:
        scores: of the batch.
        recipe: of the parser.
        threshold: spans less likely are left out.
        constraints: of a batch of one sentence.
    """
    if recipe.decoder == "labelled_risk":
        found = decode_labelled(scores, threshold or recipe.threshold, constraints)
        return with_tags(found, scores)
    how = {"score": recipe.score, "decoder": recipe.decoder}
    found = decode(scores, **how, threshold=threshold, constraints=constraints)
    if recipe.has_distribution and constraints is not None:
        likely = TrainedChart(scores, recipe).marginals(constraints)
        found = replace(found, marginals=likely[found.starts, found.ends])
    elif recipe.has_distribution and found.marginals is None:
        found = replace(found, marginals=likelihoods(scores, found))
    return with_tags(found, scores)


@dataclass(frozen=True, slots=True)
class TrainedChart:
    """Span scores of one sentence (:class:`attree.chart.SentenceScores`).

    Attributes:
        scores: of a batch of one sentence.
        recipe: of the parser.
        threshold: spans less likely are left out.
    """

    scores: SpanScores
    recipe: FewShotRecipe
    threshold: float = 0.0

    def trees(self, constraints: Constraints) -> Trees:
        """Return the tree, as the parser decodes, with marginals if it has a distribution."""
        return decoded(self.scores, self.recipe, self.threshold, constraints)

    def best(self, k: int) -> Ranked:
        """Return the best k trees, as the parser decodes; the scores of spans are its own.

        Raises:
            AttreeError: the decoder compares no whole trees.
        """
        span, n_words = self._arrays()
        if self.recipe.decoder == "labelled_risk":
            return self._best_labelled(k)
        if self.recipe.decoder == "optional_chart":
            return best_optional(span[0], self.trees(Constraints()), k)
        if self.recipe.decoder == "minimum_risk":
            split, decoder = expected_right(marginals(span, n_words), n_words), "chart"
        else:
            split, decoder = split_tables(self.scores, self.recipe.score), self.recipe.decoder
        found = SplitChart(split, decoder).best(k)
        trees = replace(found.trees, scores=span[0, found.trees.starts, found.trees.ends])
        if not self.recipe.has_distribution:
            return Ranked(trees, found.scores)
        likely = self.marginals(Constraints())[trees.starts, trees.ends]
        trees = replace(trees, marginals=likely)
        return Ranked(trees, found.scores, self._probabilities(trees))

    def _best_labelled(self, k: int) -> Ranked:
        found = best_labelled(self.scores, self.threshold or self.recipe.threshold, k)
        trees = [
            with_tags(found.trees.take([place]), self.scores) for place in range(len(found.trees))
        ]
        return replace(found, trees=Trees.concatenate(trees))

    def _probabilities(self, trees: Trees) -> list[float]:
        assert trees.scores is not None
        totals = np.bincount(trees.tree_of, weights=trees.scores, minlength=len(trees))
        found: list[float] = np.exp(totals - log_partitions(*self._arrays())[0]).tolist()
        return found

    def marginals(self, constraints: Constraints) -> NDArray[np.float64]:
        """(n + 1, n + 1): the probability of every phrase.

        Raises:
            AttreeError: the parser is no tree CRF.
        """
        self._check()
        if self.scores.labels is not None:
            return phrase_marginals(self.scores, constraints)
        span, n_words = self._arrays()
        found = marginals(span + constraints.penalties(int(n_words[0])), n_words)[0]
        for place in constraints.forbidden:
            found[place] = 0.0
        return np.clip(found, 0.0, 1.0)

    def entropy(self) -> float:
        """Return the entropy over binary trees, in nats.

        Raises:
            AttreeError: the parser is no tree CRF.
        """
        self._check()
        return float(entropy(*self._arrays())[0])

    def _arrays(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        return self.scores.span.cpu().numpy(), self.scores.n_words.cpu().numpy()

    def _check(self) -> None:
        if not self.recipe.has_distribution:
            raise no_distribution()
