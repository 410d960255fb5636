"""Trees as distances between neighbouring words (Shen et al., 2018, *Straight to the Tree*)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attree.decoding.batch import splits_of
from attree.trees.trees import Trees


def syntactic_distances(trees: Trees) -> NDArray[np.int64]:
    """Return how high the node is that parts each two neighbours.

    The height of a word is 0, that of a span 1 more than the higher of its two parts. A span is
    higher than all within it, so that splitting where the distance is greatest gives the tree back.

    Args:
        trees: binary ones in pre-order.

    Returns:
        flat, ``n - 1`` of a tree of ``n`` words, from left to right.
    """
    starts, ends = trees.starts.astype(np.int64), trees.ends.astype(np.int64)
    split = splits_of(trees.tree_of, trees.starts, trees.ends).astype(np.int64)
    width = ends - starts
    heights = np.ones(starts.size, np.int64)
    at = np.arange(starts.size)
    # in pre-order the left part comes next, the right one after the spans of the left
    parts = (at + 1, split - starts > 1), (at + split - starts, ends - split > 1)
    for rows in _by_width(width):
        for place, is_span in parts:
            inner = rows[is_span[rows]]
            heights[inner] = np.maximum(heights[inner], heights[place[inner]] + 1)
    found = np.empty_like(heights)
    found[trees.offsets[trees.tree_of] + split - 1] = heights
    return found


def _by_width(width: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the places of spans of three words, of four, and so on."""
    order = np.argsort(width, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(width[order])) + 1)[1:]
