"""The scores of the method, written from their equations with plain sums."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from attree.trees.trees import Trees

Matrix = NDArray[np.float64]
Tree = tuple[tuple[int, int, int], ...]  # start, split, end of every span, in pre-order
Spans = list[tuple[int, int]]


def outside(a: Matrix, i: int, k: int, j: int) -> float:
    """Return ``d(i, k, j)``."""
    return -(a[i:k, k:j].sum() + a[k:j, i:k].sum()) / (2 * (k - i) * (j - k))


def s_in(a: Matrix, i: int, j: int) -> float:
    return a[i:j, i:j].sum() / (j - i) ** 2


def s_out(a: Matrix, i: int, j: int) -> float:
    n, w = len(a), j - i
    if w == n:
        return 0.0
    around = a[i:j, :].sum() + a[:, i:j].sum() - 2 * a[i:j, i:j].sum()
    return around / (2 * w * n - 2 * w * w)


def s_span(a: Matrix, i: int, j: int) -> float:
    return s_in(a, i, j) - s_out(a, i, j)


def distance(a: Matrix, k: int) -> float:
    return -(a[k - 1, k] + a[k, k - 1]) / 2


def distance_with_right_bias(a: Matrix, k: int) -> float:
    """As in the program of Kim et al. with --bias 1.5, where d is 0 of a word and itself."""
    places = range(1, len(a))
    own = [distance(a, x) + (a[x, x] + a[x - 1, x - 1]) / 2 for x in places]
    if len(own) < 2:
        return distance(a, k)
    base = 1.5 * sum(own) / len(own)
    bias = [base * (1 - (1 / (len(own) - 1)) * x) for x in range(len(own))]
    return own[k - 1] + bias[k - 1]


def s_pair(a: Matrix, i: int, j: int) -> float:
    """The mean over every two words of a span, both ways."""
    pairs = [a[x, y] for x in range(i, j) for y in range(i, j) if x != y]
    return sum(pairs) / len(pairs) if pairs else 0.0


def s_given(a: Matrix, i: int, j: int) -> float:
    """The score of a span that the matrix holds."""
    return a[i, j - 1] if j - i > 1 else 0.0


#: score → ``split(a, i, k, j)``
SPLITS: dict[str, Callable[[Matrix, int, int, int], float]] = {
    "outside": outside,
    "inside": lambda a, i, k, j: s_in(a, i, k) + s_in(a, k, j),
    "inside_outside": lambda a, i, k, j: s_span(a, i, k) + s_span(a, k, j),
    "pair": lambda a, i, k, j: s_pair(a, i, k) + s_pair(a, k, j),
    "spans": lambda a, i, k, j: s_given(a, i, k) + s_given(a, k, j),
    "adjacent": lambda a, i, k, j: distance(a, k),
    "adjacent_right": lambda a, i, k, j: distance_with_right_bias(a, k),
}


@functools.cache
def all_trees(i: int, j: int) -> tuple[Tree, ...]:
    """Return every binary tree over the words ``[i, j)``."""
    if j - i < 2:
        return ((),)
    return tuple(
        ((i, k, j), *left, *right)
        for k in range(i + 1, j)
        for left in all_trees(i, k)
        for right in all_trees(k, j)
    )


def spans(tree: Tree) -> Spans:
    return [(i, j) for i, _, j in tree]


def total(a: Matrix, tree: Tree, score: str) -> float:
    """Return the sum of the split scores of a tree."""
    return sum(SPLITS[score](a, *split) for split in tree)


def attention(words: int, seed: int = 0) -> Matrix:
    """Return an attention-like matrix: rows are positive and sum to 1."""
    return np.random.default_rng(seed).dirichlet(np.full(words, 0.5), size=words)


def matrices(least: int = 1, most: int = 7) -> st.SearchStrategy[Matrix]:
    """Matrices of float16 numbers between 0 and 1, zeros and equal ones among them."""

    def square(n: int) -> st.SearchStrategy[Matrix]:
        cell = st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1, width=16)
        cells = st.lists(cell, min_size=n * n, max_size=n * n)
        return cells.map(lambda flat: np.array(flat, np.float64).reshape(n, n))

    return st.integers(least, most).flatmap(square)


def pairs(trees: Trees) -> Spans:
    """Return the spans of all trees as a list of pairs."""
    return list(zip(trees.starts.tolist(), trees.ends.tolist(), strict=True))


def splits_of(found: Spans) -> Iterator[tuple[int, int, int]]:
    """Yield start, split and end of each span of a binary tree given by its spans."""
    known = set(found)
    for i, j in found:
        ends = [k for k in range(i + 1, j) if k - i == 1 or (i, k) in known]
        ends = [k for k in ends if j - k == 1 or (k, j) in known]
        assert len(ends) == 1, f"{found} is no binary tree"
        yield i, ends[0], j
