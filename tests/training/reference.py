"""Naive references: every binary tree, scores by plain loops."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

Span = tuple[int, int]


def trees(i: int, j: int) -> Iterator[frozenset[Span]]:
    """Yield the spans of two words and more of every binary tree over ``[i, j)``."""
    if j - i == 1:
        yield frozenset()
        return
    for k in range(i + 1, j):
        for left in trees(i, k):
            for right in trees(k, j):
                yield left | right | {(i, j)}


def crosses(a: Span, b: Span) -> bool:
    return a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]


def span_score(inside: np.ndarray, i: int, j: int, outside: np.ndarray | None = None) -> float:
    """``s_in − s_out`` cell by cell."""
    out = inside if outside is None else outside
    n, w = len(inside), j - i
    within = sum(inside[x, y] for x in range(i, j) for y in range(i, j)) / w**2
    if w == n:
        return float(within)
    leaving = sum(out[x, y] for x in range(n) for y in range(n) if (i <= x < j) != (i <= y < j))
    return float(within - leaving / (2 * w * n - 2 * w * w))


def split_score(a: np.ndarray, score: str, i: int, k: int, j: int) -> float:
    if score == "inside_outside":
        return span_score(a, i, k) + span_score(a, k, j)
    across = a[i:k, k:j].sum() + a[k:j, i:k].sum()
    return float(-across / (2 * (k - i) * (j - k)))


def log_partition(table: np.ndarray, n: int, brackets: list[Span] | None = None) -> float:
    """Log of the sum over all trees that cross no bracket."""
    scores = [
        sum(table[span] for span in tree)
        for tree in trees(0, n)
        if not any(crosses(span, b) for span in tree for b in brackets or [])
    ]
    most = max(scores)
    return most + math.log(sum(math.exp(score - most) for score in scores))


def marginals(table: np.ndarray, n: int) -> np.ndarray:
    """Probability of every span, by enumeration."""
    found = np.zeros((n + 1, n + 1))
    total = 0.0
    for tree in trees(0, n):
        weight = math.exp(sum(table[span] for span in tree))
        total += weight
        for span in tree:
            found[span] += weight
    return found / total


def random_tree(generator: np.random.Generator, i: int, j: int) -> list[Span]:
    """Some brackets that do not cross, the whole sentence first."""
    if j - i < 2:
        return []
    k = int(generator.integers(i + 1, j))
    below = random_tree(generator, i, k) + random_tree(generator, k, j)
    return [(i, j)] + [span for span in below if generator.random() < 0.7]


def padded(matrices: list[np.ndarray]) -> np.ndarray:
    """Square matrices as one zero-padded batch."""
    side = max(len(matrix) for matrix in matrices)
    out = np.zeros((len(matrices), side, side))
    for row, matrix in zip(out, matrices, strict=True):
        row[: len(matrix), : len(matrix)] = matrix
    return out
