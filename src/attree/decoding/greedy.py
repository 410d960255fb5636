"""Greedy decoding: split the sentence at its best point, then each part again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attree.decoding.kernels import top_down
from attree.scoring.tables import SplitScores


def decode(scores: SplitScores, starts: NDArray[np.int32], ends: NDArray[np.int32]) -> None:
    """Write the greedy tree of each sentence, ``n-1`` spans in pre-order."""
    has_terms, has_cross = scores.has_terms, scores.has_cross
    top_down(scores.n_words, scores.prefix, scores.terms, has_terms, has_cross, starts, ends)
