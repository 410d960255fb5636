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

from attree.association.sources import HEADS, SOURCES, within
from attree.base.errors import AttreeError
from attree.base.reading import described, read_described
from attree.base.registry import check_name
from attree.evaluation import HEADINGS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    """A column of associations: the matrices of some units, or their mean.

    ``dtype`` is the type of the stored values, and ``source`` the source of the units.
    """

    units: tuple[Head, ...]
    mean: bool
    dtype: str = "float32"
    source: str = HEADS

    @property
    def matrices(self) -> int:
        """Number of matrices of each sentence."""
        return 1 if self.mean else len(self.units)


def mean_column(
    units: Sequence[Head], dtype: str = "float32", source: str = HEADS
) -> tuple[str, Column]:
    """Return the name and the description of the column with the mean of ``units``."""
    name = column_name(source, heads_key(units))
    return name, Column(tuple(sorted(set(units))), mean=True, dtype=dtype, source=source)


#: Criteria for ranking heads, the usual one first: an F1, or their agreement.
RANKED_BY = (*HEADINGS, AGREEMENT)

_FORM = "write all, best, best:K, above:F1, or list:LAYER.HEAD,LAYER.HEAD,…"


@dataclass(frozen=True, slots=True)
class HeadSelection:
    """A rule for selecting heads.

    Args:
        kind: ``all``, ``best``, ``above`` or ``list``.
        number: number of heads (``best``), or the percentage to be exceeded (``above``).
        heads: the heads of a ``list``.
    """

    kind: str
    number: float = 0.0
    heads: tuple[Head, ...] = ()

    @classmethod
    def parse(cls, text: str) -> HeadSelection:
        """Parse ``all``, ``best``, ``best:K``, ``above:30`` or ``list:1.7,2.8``.

        Raises:
            AttreeError: ``text`` has another form.
        """
        kind, _, argument = text.strip().partition(":")
        if kind == "all" and not argument:
            return cls("all")
        if kind == "best" and re.fullmatch(r"([1-9]\d{0,8})?", argument):
            return cls("best", number=int(argument or 1))
        if kind == "above" and re.fullmatch(r"\d{1,9}(\.\d+)?", argument):
            return cls("above", number=float(argument))
        if kind == "list" and (heads := parse_heads(argument)):
            return cls("list", heads=heads)
        raise AttreeError("bad-selection", f"this is not a selection of heads: {text!r}", fix=_FORM)

    @property
    def text(self) -> str:
        """The text form that :meth:`parse` reads."""
        if self.kind == "list":
            return "list:" + ",".join(f"{layer}.{head}" for layer, head in self.heads)
        return self.kind if self.kind == "all" else f"{self.kind}:{self.number:g}"

    def apply(self, f1: NDArray[np.float64], what: str = "F1") -> list[Head]:
        """Select heads by F1, (layers, heads) in percent; ties go to the lower layer, then head.

        ``what`` is the name of the percentage in errors.

        Returns:
            the selected heads, sorted.

        Raises:
            AttreeError: a listed head does not exist, more heads are asked for than exist, or no
                head is above the threshold.
        """
        n_layers, n_heads = f1.shape
        every = [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
        if self.kind == "all":
            return every
        if self.kind == "list":
            return within(self.heads, n_layers, n_heads)
        ranked = sorted(every, key=lambda head: (-f1[head], head))
        if self.kind == "best":
            if self.number > len(ranked):
                problem = (
                    f"the encoder has {len(ranked)} heads, the {self.number:g} best were asked for"
                )
                fix = f"choose best:{len(ranked)} or fewer, or all"
                raise AttreeError("too-few-heads", problem, fix=fix)
            return sorted(ranked[: int(self.number)])
        chosen = [head for head in every if f1[head] > self.number]
        if not chosen:
            (layer, head), best = ranked[0], f1[ranked[0]]
            problem = f"no head is above {self.number:g} {what}: the best, {layer}.{head}, has "
            fix = "lower the threshold, or choose best:K"
            raise AttreeError("no-head-above", f"{problem}{best:.2f}", fix=fix)
        return chosen
