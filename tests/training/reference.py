"""Naive references: every binary tree, scores by plain loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from tests.scoring.reference import all_trees, spans

Span = tuple[int, int]


def trees(i: int, j: int) -> Iterator[frozenset[Span]]:
    """Yield the spans of two words and more of every binary tree over ``[i, j)``."""
    return map(frozenset, map(spans, all_trees(i, j)))


def with_words(tree: Iterable[Span], n: int) -> list[Span]:
    """Return the spans of a tree and those of its words."""
    return [*tree, *((place, place + 1) for place in range(n))]


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


def log_partition(
    table: np.ndarray,
    n: int,
    brackets: Iterable[Span] = (),
    more: Callable[[frozenset[Span]], float] = lambda tree: 0.0,
) -> float:
    """Log of the sum over all trees that cross no bracket; ``more`` adds to a tree's score."""
    scores = [
        sum(table[span] for span in tree) + more(tree)
        for tree in trees(0, n)
        if not any(crosses(span, bracket) for span in tree for bracket in brackets)
    ]
    return float(np.logaddexp.reduce(scores))


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
