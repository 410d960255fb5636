"""Count labels as EVALB does: gold against predicted labels of equal spans, recall by label."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.base.compiled import kernel
from attree.base.errors import AttreeError
from attree.base.reading import described
from attree.evaluation.spans import DistinctSpans, cells_of, distinct
from attree.trees.trees import Trees

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Parameters:
    """The settings of a parameter file (``.prm``); without one EVALB deletes nothing.

    Attributes:
        labelled: whether labels must be the same.
        cutoff: a second summary covers sentences of at most this many words.
        max_errors: more errors than this end the run.
        delete: labels of brackets, and tags of words, that do not count.
        delete_for_length: tags of words that do not count in the sentence's length.
        quotes: tags of quotation marks that may be deleted from one tree only.
        same_labels, same_words: pairs that count as equal.
    """

    labelled: bool = True
    cutoff: int = 40
    max_errors: int = 10
    delete: frozenset[str] = frozenset()
    delete_for_length: frozenset[str] = frozenset()
    quotes: frozenset[str] = frozenset()
    same_labels: frozenset[tuple[str, str]] = frozenset()
    same_words: frozenset[tuple[str, str]] = frozenset()

    def same_label(self, tag: str, other: str) -> bool:
        """Tell whether two labels or tags count as equal."""
        return tag == other or (tag, other) in self.same_labels or (other, tag) in self.same_labels

    def deletes(self, label: str) -> bool:
        """Tell whether brackets with this label do not count."""
        return any(self.same_label(label, deleted) for deleted in self.delete)


#: The usual parameters for the Penn Treebank, for trees whose punctuation is removed already.
COLLINS = Parameters(
    delete=frozenset({"TOP", "S1", "ROOT", "VROOT", "-NONE-", ",", ":", "``", "''", "."}),
    delete_for_length=frozenset({"-NONE-"}),
    same_labels=frozenset({("ADVP", "PRT")}),
)


def cut(label: str) -> str:
    """Cut off the functions of a label."""
    return re.split("[-=]", label, maxsplit=1)[0]


@dataclass(frozen=True, slots=True)
class LabelCount:
    """Gold spans of one label, and how many of them the prediction has."""

    count: int = 0
    recalled: int = 0

    @property
    def recall(self) -> float | None:
        """Recall in percent; None if there is no gold span with the label."""
        return 100.0 * self.recalled / self.count if self.count else None


#: Headings of spans that the other tree lacks, of rare labels, and of phrases without a label.
NO_SPAN, OTHERS, UNNAMED = "no span", "others", "no label"


@dataclass(frozen=True, slots=True)
class Confusion:
    """Labels of spans in gold and predicted trees.

    Attributes:
        labels: the labels, the most frequent in gold trees first.
        counts: int64 (labels + 1, labels + 1), gold by predicted; the last row counts predicted
            spans that gold lacks, the last column gold spans that the prediction lacks.
    """

    labels: tuple[str, ...]
    counts: _Ints

    def describe(self) -> dict[str, Any]:
        """Return JSON values that :func:`confusion_of` reads."""
        return {"labels": list(self.labels), "counts": self.counts.tolist()}

    @property
    def headings(self) -> list[str]:
        """The names of rows and columns."""
        return [*(label or UNNAMED for label in self.labels), NO_SPAN]

    @property
    def foreign(self) -> list[str]:
        """The predicted labels that no gold tree has, by name."""
        of_gold = self.counts[:-1].sum(1).tolist()
        return sorted(self.headings[i] for i, count in enumerate(of_gold) if not count)

    def most_frequent(self, count: int) -> Confusion:
        """Return the confusion of the most frequent ``count`` labels, the rest merged."""
        if len(self.labels) <= count + 1:
            return self
        target = np.minimum(np.arange(len(self.labels) + 1), count)
        target[-1] = count + 1
        counts = np.zeros((count + 2, count + 2), np.int64)
        np.add.at(counts, (target[:, None], target[None, :]), self.counts)
        return Confusion((*self.labels[:count], OTHERS), counts)


#: The confusion of trees that share no label.
NOTHING = Confusion((), np.zeros((1, 1), np.int64))


@dataclass(frozen=True, slots=True)
class _Described:
    labels: list[str]
    counts: list[list[int]]


def confusion_of(summary: Mapping[str, Any], path: Path | None) -> Confusion | None:
    """Read the confusion of labels of a summary of scores, if it has one.

    Raises:
        AttreeError: the confusion has another form.
    """
    name, fix = "confusion of labels", "run `attree score` again"
    form: Any = _Described | None
    confusion = described(summary.get("label_confusion"), form, file=path, what=name, fix=fix)
    if confusion is None:
        return None
    side = len(confusion.labels) + 1
    if [len(row) for row in confusion.counts] != [side] * side:
        problem = f"this {name} is not a square table of its labels"
        raise AttreeError("not-square", problem, file=path, fix=fix)
    return Confusion(tuple(confusion.labels), np.array(confusion.counts, np.int64))


def label_confusion(gold: Trees, predicted: Trees) -> tuple[Confusion, _Ints]:
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
    (gold_tree, gold_cells, golden), (tree, cells, labels) = (
        _counted(side, ids) for side in (gold, predicted)
    )
    none = len(ids)
    partner = np.full(golden.size, none)
    _pair(gold_cells, golden, cells, labels, none, partner)
    square = (none + 1, none + 1)
    counts = np.bincount(golden * (none + 1) + partner, minlength=(none + 1) ** 2).reshape(square)
    counts[none, :none] = np.bincount(labels, minlength=none) - counts[:none, :none].sum(0)
    brackets = (gold_tree[partner == golden], gold_tree, tree)  # in both, in gold, in predicted
    each = np.stack([np.bincount(trees, minlength=len(gold)) for trees in brackets], axis=1)
    order = np.argsort(-counts[:-1].sum(1), kind="stable")
    names, rows = list(ids), np.append(order, none)
    return Confusion(tuple(names[i] for i in order), counts[np.ix_(rows, rows)]), each


def _counted(trees: Trees, ids: dict[str, int]) -> tuple[_Ints, ...]:
    """Return tree, cell and label of each bracket that counts, by cell; ``ids`` numbers labels."""
    classes = []
    for label in trees.label_names if trees.labels is not None else ("",):
        name = cut(label)
        equal = {name}.union(*(pair for pair in COLLINS.same_labels if name in pair))
        classes.append(-1 if COLLINS.deletes(name) else ids.setdefault(min(equal), len(ids)))
    codes = np.zeros(trees.starts.size, int) if trees.labels is None else np.int64(trees.labels)
    labels = np.array(classes or [-1], np.int64)[codes]
    if trees.labels is not None and "" in trees.label_names:
        whole = (trees.starts == 0) & (trees.ends == trees.n_words[trees.tree_of])
        labels[whole & (codes == trees.label_names.index(""))] = -1
    rows = np.flatnonzero(labels >= 0)
    cells = cells_of(trees)
    rows = rows[np.argsort(cells[rows], kind="stable")]
    return trees.tree_of[rows], cells[rows], labels[rows]


@kernel
def _pair(
    gold_cells: _Ints, golden: _Ints, cells: _Ints, labels: _Ints, none: int, partner: _Ints
) -> None:
    """Pair labels of equal cells; both sides ascend by cell.

    ``partner`` holds ``none`` for each gold label, and gets the predicted one of its pair.
    """
    free = np.ones(cells.size, np.bool_)
    first = start = 0
    while first < gold_cells.size:
        cell, last = gold_cells[first], first
        while last < gold_cells.size and gold_cells[last] == cell:
            last += 1
        while start < cells.size and cells[start] < cell:
            start += 1
        end = start
        while end < cells.size and cells[end] == cell:
            end += 1
        for any_label in (False, True):
            for i in range(first, last):
                for j in range(start, end):
                    if (any_label or golden[i] == labels[j]) and free[j] and partner[i] == none:
                        partner[i], free[j] = labels[j], False
        first, start = last, end


def label_recall(
    gold: Trees, predicted: DistinctSpans, has_tree: NDArray[np.bool_], labels: Iterable[str]
) -> dict[str, LabelCount]:
    """Count by label the distinct gold (start, end, label), and those whose span is predicted.

    Spans have two or more words; the whole sentence counts where the gold tree labels it.

    Args:
        gold: the gold trees.
        predicted: spans of the predicted trees of the same sentences.
        has_tree: bool (sentences,), which sentences count.
        labels: labels to count, ``NP`` with or without functions, ``NP-SBJ`` as it is; a label that
            no gold span has counts 0.
    """
    counts = dict.fromkeys(labels, LabelCount())
    if gold.labels is not None:
        counted = np.flatnonzero(has_tree[gold.tree_of] & (gold.ends - gold.starts > 1))
        cells, codes = cells_of(gold)[counted], np.int64(gold.labels[counted])
        cells = 2 * cells + predicted.have(cells)  # odd where a span is found
        for name in counts:
            fits = np.array([name in (label, cut(label)) for label in gold.label_names], bool)
            spans = distinct(cells[fits[codes]])
            counts[name] = LabelCount(spans.size, int((spans & 1).sum()))
    return counts
