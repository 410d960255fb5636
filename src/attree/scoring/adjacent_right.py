"""Adjacent split score with the bias to right branching that Kim et al. (2020) report, λ = 1.5."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.scoring.adjacent import distance_terms

CROSS = False

_RIGHT_BIAS = 1.5


def terms(
    values: NDArray[Any],
    n_words: NDArray[np.int64],
    prefix: NDArray[np.float64],
    out: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return ``d(k)`` with the bias as the left term, and 0 as the right one."""
    return distance_terms(values, n_words, out, right_bias=_RIGHT_BIAS)
