"""Figures of tables: F1 of every head, lines over columns, heat maps of matrices."""

from __future__ import annotations

from pathlib import Path

from attree.base.errors import AttreeError

#: Sources of a line of a figure, or of a cell of a table.
COMPUTED, BASELINE, CEILING, ARTICLE = "computed", "baseline", "ceiling", "article"

#: File name extensions of figures.
FORMATS = (".png", ".svg", ".pdf")


def check_format(output: Path) -> None:
    """Check the format of a figure before it is drawn."""
    if output.suffix not in FORMATS:
        raise AttreeError(
            "picture-format",
            f"figures cannot have the format {output.suffix or '(none)'}",
            file=output,
            fix=f"choose one of {', '.join(FORMATS)}",
        )
