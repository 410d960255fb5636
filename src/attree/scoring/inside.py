"""Inside split score (Mareček and Rosa): ``s_in(i, k) + s_in(k, j)``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.scoring.spans import span_terms

CROSS = False


def terms(
    values: NDArray[Any],
    n_words: NDArray[np.int64],
    prefix: NDArray[np.float64],
    out: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return ``s_in`` of the span on either side."""
    return span_terms(n_words, prefix, out, outside=False)
