"""What F1 is made of, counts that add up; and which label is taken for which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.base.files import described


@dataclass(frozen=True, slots=True)
class LabelCount:
    """Gold spans of one label, and how many of them the prediction has."""

    count: int = 0
    recalled: int = 0

    def __add__(self, other: LabelCount) -> LabelCount:
        """Return the sum of both."""
        return LabelCount(self.count + other.count, self.recalled + other.recalled)

    @property
    def recall(self) -> float | None:
        """Recall in percent; None where there is no such gold span."""
        return 100.0 * self.recalled / self.count if self.count else None


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts over some sentences; ``a + b`` is the counts over both.

    Every count is a number, or an array with an entry for each of several parsers. So are the
    scores, which are percentages: None, in arrays NaN, where nothing was scored.

    Attributes:
        sentences: all of them (that pass the length filter).
        scored: those of two words and more with a tree: they make the corpus F1.
        one_word: those of one word.
        skipped: those that the parser left without a tree.
        fallback: those scored with a right-branching tree in place of the parser's.
        gold, predicted, matched: distinct spans, the whole sentence always among them.
        sentence_f1_sum, sentence_f1_count: sum of the sentences' F1 (of 1), and how many there are.
        labelled_gold, labelled_predicted, labelled_matched: labelled brackets by EVALB's rules; 0
            where the predicted trees have no labels.
        labelled_trees, labelled_exact: trees with labels, and those that have all brackets right.
        tagged_words, tagged_right: words with tags, in trees of two words and more, and those whose
            tag is gold's; 0 where one side has no tag that the other has.
        labels: gold spans and recalled ones by label.
    """

    sentences: Any = 0
    scored: Any = 0
    one_word: Any = 0
    skipped: Any = 0
    fallback: Any = 0
    gold: Any = 0
    predicted: Any = 0
    matched: Any = 0
    sentence_f1_sum: Any = 0.0
    sentence_f1_count: Any = 0
    labelled_gold: Any = 0
    labelled_predicted: Any = 0
    labelled_matched: Any = 0
    labelled_trees: Any = 0
    labelled_exact: Any = 0
    tagged_words: Any = 0
    tagged_right: Any = 0
    labels: dict[str, LabelCount] = field(default_factory=dict)

    def __add__(self, other: Counts) -> Counts:
        """Return the sums of every count."""
        names = [count.name for count in fields(self) if count.name != "labels"]
        total: dict[str, Any] = {n: getattr(self, n) + getattr(other, n) for n in names}
        labels = dict(self.labels)
        for name, count in other.labels.items():
            labels[name] = labels.get(name, LabelCount()) + count
        return Counts(**total, labels=labels)

    @property
    def precision(self) -> Any:
        """Share of predicted spans that are gold, the whole sentence counted."""
        return _percent(self.matched, self.predicted)

    @property
    def recall(self) -> Any:
        """Share of gold spans that are predicted, the whole sentence counted."""
        return _percent(self.matched, self.gold)

    @property
    def corpus_f1(self) -> Any:
        """Micro F1, the whole sentence counted."""
        return _percent(2 * self.matched, self.gold + self.predicted)

    @property
    def corpus_f1_no_root(self) -> Any:
        """Micro F1 without the whole-sentence span, which each scored one has once."""
        matched, gold = self.matched - self.scored, self.gold - self.scored
        return _percent(2 * matched, gold + self.predicted - self.scored)

    @property
    def sentence_f1(self) -> Any:
        """Mean F1 of the sentences, without the whole-sentence span."""
        return _percent(self.sentence_f1_sum, self.sentence_f1_count)

    @property
    def labelled_f1(self) -> Any:
        """Micro F1 of labelled brackets by EVALB's rules."""
        return _percent(2 * self.labelled_matched, self.labelled_gold + self.labelled_predicted)

    @property
    def labelled_exact_match(self) -> Any:
        """Share of the labelled trees that have every bracket of gold and no other."""
        return _percent(self.labelled_exact, self.labelled_trees)

    @property
    def tag_accuracy(self) -> Any:
        """Share of the tagged words that have gold's tag."""
        return _percent(self.tagged_right, self.tagged_words)


def _percent(part: Any, whole: Any) -> Any:
    if isinstance(whole, np.ndarray):
        with np.errstate(invalid="ignore", divide="ignore"):
            return 100.0 * part / whole
    return 100.0 * part / whole if whole else None


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
        raise AttreeError("not-square", problem, file=path, fix=fix)
    return Confusion(tuple(found.labels), np.array(found.counts, np.int64))
