"""From association matrices to trees, many sentences at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attree.decoding import DECODERS
from attree.errors import AttreeError
from attree.registry import choose
from attree.scoring.tables import split_scores
from attree.scoring.transform import transform

#: Table cells scored and decoded at a time: 0.5 MB a table, which stays near a core.
_CELLS_AT_A_TIME = 64_000

#: Trees as :func:`decode` returns them, and a score of each.
Found = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]


def decode(
    values: NDArray[Any],
    n_words: ArrayLike,
    matrices_each: int = 1,
    *,
    association: str = "raw",
    score: str,
    decoder: str,
    matrix: int | None = None,
    sentences: ArrayLike | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Parse sentences from their association matrices.

    Args:
        values: float16, 32 or 64, one-dimensional: the ``(matrices_each, n, n)`` associations of
            every sentence, row-major, one sentence after the other.
        n_words: words of each sentence; 0 where there is no association (and no values).
        matrices_each: matrices of each sentence, every one of which is parsed by itself.
        association: ``raw``, or ``log`` for ``log(a + 1e-6)``.
        score: a name of :data:`attree.scoring.SCORES`.
        decoder: a name of :data:`attree.decoding.DECODERS`.
        matrix: parse only this one of each sentence's matrices.
        sentences: numbers to name sentences by in errors, instead of their positions.

    Returns:
        starts, ends: int32, half-open spans of two words and more, in pre-order, ordered by
        sentence, then matrix. A sentence of ``n`` words gives ``n-1`` spans a matrix, none where
        ``n < 2`` (see :func:`span_offsets`). The arithmetic is in float64, ties take the smallest
        split, and nothing depends on which sentences come together.

    Raises:
        AttreeError: an unknown name, or an association with NaN or infinity in it.
    """
    words = np.asarray(n_words, dtype=np.int64)
    values = np.asarray(values)
    _check_sizes(values, words, matrices_each)
    if matrix is not None:
        values, matrices_each = _one_matrix(values, words, matrices_each, matrix), 1
    each = np.repeat(words, matrices_each)
    decode_scores = choose(DECODERS, decoder, what="decoder").decode
    spans = span_offsets(each)
    starts, ends = np.empty(spans[-1], np.int32), np.empty(spans[-1], np.int32)
    at = np.concatenate(([0], np.cumsum(each * each)))
    tables = np.concatenate(([0], np.cumsum((each + 1) ** 2)))
    chunks = list(_chunks(tables))
    room = np.empty((2, max((tables[last] - tables[first] for first, last in chunks), default=0)))
    for first, last in chunks:
        cells = tables[last] - tables[first]
        chosen = transform(values[at[first] : at[last]], association)
        scores = split_scores(chosen, each[first:last], score, room[:, :cells])
        if scores.not_finite >= 0:
            raise _not_finite(first + scores.not_finite, matrices_each, sentences)
        here = slice(spans[first], spans[last])
        decode_scores(scores, starts[here], ends[here])
    return starts, ends


def span_offsets(n_words: ArrayLike, matrices_each: int = 1) -> NDArray[np.int64]:
    """Return where each tree's spans begin in :func:`decode`'s arrays, and the end of the last.

    Tree ``t`` is that of matrix ``t % matrices_each`` of sentence ``t // matrices_each``.
    """
    spans = np.maximum(np.asarray(n_words, dtype=np.int64) - 1, 0)
    return np.concatenate(([0], np.cumsum(np.repeat(spans, matrices_each))))


def _chunks(tables: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield ranges of sentences whose tables take about `_CELLS_AT_A_TIME`, one at the least.

    ``tables`` says where each sentence's table begins, and the end of the last.
    """
    first = 0
    while first < tables.size - 1:
        last = int(tables.searchsorted(tables[first] + _CELLS_AT_A_TIME, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def _check_sizes(values: NDArray[Any], n_words: NDArray[np.int64], matrices_each: int) -> None:
    wanted = int((n_words * n_words).sum()) * matrices_each
    if values.ndim != 1 or values.size != wanted:
        raise ValueError(f"{wanted} values are needed in one dimension, not shape {values.shape}")


def _one_matrix(
    values: NDArray[Any], n_words: NDArray[np.int64], matrices_each: int, matrix: int
) -> NDArray[Any]:
    if not 0 <= matrix < matrices_each:
        raise IndexError(f"matrix {matrix} of {matrices_each}")
    sizes = n_words * n_words
    begins = (np.cumsum(sizes) - sizes) * matrices_each + matrix * sizes
    parts = [values[b : b + size] for b, size in zip(begins, sizes, strict=True)]
    return np.concatenate(parts) if parts else values


def _not_finite(tree: int, matrices_each: int, sentences: ArrayLike | None) -> AttreeError:
    sentence, matrix = divmod(tree, matrices_each)
    name = sentence if sentences is None else int(np.asarray(sentences)[sentence])
    which = f"association {matrix}" if matrices_each > 1 else "the association"
    return AttreeError(
        f"{which} of sentence {name} holds NaN or infinite values",
        fix="check the encoder and its dtype (float16 overflows in some models; try float32)",
    )
