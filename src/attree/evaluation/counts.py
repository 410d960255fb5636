"""What F1 is made of: counts that add up, of one parser or of many at once."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np


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
        total: dict[str, Any] = {
            each.name: getattr(self, each.name) + getattr(other, each.name)
            for each in fields(self)
            if each.name != "labels"
        }
        names = dict.fromkeys([*self.labels, *other.labels])
        none = LabelCount()
        labels = {n: self.labels.get(n, none) + other.labels.get(n, none) for n in names}
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
