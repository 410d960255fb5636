"""Binarise gold trees: split every span in two until only words are left."""

import itertools
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from attree.base.errors import AttreeError

Split = tuple[int, int, int]


def binarise(n_words: int, spans: Iterable[tuple[int, int]]) -> npt.NDArray[np.int32]:
    """Binarise a tree given by its spans.

    Children are split off from the left, ``(a (b c))``; unary chains are collapsed, the whole
    sentence is always a span, one-word spans are ignored.

    Args:
        n_words: the number of words.
        spans: half-open word intervals, in any order.

    Returns:
        (n_words - 1, 3) of start, split, end in pre-order, the whole sentence first: ``[start,
        end)`` is split into ``[start, split)`` and ``[split, end)``. No rows for one word.

    Raises:
        AttreeError: two spans cross, or one is not inside the sentence.
    """
    splits: list[Split] = []
    if n_words > 1:
        for bounds in _children(n_words, spans):
            splits += [(i, k, bounds[-1]) for i, k in itertools.pairwise(bounds[:-1])]
    assert len(splits) == max(n_words - 1, 0), f"{len(splits)} splits of {n_words} words"
    splits.sort(key=lambda split: (split[0], -split[2]))
    return np.array(splits, dtype=np.int32).reshape(-1, 3)


def _children(n_words: int, spans: Iterable[tuple[int, int]]) -> Iterable[list[int]]:
    """Yield for every distinct node its start, the boundaries between its children, and its end."""
    nodes = {(start, end) for start, end in spans if end - start > 1} | {(0, n_words)}
    opened: list[tuple[int, list[int]]] = []  # end, boundaries so far
    for start, end in sorted(nodes, key=lambda span: (span[0], -span[1])):
        while opened and opened[-1][0] <= start:
            yield _close(*opened.pop())
        if start < 0 or end > n_words:
            problem = f"the span {(start, end)} is not inside a sentence of {n_words} words"
            raise AttreeError("span-outside", problem)
        if opened:
            around, bounds = opened[-1]
            if end > around:
                problem = f"the spans {(bounds[0], around)} and {(start, end)} cross"
                raise AttreeError("crossing-spans", problem)
            bounds += range(bounds[-1] + 1, start + 1)
            bounds.append(end)
        opened.append((end, [start]))
    while opened:
        yield _close(*opened.pop())


def _close(end: int, bounds: list[int]) -> list[int]:
    return [*bounds, *range(bounds[-1] + 1, end + 1)]
