"""Recall of gold spans by label ("tag accuracy")."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from attree.evaluation.brackets import Brackets
from attree.evaluation.counts import LabelCount
from attree.evaluation.spans import DistinctSpans, contains


def label_recall(
    gold: Brackets, predicted: DistinctSpans, has_tree: NDArray[np.bool_], labels: Iterable[str]
) -> dict[str, LabelCount]:
    """Count, by label, the distinct gold (start, end, label) and those whose span is predicted.

    Spans are of two words and more, the whole sentence included where the gold tree labels it.
    """
    wanted = list(dict.fromkeys(labels))
    codes = {name: code for code, name in enumerate(gold.label_names)}
    tree = np.repeat(np.arange(gold.n_words.size), gold.offsets[1:] - gold.offsets[:-1])
    kept = has_tree[tree] & (gold.ends - gold.starts > 1)
    kept &= np.isin(gold.labels, [codes[name] for name in wanted if name in codes])
    rows = np.stack([tree, gold.starts, gold.ends, gold.labels], axis=1)[kept]
    rows = np.unique(rows, axis=0)
    found = contains(
        predicted, rows[:, 0], rows[:, 1].astype(np.int32), rows[:, 2].astype(np.int32)
    )
    counts = np.bincount(rows[:, 3], minlength=len(codes))
    recalled = np.bincount(rows[:, 3], weights=found, minlength=len(codes))
    return {
        name: LabelCount(int(counts[codes[name]]), int(recalled[codes[name]]))
        if name in codes
        else LabelCount()
        for name in wanted
    }
