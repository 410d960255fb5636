"""The scores of one sentence by a trained parser, kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attree.constraints import Constraints
from attree.decoding.constrained import no_distribution
from attree.fewshot.inside import entropy, marginals
from attree.fewshot.labels import decode_labelled, phrase_marginals
from attree.fewshot.recipes import LABELLED, FewShotRecipe
from attree.fewshot.scores import SpanScores, decode
from attree.trees import Trees


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
        """Return the tree, as the parser decodes."""
        recipe = self.recipe
        if recipe.decoder == "labelled_risk":
            return decode_labelled(self.scores, self.threshold or recipe.threshold, constraints)
        return decode(
            self.scores,
            score=recipe.score,
            decoder=recipe.decoder,
            threshold=self.threshold,
            constraints=constraints,
        )

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
        if self.recipe.objective not in ("tree_crf", *LABELLED):
            raise no_distribution()
