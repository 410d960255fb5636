"""Which label is taken for which: labels of gold spans against those of predicted ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.base.files import described

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

    @property
    def foreign(self) -> list[str]:
        """The predicted labels that no gold tree has, by name."""
        of_gold = self.counts[:-1].sum(1).tolist()
        return sorted(self.headings[place] for place, count in enumerate(of_gold) if not count)

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
