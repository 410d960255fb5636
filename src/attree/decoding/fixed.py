"""Trees that depend only on the number of words: baselines, and the fallback.

Random trees have a separate random stream for each seed and sentence, so that a tree does not
depend on the other sentences.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attree.base.compiled import kernel
from attree.base.registry import check_name
from attree.decoding import FIXED
from attree.trees.trees import Trees

_Spans = NDArray[np.int32]
_Words = NDArray[np.int64]
_Streams = NDArray[np.uint64]

# SplitMix64 (Steele, Lea and Flood 2014): a counter and two rounds of mixing.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S27, _S30, _S31 = np.uint64(27), np.uint64(30), np.uint64(31)
_ZERO, _ONE = np.uint64(0), np.uint64(1)

_RIGHT, _LEFT, _BALANCED, _UNIFORM = range(4)


def fixed_trees(
    name: str, n_words: ArrayLike, *, seed: int = 0, sentences: ArrayLike | None = None
) -> Trees:
    """Return the fixed trees called ``name`` of sentences of ``n_words`` words.

    Args:
        name: one of :data:`attree.decoding.FIXED`. ``balanced`` splits in the middle, an odd word
            to the right; ``random_uniform_split`` draws the splits of a span uniformly;
            ``random_shift_reduce`` shifts or reduces with even odds if both are possible;
            ``random_uniform_tree`` draws binary trees uniformly (Rémy's algorithm, exact).
        n_words: words of each sentence.
        seed: of random trees; the tree depends on it and the sentence's number.
        sentences: sentence numbers, instead of positions.
    """
    check_name(name, FIXED, f"unknown fixed tree {name!r}")
    words = np.asarray(n_words, dtype=np.int64)
    numbers = np.arange(words.size) if sentences is None else np.asarray(sentences)
    spans = int(np.maximum(words - 1, 0).sum())
    starts, ends = np.empty(spans, np.int32), np.empty(spans, np.int32)
    if spans:
        _TREES[name](words, _streams(seed, numbers), starts, ends)
    return Trees.binary(words, starts, ends)


def _streams(seed: int, sentences: NDArray[np.integer]) -> _Streams:
    """Return the start of each sentence's random stream, far apart for all seeds and sentences."""
    with np.errstate(over="ignore"):
        return _mix(_mix(np.asarray(sentences, np.uint64) + _STEP) ^ np.uint64(seed) * _STEP)


def _mix(counter: _Streams) -> _Streams:
    z = (counter ^ (counter >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@kernel
def _draw(stream: _Streams, bound: int | np.integer[Any]) -> np.int64:
    """Return a uniform random integer in ``[0, bound)``, without bias; advance the stream."""
    limit = np.uint64(bound)
    biased = (_ZERO - limit) % limit  # number of values to reject: 2^64 mod bound
    while True:
        stream[0] += _STEP
        z = stream[0]
        z = (z ^ (z >> _S30)) * _MIX_1
        z = (z ^ (z >> _S27)) * _MIX_2
        z = z ^ (z >> _S31)
        if z >= biased:
            return np.int64(z % limit)


@kernel
def _split_top_down(
    rule: int, n_words: _Words, streams: _Streams, starts: _Spans, ends: _Spans
) -> None:
    stack = np.empty((n_words.max() + 1, 2), np.int64)
    out = 0
    for s in range(n_words.size):
        stream = streams[s : s + 1]
        stack[0, 0], stack[0, 1] = 0, n_words[s]
        depth = 1
        while depth > 0:
            depth -= 1
            i, j = stack[depth, 0], stack[depth, 1]
            if j - i < 2:
                continue
            starts[out], ends[out] = i, j
            out += 1
            if rule == _RIGHT:
                k = i + 1
            elif rule == _LEFT:
                k = j - 1
            elif rule == _BALANCED:
                k = i + (j - i) // 2
            else:
                k = i + 1 + _draw(stream, j - i - 1)
            stack[depth, 0], stack[depth, 1] = k, j
            stack[depth + 1, 0], stack[depth + 1, 1] = i, k
            depth += 2


@kernel
def _shift_reduce(n_words: _Words, streams: _Streams, starts: _Spans, ends: _Spans) -> None:
    longest = n_words.max() + 1
    begins = np.empty(longest, np.int64)  # of the trees on the stack
    keys = np.empty(longest, np.int64)
    out = 0
    for s in range(n_words.size):
        n = n_words[s]
        stream = streams[s : s + 1]
        read = depth = made = 0
        while made < n - 1:
            if depth < 2 or (read < n and _draw(stream, 2) == 0):
                begins[depth] = read
                read += 1
                depth += 1
            else:
                depth -= 1
                keys[made] = begins[depth - 1] * (n + 1) + n - read
                made += 1
        if made > 0:
            keys[:made] = np.sort(keys[:made])  # from post-order to pre-order
        for x in range(made):
            starts[out], ends[out] = keys[x] // (n + 1), n - keys[x] % (n + 1)
            out += 1


@kernel
def _uniform_tree(n_words: _Words, streams: _Streams, starts: _Spans, ends: _Spans) -> None:
    """Grow a tree leaf by leaf, each on a random side of a random node (Rémy 1985).

    The new inner node takes the number of the node that it replaces, whose content moves to a new
    number, so that its parent need not change.
    """
    most = 2 * n_words.max() + 1
    left, right = np.empty(most, np.int64), np.empty(most, np.int64)  # -1: a leaf
    order, stack = np.empty(most, np.int64), np.empty(most, np.int64)
    begin, end = np.empty(most, np.int64), np.empty(most, np.int64)
    out = 0
    for s in range(n_words.size):
        stream = streams[s : s + 1]
        left[0] = -1
        nodes = 1
        for _ in range(n_words[s] - 1):
            chance = _draw(stream, 2 * nodes)
            chosen, old, new = chance // 2, nodes, nodes + 1
            left[old], right[old] = left[chosen], right[chosen]
            left[new] = -1
            left[chosen], right[chosen] = (old, new) if chance % 2 == 0 else (new, old)
            nodes += 2
        seen = word = 0
        depth = 1
        stack[0] = 0
        while depth > 0:
            depth -= 1
            node = stack[depth]
            order[seen], begin[node] = node, word
            seen += 1
            if left[node] < 0:
                word += 1
            else:
                stack[depth], stack[depth + 1] = right[node], left[node]
                depth += 2
        for x in range(nodes - 1, -1, -1):
            node = order[x]
            end[node] = begin[node] + 1 if left[node] < 0 else end[right[node]]
        for x in range(nodes):
            if left[order[x]] >= 0:
                starts[out], ends[out] = begin[order[x]], end[order[x]]
                out += 1


_TREES: dict[str, Callable[[_Words, _Streams, _Spans, _Spans], None]] = {
    "right_branching": partial(_split_top_down, _RIGHT),
    "left_branching": partial(_split_top_down, _LEFT),
    "balanced": partial(_split_top_down, _BALANCED),
    "random_uniform_split": partial(_split_top_down, _UNIFORM),
    "random_shift_reduce": _shift_reduce,
    "random_uniform_tree": _uniform_tree,
}
