"""Decode association matrices to trees, many sentences at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attree.base.errors import NotFiniteError
from attree.base.registry import choose
from attree.decoding import DECODERS
from attree.scoring.tables import SplitScores, split_scores, transform
from attree.trees.trees import Spans, Trees, binary_offsets

#: Table cells scored and decoded at a time: 0.5 MB a table, which fits in a core's cache.
_CELLS_AT_A_TIME = 64_000


def decode(
    values: NDArray[Any],
    n_words: ArrayLike,
    matrices_each: int = 1,
    *,
    association: str = "raw",
    score: str,
    decoder: str,
    sentences: ArrayLike | None = None,
    scored: bool = False,
) -> Trees:
    """Parse sentences from their association matrices.

    Args:
        values: float16, 32 or 64, one-dimensional: the ``(matrices_each, n, n)`` associations of
            every sentence, row-major, one sentence after the other.
        n_words: words of each sentence; 0 if it has no association (and no values).
        matrices_each: number of matrices of each sentence; each is parsed by itself.
        association: ``raw``, or ``log`` for ``log(a + 1e-6)``.
        score: a name of :data:`attree.scoring.SCORES`.
        decoder: a name of :data:`attree.decoding.DECODERS`.
        sentences: sentence numbers for errors, instead of positions.
        scored: whether to return each span's split score, ``split(i, k, j)`` of its split ``k``.

    Returns:
        binary trees, ordered by sentence, then matrix. The arithmetic is in float64, ties take the
        smallest split, and no tree depends on the other sentences.

    Raises:
        AttreeError: an unknown name.
        NotFiniteError: an association with NaN or infinity in it.
    """
    words = np.asarray(n_words, dtype=np.int64)
    values = np.asarray(values)
    size = int((words * words).sum()) * matrices_each
    if values.ndim != 1 or values.size != size:
        raise ValueError(f"{size} values are needed in one dimension, not shape {values.shape}")
    lengths = np.repeat(words, matrices_each)
    decode_scores = choose(DECODERS, decoder, what="decoder")
    offsets = np.concatenate(([0], np.cumsum(lengths * lengths)))
    tables = np.concatenate(([0], np.cumsum((lengths + 1) ** 2)))
    ranges = list(chunks(tables, _CELLS_AT_A_TIME))
    room = np.empty((2, max((tables[last] - tables[first] for first, last in ranges), default=0)))
    spans = binary_offsets(lengths)
    starts, ends = np.empty((2, spans[-1]), np.int32)
    of_spans = np.empty(spans[-1]) if scored else None
    for first, last in ranges:
        cells = tables[last] - tables[first]
        chosen = transform(values[offsets[first] : offsets[last]], association)
        scores = split_scores(chosen, lengths[first:last], score, room[:, :cells])
        if scores.not_finite >= 0:
            sentence, number = divmod(first + scores.not_finite, matrices_each)
            name = sentence if sentences is None else int(np.asarray(sentences)[sentence])
            which = f"association {number}" if matrices_each > 1 else "the association"
            problem = f"{which} of sentence {name} holds NaN or infinite values"
            fix = "check the encoder and its dtype (float16 overflows in some; try float32)"
            raise NotFiniteError("not-finite", problem, fix=fix)
        window = slice(spans[first], spans[last])
        # decoders change the terms in place: keep a copy
        kept = replace(scores, terms=scores.terms.copy()) if scored else scores
        decode_scores(scores, starts[window], ends[window])
        if of_spans is not None:
            trees = Trees.binary(scores.n_words, starts[window], ends[window])
            of_spans[window] = scores_of_spans(trees, kept)
    return Trees(lengths, spans, starts, ends, scores=of_spans)


def scores_of_spans(trees: Trees, scores: SplitScores) -> NDArray[np.float64]:
    """Look up ``split(i, k, j)`` of every span of binary trees in pre-order."""
    tree = trees.tree_of
    return scores.at(tree, trees.starts, _splits(trees, tree), trees.ends)


def _splits(trees: Trees, tree: NDArray[np.int64]) -> Spans:
    """Return the split of each span of binary trees in pre-order, of which ``tree`` has it."""
    starts = trees.starts
    # a left part of two words and more is the next span in pre-order; otherwise it is one word
    next_is_left = np.zeros(starts.size, dtype=bool)
    next_is_left[:-1] = (starts[1:] == starts[:-1]) & (tree[1:] == tree[:-1])
    return np.where(next_is_left, np.roll(trees.ends, -1), starts + 1)


def syntactic_distances(trees: Trees) -> NDArray[np.int64]:
    """Return the height of the node that splits each two neighbouring words (Shen et al. 2018).

    The height of a word is 0, that of a span 1 more than the higher of its two parts. A span is
    higher than all spans within it, so splitting at the greatest distance restores the tree.

    Args:
        trees: binary, in pre-order.

    Returns:
        ``n - 1`` distances for each tree of ``n`` words, flat, from left to right.
    """
    starts, ends = trees.starts.astype(np.int64), trees.ends.astype(np.int64)
    split = _splits(trees, trees.tree_of).astype(np.int64)
    width = ends - starts
    heights = np.ones(starts.size, np.int64)
    nodes = np.arange(starts.size)
    # in pre-order the left part comes next, the right part after all spans of the left
    parts = (nodes + 1, split - starts > 1), (nodes + split - starts, ends - split > 1)
    # spans of two words, the narrowest, keep the height of 1; wider ones follow, width by width
    order = np.argsort(width, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(width[order])) + 1)[1:]:
        for child, is_span in parts:
            inner = rows[is_span[rows]]
            heights[inner] = np.maximum(heights[inner], heights[child[inner]] + 1)
    distances = np.empty_like(heights)
    distances[trees.offsets[trees.tree_of] + split - 1] = heights
    return distances


def chunks(tables: NDArray[np.int64], most_cells: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of sentences whose tables take at most ``most_cells`` cells, or one sentence.

    ``tables`` holds the start of each sentence's table, and the end of the last.
    """
    first = 0
    while first < tables.size - 1:
        last = int(tables.searchsorted(tables[first] + most_cells, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last
