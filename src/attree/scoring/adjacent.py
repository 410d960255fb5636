"""Adjacent split score (Kim et al., 2020): how far apart the words on the two sides of a split are.

The *syntactic distance* of two neighbours decides alone, whatever the span: ``split(i, k, j) =
d(k)``. With an association that is a similarity, or minus a distance, and ``a = (A + Aᵀ)/2``::

    d(k) = -a[k-1, k]

Kim et al. also favour right branching: with a bias λ they add to the distance of each of
the ``m = n-1`` places λ times their mean, less and less from left to right::

    d(k) + λ · mean(d) · (1 - (k-1)/(m-1))

There ``d`` is counted from the similarity of a word to itself, so that it is 0 of equal words.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.scoring import SplitScore
from attree.scoring.prefix import matrices_and_tables

#: λ of the runs with a bias that Kim et al. report
_RIGHT_BIAS = 1.5


def distance_terms(
    values: NDArray[Any],
    n_words: NDArray[np.int64],
    prefix: NDArray[np.float64],
    out: NDArray[np.float64],
    *,
    right_bias: float,
) -> NDArray[np.float64]:
    """Write ``d(k)`` to ``left(i, k)`` of every ``i < k`` (see :mod:`attree.scoring.tables`)."""
    for matrix, table in matrices_and_tables(values, n_words, out):
        table[...] = 0.0
        if len(matrix) > 1:
            distances = _distances(matrix, right_bias)[:, None]
            table[1:-1] = np.tril(np.broadcast_to(distances, table[1:-1].shape))
    return out


def _distances(matrix: NDArray[Any], right_bias: float) -> NDArray[np.float64]:
    """Return ``d(1)`` to ``d(n-1)``, float64."""
    above, below = (np.diagonal(matrix, k).astype(np.float64) for k in (1, -1))
    distances: NDArray[np.float64] = -(above + below) / 2.0
    if right_bias and distances.size > 1:
        own = np.diagonal(matrix).astype(np.float64)
        distances += (own[1:] + own[:-1]) / 2.0
        distances += right_bias * distances.mean() * np.linspace(1.0, 0.0, distances.size)
    return distances


#: Kim et al.: the distance of the two words beside the split
ADJACENT = SplitScore(terms=partial(distance_terms, right_bias=0.0), cross=False)
#: the same with their bias to right branching
ADJACENT_RIGHT = SplitScore(terms=partial(distance_terms, right_bias=_RIGHT_BIAS), cross=False)
