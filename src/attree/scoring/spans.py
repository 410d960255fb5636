"""The inside and outside association of every span: the scores of the article, and an earlier one.

Mareček and Rosa (2018, *Extracting Syntactic Trees from Transformer Encoder Self-Attentions*) score
a phrase by the attention within it alone and take the binary tree whose phrases score best.
As in the article, which simulates them by UPIO without its outside association, we use the same
encoder, average the attention of the same selected heads, and decode by a chart. They use a
translation encoder and multiply its layers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.base.compiled import kernel
from attree.scoring import SplitScore


def span_terms(
    values: NDArray[Any],
    n_words: NDArray[np.int64],
    prefix: NDArray[np.float64],
    out: NDArray[np.float64],
    *,
    outside: bool,
) -> None:
    """Write to ``out`` the left and right terms: the scores of the spans on either side.

    For a span of ``w = j - i`` words in a sentence of ``n``::

        s_in(i, j)  = Σ a[i:j, i:j] / w²
        s_out(i, j) = (Σ a[i:j, :] + Σ a[:, i:j] - 2 Σ a[i:j, i:j]) / (2wn - 2w²)

    and the score is ``s_in - s_out``, or ``s_in`` alone; ``s_out`` of the whole sentence is 0. The
    difference has a common denominator: it takes one division, and equal scores stay equal.
    """
    _fill(n_words, prefix, out, outside)


@kernel
def _fill(
    n_words: NDArray[np.int64],
    prefix: NDArray[np.float64],
    terms: NDArray[np.float64],
    outside: bool,
) -> None:
    diagonal = np.empty(n_words.max() + 1)
    table = 0
    for n in n_words:
        side = n + 1
        sums = prefix[table : table + side * side].reshape(side, side)
        scores = terms[table : table + side * side].reshape(side, side)
        margins = sums[n]  # margins[j] = Σ (a + aᵀ)[:, :j]
        for k in range(side):
            diagonal[k] = sums[k, k]
        for j in range(side):
            row, to = sums[j], scores[j]
            for i in range(j):
                width = np.float64(j - i)
                inner = 0.5 * (diagonal[j] - 2.0 * row[i] + diagonal[i])
                if outside:
                    rest = 2.0 * (n - width)
                    outer = margins[j] - margins[i] - 2.0 * inner
                    to[i] = (inner * rest - outer * width) / (width * width * rest)
                else:
                    to[i] = inner / (width * width)
            to[j] = 0.0
        if n > 0:
            scores[n, 0] = 0.5 * diagonal[n] / (n * n)
        for j in range(side):
            for i in range(j):
                scores[i, j] = scores[j, i]
        table += side * side


#: UPOA, FPOA: minus the mean association across the split
OUTSIDE = SplitScore(terms=None, cross=True)

#: UPIO, FPIO: ``s_span(i, k) + s_span(k, j)`` with ``s_span = s_in - s_out``
INSIDE_OUTSIDE = SplitScore(terms=partial(span_terms, outside=True), cross=False)

#: Mareček and Rosa: ``s_in(i, k) + s_in(k, j)``
INSIDE = SplitScore(terms=partial(span_terms, outside=False), cross=False)
