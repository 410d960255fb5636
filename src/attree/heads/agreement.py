"""How far each head's trees agree with those of all other heads: a ranking that sees no gold tree.

Li, Kim, Amplayo and Keller (2020, *Heads-up! Unsupervised Constituency Parsing via Self-Attention
Heads*) rank heads by properties of their own, without a development set, and put the trees of the
best ones together. What heads know of syntax is in many of them, what they know of other things is
not the same in any two: a head is as good as others agree with it. The agreement of head ``h`` is
its mean sentence F1 with each other head ``g``, over sentences ``x`` of three words and more::

    agreement(h) = 100 mean_x mean_{g ≠ h} |T_h(x) ∩ T_g(x)| / (n_x - 2)

the whole sentence left out of the trees ``T``, which are binary.

From the published description: no gold tree is looked at, all sentences are raw text, the K best
heads make an ensemble. Decided, since the measure by which they rank could not be looked up: the
agreement of trees, so that it holds for every way in which a head can parse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attree.trees import Trees


@dataclass(frozen=True, slots=True)
class Agreement:
    """Sums over sentences; those of parts of the sentences add up.

    Args:
        sums: float64, one a head: its agreement of 1, over the sentences that count.
        sentences: how many count.
    """

    sums: NDArray[np.float64]
    sentences: int

    @classmethod
    def of(cls, trees: Trees, heads: int) -> Agreement:
        """Compare the heads' trees of some sentences.

        Args:
            trees: binary, ordered by sentence, then head.
            heads: trees of each sentence.
        """
        tree = trees.tree_of
        inner = trees.ends - trees.starts < trees.n_words[tree]
        span = np.stack([tree // heads, trees.starts, trees.ends], axis=1)[inner]
        _, which, having = np.unique(span, axis=0, return_inverse=True, return_counts=True)
        others = having[which.ravel()] - 1
        shared = np.bincount(tree[inner], others, minlength=len(trees)).reshape(-1, heads)
        spans = trees.n_words[::heads] - 2
        counts = spans > 0
        each = shared[counts] / (spans[counts, None] * max(heads - 1, 1))
        return cls(each.sum(0), int(counts.sum()))

    def __add__(self, other: Agreement) -> Agreement:
        """The sums over the sentences of both."""
        return Agreement(self.sums + other.sums, self.sentences + other.sentences)

    def percent(self) -> NDArray[np.float64]:
        """Return the agreement of each head in percent; 0 where no sentence counts."""
        return 100.0 * self.sums / max(self.sentences, 1)
