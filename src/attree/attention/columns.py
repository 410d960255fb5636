"""Which heads a column of associations holds: every one by itself, or the mean of some."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from attree.encoder.source import Head
from attree.errors import AttreeError
from attree.files import described, read_described

#: The column that holds every head.
ALL = "all"

#: Types that values can be kept in, the usual one first.
PRECISIONS = ("float32", "float16")

_LISTED = re.compile(r"\d+\.\d+(\s*,\s*\d+\.\d+)*")


def heads_key(heads: Iterable[Head]) -> str:
    """Return the name of a set of heads, ``1.7+2.8+4.7``, whatever order they come in."""
    return "+".join(f"{layer}.{head}" for layer, head in sorted(set(heads)))


def listed(text: str) -> tuple[Head, ...] | None:
    """Read ``1.7,2.8``; None where ``text`` is no list of heads."""
    if not _LISTED.fullmatch(text):
        return None
    named = (head.strip().split(".") for head in text.split(","))
    return tuple((int(layer), int(head)) for layer, head in named)


def listing(heads: Iterable[Head]) -> str:
    """Return ``1.7,2.8``, which :func:`listed` reads."""
    return ",".join(f"{layer}.{head}" for layer, head in heads)


def checked(heads: Iterable[Head], n_layers: int, n_heads: int) -> list[Head]:
    """Return ``heads`` sorted, each once, after checking that the encoder has them."""
    for layer, head in heads:
        if not (0 <= layer < n_layers and 0 <= head < n_heads):
            raise AttreeError(
                f"there is no head {layer}.{head}",
                fix=f"layers are 0 to {n_layers - 1}, heads 0 to {n_heads - 1}, both from 0",
            )
    return sorted(set(heads))


def read_selection(path: str | Path) -> dict[str, Any]:
    """Read what ``attree heads`` wrote: the heads selected, and how.

    Raises:
        AttreeError: absent, damaged, or not a selection.
    """
    what, fix = "selection of heads", "make it with `attree heads`"
    found = read_described(path, dict[str, Any], what=what, fix=fix)
    heads = described(found, _Selection, file=path, what=what, fix=fix).heads
    return {**found, "heads": heads}


_Place = Annotated[int, msgspec.Meta(ge=0, le=999)]


class _Selection(msgspec.Struct):
    heads: Annotated[list[tuple[_Place, _Place]], msgspec.Meta(min_length=1, max_length=1_000_000)]


@dataclass(frozen=True, slots=True)
class Column:
    """One association: the heads whose matrices it holds, each by itself or as their mean.

    ``dtype`` is the type that its values are kept in, a name of :data:`PRECISIONS`.
    """

    heads: tuple[Head, ...]
    mean: bool
    dtype: str = PRECISIONS[0]

    @property
    def matrices(self) -> int:
        """Matrices of each sentence."""
        return 1 if self.mean else len(self.heads)


def mean_column(heads: Sequence[Head], dtype: str = PRECISIONS[0]) -> tuple[str, Column]:
    """Return the name and the description of the column that is the mean of ``heads``."""
    return heads_key(heads), Column(tuple(sorted(set(heads))), mean=True, dtype=dtype)
