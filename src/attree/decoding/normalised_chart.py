"""Chart over the log-softmax of each span's split scores: the most probable tree, top down.

Likelihood training normalises over the splits of one span at a time, so that only these make the
scores of different spans comparable.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attree.decoding.chart import decode_terms
from attree.decoding.kernels import normalise
from attree.scoring.tables import SplitScores


def decode(scores: SplitScores, starts: NDArray[np.int32], ends: NDArray[np.int32]) -> None:
    """Write the tree of highest ``Σ log p(k | i, j)`` of each sentence, spans in pre-order."""
    terms = scores.terms if scores.has_terms else np.zeros_like(scores.prefix)
    normalise(scores.n_words, scores.prefix, terms, True, scores.has_cross)
    decode_terms(scores, terms, starts, ends)
