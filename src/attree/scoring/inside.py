"""Inside split score (Mareček and Rosa): how much the words of a span have to do with each other.

Mareček and Rosa (2018, *Extracting Syntactic Trees from Transformer Encoder Self-Attentions*) score
a phrase by the attention within it and take the binary tree whose phrases score best::

    split(i, k, j) = s_in(i, k) + s_in(k, j),   s_in(i, j) = Σ a[i:j, i:j] / (j - i)²

Decided as in the article, which simulates them by UPIO without its outside association: the same
encoder, the same selection of heads, whose attention is averaged, and a chart. Theirs is a
translation encoder, whose layers they multiply.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.scoring import SplitScore
from attree.scoring.spans import span_terms


def _inside(
    values: NDArray[Any],
    n_words: NDArray[np.int64],
    prefix: NDArray[np.float64],
    out: NDArray[np.float64],
) -> NDArray[np.float64]:
    return span_terms(n_words, prefix, out, outside=False)


#: Mareček and Rosa: ``s_in(i, k) + s_in(k, j)``
INSIDE = SplitScore(terms=_inside, cross=False)
