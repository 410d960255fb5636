"""Figures of tables: F1 of every head, lines over columns, heat maps of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError

#: Sources of a line of a figure, or of a cell of a table.
COMPUTED, BASELINE, CEILING, ARTICLE = "computed", "baseline", "ceiling", "article"

#: File name extensions of figures.
FORMATS = (".png", ".svg", ".pdf")


#: The axis of figures that compare costs: brackets of the training trees.
BRACKETS = "brackets"


def axis_of(layout: Mapping[str, Any]) -> str:
    """Return the axis of an experiment's figure: its columns, or brackets."""
    return BRACKETS if layout.get("price") else str(layout["axis"])


def check_format(output: Path) -> None:
    """Check the format of a figure before it is drawn."""
    if output.suffix not in FORMATS:
        raise AttreeError(
            "picture-format",
            f"figures cannot have the format {output.suffix or '(none)'}",
            file=output,
            fix=f"choose one of {', '.join(FORMATS)}",
        )
