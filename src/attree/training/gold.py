"""Gold trees: what each asks of the scores, splits of its binary form and spans that cross none."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from attree.base.errors import AttreeError
from attree.base.registry import check_name
from attree.base.schemas import HALF
from attree.training.recipes import WITH_LABELS, WITHOUT_LABELS
from attree.treebank.binarise import FACTORS, binarise
from attree.trees.constraints import AVOIDED, MARKS, Constraints, Span, crossing
from attree.trees.tree import NO_LABEL

#: Joins the labels of a unary chain, upper first; where a label has it, the other stands for it.
CHAIN, IN_LABEL = "+", "%2B"

#: Rows of a table that are Python objects at a time.
_ROWS = 1000

#: In place of a label's number, in a half-known tree: nothing is said of a span; it has one.
UNSAID, SOME = -1, -2


@dataclass(frozen=True, slots=True)
class GoldTree:
    """One tree, checked.

    Attributes:
        name: how an error names it, e.g. ``wsj_0125.mrg:3``.
        n_words: its length.
        brackets: (m, 2) distinct spans of two words and more, the whole sentence among them.
        splits: (s, 3) start, split, end of each span of three words and more of the binarised
            tree; a span of two words has one split only, so nothing is lost or learned there.
        labels: start, end, label of each distinct span, of one word too, where labels are known;
            those of a unary chain are joined, ``S+VP``. Where none is, phrases have one that is
            not known.
        known: all that is known of the tree, if that is not all of it: ``splits`` are none, and
            ``brackets`` and ``labels`` only those that are given.
        tags: of the words, where they are known.
    """

    name: str
    n_words: int
    brackets: np.ndarray
    splits: np.ndarray
    labels: tuple[tuple[int, int, str], ...] = ()
    known: Constraints | None = None
    tags: tuple[str, ...] = ()

    def said(self, code: Mapping[str, int]) -> tuple[dict[Span, int], int]:
        """Return what is said of spans: the number of a label, 0 if none, or :data:`SOME`.

        Args:
            code: label → its number.

        Returns:
            span → what is said, and what holds for every other span: 0 or :data:`UNSAID`.
        """
        found: dict[Span, int] = {}
        if self.known is None and not self.labels:
            found |= {(place, place + 1): UNSAID for place in range(self.n_words)}
            found |= dict.fromkeys(map(tuple, self.brackets.tolist()), SOME)
        if self.known is not None:
            found |= dict.fromkeys(self.known.forbidden, 0)
            found |= dict.fromkeys(self.known.chains(), SOME)
        found |= {(start, end): code[name] for start, end, name in self.labels}
        return found, 0 if self.known is None else UNSAID

    def without_labels(self) -> GoldTree:
        """Return the tree's structure: which label each phrase has is not known, nor are tags."""
        known = self.known
        if known is not None:
            spans = dict.fromkeys((start, end) for start, end, _ in known.required)
            required = tuple((start, end, None) for start, end in spans)
            known = Constraints(required, known.forbidden)
        return replace(self, labels=(), known=known, tags=())


def gold_tree(
    n_words: int,
    spans: Iterable[tuple[int, int]],
    *,
    name: str,
    factor: str = "right",
    labels: Sequence[str] = (),
) -> GoldTree:
    """Build a :class:`GoldTree` from a sentence's spans (any order, unary chains and all).

    Args:
        n_words: the sentence's length.
        spans: half-open word intervals.
        name: the tree's name in errors.
        factor: ``right`` or ``left``, how nodes of more than two children are binarised.
        labels: of the spans, in their order; none if they have none.

    Raises:
        AttreeError: no bracket, a bracket outside the sentence, or two that cross.
    """
    each = [(int(start), int(end)) for start, end in spans]
    everything = set(each)
    if not everything:
        raise AttreeError(
            "no-brackets", f"tree {name} has no brackets", fix="leave it out, or mend the treebank"
        )
    try:
        splits = binarise(n_words, everything, factor=factor).astype(np.int64)
    except AttreeError as error:
        raise error.replace(
            problem=f"tree {name}: {error.problem}",
            fix="leave it out, or make the treebank continuous",
        ) from None
    kept = {(start, end) for start, end in everything if end - start > 1}
    brackets = sorted(kept | {(0, n_words)}) if n_words > 1 else []
    wide = splits[:, 2] - splits[:, 0] > 2
    found = np.array(brackets, np.int64).reshape(-1, 2)
    return GoldTree(name, n_words, found, splits[wide], _joined(each, labels))


def half_known_tree(
    n_words: int, spans: Iterable[tuple[int, int]], labels: Sequence[str], *, name: str
) -> GoldTree:
    """Build a :class:`GoldTree` of which only some is known.

    Args:
        n_words: the sentence's length.
        spans: half-open word intervals, in pre-order.
        labels: of the spans, some of them :data:`attree.trees.constraints.MARKS`.
        name: the tree's name in errors.

    Raises:
        AttreeError: what is known contradicts itself, or the sentence.
    """
    try:
        known = Constraints.of_marks(
            (int(i), int(j), label) for (i, j), label in zip(spans, labels, strict=True)
        )
        known.check(n_words)
    except AttreeError as error:
        raise error.replace(problem=f"tree {name}: {error.problem}", fix="correct it") from None
    wide = {span for span in known.chains() if span[1] - span[0] > 1}
    brackets = np.array(sorted(wide | {(0, n_words)}), np.int64).reshape(-1, 2)
    named = [(i, j, label) for i, j, label in known.required if label is not None]
    joined = _joined([(i, j) for i, j, _ in named], [label for _, _, label in named])
    return GoldTree(name, n_words, brackets, np.zeros((0, 3), np.int64), joined, known)


def _joined(
    spans: Sequence[tuple[int, int]], labels: Sequence[str]
) -> tuple[tuple[int, int, str], ...]:
    """Join the labels of equal spans, the upper node first."""
    chains: dict[tuple[int, int], list[str]] = {}
    for span, label in zip(spans, labels, strict=False):
        chains.setdefault(span, []).append(label.replace(CHAIN, IN_LABEL))
    return tuple(
        (start, end, sys.intern(CHAIN.join(chain))) for (start, end), chain in chains.items()
    )


@dataclass(frozen=True, slots=True)
class GoldTrees:
    """Sentences of a treebank with their trees, checked.

    Attributes:
        sentence: their numbers in the table.
        words: of each.
        gold: the tree of each.
        counts: how many of them each treebank has, one treebank after the other; all are of one if
            nothing is said.
    """

    sentence: list[int]
    words: list[list[str]]
    gold: list[GoldTree]
    counts: tuple[int, ...] = ()

    @property
    def sources(self) -> tuple[int, ...]:
        """How many trees each treebank has, one treebank at least."""
        return self.counts or (len(self.gold),)

    def __add__(self, other: GoldTrees) -> GoldTrees:
        """These trees, then those of other treebanks."""
        return GoldTrees(
            self.sentence + other.sentence,
            self.words + other.words,
            self.gold + other.gold,
            self.sources + other.sources,
        )

    def without_labels(self) -> GoldTrees:
        """Return the same trees as ones to learn structure from, but neither labels nor tags."""
        return replace(self, gold=[tree.without_labels() for tree in self.gold])


def read_trees(table: pa.Table, places: Sequence[int], *, factor: str = "right") -> GoldTrees:
    """Take the rows ``places`` of a SENTENCES table as trees.

    Raises:
        AttreeError: crossing brackets, or none, naming the tree's file and line.
    """
    check_name(factor, FACTORS, f"unknown factor {factor!r}")
    found = GoldTrees([], [], [])
    for first in range(0, len(places), _ROWS):
        some = pa.array(places[first : first + _ROWS], pa.int64())
        for row in table.take(some).to_pylist():
            found.sentence.append(row["sentence"])
            found.words.append(row["words"])
            found.gold.append(_of_row(row, factor))
    return found


def usual(tables: Iterable[pa.Table]) -> str:
    """Name the parser that does best by the trees of some tables.

    One with labels, where phrases have any, be it the same on each: what no label stands on is
    made by binarisation alone, so that a parser learns nodes of more than two children.
    """
    names: set[str] = set()
    for table in tables:
        names.update(pc.unique(pc.list_flatten(table.column("labels"))).to_pylist())
    return WITH_LABELS if names - {"", *MARKS} else WITHOUT_LABELS


def _of_row(row: dict[str, Any], factor: str) -> GoldTree:
    name = f"{row['file']}:{row['line']} (sentence {row['sentence']})"
    n_words, spans = len(row["words"]), zip(row["starts"], row["ends"], strict=True)
    labels = row["labels"] if any(row["labels"] or ()) else ()
    if row.get(HALF.name):
        found = half_known_tree(n_words, spans, labels, name=name)
    else:
        found = gold_tree(n_words, spans, name=name, factor=factor, labels=labels)
    # a tree none of whose words has a tag is written with dummies
    tags = tuple(tag or NO_LABEL for tag in row["tags"])
    return found if set(tags) <= {NO_LABEL} else replace(found, tags=tuple(map(sys.intern, tags)))


@dataclass(frozen=True, slots=True)
class GoldBatch:
    """The gold side of a batch of padded score tables.

    Attributes:
        trees: as they are.
        penalties: (trees, longest + 1, longest + 1), what makes compatible trees avoid spans that
            are no phrases; None where there are no such spans.
        n_words: (trees,) int64.
        tree, start, split, end: (spans,) int64, the gold splits of all trees, flat.
        allowed: (trees, longest + 1, longest + 1) bool, spans that cross no bracket.
        brackets: of the same shape, spans that are one.
    """

    trees: Sequence[GoldTree]
    penalties: Tensor | None
    n_words: Tensor
    tree: Tensor
    start: Tensor
    split: Tensor
    end: Tensor
    allowed: Tensor
    brackets: Tensor


def gold_batch(trees: Sequence[GoldTree], *, device: torch.device | str = "cpu") -> GoldBatch:
    """Lay out gold trees for the objectives."""
    lengths = np.array([tree.n_words for tree in trees])
    splits = np.concatenate([tree.splits for tree in trees])
    tree_of = np.repeat(np.arange(len(trees)), [len(tree.splits) for tree in trees])
    side = int(lengths.max()) + 1
    allowed, brackets = np.zeros((2, len(trees), side, side), bool)
    penalties = np.zeros(allowed.shape)
    for row, tree in enumerate(trees):
        allowed[row] = ~crossing(tree.brackets, side)
        brackets[row][tuple(tree.brackets.T)] = True
        for start, end in tree.known.forbidden if tree.known else ():
            penalties[row, start, end] = AVOIDED if end - start > 1 else 0.0
    columns = (lengths, tree_of, *splits.T.copy(), allowed, brackets)
    tensors = (torch.from_numpy(column).to(device) for column in columns)
    avoided = torch.from_numpy(penalties).to(device) if penalties.any() else None
    return GoldBatch(trees, avoided, *tensors)


#: How many labels, those of unary chains joined, and how many tags are told apart at most.
MOST = 150


def folded(counts: Counter[str], most: int, coarser: Callable[[str], str]) -> dict[str, str]:
    """Return the class of each name: itself, and of rare names what they are folded into.

    Names that are seen fewer than so many times are made coarser, together with others of the same
    coarser name, and what is still seen fewer times is the rest, ``X``; so many times are as few as
    leave ``most`` classes.

    Args:
        counts: how often each name occurs.
        most: how many classes there are at most, 1 or more.
        coarser: name → a coarser one, or the same if it has none.
    """
    least, found = 1, {name: name for name in counts}
    while len(set(found.values())) > most:
        least += 1 + least // 4
        found = _folded(counts, least, coarser)
    return found


def _folded(counts: Counter[str], least: int, coarser: Callable[[str], str]) -> dict[str, str]:
    found = {name: name for name in counts}
    while True:
        total: Counter[str] = Counter()
        for name, count in counts.items():
            total[found[name]] += count
        up = {name: coarser(name) for name, count in total.items() if count < least}
        if all(name == other for name, other in up.items()):
            rest = dict.fromkeys(up, NO_LABEL)
            return {name: rest.get(one, one) for name, one in found.items()}
        found = {name: up.get(one, one) for name, one in found.items()}


def coarse_tag(tag: str) -> str:
    """Return the part of a tag before its first punctuation sign: ``NN`` of ``NN-Masc``."""
    return re.match(r".?[^\W_]*", tag, re.DOTALL)[0]  # type: ignore[index]


def coarse_label(label: str) -> str:
    """Return a label or chain without functions, ``NP+QP`` of ``NP-SBJ+QP``; then its upper one."""
    chain = label.split(CHAIN)
    coarse = CHAIN.join(map(coarse_tag, chain))
    return coarse if coarse != label else chain[0] or label


#: The parts of speech of Universal Dependencies.
# fmt: off
UNIVERSAL_TAGS = frozenset((
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
    "PUNCT", "SCONJ", "SYM", "VERB", "X",
))
# fmt: on


def with_classes(trees: GoldTrees, most: int = MOST) -> GoldTrees:
    """Return trees with at most so many labels and as many tags; the same if there are no more.

    The treebanks of some languages have a thousand tags, most of them seen a few times: nothing is
    learned of these, and each costs as much as a frequent one. Each treebank has tags of its own,
    of which a parser of many languages would guess one or other: of several treebanks those that
    are not universal are left out, if some trees' are.
    """
    universal = [UNIVERSAL_TAGS.issuperset(tree.tags) and bool(tree.tags) for tree in trees.gold]
    if len(trees.sources) > 1 and any(universal):
        kept = zip(trees.gold, universal, strict=True)
        gold = [tree if keep else replace(tree, tags=()) for tree, keep in kept]
        trees = replace(trees, gold=gold)
    labels = Counter(label for tree in trees.gold for _, _, label in tree.labels)
    tags = Counter(tag for tree in trees.gold for tag in tree.tags)
    if max(len(labels), len(tags)) <= most:
        return trees
    label_of, tag_of = folded(labels, most, coarse_label), folded(tags, most, coarse_tag)
    gold = [
        replace(
            tree,
            labels=tuple((start, end, label_of[label]) for start, end, label in tree.labels),
            tags=tuple(tag_of[tag] for tag in tree.tags),
        )
        for tree in trees.gold
    ]
    return replace(trees, gold=gold)
