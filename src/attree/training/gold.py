"""Gold trees as training reads them: brackets, labels, and the splits of their binary form."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from attree.base.errors import AttreeError
from attree.training.recipes import WITH_LABELS, WITHOUT_LABELS
from attree.treebank.binarise import binarise
from attree.trees.constraints import AVOIDED, MARKS, Constraints, Span, crossing
from attree.trees.tree import CHAIN, NO_LABEL, joined

if TYPE_CHECKING:
    import pyarrow as pa

#: Table rows converted to Python objects at a time.
_ROWS = 1000

#: Targets of spans whose label is unknown: perhaps no phrase; a phrase with some label.
UNKNOWN_LABEL, SOME_LABEL = -1, -2

#: Instead of a word's head: it is not known.
NO_HEAD = -2


@dataclass(frozen=True, slots=True)
class GoldTree:
    """One checked tree.

    Attributes:
        name: how an error names it, e.g. ``wsj_0125.mrg:3``.
        n_words: number of words.
        brackets: (m, 2) distinct spans of two words and more, including the whole sentence.
        splits: (s, 3) start, split, end of each span of three words and more of the binarised
            tree; a span of two words has only one split, so there is nothing to learn.
        labels: start, end and label of each distinct span, of one word too; a unary chain is
            joined, ``S+VP``. Empty if no label is known.
        known: for a partly bracketed tree, what is known of it; ``splits`` are then empty, and
            ``brackets`` and ``labels`` are the known ones only.
        tags: of the words; empty if not known.
        heads: of the words in a dependency tree, -1 for a root, and the word itself for
            punctuation; empty if not known.
    """

    name: str
    n_words: int
    brackets: np.ndarray
    splits: np.ndarray
    labels: tuple[tuple[int, int, str], ...] = ()
    known: Constraints | None = None
    tags: tuple[str, ...] = ()
    heads: tuple[int, ...] = ()

    def targets(self, code: Mapping[str, int]) -> tuple[dict[Span, int], int]:
        """Return the training target of spans.

        That is a label's number, 0 for no phrase, or :data:`SOME_LABEL`.

        Args:
            code: label → number.

        Returns:
            span → target, and the target of every other span: 0 or :data:`UNKNOWN_LABEL`.
        """
        targets: dict[Span, int] = {}
        if self.known is None and not self.labels:
            targets |= {(index, index + 1): UNKNOWN_LABEL for index in range(self.n_words)}
            targets |= dict.fromkeys(map(tuple, self.brackets.tolist()), SOME_LABEL)
        if self.known is not None:
            targets |= dict.fromkeys(self.known.forbidden, 0)
            targets |= dict.fromkeys(self.known.chains(), SOME_LABEL)
        # a bracket without a label among others with theirs is a phrase too
        targets |= {(i, j): code[name] if name else SOME_LABEL for i, j, name in self.labels}
        return targets, 0 if self.known is None else UNKNOWN_LABEL

    def without_labels(self) -> GoldTree:
        """Return the tree with its structure alone, labels and tags unknown."""
        known = self.known
        if known is not None:
            known = Constraints(tuple((*span, None) for span in known.chains()), known.forbidden)
        return replace(self, labels=(), known=known, tags=())


def gold_tree(
    n_words: int, spans: Iterable[tuple[int, int]], *, name: str, labels: Sequence[str] = ()
) -> GoldTree:
    """Build a :class:`GoldTree` from a sentence's spans, in any order, with unary chains.

    Args:
        n_words: number of words.
        spans: half-open word intervals.
        name: the tree's name in errors.
        labels: of the spans, in their order; empty if they have none.

    Raises:
        AttreeError: no bracket, a bracket outside the sentence, or two brackets that cross.
    """
    pairs = [(int(start), int(end)) for start, end in spans]
    everything = set(pairs)
    if not everything:
        problem = f"tree {name} has no brackets"
        raise AttreeError("no-brackets", problem, fix="leave it out, or mend the treebank")
    try:
        splits = binarise(n_words, everything).astype(np.int64)
    except AttreeError as error:
        fix = "leave it out, or make the treebank continuous"
        raise error.replace(problem=f"tree {name}: {error.problem}", fix=fix) from None
    kept = {(start, end) for start, end in everything if end - start > 1}
    wide = splits[:, 2] - splits[:, 0] > 2
    table = np.array(sorted(kept | {(0, n_words)}) if n_words > 1 else [], np.int64).reshape(-1, 2)
    return GoldTree(name, n_words, table, splits[wide], _join_chains(pairs, labels))


def partly_bracketed_tree(
    n_words: int, spans: Iterable[tuple[int, int]], labels: Sequence[str], *, name: str
) -> GoldTree:
    """Build a partly bracketed :class:`GoldTree`.

    Args:
        n_words: number of words.
        spans: half-open word intervals, in pre-order.
        labels: of the spans, some of them :data:`attree.trees.constraints.MARKS`.
        name: the tree's name in errors.

    Raises:
        AttreeError: spans contradict each other, or lie outside the sentence.
    """
    try:
        pairs = zip(spans, labels, strict=True)
        constraints = Constraints.of_marks((int(i), int(j), label) for (i, j), label in pairs)
        constraints.check(n_words)
    except AttreeError as error:
        raise error.replace(problem=f"tree {name}: {error.problem}", fix="correct it") from None
    wide = {span for span in constraints.chains() if span[1] - span[0] > 1}
    brackets = np.array(sorted(wide | {(0, n_words)}), np.int64).reshape(-1, 2)
    named = [(i, j, label) for i, j, label in constraints.required if label is not None]
    joined = _join_chains([(i, j) for i, j, _ in named], [label for _, _, label in named])
    return GoldTree(name, n_words, brackets, np.zeros((0, 3), np.int64), joined, constraints)


def _join_chains(
    spans: Sequence[tuple[int, int]], labels: Sequence[str]
) -> tuple[tuple[int, int, str], ...]:
    """Join the labels of equal spans, the upper node first."""
    chains: dict[tuple[int, int], list[str]] = {}
    for span, label in zip(spans, labels, strict=False):
        chains.setdefault(span, []).append(label)
    return tuple((*span, sys.intern(joined(chain))) for span, chain in chains.items())


@dataclass(frozen=True, slots=True)
class GoldTrees:
    """Sentences with their checked trees, one treebank after another.

    Attributes:
        sentence: sentence numbers in the table.
        words: words of each sentence.
        gold: tree of each sentence.
        counts: number of sentences of each treebank; empty for a single treebank.
    """

    sentence: list[int]
    words: list[list[str]]
    gold: list[GoldTree]
    counts: tuple[int, ...] = ()

    @property
    def sources(self) -> tuple[int, ...]:
        """Number of trees of each treebank, at least one treebank."""
        return self.counts or (len(self.gold),)

    def __add__(self, other: GoldTrees) -> GoldTrees:
        """Append the trees of other treebanks."""
        return GoldTrees(
            self.sentence + other.sentence,
            self.words + other.words,
            self.gold + other.gold,
            self.sources + other.sources,
        )


def read_trees(table: pa.Table, rows: Sequence[int]) -> GoldTrees:
    """Read trees from some rows of a SENTENCES table.

    Raises:
        AttreeError: a tree has crossing brackets or none; its file and line are named.
    """
    import pyarrow as pa

    trees = GoldTrees([], [], [])
    for first in range(0, len(rows), _ROWS):
        for row in table.take(pa.array(rows[first : first + _ROWS], pa.int64())).to_pylist():
            trees.sentence.append(row["sentence"])
            trees.words.append(row["words"])
            trees.gold.append(_read_row(row))
    return trees


def default_recipe(tables: Iterable[pa.Table]) -> str:
    """Return the name of the best parser for the trees of some tables.

    It has labels if phrases have any, even if all are equal: spans that only binarisation makes
    have none, so a parser with labels learns nodes of more than two children.
    """
    import pyarrow.compute as pc

    names: set[str] = set()
    for table in tables:
        names.update(pc.unique(pc.list_flatten(table.column("labels"))).to_pylist())
    return WITH_LABELS if names - {"", *MARKS} else WITHOUT_LABELS


def _read_row(row: dict[str, Any]) -> GoldTree:
    from attree.base.schemas import HEADS, PARTIAL

    name = f"{row['file']}:{row['line']} (sentence {row['sentence']})"
    n_words, spans = len(row["words"]), zip(row["starts"], row["ends"], strict=True)
    labels = row["labels"] if any(row["labels"] or ()) else ()
    if row.get(PARTIAL.name):
        tree = partly_bracketed_tree(n_words, spans, labels, name=name)
    else:
        tree = gold_tree(n_words, spans, name=name, labels=labels)
    # tags that are all dummies are no tags
    tags = tuple(tag or NO_LABEL for tag in row["tags"])
    heads = enumerate(zip(row.get(HEADS.name, ()), tags, strict=False))
    tree = replace(tree, heads=tuple(n if tag == "PUNCT" else head for n, (head, tag) in heads))
    return tree if set(tags) <= {NO_LABEL} else replace(tree, tags=tuple(map(sys.intern, tags)))


@dataclass(frozen=True, slots=True)
class GoldBatch:
    """Gold trees of a batch, laid out like its padded score tables.

    Attributes:
        trees: the trees.
        penalties: (trees, longest + 1, longest + 1), negative scores that make compatible trees
            avoid forbidden spans; None if no span is forbidden.
        n_words: (trees,) int64.
        tree, start, split, end: (spans,) int64, the gold splits of all trees, flat.
        allowed: (trees, longest + 1, longest + 1) bool, True for spans that cross no bracket.
        brackets: (trees, longest + 1, longest + 1) bool, True for brackets.
        heads: (trees, longest) int64, the head of each word, -1 for a root, `NO_HEAD` if unknown.
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
    heads: Tensor


def gold_batch(trees: Sequence[GoldTree], *, device: torch.device | str = "cpu") -> GoldBatch:
    """Lay out gold trees for the objectives."""
    lengths = np.array([tree.n_words for tree in trees])
    splits = np.concatenate([tree.splits for tree in trees])
    tree_of = np.repeat(np.arange(len(trees)), [len(tree.splits) for tree in trees])
    side = int(lengths.max()) + 1
    allowed, brackets = np.zeros((2, len(trees), side, side), bool)
    penalties = np.zeros(allowed.shape)
    heads = np.full((len(trees), side - 1), NO_HEAD)
    for row, tree in enumerate(trees):
        allowed[row] = ~crossing(tree.brackets, side)
        brackets[row][tuple(tree.brackets.T)] = True
        heads[row, : len(tree.heads)] = tree.heads
        for start, end in tree.known.forbidden if tree.known else ():
            penalties[row, start, end] = AVOIDED if end - start > 1 else 0.0
    columns = (lengths, tree_of, *splits.T.copy(), allowed, brackets, heads)
    avoided = torch.from_numpy(penalties).to(device) if penalties.any() else None
    return GoldBatch(trees, avoided, *(torch.from_numpy(column).to(device) for column in columns))


#: Most labels (unary chains joined), and most tags, that a parser distinguishes.
MOST = 150


def fold_names(counts: Counter[str], most: int, coarser: Callable[[str], str]) -> dict[str, str]:
    """Return the class of each name: itself, or for a rare name the class it is folded into.

    Names below a frequency threshold are replaced by a coarser name, repeatedly; those still below
    it are all called ``X``. The threshold is the lowest one tried that leaves at most ``most``
    classes.

    Args:
        counts: how often each name occurs.
        most: most classes, 1 or more.
        coarser: name → a coarser name, or the same if there is none.
    """
    least, classes = 1, {name: name for name in counts}
    while len(set(classes.values())) > most:
        least += 1 + least // 4
        classes = _fold(counts, least, coarser)
    return classes


def _fold(counts: Counter[str], least: int, coarser: Callable[[str], str]) -> dict[str, str]:
    classes = {name: name for name in counts}
    while True:
        total: Counter[str] = Counter()
        for name, count in counts.items():
            total[classes[name]] += count
        up = {name: coarser(name) for name, count in total.items() if count < least}
        if all(name == other for name, other in up.items()):
            rest = dict.fromkeys(up, NO_LABEL)
            return {name: rest.get(kind, kind) for name, kind in classes.items()}
        classes = {name: up.get(kind, kind) for name, kind in classes.items()}


def coarse_tag(tag: str) -> str:
    """Return the part of a tag before its first punctuation mark: ``NN`` of ``NN-Masc``."""
    return re.match(r".?[^\W_]*", tag, re.DOTALL)[0]  # type: ignore[index]


def coarse_label(label: str) -> str:
    """Return a chain without functions, ``NP+QP`` of ``NP-SBJ+QP``, else its upper label."""
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
    """Return trees with at most ``most`` labels and as many tags, rare ones folded.

    Some treebanks have a thousand tags, most of them rare: they cost as much as frequent ones, and
    nothing is learned of them. Treebanks also have different tag sets, between which a parser of
    many languages would have to guess: if several treebanks are given and some trees have
    universal tags, the tags of the others are left out.
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
    label_of, tag_of = fold_names(labels, most, coarse_label), fold_names(tags, most, coarse_tag)
    gold = [
        replace(
            tree,
            labels=tuple((start, end, label_of[label]) for start, end, label in tree.labels),
            tags=tuple(tag_of[tag] for tag in tree.tags),
        )
        for tree in trees.gold
    ]
    return replace(trees, gold=gold)
