"""Chart decoding: ``best(i, j) = max_k split(i, k, j) + best(i, k) + best(k, j)``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attree.decoding.kernels import add_best, add_best_with_cross, top_down
from attree.scoring.tables import SplitScores


def decode(scores: SplitScores, starts: NDArray[np.int32], ends: NDArray[np.int32]) -> None:
    """Write the tree whose splits sum highest for each sentence, ``n-1`` spans in pre-order."""
    terms = scores.terms if scores.has_terms else np.zeros_like(scores.prefix)
    decode_terms(scores, terms, starts, ends)


def decode_terms(
    scores: SplitScores,
    terms: NDArray[np.float64],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
) -> None:
    """Decode with ``terms``, which becomes the chart, in place of the scores' own.

    The best score of a span is added to its left and its right term as soon as it is known. On the
    way up only maxima are taken; the splits are looked for on the way down, in the ``n-1`` spans of
    the tree alone: with these terms the best tree is the greedy one.
    """
    if scores.has_cross:
        add_best_with_cross(scores.n_words, scores.prefix, terms)
    else:
        add_best(scores.n_words, terms)
    top_down(scores.n_words, scores.prefix, terms, True, scores.has_cross, starts, ends)
