"""The confusion of labels, against loops over spans, and what is scored of tags."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.evaluation.labels import NO_SPAN, OTHERS, UNNAMED, Confusion, label_confusion
from attree.evaluation.metrics import score
from attree.reports.tables.summaries import confusion_table
from attree.trees.parses import Parses
from attree.trees.trees import Trees
from tests.evaluation.reference import labelled_trees

LABELS = ("NP", "VP", "ADVP", "PRT", "TOP", "NP-SBJ")
#: As EVALB takes them: the one that is deleted has none.
CLASSES = {"ADVP": "ADVP", "PRT": "ADVP", "NP-SBJ": "NP", "TOP": None}


def drawn(rng: np.random.Generator, lengths: list[int]) -> tuple[Trees, list[list]]:
    spans, labels = labelled_trees(rng, lengths, LABELS)
    each = [list(zip(*both, strict=True)) for both in zip(spans, labels, strict=True)]
    return Trees.from_spans(lengths, spans, labels), each


def naive(gold: list[list], found: list[list]) -> Counter[tuple[str, str]]:
    """Equal labels of a span stand for each other, then the others in their order."""
    counts: Counter[tuple[str, str]] = Counter()
    for sides in zip(gold, found, strict=True):
        for span in {span for side in sides for span, _ in side}:
            here = [[CLASSES.get(x, x) for s, x in side if s == span] for side in sides]
            left, right = ([label for label in side if label] for side in here)
            for label in list(left):
                if label in right:
                    counts[label, label] += 1
                    left.remove(label)
                    right.remove(label)
            while left or right:
                both = [side.pop(0) if side else NO_SPAN for side in (left, right)]
                counts[both[0], both[1]] += 1
    return counts


@given(st.integers(0, 10_000))
def test_labels_are_paired_as_by_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, 4).tolist()
    (gold, right), (predicted, found) = drawn(rng, lengths), drawn(rng, lengths)
    made, each = label_confusion(gold, predicted)
    cells = {
        (one, other): int(made.counts[row, column])
        for row, one in enumerate(made.headings)
        for column, other in enumerate(made.headings)
        if made.counts[row, column]
    }
    assert cells == naive(right, found)
    for row, one, other in zip(each, right, found, strict=True):
        pairs = naive([one], [other])
        sides = [sum(n for pair, n in pairs.items() if pair[side] != NO_SPAN) for side in (0, 1)]
        assert row.tolist() == [sum(n for (a, b), n in pairs.items() if a == b), *sides]
    both, of_gold, of_predicted = each.sum(0)
    assert np.trace(made.counts) == both
    assert made.counts[:-1].sum() == of_gold and made.counts[:, :-1].sum() == of_predicted
    by_count = made.counts[:-1].sum(1).tolist()
    assert by_count == sorted(by_count, reverse=True)


def test_rare_labels_are_counted_together() -> None:
    counts = [[5, 1, 0, 0], [0, 3, 0, 1], [1, 0, 1, 0], [2, 0, 0, 0]]
    made = Confusion(("A", "B", "C"), np.array(counts))
    assert made.most_frequent(2) is made and made.most_frequent(1).labels == ("A", OTHERS)
    assert made.most_frequent(1).counts.tolist() == [[5, 1, 0], [1, 4, 1], [2, 0, 0]]


def test_predicted_labels_that_the_treebank_lacks_are_named() -> None:
    made = Confusion(("A", "B", ""), np.array([[5, 1, 0, 0], [0, 0, 0, 0], [0] * 4, [0, 2, 1, 0]]))
    assert made.foreign == ["B", UNNAMED]
    assert confusion_table(made, "T").note.endswith("does not have: B, no label.")
    own = Confusion(("A",), np.array([[5, 1], [2, 0]]))
    assert own.foreign == [] and "does not have" not in confusion_table(own, "T").note


def test_tags_are_scored_where_both_sides_have_some() -> None:
    numbers, status = np.arange(3, dtype=np.int32), np.array(["ok", "ok", "skipped"])
    plain = Trees.from_spans([3, 1, 2], [[(0, 3)], [], []])
    gold = Parses.all_ok(numbers, plain.tagged(["D", "N", "V", "N", "D", "N"]))
    found = Parses(numbers, plain.tagged(["D", "N", "N", "X", "D", "N"]), status)
    assert score(gold, found).counts.tag_accuracy == pytest.approx(200 / 3)
    dummies = Parses(numbers, plain.tagged(["X"] * 6), status)
    for other in (dummies, Parses(numbers, plain, status)):
        assert score(gold, other).counts.tag_accuracy is None
