"""Pictures of tables: F1 of every head, lines over columns, heat maps of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError

#: Where a line of a picture, or a cell of a table, comes from.
COMPUTED, BASELINE, CEILING, ARTICLE = "computed", "baseline", "ceiling", "article"

#: What a picture's name may end in.
FORMATS = (".png", ".svg", ".pdf")


#: The axis of pictures that compare prices: the brackets of the trees that a parser is trained on.
BRACKETS = "brackets"


def axis_of(layout: Mapping[str, Any]) -> str:
    """Return what the lines of an experiment's picture run over: its columns, or brackets."""
    return BRACKETS if layout.get("price") else str(layout["axis"])


def check_format(output: Path) -> None:
    """Refuse a picture of another format, before it is drawn."""
    if output.suffix not in FORMATS:
        raise AttreeError(
            "picture-format",
            f"no pictures of the format {output.suffix or '(none)'} are drawn",
            file=output,
            fix=f"end its name in one of {', '.join(FORMATS)}",
        )
