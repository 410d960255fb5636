"""Chart over span marginals: the tree with the most spans expected to be right.

The spans' probabilities are those of the split distribution ``p(k | i, j)``, the softmax over a
span's splits, from the whole sentence downwards.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from attree.decoding.chart import decode_terms
from attree.decoding.kernels import marginals
from attree.scoring.tables import SplitScores


def decode(scores: SplitScores, starts: NDArray[np.int32], ends: NDArray[np.int32]) -> None:
    """Write the tree of highest summed span marginals of each sentence, spans in pre-order."""
    probabilities = span_marginals(scores)
    decode_terms(replace(scores, has_cross=False), probabilities, starts, ends)


def span_marginals(scores: SplitScores) -> NDArray[np.float64]:
    """Return the probability of every span of two words and more, a table for each sentence.

    Span ``[i, j)`` of a sentence of ``n`` words lies at ``[i, j]`` and ``[j, i]`` of its
    ``(n+1, n+1)`` table.
    """
    probabilities = np.empty_like(scores.prefix)
    marginals(
        scores.n_words,
        scores.prefix,
        scores.terms,
        scores.has_terms,
        scores.has_cross,
        probabilities,
    )
    return probabilities
