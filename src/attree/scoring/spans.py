"""The scores of the article: the inside and outside association of every span."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.base.compiled import kernel
from attree.scoring import SplitScore


def span_terms(
    n_words: NDArray[np.int64],
    prefix: NDArray[np.float64],
    out: NDArray[np.float64] | None = None,
    *,
    outside: bool,
) -> NDArray[np.float64]:
    """Return terms whose left and right are the score of the span on that side.

    For a span of ``w = j - i`` words in a sentence of ``n``::

        s_in(i, j)  = Σ a[i:j, i:j] / w²
        s_out(i, j) = (Σ a[i:j, :] + Σ a[:, i:j] - 2 Σ a[i:j, i:j]) / (2wn - 2w²)

    and the score is ``s_in - s_out``, or ``s_in`` alone; ``s_out`` of the whole sentence is 0. The
    difference is taken over one denominator: one division, and equal scores stay equal. They are
    written to ``out`` where it is given.
    """
    terms = np.empty_like(prefix) if out is None else out
    _fill(n_words, prefix, terms, outside)
    return terms


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


def _inside_outside(
    values: NDArray[Any],
    n_words: NDArray[np.int64],
    prefix: NDArray[np.float64],
    out: NDArray[np.float64],
) -> NDArray[np.float64]:
    return span_terms(n_words, prefix, out, outside=True)


#: UPOA, FPOA: minus the mean association across the split
OUTSIDE = SplitScore(terms=None, cross=True)

#: UPIO, FPIO: ``s_span(i, k) + s_span(k, j)`` with ``s_span = s_in - s_out``
INSIDE_OUTSIDE = SplitScore(terms=_inside_outside, cross=False)
