"""Which labels equal spans of two trees have: the loops of :mod:`attree.evaluation.confusion`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attree.compiled import kernel
from attree.trees import Trees


def label_pairs(
    gold: Trees,
    gold_labels: NDArray[np.int64],
    predicted: Trees,
    labels: NDArray[np.int64],
    n_labels: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count which labels equal spans have, as :class:`attree.evaluation.confusion.Confusion` does.

    Args:
        gold, predicted: trees of the same sentences.
        gold_labels, labels: a number for each span's label; one below 0 does not count.
        n_labels: above every such number.

    Returns:
        int64 (n_labels + 1, n_labels + 1), gold by predicted; last, spans of one side only. And
        int64 (trees, 3): spans that both have with one label, those of gold, those of predicted.
    """
    counts = np.zeros((n_labels + 1, n_labels + 1), np.int64)
    each = np.zeros((len(gold), 3), np.int64)
    left = gold.starts, gold.ends, gold_labels, gold.offsets
    _pair_labels(*left, predicted.starts, predicted.ends, labels, predicted.offsets, counts, each)
    return counts, each


@kernel
def _pair_labels(
    gold_starts: NDArray[np.int32],
    gold_ends: NDArray[np.int32],
    gold_labels: NDArray[np.int64],
    gold_offsets: NDArray[np.int64],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    labels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    counts: NDArray[np.int64],
    each: NDArray[np.int64],
) -> None:
    none = counts.shape[0] - 1
    for t in range(offsets.size - 1):
        begin, end = offsets[t], offsets[t + 1]
        golden = range(gold_offsets[t], gold_offsets[t + 1])
        partner = np.full(len(golden), none)
        free = labels[begin:end] >= 0
        ordered = _in_order(starts[begin:end], ends[begin:end]) and _in_order(
            gold_starts[golden.start : golden.stop], gold_ends[golden.start : golden.stop]
        )
        for alike in (True, False):
            low = begin
            for g in golden:
                if gold_labels[g] < 0 or partner[g - gold_offsets[t]] < none:
                    continue
                while ordered and low < end and starts[low] < gold_starts[g]:
                    low += 1
                for p in range(low, end):
                    alone = starts[p] != gold_starts[g] or ends[p] < gold_ends[g]
                    if ordered and alone:
                        break
                    same = not alone and ends[p] == gold_ends[g]
                    if same and free[p - begin] and (not alike or labels[p] == gold_labels[g]):
                        free[p - begin] = False
                        partner[g - gold_offsets[t]] = labels[p]
                        each[t, 0] += alike
                        break
        for g in golden:
            if gold_labels[g] >= 0:
                counts[gold_labels[g], partner[g - gold_offsets[t]]] += 1
                each[t, 1] += 1
        for p in range(begin, end):
            each[t, 2] += labels[p] >= 0
            if free[p - begin]:
                counts[none, labels[p]] += 1


@kernel
def _in_order(starts: NDArray[np.int32], ends: NDArray[np.int32]) -> bool:
    """Tell whether spans are in pre-order, as those of a tree usually are."""
    so = True
    for at in range(1, starts.size):
        within = starts[at] == starts[at - 1] and ends[at] <= ends[at - 1]
        so = so and (within or starts[at] > starts[at - 1])
    return so
