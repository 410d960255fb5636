"""Choosing the trees to train on, and keeping them apart from those to be parsed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attree.errors import AttreeError
from attree.fewshot.gold import GoldTree, gold_tree
from attree.treebank.binarise import FACTORS


@dataclass(frozen=True, slots=True)
class Trees:
    """Sentences of a treebank with their trees, checked.

    Attributes:
        sentence: their numbers in the table.
        words: of each.
        gold: of each.
    """

    sentence: list[int]
    words: list[list[str]]
    gold: list[GoldTree]

    def take(self, places: Sequence[int]) -> Trees:
        """Return those at ``places``, in that order."""
        return Trees(
            [self.sentence[place] for place in places],
            [self.words[place] for place in places],
            [self.gold[place] for place in places],
        )


def read_trees(table: pa.Table, places: Sequence[int], *, factor: str = "right") -> Trees:
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
        )
        for row in rows
    ]
    return Trees([row["sentence"] for row in rows], [row["words"] for row in rows], gold)


def draw(
    table: pa.Table, trees: int | None, *, seed: int, apart_from: Iterable[int] = ()
) -> list[int]:
    """Draw trees of three words and more at random: rows of a SENTENCES table.

    Draws of the same seed are nested: the first ten of 80 trees are the draw of ten.

    Args:
        table: where from.
        trees: how many; ``None`` takes all, in their order.
        seed: of the draw.
        apart_from: rows that must not be drawn.

    Raises:
        AttreeError: fewer trees than asked, or only such of one and two words.
    """
    words = table.column("words").combine_chunks()
    lengths = np.asarray(words.value_lengths())
    taken = set(apart_from)
    usable = np.flatnonzero(lengths > 2)
    if not len(usable):
        raise AttreeError(
            f"all {len(lengths)} trees have one or two words: nothing to learn from",
            fix="choose another treebank",
        )
    if trees is not None:
        usable = np.random.default_rng(seed).permutation(usable)
    left = [row for row in usable.tolist() if row not in taken]
    if trees is not None and not 0 < trees <= len(left):
        raise AttreeError(
            f"{trees} trees were asked for, there are {len(left)} of three words and more",
            fix="ask for fewer, or take all",
        )
    return left[:trees]


def by_id(table: pa.Table, ids: Sequence[int]) -> list[int]:
    """Return the rows of the sentences numbered ``ids``.

    Raises:
        AttreeError: a number that the table does not have, or one named twice.
    """
    row_of = {number: row for row, number in enumerate(table.column("sentence").to_pylist())}
    unknown = [number for number in ids if number not in row_of]
    if unknown:
        raise AttreeError(
            f"the treebank has no sentence {unknown[0]}", fix=f"it has {len(row_of)} sentences"
        )
    if len(set(ids)) < len(ids):
        raise AttreeError("a sentence is chosen twice", fix="name each number once")
    return [row_of[number] for number in ids]


def fingerprints(sentences: Iterable[Sequence[str]]) -> NDArray[np.uint64]:
    """64-bit hashes of sentences' words, by which the same sentence is known again."""
    hashes = [
        hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).digest()[:8]
        for words in sentences
    ]
    return np.frombuffer(b"".join(hashes), "<u8")


def refuse_overlap(
    trained: NDArray[np.uint64], evaluated: Iterable[Sequence[str]], *, allow: bool
) -> int:
    """Count sentences to be evaluated that were trained on, and refuse them unless allowed.

    Sentences are the same if their words are, so a copy in another file is found too.

    Raises:
        AttreeError: there are some and ``allow`` is false.
    """
    shared = int(np.isin(fingerprints(evaluated), trained).sum())
    if shared and not allow:
        raise AttreeError(
            f"{shared} of the sentences to be evaluated are among the training trees, which would "
            "flatter the score",
            fix="choose other trees, or pass --allow-overlap",
        )
    return shared
