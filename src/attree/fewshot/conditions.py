"""What constraints leave of the labels of one sentence's spans.

Given the constraints, a labelled tree has the probability of the model, by the sum over all that
keep to them. A span's share of that sum is that of the labels that it may have: the one that is
given, each but the empty one where it is not known, and the empty one of a span that is no phrase.
Structures are then weighed by span scores to which the logs of these shares are added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attree.constraints import CROSSED, Constraints, Span
from attree.fewshot.gold import CHAIN, IN_LABEL

_ANY, _EMPTY, _NOT_EMPTY = range(3)
_LEAST = 1e-300


@dataclass(frozen=True, slots=True)
class Conditions:
    """Which labels each span of one sentence may have.

    Attributes:
        crossed: (n + 1, n + 1) bool, spans that no tree may have.
        kind: (n + 1, n + 1) int64, the row of ``permitted`` that holds for each span.
        permitted: (kinds, labels) bool; of the first all are True.
        given: the labels of each span where they are known, the upper first.
    """

    crossed: NDArray[np.bool_]
    kind: NDArray[np.int64]
    permitted: NDArray[np.bool_]
    given: dict[Span, list[str]]

    @classmethod
    def of(cls, constraints: Constraints, n_words: int, names: tuple[str, ...]) -> Conditions:
        """Read constraints.

        Args:
            constraints: of the sentence.
            n_words: its length.
            names: the labels that the parser knows, the empty one first. One that it does not know
                is given in trees as it is, and may be any of them before.

        Raises:
            AttreeError: a span outside the sentence.
        """
        crossed, side = constraints.crossed(n_words), n_words + 1
        kind = np.zeros((side, side), np.int64)
        empty = np.arange(len(names)) == 0
        rows = [np.ones_like(empty), empty, ~empty]
        for span in constraints.forbidden:
            kind[span] = _EMPTY
        given = {}
        for span, labels in constraints.chains().items():
            kind[span] = _NOT_EMPTY
            known = [label for label in labels if label is not None]
            if known:
                given[span] = known
                name = CHAIN.join(label.replace(CHAIN, IN_LABEL) for label in known)
                if name in names:
                    kind[span] = len(rows)
                    rows.append(np.arange(len(names)) == names.index(name))
        return cls(crossed, kind, np.stack(rows), given)

    @property
    def spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts and ends of the spans that anything is known of."""
        starts, ends = np.nonzero(self.kind != _ANY)
        return starts, ends

    @property
    def required(self) -> NDArray[np.bool_]:
        """(n + 1, n + 1) bool."""
        return self.kind >= _NOT_EMPTY

    def weights(self, chances: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n + 1, n + 1): what to add to span scores; ``chances`` are the labels' of ``spans``."""
        found = np.where(self.crossed, CROSSED, 0.0)
        left = (chances * self.permitted[self.kind[self.spans]]).sum(1)
        found[self.spans] += np.log(np.maximum(left, _LEAST))
        return found

    def renormalised(
        self, chances: NDArray[np.float64], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the probabilities of the labels of some spans among those they may have."""
        left = np.maximum(chances, _LEAST) * self.permitted[self.kind[starts, ends]]
        found: NDArray[np.float64] = left / left.sum(1, keepdims=True)
        return found
