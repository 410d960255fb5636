"""Corpus F1, sentence F1 and label recall of predicted trees; phrases against dependency trees.

Headed precision and recall of subtrees compare phrases with dependency trees. Neither depends on
the style of a constituency treebank. *Headed precision* is the share of predicted phrases that have
exactly one word whose head lies outside. *Recall of subtrees* is the share of projective subtrees,
a word with all that depends on it, that are predicted phrases. Spans count without punctuation at
their edges, if two words or more are left that are not the sentence.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.evaluation import DEFAULT_LABELS, METRICS
from attree.evaluation.labels import Confusion, LabelCount, label_confusion, label_recall
from attree.evaluation.spans import DistinctSpans, distinct_spans, matched
from attree.trees import FALLBACK, SKIPPED
from attree.trees.constraints import find_crossing
from attree.trees.tree import NO_LABEL
from attree.trees.trees import Trees

if TYPE_CHECKING:
    from attree.trees.parses import Parses

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


#: Tag of punctuation in Universal Dependencies.
PUNCTUATION = "PUNCT"


def phrases_and_subtrees(
    trees: Trees, heads: NDArray[np.int32], punctuation: NDArray[np.bool_]
) -> _Ints:
    """Count the phrases with one head, and the subtrees that are phrases, of each sentence.

    Args:
        trees: the predicted trees; of equal phrases one counts.
        heads: (words,), the heads of all words, from 0 in each sentence, -1 for a root; without
            cycles.
        punctuation: (words,), which words are punctuation: cut from the edges of phrases, and not
            counted inside them.

    Returns:
        (sentences, 4): phrases with exactly one word whose head lies outside, phrases, subtrees
        among the phrases, subtrees.
    """
    first = trees.word_offsets
    words, count = int(first[-1]), len(trees)
    sentence = np.repeat(np.arange(count), trees.n_words)
    above = np.where(heads < 0, -1, heads + first[sentence]).astype(np.int64)
    # the next word that is no punctuation, and the end of the last such word
    place = np.arange(words)
    ahead = np.append(np.where(punctuation, words, place), words)
    ahead = np.minimum.accumulate(ahead[::-1])[::-1]
    behind = np.maximum.accumulate(np.append(0, np.where(punctuation, 0, place + 1)))
    whole = ahead[first[:-1]] * (words + 1) + behind[first[1:]]

    def keys(starts: _Ints, ends: _Ints) -> _Ints:
        starts, ends = ahead[starts], behind[ends]
        numbers = (starts * (words + 1) + ends)[ends - starts > 1]
        return numbers[~np.isin(numbers, whole)]

    base = first[trees.tree_of]
    phrases = np.unique(keys(trees.starts + base, trees.ends + base))
    subtrees = keys(*_subtrees(above))
    headed = phrases[_leaving(phrases, above, punctuation) == 1]
    columns = [
        np.bincount(sentence[numbers // (words + 1)], minlength=count)
        for numbers in (headed, phrases, subtrees[np.isin(subtrees, phrases)], subtrees)
    ]
    return np.stack(columns, axis=1)


def _leaving(keys: _Ints, above: _Ints, punctuation: NDArray[np.bool_]) -> _Ints:
    """Count the words of each span whose heads lie outside."""
    starts, ends = np.divmod(keys, len(above) + 1)
    lengths = ends - starts
    span = np.repeat(np.arange(keys.size), lengths)
    word = np.arange(span.size) - np.repeat(np.cumsum(lengths) - lengths - starts, lengths)
    outside = (above[word] < starts[span]) | (above[word] >= ends[span])
    return np.bincount(span[outside & ~punctuation[word]], minlength=keys.size)


def _subtrees(above: _Ints) -> tuple[_Ints, _Ints]:
    """Return the starts and ends of the subtrees that are spans."""
    place = np.arange(above.size)
    low, high, size = place.copy(), place.copy(), np.ones_like(place)
    ancestor = above.copy()
    while (below := np.flatnonzero(ancestor >= 0)).size:
        at = ancestor[below]
        np.minimum.at(low, at, below)
        np.maximum.at(high, at, below)
        size += np.bincount(at, minlength=size.size)
        ancestor[below] = above[at]
    spans = size == high + 1 - low
    return low[spans], high[spans] + 1


#: The counts that `attree score` writes of each sentence, of which intervals and p values of the
#: workflow's tables are made.
WRITTEN = ("gold", "predicted", "matched")

#: Counts of gold trees alone: they stay what they are where nothing is predicted.
_OF_GOLD = (
    "gold",
    "sentence_f1_count",
    "labelled_gold",
    "labelled_trees",
    "tagged_words",
    "subtrees",
)


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts that scores are computed from; ``a + b`` adds the counts of two sets of sentences.

    A count is a number, or an array with an entry per parser or per sentence. So is a score, which
    is an attribute named as in :data:`attree.evaluation.METRICS`, in percent: None, or NaN in an
    array, where nothing was scored.

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
            :func:`phrases_and_subtrees`; 0 where heads of words are
            not known.
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

    def by_name(self) -> dict[str, Any]:
        """Return the counts by name."""
        return {count.name: getattr(self, count.name) for count in fields(self)}

    def __add__(self, other: Counts) -> Counts:
        """Add every count."""
        more = other.by_name()
        return Counts(**{name: count + more[name] for name, count in self.by_name().items()})

    def __getattr__(self, metric: str) -> Any:
        """Compute a score in percent."""
        if metric not in METRICS:
            raise AttributeError(metric)
        part, whole = METRICS[metric].parts(self)
        if isinstance(whole, np.ndarray):
            with np.errstate(invalid="ignore", divide="ignore"):
                return 100.0 * part / whole
        return 100.0 * part / whole if whole else None

    def all_missed(self) -> Counts:
        """Return, of gold trees scored against themselves, the counts with nothing predicted."""
        return Counts(**{name: getattr(self, name) for name in _OF_GOLD})

    def sum(self) -> Counts:
        """Add up the sentences, the first axis of the counts."""
        sums = {name: np.sum(count, axis=0) for name, count in self.by_name().items()}
        return Counts(**{n: x if x.ndim else x.item() for n, x in sums.items()})


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of a parser's trees of some sentences.

    Attributes:
        sentence, n_words, status: as in the parses.
        each: counts of each sentence; 0 where it is not scored.
        labels: gold and recalled spans by label, of all sentences.
        confusion: gold and predicted labels of equal spans; None where no label is shared.
    """

    sentence: NDArray[np.int32]
    n_words: _Ints
    status: NDArray[np.str_]
    each: Counts
    labels: Mapping[str, LabelCount] = field(default_factory=dict)
    confusion: Confusion | None = None

    @property
    def sentence_f1(self) -> _Floats:
        """F1 of each sentence (0 to 1), NaN where it does not count."""
        return np.where(self.each.sentence_f1_count, self.each.sentence_f1_sum, np.nan)

    @property
    def counts(self) -> Counts:
        """The sums over the sentences."""
        f1 = self.each.sentence_f1_sum[self.each.sentence_f1_count]
        return replace(self.each.sum(), sentence_f1_sum=float(f1.sum()))

    def take(self, chosen: NDArray[np.bool_]) -> Scored:
        """Return the scores of the chosen sentences."""
        each = {n: x[chosen] if np.ndim(x) else x for n, x in self.each.by_name().items()}
        rows = (self.sentence[chosen], self.n_words[chosen], self.status[chosen])
        return Scored(*rows, Counts(**each))

    def parts(self, metric: str) -> _Floats:
        """Return (sentences, 2): the numerators and denominators that add up to a metric."""
        up_and_down = np.broadcast_arrays(*METRICS[metric].parts(self.each), self.sentence)[:2]
        return np.stack(up_and_down).astype(np.float64).T


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of scores; None if one of them is None."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if len(known) == len(values) else None


def sentence_f1(gold: _Ints, predicted: _Ints, shared: _Ints) -> _Floats:
    """Return each sentence's F1 (0 to 1) without the whole sentence, which the counts include.

    If neither tree has another span, F1 is 1 (as in every sentence of two words); if only one has,
    it is 0. A count of 0 means a sentence of one word: F1 is NaN.
    """
    g, p, m = (np.maximum(count - 1, 0) for count in (gold, predicted, shared))
    return np.where(gold == 0, np.nan, np.where(g + p == 0, 1.0, 2.0 * m / np.maximum(g + p, 1)))


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
    shared = matched(gold, predicted_spans, trees_each)
    flat = (np.repeat(gold.counts, trees_each), predicted_spans.counts, shared)
    counts = tuple(each.reshape(-1, trees_each) for each in flat)
    return f1_counts(*counts, f1=sentence_f1(*counts)).sum()


def f1_counts(gold: _Ints, predicted: _Ints, shared: _Ints, *, f1: _Floats) -> Counts:
    """Return the counts of unlabelled F1 of each sentence, of which ``f1`` has F1 or NaN."""
    return Counts(
        sentences=np.ones_like(gold),
        scored=gold > 0,
        gold=gold,
        predicted=predicted,
        matched=shared,
        sentence_f1_sum=np.nan_to_num(f1),
        sentence_f1_count=~np.isnan(f1),
    )


def score(
    gold: Parses,
    parses: Parses,
    *,
    labels: Iterable[str] = DEFAULT_LABELS,
    max_words: int | None = None,
) -> Scored:
    """Score parses against gold trees.

    Args:
        gold: the gold trees of every sentence; where they were made of dependencies, phrases are
            compared with these, and F1 is not computed.
        parses: predicted trees of the same sentences; ``skipped`` ones are counted, not scored.
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
        return _scored(parses, _headed(gold, parses), {})
    in_gold = gold_spans(gold)
    has_tree = (parses.status != SKIPPED) & (parses.n_words > 1)
    shared = matched(in_gold, predicted)
    spans = tuple(np.where(has_tree, x, 0) for x in (in_gold.counts, predicted.counts, shared))
    f1 = sentence_f1(*spans)
    f1[parses.status == SKIPPED] = np.nan
    labelled, confusion = _labelled(gold, parses)
    each = replace(f1_counts(*spans, f1=f1), **labelled, **_tagged(gold, parses))
    return _scored(parses, each, label_recall(gold.trees, predicted, has_tree, labels), confusion)


def _scored(
    parses: Parses,
    each: Counts,
    labels: Mapping[str, LabelCount],
    confusion: Confusion | None = None,
) -> Scored:
    """Add what became of each sentence to its counts."""
    status = parses.status
    fallback = (each.gold > 0) & (status == FALLBACK)
    each = replace(each, one_word=parses.n_words == 1, skipped=status == SKIPPED, fallback=fallback)
    return Scored(parses.sentence, parses.n_words, status, each, labels, confusion)


def _no_f1(gold: Parses) -> Counts:
    none = np.zeros(len(gold), np.int64)
    return f1_counts(none, none, none, f1=np.full(len(gold), np.nan))


def _headed(gold: Parses, parses: Parses) -> Counts:
    """Count phrases and subtrees of parses against dependency trees."""
    heads = gold.trees.heads
    assert heads is not None
    tags = np.array(gold.trees.tag_of_each() or [""] * heads.size)
    rows = phrases_and_subtrees(parses.trees, heads, tags == PUNCTUATION)
    unknown = np.bincount(np.repeat(np.arange(len(gold)), gold.n_words), heads < -1, len(gold)) > 0
    rows[(parses.status == SKIPPED) | unknown] = 0
    counts = dict(zip(("headed", "phrases", "found", "subtrees"), rows.T, strict=True))
    return replace(_no_f1(gold), **counts, scored=rows[:, 1:].any(axis=1))


def _labelled(gold: Parses, parses: Parses) -> tuple[dict[str, Any], Confusion | None]:
    """Count labelled brackets; return no counts where the two sides share no label."""
    trees = gold.trees, parses.trees
    if not _shared(*((side.labels, side.label_names) for side in trees)):
        return {}, None
    parsed = parses.status != SKIPPED
    if not parsed.all():
        rows = np.flatnonzero(parsed)
        trees = trees[0].take(rows), trees[1].take(rows)
    confusion, brackets = label_confusion(*trees)
    counts = np.zeros((len(parses), 3), np.int64)
    counts[parsed] = brackets
    in_both, in_gold, predicted = counts.T
    return {
        "labelled_gold": in_gold,
        "labelled_predicted": predicted,
        "labelled_matched": in_both,
        "labelled_trees": parsed,
        "labelled_exact": parsed & (counts == counts[:, :1]).all(axis=1),
    }, confusion


def _tagged(gold: Parses, parses: Parses) -> dict[str, _Ints]:
    """Count words and right tags; return no counts where the two sides share no tag."""
    trees = gold.trees, parses.trees
    if not _shared(*((side.tags, side.tag_names) for side in trees)):
        return {}
    words = np.where((parses.status != SKIPPED) & (parses.n_words > 1), parses.n_words, 0)
    right = np.equal(*(np.array(side.tag_of_each()) for side in trees))
    sentence = np.repeat(np.arange(len(parses)), parses.n_words)
    counts = np.bincount(sentence[right], minlength=len(parses))
    return {"tagged_words": words, "tagged_right": np.where(words, counts, 0)}


def _shared(*sides: tuple[NDArray[np.int32] | None, Sequence[str]]) -> set[str]:
    """Return the names that all sides use, except dummies; a side is numbers and their names."""
    used = (
        set() if codes is None else {names[x] for x in np.flatnonzero(np.bincount(codes)).tolist()}
        for codes, names in sides
    )
    return set.intersection(*used) - {NO_LABEL}


def upper_bound(
    gold: Parses, *, labels: Iterable[str] = DEFAULT_LABELS, max_words: int | None = None
) -> Scored:
    """Return the scores of binary trees with every gold span, the best that binary trees can do.

    Raises:
        AttreeError: the spans of a gold tree cross, so that no tree has them all.
    """
    if max_words is not None:
        gold = gold.take(np.flatnonzero(gold.n_words <= max_words))
    if gold.trees.heads is not None:
        return _scored(gold, _no_f1(gold), {})
    spans = gold_spans(gold)
    pairs = list(zip(gold.trees.starts.tolist(), gold.trees.ends.tolist(), strict=True))
    for number, (first, last) in zip(gold.sentence, pairwise(gold.trees.offsets), strict=True):
        if find_crossing(pairs[first:last]):
            problem = f"the spans of the gold tree of sentence {number} cross"
            fix = "read the treebank with a format that makes its trees continuous"
            raise AttreeError("crossing-spans", problem, fix=fix)
    counts = spans.counts, np.maximum(gold.n_words - 1, 0), spans.counts
    recalls = label_recall(gold.trees, spans, gold.n_words > 1, labels)
    return _scored(gold, f1_counts(*counts, f1=sentence_f1(*counts)), recalls)


def check_same_sentences(gold: Parses, parses: Parses) -> None:
    """Check that both have the same sentences, each once and with the same number of words.

    Raises:
        AttreeError: they do not; the message names the first sentence at fault.
    """
    fix = "score the parses with the sentence table they were made from"
    sides = ((gold, parses, "parses"), (parses, gold, "gold trees"))
    for parts, others, name in () if np.array_equal(gold.sentence, parses.sentence) else sides:
        if (missing := np.setdiff1d(parts.sentence, others.sentence)).size:
            more = f" (nor have {missing.size - 1} others)" if missing.size > 1 else ""
            problem = f"sentence {missing[0]} has no row among the {name}{more}"
            raise AttreeError("other-sentences", problem, fix=fix)
    if gold.sentence.size != parses.sentence.size:
        sentences = np.concatenate([gold.sentence, parses.sentence])
        numbers, times = np.unique(sentences, return_counts=True)
        problem = f"sentence {numbers[times > 2][0]} has more than one row"
        raise AttreeError("sentence-twice", problem)
    if (unequal := np.flatnonzero(gold.n_words != parses.n_words)).size:
        row = unequal[0]
        words = f"{gold.n_words[row]} words in the gold tree and {parses.n_words[row]} in the parse"
        raise AttreeError("other-sentences", f"sentence {gold.sentence[row]} has {words}", fix=fix)
