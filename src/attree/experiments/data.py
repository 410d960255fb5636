"""Sets of trees as rows need them: drawn, set apart, scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attree.draw import draw_trees, fingerprints
from attree.errors import AttreeError
from attree.evaluation.metrics import score
from attree.evaluation.summary import percentages
from attree.experiments.grid import APART, Row, Set
from attree.parses import Parses
from attree.provenance import digest
from attree.schemas import SENTENCES, read_table

#: The seed of the trees set apart, far from those of the draws.
_APART_SEED = 1_000_003


@dataclass(frozen=True, slots=True)
class Sentences:
    """One set: its table, gold trees, and a hash of both.

    Attributes:
        name: language/split.
        path: of the table.
        table: SENTENCES.
        gold: its brackets.
        about: the table's metadata.
        hash: of words and brackets.
    """

    name: Set
    path: Path
    table: pa.Table
    gold: Parses
    about: Mapping[str, Any]
    hash: str

    @classmethod
    def read(cls, name: Set, path: Path) -> Sentences:
        """Read a set."""
        table, about = read_table(path, schema=SENTENCES, what="sentence table")
        gold = Parses.gold(table)
        content: list[NDArray[Any]] = [gold.trees.offsets, gold.trees.starts, gold.trees.ends]
        content.append(fingerprints(table["words"].to_pylist()))
        return cls(name, path, table, gold, about, digest([part.tolist() for part in content]))

    @property
    def words(self) -> list[list[str]]:
        """Words of every sentence, in the order of ``gold``."""
        order = np.argsort(self.table["sentence"].to_numpy(), kind="stable")
        found: list[list[str]] = self.table["words"].take(pa.array(order)).to_pylist()
        return found


def drawn(row: Row, sentences: Sentences) -> list[int]:
    """Return the rows of the table that a row of the grid trains or ranks on.

    Draws of one seed are nested. Where there are fewer trees than asked, all are taken: the record
    says how many there were.
    """
    aside = set_apart(row, sentences)
    if row.trees == APART:
        return aside
    if row.trees == "all":
        return draw_trees(sentences.table, None, seed=row.seed, apart_from=aside)
    lengths = np.asarray(sentences.table["words"].combine_chunks().value_lengths())
    there = int((lengths > 2).sum()) - len(aside)
    return draw_trees(sentences.table, min(int(row.trees), there), seed=row.seed, apart_from=aside)


def set_apart(row: Row, sentences: Sentences) -> list[int]:
    """Return the trees that no row of this set and number ``apart`` is trained on."""
    return draw_trees(sentences.table, row.apart, seed=_APART_SEED) if row.apart else []


def overlap(row: Row, sets: Mapping[Set, Sentences], places: list[int]) -> int:
    """Count sentences of the test set that are also trained or tuned on.

    Raises:
        AttreeError: they are the same set, so all would be.
    """
    if row.train == row.test:
        raise AttreeError(
            f"{row.parser}: trees of {row.train} would be both trained on and scored",
            fix="name another set in `test`",
        )
    words = sets[row.train].table["words"]
    own = fingerprints(words.take(pa.array(places, pa.int64())).to_pylist())
    return int(np.isin(fingerprints(sets[row.test].words), own).sum())


def scores(gold: Parses, parses: Parses, *, max_words: int | None) -> dict[str, Any]:
    """Score parses of every sentence of ``gold``: what a record says of them."""
    counts = score(gold, parses, max_words=max_words).counts
    return {
        **percentages(counts),
        "sentences": counts.scored,
        "fallback": counts.fallback,
    }
