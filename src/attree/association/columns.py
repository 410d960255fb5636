"""Which units of a source a column of associations holds: every one, or the mean of some.

Units are called heads, since they are the heads of the encoder unless another source is named.
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
from attree.base.files import described, read_described
from attree.base.registry import check_name

if TYPE_CHECKING:
    from attree.encoder.source import Head

#: What heads can be chosen by that needs no gold tree (see :mod:`attree.association.ranking`).
AGREEMENT = "agreement"

#: The column that holds every head.
ALL = "all"


def column_name(source: str, name: str) -> str:
    """Return the name of a source's column; those of other sources than heads are prefixed."""
    return name if source == HEADS else f"{source}:{name}"


def all_of(source: str = HEADS) -> str:
    """Return the name of the column that holds every unit of a source."""
    return column_name(source, ALL)


#: Types that values can be kept in, the usual one first.
PRECISIONS = ("float32", "float16")

_LISTED = re.compile(r"\d{1,9}\.\d{1,9}(\s*,\s*\d{1,9}\.\d{1,9})*")


def heads_key(heads: Iterable[Head]) -> str:
    """Return the name of a set of heads, ``1.7+2.8+4.7``, whatever order they come in."""
    return "+".join(f"{layer}.{head}" for layer, head in sorted(set(heads)))


def parse_heads(text: str) -> tuple[Head, ...] | None:
    """Read ``1.7,2.8``; None where ``text`` is no list of heads."""
    if not _LISTED.fullmatch(text):
        return None
    named = (head.strip().split(".") for head in text.split(","))
    return tuple((int(layer), int(head)) for layer, head in named)


def read_selection(path: str | Path) -> dict[str, Any]:
    """Read what ``attree heads`` wrote: the heads selected, of which source, and how.

    Raises:
        AttreeError: absent, damaged, or not a selection.
    """
    name, fix = "selection of heads", "make it with `attree heads`"
    facts = read_described(path, dict[str, Any], what=name, fix=fix)
    checked = described(facts, _Selection, file=path, what=name, fix=fix)
    check_name(checked.source, SOURCES, f"unknown source {checked.source!r}", file=path)
    return {**facts, "heads": checked.heads, "source": checked.source}


def check_selected_with(
    selection: Mapping[str, Any], slug: str, fingerprint: str, *, file: Path, fix: str
) -> None:
    """Refuse a selection of heads of another encoder than the one of this slug and fingerprint."""
    if selection.get("encoder", fingerprint) != fingerprint:
        problem = f"these heads were selected with another encoder than {slug}"
        raise AttreeError("other-encoder", problem, file=file, fix=fix)


_Number = Annotated[int, msgspec.Meta(ge=0, le=999)]


class _Selection(msgspec.Struct):
    heads: Annotated[
        list[tuple[_Number, _Number]], msgspec.Meta(min_length=1, max_length=1_000_000)
    ]
    source: str = HEADS


@dataclass(frozen=True, slots=True)
class Column:
    """One association: the heads whose matrices it holds, each by itself or as their mean.

    ``dtype`` is the type that its values are kept in, a name of :data:`PRECISIONS`; ``source`` is
    whose units the heads are.
    """

    heads: tuple[Head, ...]
    mean: bool
    dtype: str = PRECISIONS[0]
    source: str = HEADS

    @property
    def matrices(self) -> int:
        """Matrices of each sentence."""
        return 1 if self.mean else len(self.heads)


def mean_column(
    heads: Sequence[Head], dtype: str = PRECISIONS[0], source: str = HEADS
) -> tuple[str, Column]:
    """Return the name and the description of the column that is the mean of ``heads``."""
    name = column_name(source, heads_key(heads))
    return name, Column(tuple(sorted(set(heads))), mean=True, dtype=dtype, source=source)
