"""Which label is taken for which: labels of gold spans against those of predicted ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from attree.errors import AttreeError
from attree.files import described
from attree.trees import Trees

#: Spans of all trees, and their labels, as numbers.
_Side = tuple[NDArray[np.int64], NDArray[np.int64]]

#: What the row and the column of spans that the other side lacks are called, of rare labels, and of
#: phrases without a label.
NO_SPAN, OTHERS, UNNAMED = "no span", "others", "no label"


@dataclass(frozen=True, slots=True)
class Confusion:
    """Labels of spans in gold and predicted trees.

    Attributes:
        labels: by how often gold trees have them, the most frequent one first.
        counts: int64 (labels + 1, labels + 1), gold by predicted; the last row has predicted
            labels of no gold span, the last column gold labels of no predicted one.
    """

    labels: tuple[str, ...]
    counts: NDArray[np.int64]

    def describe(self) -> dict[str, Any]:
        """Return it as JSON, as :func:`confusion_of` reads it."""
        return {"labels": list(self.labels), "counts": self.counts.tolist()}

    @property
    def headings(self) -> list[str]:
        """The names of rows and columns."""
        return [*(label or UNNAMED for label in self.labels), NO_SPAN]

    def most_frequent(self, count: int) -> Confusion:
        """Return the same with all but so many labels counted as others."""
        if len(self.labels) <= count + 1:
            return self
        place = np.minimum(np.arange(len(self.labels) + 1), count)
        place[-1] = count + 1
        counts = np.zeros((count + 2, count + 2), np.int64)
        np.add.at(counts, (place[:, None], place[None, :]), self.counts)
        return Confusion((*self.labels[:count], OTHERS), counts)


#: Of trees that share no label.
NOTHING = Confusion((), np.zeros((1, 1), np.int64))


class _Described(msgspec.Struct):
    labels: list[str]
    counts: list[list[int]]


def confusion_of(summary: Mapping[str, Any], path: Path) -> Confusion | None:
    """Return the confusion of labels that a summary of scores describes, if it has one.

    Raises:
        AttreeError: it is described wrongly.
    """
    what, fix = "confusion of labels", "run `attree score` again"
    about: Any = _Described | None
    found = described(summary.get("label_confusion"), about, file=path, what=what, fix=fix)
    if found is None:
        return None
    side = len(found.labels) + 1
    if [len(row) for row in found.counts] != [side] * side:
        problem = f"this {what} has no row and column for each label"
        raise AttreeError(problem, file=path, fix=fix)
    return Confusion(tuple(found.labels), np.array(found.counts, np.int64))


def label_confusion(gold: Trees, predicted: Trees) -> Confusion:
    """Count which labels equal spans have.

    Labels are EVALB's: those that it deletes do not count, and equal ones are one. Of a unary chain
    labels that both sides have stand for each other, then the others from the top. The diagonal
    sums to the labelled brackets that match.

    Args:
        gold, predicted: trees of the same sentences, with labels.
    """
    from attree.evaluation.evalb import label_classes  # compiled loops, which tables do without

    known: dict[str, int] = {}
    right, found = (_spans(trees, label_classes(trees, known)) for trees in (gold, predicted))
    counts = np.zeros((len(known) + 1, len(known) + 1), np.int64)
    for keys in (lambda span, label: span * len(known) + label, lambda span, _: span):
        right, found = _paired(right, found, keys, counts)
    np.add.at(counts[:, -1], right[1], 1)
    np.add.at(counts[-1], found[1], 1)
    order = np.argsort(-counts[:-1].sum(1), kind="stable")
    names, every = list(known), np.append(order, len(order))
    return Confusion(tuple(names[place] for place in order), counts[np.ix_(every, every)])


def _spans(trees: Trees, labels: NDArray[np.int64]) -> _Side:
    """Return a number for each span that counts, equal for equal ones, and its label."""
    side = int(trees.n_words.max(initial=0)) + 1
    place = (trees.tree_of * side + trees.starts) * side + trees.ends
    return place[labels >= 0], labels[labels >= 0]


def _paired(
    right: _Side, found: _Side, key: Callable[..., NDArray[np.int64]], counts: NDArray[np.int64]
) -> tuple[_Side, _Side]:
    """Count pairs of one key, each span once and in order; return the spans that are left over."""
    keys = [key(*side) for side in (right, found)]
    times = [_times_before(one) for one in keys]
    most = 1 + max(one.max(initial=0) for one in times)
    left, down = (one * most + before for one, before in zip(keys, times, strict=True))
    _, one, other = np.intersect1d(left, down, assume_unique=True, return_indices=True)
    np.add.at(counts, (right[1][one], found[1][other]), 1)
    return (
        (np.delete(right[0], one), np.delete(right[1], one)),
        (np.delete(found[0], other), np.delete(found[1], other)),
    )


def _times_before(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how often each key has come before."""
    order = np.argsort(keys, kind="stable")
    place = np.arange(keys.size)
    first = np.append(True, np.diff(keys[order]) != 0)[: keys.size]
    before = np.empty_like(place)
    before[order] = place - np.maximum.accumulate(np.where(first, place, 0))
    return before
