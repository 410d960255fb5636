"""Pictures of tables: F1 of every head, lines over columns, heat maps of matrices."""

from __future__ import annotations

from pathlib import Path

from attree.errors import AttreeError

#: Where a line of a picture, or a cell of a table, comes from.
COMPUTED, BASELINE, CEILING, ARTICLE = "computed", "baseline", "ceiling", "article"

#: What a picture's name may end in.
FORMATS = (".png", ".svg", ".pdf")


def check_format(output: Path) -> None:
    """Refuse a picture of another format, before it is drawn."""
    if output.suffix not in FORMATS:
        raise AttreeError(
            f"no pictures of the format {output.suffix or '(none)'} are drawn",
            file=output,
            fix=f"end its name in one of {', '.join(FORMATS)}",
        )
