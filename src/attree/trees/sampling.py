"""Sample trees of a treebank, and keep training trees apart from evaluated ones."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from attree.base.errors import AttreeError
from attree.base.text import unescape


def draw(
    candidates: ArrayLike, count: int, seed: int, *, apart_from: Iterable[int] = ()
) -> NDArray[Any]:
    """Draw at most ``count`` numbers without replacement.

    Draws of one seed are nested: the first ten of 80 are the draw of ten.

    Args:
        candidates: numbers of sentences or rows, in any order.
        count: how many.
        seed: of the draw.
        apart_from: numbers that must not be drawn.
    """
    order = np.random.default_rng(seed).permutation(np.sort(np.asarray(candidates)))
    left: NDArray[Any] = order[~np.isin(order, list(apart_from))][:count]
    return left


def count_of(text: str) -> int | None:
    """Read how many trees to draw, None for all.

    Raises:
        AttreeError: it is neither a number nor ``all``.
    """
    if not re.fullmatch("all|[1-9][0-9]{0,8}", text):
        problem = f"--trees {text!r} is not a number of trees"
        raise AttreeError("not-a-number", problem, fix="write 1 or more in digits, or all")
    return None if text == "all" else int(text)


def draw_trees(
    table: pa.Table, trees: int | None, *, seed: int, apart_from: Iterable[int] = ()
) -> list[int]:
    """Draw trees of three words or more: rows of a SENTENCES table.

    Args:
        table: of the treebank.
        trees: how many; ``None`` takes all, in their order.
        seed: of the draw.
        apart_from: rows that must not be drawn.

    Raises:
        AttreeError: there are fewer trees than ``trees``, or none of three words.
    """
    excluded = set(apart_from)
    usable = usable_trees(table, apart_from=excluded)
    if trees is None:
        return usable
    if not 0 < trees <= len(usable):
        problem = f"{trees} trees were asked for, there are {len(usable)} of three words and more"
        raise AttreeError("too-few-trees", problem, fix="ask for fewer, or take all")
    # drawn from all sentences, so that ``apart_from`` changes no other tree of a draw
    rows: list[int] = draw(usable_trees(table), trees, seed=seed, apart_from=excluded).tolist()
    return rows


def usable_trees(table: pa.Table, *, apart_from: Iterable[int] = ()) -> list[int]:
    """Return the rows of a SENTENCES table with three words or more, from which trees are drawn.

    Args:
        table: of the treebank.
        apart_from: rows that are left out.

    Raises:
        AttreeError: the table has no tree of three words.
    """
    lengths = np.asarray(table.column("words").combine_chunks().value_lengths())
    usable = np.flatnonzero(lengths > 2)
    if not len(usable):
        problem = f"all {len(lengths)} trees have one or two words: nothing to learn from"
        raise AttreeError("short-trees", problem, fix="choose another treebank")
    rows: list[int] = usable[~np.isin(usable, list(apart_from))].tolist()
    return rows


def fingerprints(sentences: Iterable[Sequence[str]]) -> NDArray[np.uint64]:
    """Return 64-bit hashes of sentences' words, to recognise the same sentence.

    Words without a letter or digit do not count if there are others: a sentence is the same with
    and without its punctuation.
    """
    hashes = []
    for words in sentences:
        telling = [word for word in words if any(map(str.isalnum, unescape(word)))] or words
        text = "\0".join(telling).encode("utf-8", "surrogatepass")
        hashes.append(hashlib.sha256(text).digest()[:8])
    return np.frombuffer(b"".join(hashes), "<u8")


def shared_rows(words: Iterable[Sequence[str]], others: Iterable[Sequence[str]]) -> list[int]:
    """Return the rows of ``words`` whose sentence is in ``others`` too."""
    rows: list[int] = np.flatnonzero(np.isin(fingerprints(words), fingerprints(others))).tolist()
    return rows


def refuse_overlap(
    trained: NDArray[np.uint64], evaluated: Iterable[Sequence[str]], *, allow: bool
) -> int:
    """Count the evaluated sentences that were trained on; refuse them unless allowed.

    Sentences are compared by their words, so a copy in another file counts too.

    Raises:
        AttreeError: there are some and ``allow`` is false.
    """
    shared = int(np.isin(fingerprints(evaluated), trained).sum())
    if shared and not allow:
        problem = f"{shared} of the scored sentences were trained on, which would flatter the score"
        raise AttreeError("overlap", problem, fix="choose other trees, or pass --allow-overlap")
    return shared
