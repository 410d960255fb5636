"""Count labels: gold against predicted labels of equal spans, and recall by label.

The loops are in the file that calls them because compiled code is cached by file (see
:mod:`attree.base.compiled`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from attree.base.compiled import kernel
from attree.evaluation.counts import Confusion, LabelCount
from attree.evaluation.parameters import COLLINS, cut
from attree.evaluation.spans import DistinctSpans
from attree.trees.trees import Trees

#: Starts, ends and labels of all spans, by tree and in pre-order, and the offsets of the trees.
#: Spans with a label below 0 do not count.
_Spans = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]


def label_confusion(gold: Trees, predicted: Trees) -> tuple[Confusion, NDArray[np.int64]]:
    """Count which labels equal spans have.

    Labels follow EVALB: those that :data:`COLLINS` deletes do not count, those that it equates are
    one. Brackets of one word and unary chains count, and the whole sentence if it has a label. In
    a unary chain equal labels are paired first, then the others from the top. The diagonal sums to
    the number of labelled brackets that match.

    Args:
        gold, predicted: trees of the same sentences, with labels.

    Returns:
        the confusion, and int64 (trees, 3): brackets in both, in gold, in predicted. Corpus F1 is
        ``2 * both / (gold + predicted)`` over the sums; a match is exact where all are equal.
    """
    ids: dict[str, int] = {}
    gold_spans, predicted_spans = (_spans(trees, ids) for trees in (gold, predicted))
    counts = np.zeros((len(ids) + 1, len(ids) + 1), np.int64)
    tree_counts = np.zeros((len(gold), 3), np.int64)
    _pair_labels(gold_spans, predicted_spans, counts, tree_counts)
    order = np.argsort(-counts[:-1].sum(1), kind="stable")
    names, rows = list(ids), np.append(order, len(order))
    return Confusion(tuple(names[i] for i in order), counts[np.ix_(rows, rows)]), tree_counts


def _spans(trees: Trees, ids: dict[str, int]) -> _Spans:
    """Return spans in pre-order; ``ids`` numbers their labels, equal labels alike."""
    classes = []
    for label in trees.label_names if trees.labels is not None else ("",):
        name = cut(label)
        equal = {name}.union(*(pair for pair in COLLINS.same_labels if name in pair))
        classes.append(-1 if COLLINS.deletes(name) else ids.setdefault(min(equal), len(ids)))
    codes = np.zeros(trees.starts.size, np.int64) if trees.labels is None else trees.labels
    labels = np.array(classes or [-1], np.int64)[codes]
    if trees.labels is not None and "" in trees.label_names:
        whole = (trees.starts == 0) & (trees.ends == trees.n_words[trees.tree_of])
        labels[whole & (codes == trees.label_names.index(""))] = -1
    order = np.argsort(_keys(trees), kind="stable")  # quick on what is in order
    return trees.starts[order], trees.ends[order], labels[order], trees.offsets


def _first_keys(trees: Trees) -> NDArray[np.int64]:
    sizes = (trees.n_words + 1) ** 2
    return np.cumsum(sizes) - sizes


def _keys(trees: Trees) -> NDArray[np.int64]:
    """Return a key for every span, ascending over the trees and in pre-order within each.

    Within a tree it is the key of :class:`DistinctSpans` plus the tree's first key.
    """
    n_words, n_spans = trees.n_words, trees.n_spans
    keys = np.repeat(n_words + 1, n_spans) * trees.starts - trees.ends
    return keys + np.repeat(_first_keys(trees) + n_words, n_spans)


def label_recall(
    gold: Trees, predicted: DistinctSpans, has_tree: NDArray[np.bool_], labels: Iterable[str]
) -> dict[str, LabelCount]:
    """Count by label the distinct gold (start, end, label), and those whose span is predicted.

    Spans have two or more words; the whole sentence counts where the gold tree labels it.

    Args:
        gold: the gold trees.
        predicted: spans of the predicted trees of the same sentences.
        has_tree: bool (sentences,), which sentences count.
        labels: labels to count; a label that no gold span has counts 0.
    """
    names = list(dict.fromkeys(labels))
    counts = np.zeros((len(names), 2), np.int64)
    if gold.labels is not None and names:
        column = {name: position for position, name in enumerate(names)}
        label = np.array([column.get(name, -1) for name in gold.label_names], np.int64)[gold.labels]
        kept = has_tree[gold.tree_of] & (label >= 0) & (gold.ends - gold.starts > 1)
        pairs = np.sort(_keys(gold)[kept] * len(names) + label[kept], kind="stable")
        span, label = np.divmod(pairs[np.diff(pairs, prepend=-1) > 0], len(names))
        found = np.zeros(int(((gold.n_words + 1) ** 2).sum()), bool)
        found[np.repeat(_first_keys(gold), predicted.counts) + predicted.keys] = True
        recalled = label[found[span]]
        counts = np.stack([np.bincount(x, minlength=len(names)) for x in (label, recalled)], axis=1)
    return {name: LabelCount(*pair) for name, pair in zip(names, counts.tolist(), strict=True)}


@kernel
def _pair_labels(
    gold: _Spans, predicted: _Spans, counts: NDArray[np.int64], tree_counts: NDArray[np.int64]
) -> None:
    """Fill ``counts`` (labels + 1, labels + 1) and ``tree_counts`` (trees, 3), both 0 before."""
    gold_starts, gold_ends, gold_labels, gold_offsets = gold
    starts, ends, labels, offsets = predicted
    none = counts.shape[0] - 1
    for t in range(offsets.size - 1):
        begin, end = offsets[t], offsets[t + 1]
        golden = range(gold_offsets[t], gold_offsets[t + 1])
        partner = np.full(len(golden), none)
        free = labels[begin:end] >= 0
        for same_label in (True, False):
            low = begin
            for g in golden:
                if gold_labels[g] < 0 or partner[g - gold_offsets[t]] < none:
                    continue
                while low < end and starts[low] < gold_starts[g]:
                    low += 1
                for p in range(low, end):
                    if starts[p] != gold_starts[g] or ends[p] < gold_ends[g]:
                        break
                    same_span = ends[p] == gold_ends[g] and free[p - begin]
                    if same_span and (not same_label or labels[p] == gold_labels[g]):
                        free[p - begin] = False
                        partner[g - gold_offsets[t]] = labels[p]
                        tree_counts[t, 0] += same_label
                        break
        for g in golden:
            if gold_labels[g] >= 0:
                counts[gold_labels[g], partner[g - gold_offsets[t]]] += 1
                tree_counts[t, 1] += 1
        for p in range(begin, end):
            tree_counts[t, 2] += labels[p] >= 0
            if free[p - begin]:
                counts[none, labels[p]] += 1
