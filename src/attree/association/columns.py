"""Columns of associations: each holds all units of a source, or the mean of selected ones.

A source's units are the encoder's heads, or layers of states, or whatever else it has matrices of.
Each is named as a head is, by layer and number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from attree.association.sources import HEADS, SOURCES
from attree.base.errors import AttreeError
from attree.base.reading import described, read_described
from attree.base.registry import check_name

if TYPE_CHECKING:
    from attree.encoder.source import Head

#: The criterion for choosing heads without gold trees (see :mod:`attree.association.ranking`).
AGREEMENT = "agreement"

#: The column that holds every head.
ALL = "all"


def column_name(source: str, name: str) -> str:
    """Return the name of a source's column, prefixed unless the source is heads."""
    return name if source == HEADS else f"{source}:{name}"


def all_of(source: str = HEADS) -> str:
    """Return the name of the column of all units of a source."""
    return column_name(source, ALL)


_LISTED = re.compile(r"\d{1,9}\.\d{1,9}(\s*,\s*\d{1,9}\.\d{1,9})*")


def heads_key(heads: Iterable[Head]) -> str:
    """Return the name of a set of heads in any order, such as ``1.7+2.8+4.7``."""
    return "+".join(f"{layer}.{head}" for layer, head in sorted(set(heads)))


def parse_heads(text: str) -> tuple[Head, ...] | None:
    """Parse a list of heads such as ``1.7,2.8``; None if ``text`` is none."""
    if not _LISTED.fullmatch(text):
        return None
    named = (head.strip().split(".") for head in text.split(","))
    return tuple((int(layer), int(head)) for layer, head in named)


def read_selection(path: str | Path) -> dict[str, Any]:
    """Read a selection of ``attree heads``: the heads, their source, and how they were selected.

    Raises:
        AttreeError: the file is missing, damaged, or no selection.
    """
    name, fix = "selection of heads", "make it with `attree heads`"
    facts = read_described(path, dict[str, Any], what=name, fix=fix)
    checked = described(facts, _Selection, file=path, what=name, fix=fix)
    check_name(checked.source, SOURCES, f"unknown source {checked.source!r}", file=path)
    return {**facts, "heads": checked.heads, "source": checked.source}


def check_selected_with(
    selection: Mapping[str, Any], slug: str, fingerprint: str, *, file: Path, fix: str
) -> None:
    """Check that a selection of heads was made with the encoder of this slug and fingerprint."""
    if selection.get("encoder", fingerprint) != fingerprint:
        problem = f"these heads were not selected with the encoder {slug}"
        raise AttreeError("other-encoder", problem, file=file, fix=fix)


_Number = Annotated[int, msgspec.Meta(ge=0, le=999)]


class _Selection(msgspec.Struct):
    heads: Annotated[
        list[tuple[_Number, _Number]], msgspec.Meta(min_length=1, max_length=1_000_000)
    ]
    source: str = HEADS


@dataclass(frozen=True, slots=True)
class Column:
    """A column of associations: the matrices of some units of a source, or their mean."""

    units: tuple[Head, ...]
    mean: bool
    source: str = HEADS

    @property
    def matrices(self) -> int:
        """Number of matrices of each sentence."""
        return 1 if self.mean else len(self.units)


def mean_column(units: Sequence[Head], *, source: str = HEADS) -> tuple[str, Column]:
    """Return the name and the description of the column with the mean of ``units``."""
    name = column_name(source, heads_key(units))
    return name, Column(tuple(sorted(set(units))), mean=True, source=source)
