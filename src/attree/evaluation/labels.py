"""The one counting of labels: those of equal spans against each other, and recall by label.

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

#: starts, ends and labels of all spans, by tree and in pre-order, and where each tree's begin and
#: end: labels below 0 do not count.
_Spans = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]


def label_confusion(gold: Trees, predicted: Trees) -> tuple[Confusion, NDArray[np.int64]]:
    """Count which labels equal spans have.

    Labels are EVALB's: those that :data:`COLLINS` deletes do not count, and equal ones are one.
    Brackets of one word and unary chains count, and the whole sentence if it has a label. Of a
    unary chain labels that both sides have stand for each other, then the others from the top. The
    diagonal sums to the labelled brackets that match.

    Args:
        gold, predicted: trees of the same sentences, with labels.

    Returns:
        the confusion, and int64 (trees, 3): brackets in both, in gold, in predicted. Corpus F1 is
        ``2 * both / (gold + predicted)`` over the sums; a match is exact where all are equal.
    """
    known: dict[str, int] = {}
    right, found = (_spans(trees, known) for trees in (gold, predicted))
    counts = np.zeros((len(known) + 1, len(known) + 1), np.int64)
    each = np.zeros((len(gold), 3), np.int64)
    _pair_labels(right, found, counts, each)
    order = np.argsort(-counts[:-1].sum(1), kind="stable")
    names, every = list(known), np.append(order, len(order))
    return Confusion(tuple(names[i] for i in order), counts[np.ix_(every, every)]), each


def _spans(trees: Trees, known: dict[str, int]) -> _Spans:
    """Return spans in pre-order with a number for each label, the same for equal ones."""
    classes = []
    for label in trees.label_names if trees.labels is not None else ("",):
        name = cut(label)
        equal = {name}.union(*(pair for pair in COLLINS.same_labels if name in pair))
        classes.append(-1 if COLLINS.deletes(name) else known.setdefault(min(equal), len(known)))
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
    """Return numbers of spans that ascend in pre-order, from each tree to the next.

    Within a tree they are those of :class:`DistinctSpans`, from the tree's first key on.
    """
    n_words, tree = trees.n_words, trees.tree_of
    keys = trees.starts.astype(np.int64) * (n_words + 1)[tree] - trees.ends
    return keys + (_first_keys(trees) + n_words)[tree]


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
    counts = np.zeros((len(names), 2), np.int64)
    if gold.labels is not None and names:
        column = {name: position for position, name in enumerate(names)}
        label = np.array([column.get(name, -1) for name in gold.label_names], np.int64)[gold.labels]
        kept = has_tree[gold.tree_of] & (label >= 0) & (gold.ends - gold.starts > 1)
        both = np.sort(_keys(gold)[kept] * len(names) + label[kept], kind="stable")
        span, label = np.divmod(both[np.diff(both, prepend=-1) > 0], len(names))
        given = np.repeat(_first_keys(gold), predicted.counts) + predicted.keys
        recalled = label[np.append(given, -1)[np.searchsorted(given, span)] == span]
        counts = np.stack([np.bincount(x, minlength=len(names)) for x in (label, recalled)], axis=1)
    return {name: LabelCount(*each) for name, each in zip(names, counts.tolist(), strict=True)}


@kernel
def _pair_labels(
    gold: _Spans, predicted: _Spans, counts: NDArray[np.int64], each: NDArray[np.int64]
) -> None:
    """Add up ``counts``, (labels + 1, labels + 1) as of a confusion, and ``each`` tree's."""
    gold_starts, gold_ends, gold_labels, gold_offsets = gold
    starts, ends, labels, offsets = predicted
    none = counts.shape[0] - 1
    for t in range(offsets.size - 1):
        begin, end = offsets[t], offsets[t + 1]
        golden = range(gold_offsets[t], gold_offsets[t + 1])
        partner = np.full(len(golden), none)
        free = labels[begin:end] >= 0
        for alike in (True, False):
            low = begin
            for g in golden:
                if gold_labels[g] < 0 or partner[g - gold_offsets[t]] < none:
                    continue
                while low < end and starts[low] < gold_starts[g]:
                    low += 1
                for p in range(low, end):
                    if starts[p] != gold_starts[g] or ends[p] < gold_ends[g]:
                        break
                    same = ends[p] == gold_ends[g] and free[p - begin]
                    if same and (not alike or labels[p] == gold_labels[g]):
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
