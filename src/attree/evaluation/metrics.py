"""Corpus F1, sentence F1 and label recall of predicted trees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.base.registry import check_name
from attree.evaluation import DEFAULT_LABELS, PROFILES
from attree.evaluation.counts import Confusion, Counts
from attree.evaluation.dependencies import PUNCTUATION, phrases_and_subtrees
from attree.evaluation.labels import label_confusion, label_recall
from attree.evaluation.spans import DistinctSpans, distinct_spans, first_crossing, matched
from attree.trees import FALLBACK, SKIPPED
from attree.trees.tree import NO_LABEL
from attree.trees.trees import Trees

if TYPE_CHECKING:
    from attree.trees.parses import Parses

_PRPN_EPSILON = 1e-8


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of each sentence, and their counts.

    Attributes:
        sentence, n_words, status: as in the parses.
        gold, predicted, matched: int64, distinct spans with the whole sentence; 0 where not scored.
        sentence_f1: float64, of 1; NaN where the sentence does not count.
        counts: the sums.
        confusion: gold and predicted labels of equal spans; None where no label is shared.
        labelled: int64 (sentences, 3), labelled brackets in both, in gold, in predicted, 0 where
            not scored; None where there is no confusion.
        headed: int64 (sentences, 4), counts of
            :func:`attree.evaluation.dependencies.phrases_and_subtrees`, 0 where not scored; None
            where heads of words are not known.
    """

    sentence: NDArray[np.int32]
    n_words: NDArray[np.int64]
    status: NDArray[np.str_]
    gold: NDArray[np.int64]
    predicted: NDArray[np.int64]
    matched: NDArray[np.int64]
    sentence_f1: NDArray[np.float64]
    counts: Counts
    confusion: Confusion | None
    labelled: NDArray[np.int64] | None = None
    headed: NDArray[np.int64] | None = None


def sentence_f1(
    gold: NDArray[np.int64],
    predicted: NDArray[np.int64],
    shared: NDArray[np.int64],
    *,
    profile: str = "default",
) -> NDArray[np.float64]:
    """Return each sentence's F1 (0 to 1) without the whole sentence, which the counts include.

    If neither tree has another span, F1 is 1 (as in every sentence of two words); if only one has,
    it is 0. A count of 0 means a sentence of one word: F1 is NaN, or 1 in the ``prpn`` profile,
    which adds PRPN's 1e-8 to every denominator.
    """
    check_name(profile, PROFILES, f"unknown profile {profile!r}")
    one_word = gold == 0
    g, p, m = (np.maximum(count - 1, 0) for count in (gold, predicted, shared))
    if profile == "prpn":
        precision = np.where((g == 0) & (p == 0), 1.0, m / (p + _PRPN_EPSILON))
        recall = np.where(g == 0, 1.0, m / (g + _PRPN_EPSILON))
        return 2.0 * precision * recall / (precision + recall + _PRPN_EPSILON)
    f1 = np.where(g + p == 0, 1.0, 2.0 * m / np.maximum(g + p, 1))
    return np.where(one_word, np.nan, f1)


def gold_spans(gold: Parses) -> DistinctSpans:
    """Return the distinct spans of gold trees, to be compared with many predictions."""
    return distinct_spans(gold.trees, sentences=gold.sentence, what="the gold tree")


def count_each(gold: DistinctSpans, predicted: Trees, trees_each: int = 1) -> Counts:
    """Score several parsers against the same gold trees at once, such as all heads of an encoder.

    Args:
        gold: from :func:`gold_spans`.
        predicted: ordered by sentence, then parser, as :func:`attree.decoding.batch.decode` returns
            them with ``trees_each`` matrices a sentence.
        trees_each: the number of parsers.

    Returns:
        the counts of unlabelled F1, arrays with one entry per parser.
    """
    predicted_spans = distinct_spans(predicted, what="the predicted tree")
    shape = (-1, trees_each)
    shared = matched(gold, predicted_spans, trees_each).reshape(shape)
    predicted_counts = predicted_spans.counts.reshape(shape)
    gold_counts = np.repeat(gold.counts, trees_each).reshape(shape)
    f1 = sentence_f1(gold_counts, predicted_counts, shared)
    counted = ~np.isnan(f1)
    return Counts(
        sentences=np.full(trees_each, gold.n_words.size),
        scored=counted.sum(axis=0),
        gold=gold_counts.sum(axis=0),
        predicted=predicted_counts.sum(axis=0),
        matched=shared.sum(axis=0),
        sentence_f1_sum=np.where(counted, f1, 0.0).sum(axis=0),
        sentence_f1_count=counted.sum(axis=0),
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
        gold: the gold trees of every sentence; where they were made of dependencies, phrases are
            compared with these, and F1 is not computed.
        parses: predicted trees of the same sentences; ``skipped`` ones are counted, not scored.
        profile: ``default`` or ``prpn`` (see :data:`attree.evaluation.PROFILES`).
        labels: labels whose recall is computed.
        max_words: score only sentences of at most this many words.

    Raises:
        AttreeError: gold and parses differ in their sentences or words, or a span reaches outside
            its sentence. No sentence is ever dropped.
    """
    check_same_sentences(gold, parses)
    if max_words is not None:
        rows = np.flatnonzero(gold.n_words <= max_words)
        gold, parses = gold.take(rows), parses.take(rows)
    predicted = distinct_spans(parses.trees, sentences=parses.sentence, what="the parse")
    if gold.trees.heads is not None:
        return _score_headed(gold, parses)
    in_gold = gold_spans(gold)
    has_tree = (parses.status != SKIPPED) & (parses.n_words > 1)
    gold_count, predicted_count, shared = (
        np.where(has_tree, count, 0)
        for count in (in_gold.counts, predicted.counts, matched(in_gold, predicted))
    )
    f1 = sentence_f1(gold_count, predicted_count, shared, profile=profile)
    f1[parses.status == SKIPPED] = np.nan
    recalls = label_recall(gold.trees, predicted, has_tree, labels)
    labelled, confusion, brackets = _labelled(gold, parses)
    counts = _sum_counts(parses, gold_count, predicted_count, shared, f1)
    return Scored(
        parses.sentence,
        parses.n_words,
        parses.status,
        gold_count,
        predicted_count,
        shared,
        f1,
        replace(counts, labels=recalls, **labelled, **_tagged(gold, parses)),
        confusion,
        brackets,
    )


def _score_headed(gold: Parses, parses: Parses) -> Scored:
    """Score parses against dependency trees."""
    none, heads = np.zeros(len(gold), np.int64), gold.trees.heads
    assert heads is not None
    tags = np.array(gold.trees.tag_of_each() or [""] * heads.size)
    rows = phrases_and_subtrees(parses.trees, heads, tags == PUNCTUATION)
    unknown = np.bincount(np.repeat(np.arange(len(gold)), gold.n_words), heads < -1, len(gold)) > 0
    rows[(parses.status == SKIPPED) | unknown] = 0
    f1 = np.full(len(gold), np.nan)
    names = ("headed", "phrases", "found", "subtrees")
    scored = int((rows[:, 1:].sum(axis=1) > 0).sum())
    counts = replace(
        _sum_counts(parses, none, none, none, f1),
        scored=scored,
        **dict(zip(names, rows.sum(axis=0).tolist(), strict=True)),
    )
    return Scored(
        *(parses.sentence, parses.n_words, parses.status, none, none, none, f1, counts, None),
        headed=rows,
    )


def _labelled(
    gold: Parses, parses: Parses
) -> tuple[dict[str, int], Confusion | None, NDArray[np.int64] | None]:
    """Count labelled brackets; return no counts where the two sides share no label."""
    trees = gold.trees, parses.trees
    if not _shared(*((side.labels, side.label_names) for side in trees)):
        return {}, None, None
    parsed = np.flatnonzero(parses.status != SKIPPED)
    if parsed.size < len(gold.trees):
        trees = gold.trees.take(parsed), parses.trees.take(parsed)
    confusion, rows = label_confusion(*trees)
    matched, in_gold, predicted = rows.sum(axis=0).tolist()
    exact = (rows == rows[:, :1]).all(axis=1)
    counts = {
        "labelled_gold": in_gold,
        "labelled_predicted": predicted,
        "labelled_matched": matched,
        "labelled_trees": int(parsed.size),
        "labelled_exact": int(exact.sum()),
    }
    tree_counts = np.zeros((len(parses), 3), np.int64)
    tree_counts[parsed] = rows
    return counts, confusion, tree_counts


def _tagged(gold: Parses, parses: Parses) -> dict[str, int]:
    """Count words and right tags; return no counts where the two sides share no tag."""
    trees = gold.trees, parses.trees
    if not _shared(*((side.tags, side.tag_names) for side in trees)):
        return {}
    parsed = np.repeat((parses.status != SKIPPED) & (parses.n_words > 1), parses.n_words)
    gold_tags, tags = (np.array(side.tag_of_each())[parsed] for side in trees)
    return {"tagged_words": gold_tags.size, "tagged_right": int((gold_tags == tags).sum())}


def _shared(*sides: tuple[NDArray[np.int32] | None, tuple[str, ...]]) -> set[str]:
    """Return the names that all sides use, except dummies."""
    used_names = []
    for codes, names in sides:
        used_codes = () if codes is None else np.flatnonzero(np.bincount(codes))
        used_names.append({names[code] for code in used_codes} - {NO_LABEL})
    return set.intersection(*used_names)


def upper_bound(
    gold: Parses,
    *,
    profile: str = "default",
    labels: Iterable[str] = DEFAULT_LABELS,
    max_words: int | None = None,
) -> Counts:
    """Return the counts of binary trees with every gold span, the best that binary trees can do.

    Raises:
        AttreeError: the spans of a gold tree cross, so that no tree has them all.
    """
    if max_words is not None:
        gold = gold.take(np.flatnonzero(gold.n_words <= max_words))
    if gold.trees.heads is not None:
        return Counts(sentences=len(gold))
    spans = gold_spans(gold)
    if (crossing := first_crossing(spans)) >= 0:
        raise AttreeError(
            "crossing-spans",
            f"the spans of the gold tree of sentence {gold.sentence[crossing]} cross",
            fix="read the treebank with a format that makes its trees continuous",
        )
    binary = np.maximum(gold.n_words - 1, 0)
    f1 = sentence_f1(spans.counts, binary, spans.counts, profile=profile)
    counts = _sum_counts(gold, spans.counts, binary, spans.counts, f1)
    return replace(counts, labels=label_recall(gold.trees, spans, gold.n_words > 1, labels))


def _sum_counts(
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


def check_same_sentences(gold: Parses, parses: Parses) -> None:
    """Check that both have the same sentences, each once and with the same number of words.

    Raises:
        AttreeError: they do not; the message names the first sentence at fault.
    """
    fix = "score the parses with the sentence table they were made from"
    same = np.array_equal(gold.sentence, parses.sentence)
    sides = () if same else ((gold, parses, "parses"), (parses, gold, "gold trees"))
    for parts, others, name in sides:
        missing = np.setdiff1d(parts.sentence, others.sentence)
        if missing.size:
            more = f" (nor have {missing.size - 1} others)" if missing.size > 1 else ""
            problem = f"sentence {missing[0]} has no row among the {name}{more}"
            raise AttreeError("other-sentences", problem, fix=fix)
    if gold.sentence.size != parses.sentence.size:
        sentences = np.concatenate([gold.sentence, parses.sentence])
        numbers, times = np.unique(sentences, return_counts=True)
        problem = f"sentence {numbers[times > 2][0]} has more than one row"
        raise AttreeError("sentence-twice", problem)
    unequal = np.flatnonzero(gold.n_words != parses.n_words)
    if unequal.size:
        row = unequal[0]
        words = f"{gold.n_words[row]} words in the gold tree and {parses.n_words[row]} in the parse"
        problem = f"sentence {gold.sentence[row]} has {words}"
        raise AttreeError("other-sentences", problem, fix=fix)
