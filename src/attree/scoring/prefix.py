"""Two-dimensional prefix sums: four cells give the sum over any rectangle of a matrix."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.base.compiled import kernel


def table_cells(n_words: NDArray[np.int64]) -> int:
    """Return the number of cells of one table of these sentences."""
    return int(((n_words + 1) ** 2).sum())


def prefix_sums(
    values: NDArray[Any], n_words: NDArray[np.int64], out: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], int]:
    """Return the prefix sums of ``a + aᵀ`` of some sentences, one table after the other.

    Args:
        values: float16, 32 or 64, the ``(n, n)`` matrices ``a``, flattened.
        n_words: int64, words of each sentence, at least one sentence.
        out: memory for the tables; allocated by default.

    Returns:
        ``prefix[i, j] = Σ (a + aᵀ)[:i, :j]``, of shape ``(n+1, n+1)`` for each sentence, in
        float64. Only the lower triangle, ``j <= i``, is filled, since the table is symmetric. Sums
        of float16 values are exact, so that ties stay ties. Second, the position of the first
        sentence with NaN or infinity, or -1.
    """
    prefix = np.empty(table_cells(n_words)) if out is None else out
    if values.dtype == np.float16:  # a type that Numba lacks
        values = values.astype(np.float32)
    return prefix, _sums(values, n_words, prefix)


@kernel
def _fill(matrix: NDArray[Any], prefix: NDArray[np.float64]) -> None:
    prefix[0, 0] = 0.0
    for i in range(matrix.shape[0]):
        above, here = prefix[i], prefix[i + 1]
        here[0] = 0.0
        row = 0.0
        for j in range(i):
            row += np.float64(matrix[i, j]) + np.float64(matrix[j, i])
            here[j + 1] = above[j + 1] + row
        here[i + 1] = here[i] + row + 2.0 * np.float64(matrix[i, i])


@kernel
def _sums(values: NDArray[Any], n_words: NDArray[np.int64], prefix: NDArray[np.float64]) -> int:
    start = table = 0
    bad = -1
    for s in range(n_words.size):
        n = n_words[s]
        side = n + 1
        square = prefix[table : table + side * side].reshape(side, side)
        _fill(values[start : start + n * n].reshape(n, n), square)
        if bad < 0 and not np.isfinite(square[n, n]):
            bad = s
        start += n * n
        table += side * side
    return bad
