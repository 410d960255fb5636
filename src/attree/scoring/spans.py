"""Scores of the article, from inside and outside association, and of earlier and later work.

Mareček and Rosa (2018, *Extracting Syntactic Trees from Transformer Encoder Self-Attentions*) score
a phrase by the attention within it alone and take the binary tree whose phrases score best.
As in the article, which simulates them by UPIO without its outside association, we use the same
encoder, average the attention of the same selected heads, and decode by a chart. They use a
translation encoder and multiply its layers.

Kim et al. compare neighbours, or all pairs of words of a span.

The *adjacent* score (Kim et al., 2020) depends only on the *syntactic distance* of the two
neighbours, not on the span: ``split(i, k, j) = d(k)``. With an association ``A`` that is a
similarity, or minus a distance, and ``a = (A + Aᵀ)/2``::

    d(k) = -a[k-1, k]

Kim et al. also favour right branching: with a bias λ they add λ times the mean distance to each of
the ``m = n-1`` distances, weighted by a factor that falls linearly from left to right::

    d(k) + λ · mean(d) · (1 - (k-1)/(m-1))

Here ``d`` is measured from the similarity of a word to itself, so that it is 0 for equal words.

Kim, Li and Lee (2021, *Multilingual Chart-based Constituency Parse Extraction from Pre-trained
Language Models*) give every span a score and find the tree of the highest sum by a chart::

    split(i, k, j) = s(i, k) + s(k, j),   s of one word 0

Their *pair* score is the mean similarity of every two words of the span, minus the mean of
``f(g(w_x), g(w_y))`` over the ``w (w - 1) / 2`` pairs, so that the tree of least distance is best::

    s(i, j) = Σ_{x ≠ y} a[x, y] / (w (w - 1)),   i <= x, y < j,   w = j - i

with an association that is minus the distance ``f`` of two words' attention ``g`` (``source:
heads-jsd`` or ``heads-hellinger``). Their *characteristic* score is not a sum over pairs; the
source ``heads-characteristic`` stores ``s(i, j)`` at ``a[i, j-1]``, where the score ``spans`` reads
it. Their top-down parser is ``score: adjacent`` with ``decoder: greedy``.

Checked against the description of the article on its first author's pages: both scores, the chart,
and their ensemble, which combines the heads' trees (:mod:`attree.association.head_trees`). The
scores here average several heads instead, which is not what they do.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.base.compiled import kernel

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


def span_terms(
    values: NDArray[Any], n_words: _Ints, prefix: _Floats, out: _Floats, *, outside: bool
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
def _fill(n_words: _Ints, prefix: _Floats, terms: _Floats, outside: bool) -> None:
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
OUTSIDE = None

#: UPIO, FPIO: ``s_span(i, k) + s_span(k, j)`` with ``s_span = s_in - s_out``
INSIDE_OUTSIDE = partial(span_terms, outside=True)

#: Mareček and Rosa: ``s_in(i, k) + s_in(k, j)``
INSIDE = partial(span_terms, outside=False)


#: λ of the runs with a bias that Kim et al. report
_RIGHT_BIAS = 1.5


def _terms_by_sentence(
    table_of: Callable[[_Floats], _Floats],
    values: NDArray[Any],
    n_words: _Ints,
    prefix: _Floats,
    out: _Floats,
) -> None:
    """Write the table of left and right terms, (n+1, n+1), for each association (n, n)."""
    matrix_start = table_start = 0
    for n in n_words.tolist():
        matrix_end, table_end = matrix_start + n * n, table_start + (n + 1) ** 2
        matrix = values[matrix_start:matrix_end].reshape(n, n).astype(np.float64)
        out[table_start:table_end] = table_of(matrix).ravel()
        matrix_start, table_start = matrix_end, table_end


def _distances(matrix: _Floats, right_bias: float) -> _Floats:
    """Return a table with ``d(k)`` at ``left(i, k)`` of every ``i < k``."""
    table = np.zeros((len(matrix) + 1, len(matrix) + 1))
    above, below = np.diagonal(matrix, 1), np.diagonal(matrix, -1)
    distances: _Floats = -(above + below) / 2.0
    if right_bias and distances.size > 1:
        itself = np.diagonal(matrix)
        distances += (itself[1:] + itself[:-1]) / 2.0
        distances += right_bias * distances.mean() * np.linspace(1.0, 0.0, distances.size)
    if distances.size:
        table[1:-1] = np.tril(np.broadcast_to(distances[:, None], table[1:-1].shape))
    return table


def _both_sides(spans: _Floats) -> _Floats:
    """Return a table with the score of ``[i, j)``, of two words and more, at [i, j] and [j, i]."""
    above = np.triu(spans, 2)
    return above + above.T


def _pairs(matrix: _Floats) -> _Floats:
    n = len(matrix)
    others = matrix - np.diag(np.diagonal(matrix))
    sums = np.zeros((n + 1, n + 1))
    sums[1:, 1:] = others.cumsum(0).cumsum(1)
    corner = np.diagonal(sums)
    width = np.maximum(np.arange(n + 1) - np.arange(n + 1)[:, None], 2)
    return _both_sides((corner[:, None] + corner - sums - sums.T) / (width * (width - 1)))


def _spans(matrix: _Floats) -> _Floats:
    return _both_sides(np.pad(matrix, ((0, 1), (1, 0))))


#: Kim et al.: the distance of the two words beside the split
ADJACENT = partial(_terms_by_sentence, partial(_distances, right_bias=0.0))
#: the same with their bias to right branching
ADJACENT_RIGHT = partial(_terms_by_sentence, partial(_distances, right_bias=_RIGHT_BIAS))
#: Kim, Li and Lee: the mean over all pairs of words of a span
PAIR = partial(_terms_by_sentence, _pairs)
#: the association itself, which holds the score of every span
SPANS = partial(_terms_by_sentence, _spans)
