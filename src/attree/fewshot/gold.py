"""Gold trees: what each asks of the scores, splits of its binary form and spans that cross none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from attree.errors import AttreeError
from attree.treebank.binarise import FACTORS, binarise

#: Joins the labels of a unary chain, upper first; where a label has it, the other stands for it.
CHAIN, IN_LABEL = "+", "%2B"


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
            those of a unary chain are joined, ``S+VP``.
    """

    name: str
    n_words: int
    brackets: np.ndarray
    splits: np.ndarray
    labels: tuple[tuple[int, int, str], ...] = ()


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
        raise AttreeError(f"tree {name} has no brackets", fix="leave it out, or mend the treebank")
    try:
        splits = binarise(n_words, everything, factor=factor).astype(np.int64)
    except AttreeError as error:
        raise AttreeError(
            f"tree {name}: {error.problem}", fix="leave it out, or make the treebank continuous"
        ) from None
    kept = {(start, end) for start, end in everything if end - start > 1}
    brackets = sorted(kept | {(0, n_words)}) if n_words > 1 else []
    wide = splits[:, 2] - splits[:, 0] > 2
    found = np.array(brackets, np.int64).reshape(-1, 2)
    return GoldTree(name, n_words, found, splits[wide], _joined(each, labels))


def _joined(
    spans: Sequence[tuple[int, int]], labels: Sequence[str]
) -> tuple[tuple[int, int, str], ...]:
    """Join the labels of equal spans, the upper node first."""
    chains: dict[tuple[int, int], list[str]] = {}
    for span, label in zip(spans, labels, strict=False):
        chains.setdefault(span, []).append(label.replace(CHAIN, IN_LABEL))
    return tuple((start, end, CHAIN.join(chain)) for (start, end), chain in chains.items())


@dataclass(frozen=True, slots=True)
class GoldTrees:
    """Sentences of a treebank with their trees, checked.

    Attributes:
        sentence: their numbers in the table.
        words: of each.
        gold: the tree of each.
    """

    sentence: list[int]
    words: list[list[str]]
    gold: list[GoldTree]


def read_trees(table: pa.Table, places: Sequence[int], *, factor: str = "right") -> GoldTrees:
    """Take the rows ``places`` of a SENTENCES table as trees.

    Raises:
        AttreeError: crossing brackets, or none, naming the tree's file and line.
    """
    if factor not in FACTORS:
        raise AttreeError(f"unknown factor {factor!r}", fix=f"choose one of {', '.join(FACTORS)}")
    rows = table.take(pa.array(places, pa.int64())).to_pylist()
    gold = [
        gold_tree(
            len(row["words"]),
            zip(row["starts"], row["ends"], strict=True),
            name=f"{row['file']}:{row['line']} (sentence {row['sentence']})",
            factor=factor,
            labels=row["labels"] or (),
        )
        for row in rows
    ]
    return GoldTrees([row["sentence"] for row in rows], [row["words"] for row in rows], gold)


@dataclass(frozen=True, slots=True)
class GoldBatch:
    """The gold side of a batch of padded score tables.

    Attributes:
        names: of the trees.
        n_words: (trees,) int64.
        tree, start, split, end: (spans,) int64, the gold splits of all trees, flat.
        allowed: (trees, longest + 1, longest + 1) bool, spans that cross no bracket.
        brackets: of the same shape, spans that are one.
        labels: of each tree, as of :class:`GoldTree`.
    """

    names: tuple[str, ...]
    n_words: Tensor
    tree: Tensor
    start: Tensor
    split: Tensor
    end: Tensor
    allowed: Tensor
    brackets: Tensor
    labels: tuple[tuple[tuple[int, int, str], ...], ...] = ()


def gold_batch(trees: Sequence[GoldTree], *, device: str = "cpu") -> GoldBatch:
    """Lay out gold trees for the objectives."""
    lengths = np.array([tree.n_words for tree in trees])
    splits = np.concatenate([tree.splits for tree in trees])
    which = np.repeat(np.arange(len(trees)), [len(tree.splits) for tree in trees])
    side = int(lengths.max()) + 1
    allowed, brackets = np.zeros((2, len(trees), side, side), bool)
    for table, own, gold in zip(allowed, brackets, trees, strict=True):
        table[:] = ~_crossing(gold.brackets, side)
        own[tuple(gold.brackets.T)] = True
    columns = (lengths, which, *splits.T.copy(), allowed, brackets)
    n_words, tree, start, split, end, free, is_one = (
        torch.from_numpy(column).to(device) for column in columns
    )
    names = tuple(each.name for each in trees)
    labels = tuple(each.labels for each in trees)
    return GoldBatch(names, n_words, tree, start, split, end, free, is_one, labels)


def _crossing(brackets: np.ndarray, side: int) -> np.ndarray:
    """(side, side) bool: True for spans that cross one of the brackets."""
    start = brackets[:, 0, None]
    end = brackets[:, 1, None]
    place = np.arange(side)
    # in floats, since only their products are fast
    inside = ((start < place) & (place < end)).astype(np.float32)
    before, after = (place < start).astype(np.float32), (place > end).astype(np.float32)
    # a crossing span begins before a bracket and ends inside it, or begins inside and ends after
    crossing = before.T @ inside + inside.T @ after
    return crossing > 0
