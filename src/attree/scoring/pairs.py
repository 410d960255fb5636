"""Pair and span scores (Kim, Li and Lee): how much alike the words of a span are.

Kim, Li and Lee (2021, *Multilingual Chart-based Constituency Parse Extraction from Pre-trained
Language Models*) give every span a score and take the tree whose spans sum best, by a chart::

    split(i, k, j) = s(i, k) + s(k, j),   s of one word 0

Their *pair* score is the mean similarity of every two words of the span, minus the mean of
``f(g(w_x), g(w_y))`` over the ``w (w - 1) / 2`` pairs, so that the tree of least distance is best::

    s(i, j) = Σ_{x ≠ y} a[x, y] / (w (w - 1)),   i <= x, y < j,   w = j - i

with an association that is minus the distance ``f`` of two words' attention ``g`` (``source:
heads-jsd`` or ``heads-hellinger``). Their *characteristic* score is no sum over pairs; the source
``heads-characteristic`` lays it out span by span, ``s(i, j)`` at ``a[i, j-1]``, and the score
``spans`` reads it there. Their top-down parser is ``score: adjacent`` with ``decoder: greedy``.

Checked against the description of the article on its first author's pages: both scores, the chart,
and the ensemble, which is of the heads' trees (:mod:`attree.rivals.head_trees`). With these
scores themselves, several heads' scores are averaged, which is not what they do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.scoring import SplitScore
from attree.scoring.prefix import matrices_and_tables

_Words = NDArray[np.int64]
_Floats = NDArray[np.float64]

#: the association (n, n) → the score of every span, (n + 1, n + 1), of which the upper triangle
#: from two words on counts
_Table = Callable[[_Floats], _Floats]


def _terms(of: _Table) -> Callable[[NDArray[Any], _Words, _Floats, _Floats], _Floats]:
    """Write the score of each span to both its places (see :mod:`attree.scoring.tables`)."""

    def terms(values: NDArray[Any], n_words: _Words, prefix: _Floats, out: _Floats) -> _Floats:
        for matrix, table in matrices_and_tables(values, n_words, out):
            above = np.triu(of(matrix.astype(np.float64)), 2)
            table[...] = above + above.T
        return out

    return terms


def _pairs(matrix: _Floats) -> _Floats:
    n = len(matrix)
    both = matrix - np.diag(np.diagonal(matrix))
    sums = np.zeros((n + 1, n + 1))
    sums[1:, 1:] = both.cumsum(0).cumsum(1)
    corner = np.diagonal(sums)
    square = corner[:, None] + corner - sums - sums.T
    width = np.maximum(np.arange(n + 1) - np.arange(n + 1)[:, None], 2)
    found: _Floats = square / (width * (width - 1))
    return found


def _spans(matrix: _Floats) -> _Floats:
    return np.pad(matrix, ((0, 1), (1, 0)))


#: Kim, Li and Lee: the mean over every two words of a span
PAIR = SplitScore(terms=_terms(_pairs), cross=False)
#: the association itself holds the score of every span
SPANS = SplitScore(terms=_terms(_spans), cross=False)
