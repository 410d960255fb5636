"""Corpus F1, sentence F1 and label recall of predicted trees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attree.errors import AttreeError
from attree.evaluation import DEFAULT_LABELS, PROFILES
from attree.evaluation.counts import Counts
from attree.evaluation.labels import label_recall
from attree.evaluation.pairing import check_same_sentences
from attree.evaluation.spans import DistinctSpans, distinct_spans, first_crossing, matched
from attree.parses import Parses
from attree.schemas import FALLBACK, SKIPPED
from attree.trees import Trees

_PRPN_EPSILON = 1e-8


class F1(NamedTuple):
    """Percentages, one for each of several parsers; NaN where nothing can be scored."""

    corpus_f1: NDArray[np.float64]
    corpus_f1_no_root: NDArray[np.float64]
    sentence_f1: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tally:
    """What the F1 of several parsers is made of, one entry a parser; tallies add up.

    Attributes:
        shared, spans: spans in both trees, and in either (twice where in both), roots included.
        trees: trees that count: those of two words and more.
        sentence_f1: the sum of their sentence F1 (of 1).
    """

    shared: NDArray[np.int64]
    spans: NDArray[np.int64]
    trees: NDArray[np.int64]
    sentence_f1: NDArray[np.float64]

    def __add__(self, other: Tally) -> Tally:
        """Add up all of it."""
        return Tally(
            self.shared + other.shared,
            self.spans + other.spans,
            self.trees + other.trees,
            self.sentence_f1 + other.sentence_f1,
        )

    def f1(self) -> F1:
        """Return the three F1 in percent."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return F1(
                100.0 * 2 * self.shared / self.spans,
                100.0 * 2 * (self.shared - self.trees) / (self.spans - 2 * self.trees),
                100.0 * self.sentence_f1 / self.trees,
            )


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of each sentence, and their counts.

    Attributes:
        sentence, n_words, status: as in the parses.
        gold, predicted, matched: int64, distinct spans with the whole sentence; 0 where not scored.
        sentence_f1: float64, of 1; NaN where the sentence does not count.
        counts: the sums.
    """

    sentence: NDArray[np.int32]
    n_words: NDArray[np.int64]
    status: NDArray[np.str_]
    gold: NDArray[np.int64]
    predicted: NDArray[np.int64]
    matched: NDArray[np.int64]
    sentence_f1: NDArray[np.float64]
    counts: Counts


def sentence_f1(
    gold: NDArray[np.int64],
    predicted: NDArray[np.int64],
    shared: NDArray[np.int64],
    *,
    profile: str = "default",
) -> NDArray[np.float64]:
    """Return each sentence's F1 (of 1) from its counts *with* the whole sentence, left out here.

    Nothing but the whole sentence on both sides scores 1 (so does every sentence of two words), on
    one side alone 0. Counts of 0 are sentences of one word: NaN, or 1 in the ``prpn`` profile,
    which adds PRPN's 1e-8 to every denominator.
    """
    if profile not in PROFILES:
        raise AttreeError(
            f"unknown profile {profile!r}", fix=f"choose one of {', '.join(PROFILES)}"
        )
    one_word = gold == 0
    g, p, m = (np.maximum(count - 1, 0) for count in (gold, predicted, shared))
    if profile == "prpn":
        precision = np.where((g == 0) & (p == 0), 1.0, m / (p + _PRPN_EPSILON))
        recall = np.where(g == 0, 1.0, m / (g + _PRPN_EPSILON))
        return 2.0 * precision * recall / (precision + recall + _PRPN_EPSILON)
    f1 = np.where(g + p == 0, 1.0, 2.0 * m / np.maximum(g + p, 1))
    return np.where(one_word, np.nan, f1)


def gold_spans(gold: Parses) -> DistinctSpans:
    """Return the distinct spans of gold trees, once for many predictions against them."""
    return distinct_spans(gold.trees, sentences=gold.sentence, what="the gold tree")


def f1_of_each(gold: DistinctSpans, predicted: Trees, trees_each: int = 1) -> F1:
    """Score several parsers against the same gold trees at once (every head of an encoder).

    Args:
        gold: from :func:`gold_spans`.
        predicted: ordered by sentence, then parser, as :func:`attree.decoding.batch.decode` returns
            them with ``trees_each`` matrices a sentence.
        trees_each: the number of parsers.

    Returns:
        the three F1 in percent, one of each a parser.
    """
    return tally_each(gold, predicted, trees_each).f1()


def tally_each(gold: DistinctSpans, predicted: Trees, trees_each: int = 1) -> Tally:
    """Count for :func:`f1_of_each`; the tallies of parts of the sentences add up."""
    guesses = distinct_spans(predicted, what="the predicted tree")
    shape = (-1, trees_each)
    shared = matched(gold, guesses, trees_each).reshape(shape)
    guessed = guesses.counts.reshape(shape)
    right = np.repeat(gold.counts, trees_each).reshape(shape)
    each = sentence_f1(right, guessed, shared)
    counted = ~np.isnan(each)
    return Tally(
        shared=shared.sum(axis=0),
        spans=(right + guessed).sum(axis=0),
        trees=counted.sum(axis=0),
        sentence_f1=np.where(counted, each, 0.0).sum(axis=0),
    )


def score(
    gold: Parses,
    parses: Parses,
    *,
    profile: str = "default",
    labels: Iterable[str] = DEFAULT_LABELS,
    max_words: int | None = None,
) -> Scored:
    """Score parses against gold trees.

    Args:
        gold: the gold trees of every sentence.
        parses: the predicted ones of the same sentences; ``skipped`` ones are counted, not scored.
        profile: ``default`` or ``prpn`` (see :data:`attree.evaluation.PROFILES`).
        labels: the labels whose recall is wanted.
        max_words: score only sentences of at most so many words.

    Raises:
        AttreeError: a sentence is in one of them only or has other words in it, or a span reaches
            outside its sentence. No sentence is ever dropped.
    """
    check_same_sentences(gold, parses)
    if max_words is not None:
        rows = np.flatnonzero(gold.n_words <= max_words)
        gold, parses = gold.take(rows), parses.take(rows)
    right = gold_spans(gold)
    guessed = distinct_spans(parses.trees, sentences=parses.sentence, what="the parse")
    has_tree = (parses.status != SKIPPED) & (parses.n_words > 1)
    gold_count, predicted_count, shared = (
        np.where(has_tree, count, 0)
        for count in (right.counts, guessed.counts, matched(right, guessed))
    )
    each = sentence_f1(gold_count, predicted_count, shared, profile=profile)
    each[parses.status == SKIPPED] = np.nan
    counts = _summed(parses, gold_count, predicted_count, shared, each)
    recalls = label_recall(gold.trees, guessed, has_tree, labels)
    return Scored(
        parses.sentence,
        parses.n_words,
        parses.status,
        gold_count,
        predicted_count,
        shared,
        each,
        replace(counts, labels=recalls),
    )


def upper_bound(
    gold: Parses,
    *,
    profile: str = "default",
    labels: Iterable[str] = DEFAULT_LABELS,
    max_words: int | None = None,
) -> Counts:
    """Return the counts of binary trees that hold every gold span: no binary tree does better.

    Raises:
        AttreeError: the spans of a gold tree cross, so that no tree holds them.
    """
    if max_words is not None:
        gold = gold.take(np.flatnonzero(gold.n_words <= max_words))
    right = gold_spans(gold)
    crossing = first_crossing(right)
    if crossing >= 0:
        raise AttreeError(
            f"the spans of the gold tree of sentence {gold.sentence[crossing]} cross",
            fix="read the treebank with a format that makes its trees continuous",
        )
    binary = np.maximum(gold.n_words - 1, 0)
    each = sentence_f1(right.counts, binary, right.counts, profile=profile)
    counts = _summed(gold, right.counts, binary, right.counts, each)
    return replace(counts, labels=label_recall(gold.trees, right, gold.n_words > 1, labels))


def _summed(
    parses: Parses,
    gold: NDArray[np.int64],
    predicted: NDArray[np.int64],
    shared: NDArray[np.int64],
    sentence_f1: NDArray[np.float64],
) -> Counts:
    counted = ~np.isnan(sentence_f1)
    return Counts(
        sentences=parses.n_words.size,
        scored=int((gold > 0).sum()),
        one_word=int((parses.n_words == 1).sum()),
        skipped=int((parses.status == SKIPPED).sum()),
        fallback=int(((gold > 0) & (parses.status == FALLBACK)).sum()),
        gold=int(gold.sum()),
        predicted=int(predicted.sum()),
        matched=int(shared.sum()),
        sentence_f1_sum=float(sentence_f1[counted].sum()),
        sentence_f1_count=int(counted.sum()),
    )
