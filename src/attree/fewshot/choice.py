"""Choosing training, held-out and tuning trees from a table, apart from what is evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from attree.errors import AttreeError
from attree.fewshot.draw import Trees, by_id, draw, fingerprints, read_trees, refuse_overlap
from attree.schemas import SENTENCES, read_table


@dataclass(frozen=True, slots=True)
class Choice:
    """What is asked for.

    Attributes:
        trees: a number, or ``all``.
        ids: sentence numbers, comma-separated, in place of a draw.
        seed: of the draws.
        factor: how trees are binarised.
        held_out, tuning: how many further trees for early stopping and for choosing settings.
    """

    trees: str
    ids: str | None
    seed: int
    factor: str = "right"
    held_out: int = 0
    tuning: int = 0


@dataclass(frozen=True, slots=True)
class Chosen:
    """The trees, and where they came from."""

    trees: Trees
    held_out: Trees | None
    tuning: Trees | None
    provenance: dict[str, Any]


def choose_trees(
    path: Path, choice: Choice, evaluated: Sequence[Path], *, allow_overlap: bool = False
) -> Chosen:
    """Draw training trees, then tuning trees, then held-out trees, none of them twice.

    Raises:
        AttreeError: fewer than asked, crossing brackets, or training trees that are among those of
            a table in ``evaluated``.
    """
    table, metadata = read_table(path, schema=SENTENCES, what="sentence table")
    rows = _training_rows(table, choice)
    # the trees that settings are tuned on come from the far end of the same order: they stay the
    # same whatever the number of training trees
    tuning = (
        draw(table, choice.tuning, seed=choice.seed + 1, apart_from=rows) if choice.tuning else []
    )
    apart = {*rows, *tuning}
    held = (
        draw(table, choice.held_out, seed=choice.seed + 2, apart_from=apart)
        if choice.held_out
        else []
    )
    parts = [read_trees(table, part, factor=choice.factor) for part in (rows, held, tuning)]
    everything = fingerprints(words for part in parts for words in part.words)
    shared = 0
    for other in evaluated:
        sentences, _ = read_table(other, schema=SENTENCES, what="sentence table")
        words = sentences.column("words").to_pylist()
        shared += refuse_overlap(everything, words, allow=allow_overlap)
    provenance = {
        "language": metadata.get("language"),
        "split": metadata.get("split"),
        "punctuation": metadata.get("punctuation"),
        "overlap": shared,
    }
    return Chosen(parts[0], parts[1] if held else None, parts[2] if tuning else None, provenance)


def _training_rows(table: pa.Table, choice: Choice) -> list[int]:
    if choice.ids is not None:
        return by_id(table, _numbers(choice.ids, "sentence numbers"))
    if choice.trees == "all":
        return draw(table, None, seed=choice.seed)
    (wanted,) = _numbers(choice.trees, "number of trees")
    return draw(table, wanted, seed=choice.seed)


def _numbers(text: str, what: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise AttreeError(f"{text!r} is no {what}", fix="write it in digits") from None
