"""The counts that F1 is computed from, and confusions of labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.base.reading import described


@dataclass(frozen=True, slots=True)
class LabelCount:
    """Gold spans of one label, and how many of them the prediction has."""

    count: int = 0
    recalled: int = 0

    def __add__(self, other: LabelCount) -> LabelCount:
        """Add the counts."""
        return LabelCount(self.count + other.count, self.recalled + other.recalled)

    @property
    def recall(self) -> float | None:
        """Recall in percent; None if there is no gold span with the label."""
        return 100.0 * self.recalled / self.count if self.count else None


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts over a set of sentences; ``a + b`` adds the counts of two sets.

    A count is a number, or an array with one entry per parser. So is a score, in percent: None, or
    NaN in an array, where nothing was scored.

    Attributes:
        sentences: sentences that pass the length filter.
        scored: sentences of two or more words with a tree; corpus F1 is computed from them.
        one_word: sentences of one word.
        skipped: sentences that the parser gave no tree.
        fallback: sentences scored with a right-branching tree instead of the parser's.
        gold, predicted, matched: distinct spans, the whole sentence always among them.
        sentence_f1_sum, sentence_f1_count: sum of the sentences' F1 (0 to 1), and their number.
        labelled_gold, labelled_predicted, labelled_matched: labelled brackets by EVALB's rules; 0
            where the predicted trees have no labels.
        labelled_trees, labelled_exact: trees with labels, and those with all brackets right.
        tagged_words, tagged_right: words with tags in trees of two or more words, and those with
            the gold tag; 0 where the two sides share no tag.
        headed, phrases, found, subtrees: counts of
            :func:`attree.evaluation.dependencies.phrases_and_subtrees`; 0 where heads of words are
            not known.
        labels: gold and recalled spans by label.
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
    headed: Any = 0
    phrases: Any = 0
    found: Any = 0
    subtrees: Any = 0
    labels: dict[str, LabelCount] = field(default_factory=dict)

    def __add__(self, other: Counts) -> Counts:
        """Add every count."""
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
        """Micro F1 without the whole-sentence span, which every scored sentence has once."""
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
        """Share of the labelled trees whose brackets are exactly the gold ones."""
        return _percent(self.labelled_exact, self.labelled_trees)

    @property
    def tag_accuracy(self) -> Any:
        """Share of the tagged words that have the gold tag."""
        return _percent(self.tagged_right, self.tagged_words)

    @property
    def headed_precision(self) -> Any:
        """Share of predicted phrases with exactly one word whose head lies outside."""
        return _percent(self.headed, self.phrases)

    @property
    def subtree_recall(self) -> Any:
        """Share of the projective subtrees of dependency trees that are predicted phrases."""
        return _percent(self.found, self.subtrees)


def _percent(part: Any, whole: Any) -> Any:
    if isinstance(whole, np.ndarray):
        with np.errstate(invalid="ignore", divide="ignore"):
            return 100.0 * part / whole
    return 100.0 * part / whole if whole else None


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
    counts: NDArray[np.int64]

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


class _Described(msgspec.Struct):
    labels: list[str]
    counts: list[list[int]]


def confusion_of(summary: Mapping[str, Any], path: Path) -> Confusion | None:
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
