"""Tables of split scores, which scores fill from association matrices and decoders read.

The score of splitting ``[i, j)`` at ``k`` is::

    split(i, k, j) = left(i, k) + right(k, j) + cross(i, k, j)
    cross(i, k, j) = -(Σ a[i:k, k:j] + Σ a[k:j, i:k]) / (2 (k-i)(j-k))

``left`` and ``right`` share one square table: ``left(i, k)`` is in its lower triangle at
``[k, i]``, ``right(k, j)`` in its upper one at ``[k, j]``, so that row ``k`` holds every span that
ends or begins at ``k``. ``cross`` is computed from the prefix sums of ``a + aᵀ``, of which
only the lower triangle is filled. A sentence of ``n`` words takes two tables of ``(n+1)²`` float64
cells, 16 bytes a word squared: 0.4 GB at 5,000 words.

A score is the cross term alone, or a function that writes the table of left and right terms, and
then the cross term does not count; decoders may add terms to either. A score that depends on ``k``
alone is ``left(i, k) = d(k)``, ``right = 0``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.base.registry import check_name, choose
from attree.scoring import ASSOCIATIONS, FLOOR, SCORES
from attree.scoring.prefix import prefix_sums, table_cells

#: ``terms(values, n_words, prefix, out)`` writes the table of left and right terms to ``out``;
#: ``values`` are the associations, ``prefix`` their prefix sums.
Terms = Callable[[NDArray[Any], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]], None]


@dataclass(frozen=True, slots=True)
class SplitScores:
    """The split scores of some sentences, their tables one after the other.

    Attributes:
        n_words: int64 (sentences,); each sentence takes ``(n+1)²`` cells of each table.
        prefix: float64, prefix sums of ``a + aᵀ``, the lower triangle.
        terms: float64, ``left`` and ``right`` terms; empty if there are none.
        has_cross: whether ``cross`` counts.
        not_finite: position of the first sentence with NaN or infinity, or -1; if not -1, the
            scores mean nothing.
    """

    n_words: NDArray[np.int64]
    prefix: NDArray[np.float64]
    terms: NDArray[np.float64]
    has_cross: bool
    not_finite: int = -1

    @property
    def has_terms(self) -> bool:
        """Whether there are left and right terms."""
        return self.terms.size > 0

    def at(self, sentence: Any, i: Any, k: Any, j: Any) -> NDArray[np.float64]:
        """Return ``split(i, k, j)`` in the sentences of these positions, all broadcast together."""
        side = self.n_words + 1
        first, row = (np.cumsum(side**2) - side**2)[sentence], side[sentence]

        def cell(table: NDArray[np.float64], a: Any, b: Any) -> NDArray[np.float64]:
            return table[first + a * row + b]

        values = np.zeros(np.shape(k))
        if self.has_terms:
            values += cell(self.terms, k, i) + cell(self.terms, k, j)
        if self.has_cross:
            sums = self.prefix
            across = cell(sums, j, k) + cell(sums, k, i) - cell(sums, k, k) - cell(sums, j, i)
            values -= across / (2.0 * (k - i) * (j - k))
        return values


def split_scores(
    values: NDArray[Any],
    n_words: NDArray[np.int64],
    score: str,
    room: NDArray[np.float64] | None = None,
) -> SplitScores:
    """Score every split of some sentences.

    Args:
        values: float16, 32 or 64, the ``(n, n)`` matrices flattened, one after the other.
        n_words: int64, words of each sentence.
        score: a name of :data:`attree.scoring.SCORES`.
        room: ``(2, cells)`` float64 memory for the two tables, to be reused for one chunk of
            sentences after another, since new memory can cost as much as a chart. Allocated by
            default.
    """
    write_terms: Terms | None = choose(SCORES, score, what="score")
    if room is None:
        room = np.empty((2, table_cells(n_words)))
    prefix, not_finite = prefix_sums(values, n_words, room[0])
    if write_terms is None:
        return SplitScores(n_words, prefix, np.zeros(0), True, not_finite)
    write_terms(values, n_words, prefix, room[1])
    return SplitScores(n_words, prefix, room[1], False, not_finite)


def transform(values: NDArray[Any], association: str) -> NDArray[Any]:
    """Transform ``values`` (float16, 32 or 64, any shape) by one of ``scoring.ASSOCIATIONS``.

    Logarithms are in float64. Negative values become NaN, for which decoding raises an error with
    the sentence's number.
    """
    check_name(association, ASSOCIATIONS, f"unknown association {association!r}")
    if association == "raw":
        return values
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log(values.astype(np.float64) + FLOOR)
