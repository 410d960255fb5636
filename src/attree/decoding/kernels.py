"""The compiled loops of the decoders, over the tables of :mod:`attree.scoring.tables`.

They share a file because compiled code is cached by file (see :mod:`attree.base.compiled`). None
recurses, and memory beyond the tables is O(n).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.base.compiled import finite_kernel, inlined

_Integer = int | np.integer[Any]
_Floats = NDArray[np.float64]
_Words = NDArray[np.int64]
_Spans = NDArray[np.int32]


@inlined
def _keep_diagonal(sums: _Floats, diagonal: _Floats) -> None:
    """Copy the diagonal to contiguous memory."""
    for k in range(len(sums)):
        diagonal[k] = sums[k, k]


@inlined
def _cross(sums: _Floats, diagonal: _Floats, i: _Integer, k: _Integer, j: _Integer) -> Any:
    """Return minus the mean association across the split ``k`` of ``[i, j)``."""
    return -(sums[j, k] + sums[k, i] - diagonal[k] - sums[j, i]) / (2.0 * (k - i) * (j - k))


@inlined
def _splits(
    sums: _Floats,
    diagonal: _Floats,
    terms: _Floats,
    has_cross: bool,
    i: _Integer,
    j: _Integer,
    score: _Floats,
) -> None:
    """Set ``score[k]`` to the score of splitting ``[i, j)`` at ``k``, for every ``k`` inside."""
    if has_cross:
        for k in range(i + 1, j):
            score[k] = _cross(sums, diagonal, i, k, j)
        for k in range(i + 1, j):
            score[k] += terms[k, i] + terms[k, j]
    else:
        for k in range(i + 1, j):
            score[k] = terms[k, i] + terms[k, j]


@inlined
def _highest(score: _Floats, i: _Integer, j: _Integer) -> Any:
    """Return the highest score of a split of ``[i, j)``."""
    best = score[i + 1]
    for k in range(i + 2, j):
        best = max(best, score[k])
    return best


@inlined
def _best_split(
    sums: _Floats,
    diagonal: _Floats,
    terms: _Floats,
    has_terms: bool,
    has_cross: bool,
    i: _Integer,
    j: _Integer,
) -> _Integer:
    """Return the smallest ``k`` with the highest score, in one pass, since spans are short."""
    split = i + 1
    best = -np.inf
    if has_cross:
        for k in range(i + 1, j):
            score = _cross(sums, diagonal, i, k, j)
            if has_terms:
                score += terms[k, i] + terms[k, j]
            split = k if score > best else split
            best = max(best, score)
    else:
        for k in range(i + 1, j):
            score = terms[k, i] + terms[k, j]
            split = k if score > best else split
            best = max(best, score)
    return split


@finite_kernel
def top_down(
    n_words: _Words,
    prefix: _Floats,
    all_terms: _Floats,
    has_terms: bool,
    has_cross: bool,
    starts: _Spans,
    ends: _Spans,
) -> None:
    """Split every span at its best point, and write the spans of the tree in pre-order."""
    longest = n_words.max() + 1
    diagonal = np.empty(longest)
    stack = np.empty((longest, 2), np.uint32)  # unsigned: such indices need no check
    table = out = 0
    for n in n_words:
        side = n + 1
        cells = slice(table, table + side * side)
        sums = prefix[cells].reshape(side, side)
        terms = all_terms[cells].reshape(side, side) if has_terms else sums
        table += side * side
        _keep_diagonal(sums, diagonal)
        stack[0, 0], stack[0, 1] = 0, n
        depth = 1 if n > 1 else 0
        while depth > 0:
            depth -= 1
            i, j = np.int64(stack[depth, 0]), np.int64(stack[depth, 1])
            starts[out], ends[out] = i, j
            out += 1
            split: _Integer = i + 1
            if j - i > 2:
                split = _best_split(sums, diagonal, terms, has_terms, has_cross, i, j)
            stack[depth, 0], stack[depth, 1] = split, j  # kept only if it is a span of two words
            depth += int(j - split > 1)
            stack[depth, 0], stack[depth, 1] = i, split
            depth += int(split - i > 1)


@finite_kernel
def add_best(n_words: _Words, all_terms: _Floats) -> None:
    """Add to the terms of every span the best score of its trees; without a cross term.

    Column by column: once ``best(k, j)`` is known, the split at ``k`` is tried for every
    ``best(i, j)`` with ``i < k``, reading row ``k`` in order. Two values of ``k`` are handled
    together. The value that the next step depends on is computed first, since latency is the cost.
    """
    best_from = np.empty(n_words.max() + 1)
    table = 0
    for n in n_words:
        side = n + 1
        terms = all_terms[table : table + side * side].reshape(side, side)
        table += side * side
        for j in range(2, side):
            for i in range(j):
                best_from[i] = -np.inf
            best = 0.0  # of the span [k, j)
            k = j - 1
            while k > 1:
                row, next_row = terms[k], terms[k - 1]
                right = row[j] + best
                row[j] = right
                terms[j, k] += best
                best = max(best_from[k - 1], row[k - 1] + right)
                next_right = next_row[j] + best
                next_row[j] = next_right
                terms[j, k - 1] += best
                best = max(max(best_from[k - 2], row[k - 2] + right), next_row[k - 2] + next_right)
                for i in range(k - 2):
                    # the old value comes first: otherwise a masked store makes it a third slower
                    best_from[i] = max(max(best_from[i], row[i] + right), next_row[i] + next_right)
                k -= 2
            if k == 1:
                terms[1, j] += best
                terms[j, 1] += best
                best = max(best_from[0], terms[1, 0] + terms[1, j])
            terms[0, j] += best
            terms[j, 0] += best


@finite_kernel
def add_best_with_cross(n_words: _Words, prefix: _Floats, all_terms: _Floats) -> None:
    """Do as :func:`add_best` for scores with a cross term."""
    longest = n_words.max() + 1
    diagonal, score = np.empty(longest), np.empty(longest)
    table = 0
    for n in n_words:
        side = n + 1
        cells = slice(table, table + side * side)
        sums, terms = prefix[cells].reshape(side, side), all_terms[cells].reshape(side, side)
        table += side * side
        _keep_diagonal(sums, diagonal)
        for j in range(2, side):
            for i in range(j - 2, -1, -1):
                _splits(sums, diagonal, terms, True, i, j, score)
                best = _highest(score, i, j)
                terms[i, j] += best
                terms[j, i] += best


@finite_kernel
def normalise(n_words: _Words, prefix: _Floats, all_terms: _Floats, has_cross: bool) -> None:
    """Subtract from the terms of every span the log of the sum of ``exp(split)`` over its splits.

    The chart over these terms then adds up ``log p(k | i, j)``. Wide spans come first, since they
    read the terms of their parts before these change.
    """
    longest = n_words.max() + 1
    diagonal, score = np.empty(longest), np.empty(longest)
    table = 0
    for n in n_words:
        side = n + 1
        cells = slice(table, table + side * side)
        sums, terms = prefix[cells].reshape(side, side), all_terms[cells].reshape(side, side)
        table += side * side
        _keep_diagonal(sums, diagonal)
        for width in range(n, 1, -1):
            for i in range(n - width + 1):
                j = i + width
                _splits(sums, diagonal, terms, has_cross, i, j, score)
                best = _highest(score, i, j)
                total = 0.0
                for k in range(i + 1, j):
                    total += np.exp(score[k] - best)
                normaliser = best + np.log(total)
                terms[i, j] -= normaliser
                terms[j, i] -= normaliser


@finite_kernel
def marginals(
    n_words: _Words, prefix: _Floats, all_terms: _Floats, has_cross: bool, probabilities: _Floats
) -> None:
    """Fill ``probabilities`` with those of spans under ``p(k | i, j) ∝ exp(split(i, k, j))``.

    They are written to both triangles, as terms are; single words, which every tree has, get 0.
    """
    longest = n_words.max() + 1
    diagonal, score = np.empty(longest), np.empty(longest)
    table = 0
    for n in n_words:
        side = n + 1
        cells = slice(table, table + side * side)
        sums, terms = prefix[cells].reshape(side, side), all_terms[cells].reshape(side, side)
        spans = probabilities[cells].reshape(side, side)
        table += side * side
        _keep_diagonal(sums, diagonal)
        spans[:] = 0.0
        spans[0, n] = 1.0
        for width in range(n, 1, -1):
            for i in range(n - width + 1):
                j = i + width
                _splits(sums, diagonal, terms, has_cross, i, j, score)
                best = _highest(score, i, j)
                total = 0.0
                for k in range(i + 1, j):
                    score[k] = np.exp(score[k] - best)
                    total += score[k]
                share = spans[i, j] / total
                for k in range(i + 1, j):
                    spans[i, k] += share * score[k]
                    spans[k, j] += share * score[k]
        for j in range(side):
            for i in range(j):
                if j - i == 1:
                    spans[i, j] = 0.0
                spans[j, i] = spans[i, j]
