"""Recall of gold spans by label ("tag accuracy")."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from attree.compiled import kernel
from attree.evaluation.counts import LabelCount
from attree.evaluation.spans import DistinctSpans
from attree.trees import Trees


def label_recall(
    gold: Trees, predicted: DistinctSpans, has_tree: NDArray[np.bool_], labels: Iterable[str]
) -> dict[str, LabelCount]:
    """Count, by label, the distinct gold (start, end, label) and those whose span is predicted.

    Spans are of two words and more, the whole sentence included where the gold tree labels it.

    Args:
        gold: the gold trees.
        predicted: the predicted ones of the same sentences.
        has_tree: which sentences count.
        labels: the labels wanted; one that no gold span has counts 0.
    """
    names = list(dict.fromkeys(labels))
    column = {name: place for place, name in enumerate(names)}
    places = np.array([column.get(name, -1) for name in gold.label_names], np.int64)
    counts, recalled = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    if gold.labels is not None:
        _count(
            gold.n_words,
            gold.starts,
            gold.ends,
            places[gold.labels],
            gold.offsets,
            has_tree,
            predicted.keys,
            predicted.offsets,
            counts,
            recalled,
        )
    return {
        name: LabelCount(int(count), int(found))
        for name, count, found in zip(names, counts, recalled, strict=True)
    }


@kernel
def _count(
    n_words: NDArray[np.int64],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    labels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    has_tree: NDArray[np.bool_],
    predicted: NDArray[np.int64],
    predicted_offsets: NDArray[np.int64],
    counts: NDArray[np.int64],
    recalled: NDArray[np.int64],
) -> None:
    """Sort each tree's (span, label), and merge them with the predicted spans, which are sorted."""
    wanted = counts.size
    most = 0
    for t in range(n_words.size):
        most = max(most, offsets[t + 1] - offsets[t])
    rows = np.empty(most, np.int64)  # span key * labels + label
    for t in range(n_words.size):
        if not has_tree[t]:
            continue
        n = n_words[t]
        found = 0
        ascending = True
        for at in range(offsets[t], offsets[t + 1]):
            if labels[at] >= 0 and ends[at] - starts[at] > 1:
                key = np.int64(starts[at]) * (n + 1) + n - ends[at]
                rows[found] = key * wanted + labels[at]
                ascending = ascending and (found == 0 or rows[found] > rows[found - 1])
                found += 1
        if not ascending:
            rows[:found] = np.sort(rows[:found])
        p, last = predicted_offsets[t], predicted_offsets[t + 1]
        for x in range(found):
            if x > 0 and rows[x] == rows[x - 1]:
                continue
            key, label = rows[x] // wanted, rows[x] % wanted
            while p < last and predicted[p] < key:
                p += 1
            counts[label] += 1
            recalled[label] += p < last and predicted[p] == key
