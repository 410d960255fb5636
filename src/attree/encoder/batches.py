"""Batches of sentences of like length under a budget of word pieces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def batches(
    lengths: Sequence[int] | np.ndarray,
    *,
    tokens_per_batch: int,
    cells_per_batch: int | None = None,
) -> list[np.ndarray]:
    """Group sentences by length, so that little is padding; deterministic.

    Args:
        lengths: pieces of each sentence.
        tokens_per_batch: most pieces of a batch, padding included. A sentence longer than that is
            a batch of its own.
        cells_per_batch: most cells ``batch × longest²``, which bounds the memory that attention
            matrices of long sentences take.

    Returns:
        int64 index arrays into ``lengths``, the longest sentences first: the first batch is the
        largest, so that memory runs out at once or never. Every sentence is in one of them.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-lengths, kind="stable")
    found = []
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        most = tokens_per_batch // longest
        if cells_per_batch is not None:
            most = min(most, cells_per_batch // (longest * longest))
        found.append(order[start : start + max(1, most)])
        start += max(1, most)
    return found
