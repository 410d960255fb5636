"""Choose disjoint trees for training and early stopping."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.base.languages import code_in
from attree.base.schemas import PARTIAL, PARTLY_BRACKETED, SENTENCES_SCHEMA, join_tables, read_table
from attree.base.terminal import say
from attree.training.gold import GoldTrees, read_trees
from attree.training.options import Choice
from attree.trees.sampling import count_of, draw_trees, shared_rows, usable_trees

#: Trees drawn by default: the best layers and settings are known for 80.
DEFAULT_TREES = 80


@dataclass(frozen=True, slots=True)
class Chosen:
    """Chosen trees and where they came from.

    Attributes:
        trees: to train on.
        held_out: for early stopping.
        provenance: language, split and punctuation of the table, and the overlap with test data.
        raw: the words of the remaining sentences, without those that are evaluated on.
        shares: of each treebank in a batch; empty if trees are drawn alike.
        scored: names and tables of what the new parser is scored on: ``held_out``, and the tables
            to evaluate on.
        language: code of the treebank's language; empty if there are several, or it is not known.
    """

    trees: GoldTrees
    held_out: GoldTrees | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    raw: Sequence[Sequence[str]] = ()
    shares: tuple[float, ...] = ()
    scored: Sequence[tuple[str, pa.Table]] = ()
    language: str = ""


def choose_trees(
    path: Path,
    choice: Choice,
    evaluated: Sequence[Path],
    *,
    also: Sequence[Path] = (),
    structure: Sequence[Path] = (),
    allow_overlap: bool = False,
) -> Chosen:
    """Draw training trees, then held-out trees, none of them twice.

    Partly bracketed trees are used for training only. Sentences are numbered through ``path``,
    ``also`` and ``structure``, in this order. Messages on stderr tell how many sentences were left
    out, and where fewer trees were found than asked for.

    Args:
        path: a sentence table.
        choice: how many trees.
        evaluated: tables to evaluate on; their sentences are left out unless ``allow_overlap``.
        also: further tables to train on.
        structure: the same, without their labels and tags.
        allow_overlap: keep sentences that are also evaluated on.

    Raises:
        AttreeError: no tree is left, or brackets cross.
    """
    read = [read_table(part, schema=PARTLY_BRACKETED) for part in (path, *also, *structure)]
    table, metadata = join_tables([part for part, _ in read]), read[0][1]
    ends = np.cumsum([0, *(len(part) for part, _ in read)])
    words: list[list[str]] = table["words"].to_pylist()
    tables = [read_table(path, schema=SENTENCES_SCHEMA)[0] for path in evaluated]
    tested = itertools.chain.from_iterable(other["words"].to_pylist() for other in tables)
    shared = set(shared_rows(words, tested))
    left_out = set() if allow_overlap else shared
    if left_out:
        say(
            f"attree: {len(left_out):,} of {len(words):,} sentences are among those to be "
            "evaluated on: left out (--allow-overlap keeps them)"
        )
    partial = table[PARTIAL.name].to_numpy() if PARTIAL.name in table.schema.names else []
    unfit = {*np.flatnonzero(partial).tolist(), *left_out}  # F1 needs whole trees
    shares = choice.shares_of(len(ends) - 1)
    drawn = _training_rows(table, choice, ends, left_out)
    rows = list(itertools.chain.from_iterable(drawn))
    apart = {*rows, *unfit}
    held = _hold_out(table, choice, apart)
    unlabelled = int(ends[-1 - len(structure)])
    first, *further = [_read_rows(table, part, unlabelled) for part in drawn]
    provenance = {key: metadata.get(key) for key in ("language", "split", "punctuation")}
    if len({facts.get("punctuation") for _, facts in read}) > 1:
        provenance["punctuation"] = None
    provenance["overlap"] = len(shared.intersection([*rows, *held]))
    scored = [("held out", table.take(sorted(held)))] if held else []
    return Chosen(
        sum(further, first),
        _read_rows(table, held, unlabelled) if held else None,
        provenance,
        [words[row] for row in sorted({*range(len(words))} - {*apart, *held, *shared})],
        shares,
        [*scored, *(("to be evaluated on", table) for table in tables)],
        "" if also else code_in(metadata.get("language") or ""),
    )


def _hold_out(table: pa.Table, choice: Choice, barred: set[int]) -> list[int]:
    """Draw the further rows that are asked for, or as many as are left."""
    wanted = choice.held_out
    left = len(usable_trees(table, apart_from=barred)) if wanted else 0
    if left < wanted:
        say(f"attree: --held-out {wanted}: {left} trees are left for it")
    seed, count = choice.seed + 2, min(wanted, left)
    return draw_trees(table, count, seed=seed, apart_from=barred) if left else []


def _read_rows(table: pa.Table, rows: Sequence[int], unlabelled: int) -> GoldTrees:
    """Read trees of some rows, without labels and tags from row ``unlabelled`` on."""
    trees = read_trees(table, rows)
    pairs = zip(rows, trees.gold, strict=True)
    gold = [tree if row < unlabelled else tree.without_labels() for row, tree in pairs]
    return replace(trees, gold=gold)


def _training_rows(
    table: pa.Table, choice: Choice, ends: NDArray[Any], left_out: set[int]
) -> list[list[int]]:
    """Return the rows to train on, a list for each treebank that is drawn from separately."""
    asked = _parse_counts(choice, len(ends) - 1)
    if len(asked) == 1:
        ends = ends[[0, -1]]
    parts = [
        (table.slice(first, end - first), {row - first for row in left_out if first <= row < end})
        for first, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    ]
    available = [len(usable_trees(part, apart_from=out)) for part, out in parts]
    counts = _count_draws(asked, available, choice.held_out)
    if counts == available and (short := len(table) - len(usable_trees(table))):
        say(f"attree: {short:,} of {len(table):,} trees have one or two words: not trained on")
    drawn = []
    for (part, out), first, count, all_there, wanted in zip(
        parts, ends.tolist(), counts, available, asked, strict=False
    ):
        if choice.trees is not None and wanted is not None and count < wanted:
            name = "attree" if len(parts) == 1 else part["file"][0].as_py()
            say(
                f"{name}: {wanted:,} trees were asked for, there are {all_there:,} of three words "
                f"and more: training on {count:,}"
            )
        # keep the table's order where every tree is used
        number = None if wanted is None and count == all_there else count
        rows = draw_trees(part, number, seed=choice.seed, apart_from=out)
        drawn.append([first + row for row in rows])
    return drawn


def _parse_counts(choice: Choice, treebanks: int) -> list[int | None]:
    """Return how many trees to draw, None for all: one number, or one for each treebank."""
    wanted = [count_of(text) for text in choice.trees or [str(DEFAULT_TREES)]]
    if len(wanted) == 1:
        return wanted if choice.shares is None else wanted * treebanks
    if len(wanted) != treebanks:
        problem = f"--trees gives {len(wanted)} numbers for {treebanks} treebanks"
        raise AttreeError("tree-counts", problem, fix="give one number for all, or one for each")
    return wanted


def _count_draws(asked: Sequence[int | None], available: Sequence[int], apart: int) -> list[int]:
    """Return how many trees to draw from each treebank.

    Args:
        asked: number asked for, None for all.
        available: number of usable trees.
        apart: trees to set apart from all treebanks; the largest draws make room for them.
    """
    if not all(available):
        problem = "no tree is left to train on: every one is also evaluated on"
        fix = "choose other trees, or pass --allow-overlap"
        raise AttreeError("all-evaluated-on", problem, fix=fix)
    counts = [most if n is None else min(most, n) for most, n in zip(available, asked, strict=True)]
    too_many = sum(counts) + apart - sum(available)
    for index in sorted(range(len(counts)), key=lambda index: -counts[index]):
        less = min(max(too_many, 0), counts[index] - 1)
        counts[index] -= less
        too_many -= less
    return counts
