"""Distinct spans of trees, and the spans that two sets of trees share, by compiled loops.

The loops are in one file because compiled code is cached by file (see :mod:`attree.base.compiled`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attree.base.compiled import kernel
from attree.base.errors import AttreeError
from attree.trees.trees import Trees

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DistinctSpans:
    """The distinct spans of two or more words of some trees, always with the whole sentence.

    Attributes:
        n_words: int64 (trees,), words; a tree of fewer than two words has no spans.
        offsets: int64 (trees + 1,), where each tree's keys begin and end.
        keys: int64, ``start * (n+1) + (n - end)``, ascending within a tree (pre-order).
    """

    n_words: _Ints
    offsets: _Ints
    keys: _Ints

    @property
    def counts(self) -> _Ints:
        """Number of spans of each tree."""
        return self.offsets[1:] - self.offsets[:-1]


def distinct_spans(
    trees: Trees, *, sentences: ArrayLike | None = None, what: str = "tree"
) -> DistinctSpans:
    """Return each tree's distinct spans of two or more words, and the whole sentence.

    Args:
        trees: trees, their spans in any order.
        sentences: numbers that name the trees in errors; their positions by default.
        what: the noun for a tree in errors.

    Raises:
        AttreeError: a span reaches outside its sentence.
    """
    words = trees.n_words
    keys = np.empty(trees.starts.size + words.size, np.int64)
    offsets = np.empty(words.size + 1, np.int64)
    bad = _collect(words, trees.starts, trees.ends, trees.offsets, keys, offsets)
    if bad >= 0:
        tree = int(np.searchsorted(trees.offsets, bad, side="right")) - 1
        name = tree if sentences is None else int(np.asarray(sentences)[tree])
        span = f"[{trees.starts[bad]}, {trees.ends[bad]})"
        problem = f"{what} of sentence {name}: the span {span} lies outside its {words[tree]} words"
        raise AttreeError("span-outside", problem)
    return DistinctSpans(words, offsets, keys[: offsets[-1]])


def matched(gold: DistinctSpans, predicted: DistinctSpans, trees_each: int = 1) -> _Ints:
    """Count the spans that each predicted tree shares with its gold tree.

    Tree ``t`` of ``predicted`` belongs to tree ``t // trees_each`` of ``gold``.
    """
    shared = np.empty(predicted.n_words.size, np.int64)
    _match(gold.keys, gold.offsets, predicted.keys, predicted.offsets, trees_each, shared)
    return shared


def first_crossing(trees: DistinctSpans) -> int:
    """Return the position of the first tree with crossing spans, or -1."""
    return _crossing(trees.n_words, trees.keys, trees.offsets)


@kernel
def _collect(
    n_words: _Ints,
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    offsets: _Ints,
    keys: _Ints,
    key_offsets: _Ints,
) -> int:
    """Fill ``keys`` and their offsets; return the position of the first bad span, or -1."""
    out = 0
    key_offsets[0] = 0
    for t in range(n_words.size):
        n = n_words[t]
        first = out
        if n > 1:
            keys[out] = 0  # the whole sentence
            out += 1
        sorted_already = True
        for index in range(offsets[t], offsets[t + 1]):
            start, end = np.int64(starts[index]), np.int64(ends[index])
            if start < 0 or end <= start or end > n:
                return index
            key = start * (n + 1) + n - end
            if end - start > 1 and key != keys[out - 1]:
                sorted_already = sorted_already and key > keys[out - 1]
                keys[out] = key
                out += 1
        if not sorted_already:
            keys[first:out] = np.sort(keys[first:out])
            kept = first + 1
            for index in range(first + 1, out):
                if keys[index] != keys[kept - 1]:
                    keys[kept] = keys[index]
                    kept += 1
            out = kept
        key_offsets[t + 1] = out
    return -1


@kernel
def _match(
    gold: _Ints,
    gold_offsets: _Ints,
    predicted: _Ints,
    offsets: _Ints,
    trees_each: int,
    shared: _Ints,
) -> None:
    """Count equal keys by merging two ascending lists."""
    for t in range(shared.size):
        g, last = gold_offsets[t // trees_each], gold_offsets[t // trees_each + 1]
        count = 0
        for p in range(offsets[t], offsets[t + 1]):
            key = predicted[p]
            while g < last and gold[g] < key:
                g += 1
            if g < last and gold[g] == key:
                count += 1
        shared[t] = count


@kernel
def _crossing(n_words: _Ints, keys: _Ints, offsets: _Ints) -> int:
    """Find a tree whose spans cross: in pre-order a span must lie within the last open one."""
    open_ends = np.empty(n_words.max() if n_words.size else 1, np.int64)
    for t in range(n_words.size):
        n = n_words[t]
        depth = 0
        for index in range(offsets[t], offsets[t + 1]):
            start, end = keys[index] // (n + 1), n - keys[index] % (n + 1)
            while depth > 0 and open_ends[depth - 1] <= start:
                depth -= 1
            if depth > 0 and end > open_ends[depth - 1]:
                return t
            open_ends[depth] = end
            depth += 1
    return -1
