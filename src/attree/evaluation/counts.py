"""What F1 is made of: counts that add up over shards."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class LabelCount:
    """Gold spans of one label, and how many of them the prediction has."""

    count: int = 0
    recalled: int = 0

    def __add__(self, other: LabelCount) -> LabelCount:
        """Add up both."""
        return LabelCount(self.count + other.count, self.recalled + other.recalled)

    @property
    def recall(self) -> float | None:
        """Recall in percent; None where there is no such gold span."""
        return 100.0 * self.recalled / self.count if self.count else None


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts over some sentences; ``a + b`` is the counts over both.

    Attributes:
        sentences: all of them (that pass the length filter).
        scored: those of two words and more with a tree: they make the corpus F1.
        one_word: those of one word.
        skipped: those that the parser left without a tree.
        fallback: those scored with a right-branching tree in place of the parser's.
        gold, predicted, matched: distinct spans, the whole sentence always among them.
        sentence_f1_sum, sentence_f1_count: sum of the sentences' F1 (of 1), and how many there are.
        labels: gold spans and recalled ones by label.
    """

    sentences: int = 0
    scored: int = 0
    one_word: int = 0
    skipped: int = 0
    fallback: int = 0
    gold: int = 0
    predicted: int = 0
    matched: int = 0
    sentence_f1_sum: float = 0.0
    sentence_f1_count: int = 0
    labels: dict[str, LabelCount] = field(default_factory=dict)

    def __add__(self, other: Counts) -> Counts:
        """Add up every count."""
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
    def precision(self) -> float | None:
        """Share of predicted spans that are gold, in percent, the whole sentence counted."""
        return _percent(self.matched, self.predicted)

    @property
    def recall(self) -> float | None:
        """Share of gold spans that are predicted, in percent, the whole sentence counted."""
        return _percent(self.matched, self.gold)

    @property
    def corpus_f1(self) -> float | None:
        """Micro F1 in percent, the whole sentence counted; None where nothing was scored."""
        return _percent(2 * self.matched, self.gold + self.predicted)

    @property
    def corpus_f1_no_root(self) -> float | None:
        """Micro F1 in percent without the whole-sentence span, which each scored one has once."""
        matched, gold = self.matched - self.scored, self.gold - self.scored
        return _percent(2 * matched, gold + self.predicted - self.scored)

    @property
    def sentence_f1(self) -> float | None:
        """Mean F1 of the sentences in percent, without the whole-sentence span."""
        return _percent(self.sentence_f1_sum, self.sentence_f1_count)


def _percent(part: float, whole: float) -> float | None:
    return 100.0 * part / whole if whole else None
