"""Tables as Markdown, as CSV and Parquet, and on a terminal of 80 columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attree.files import whole_file, write_text

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class Grid:
    """A table as people read it: a title, headings, rows of ready text, and a note below."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    @property
    def is_text(self) -> list[bool]:
        """Tell which columns hold names (flush left) rather than figures (flush right)."""
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.headings)
        return [any(cell[:1].isalpha() for cell in column) for column in columns]

    def markdown(self) -> str:
        """Return the grid as a Markdown section."""
        rule = ["---" if text else "--:" for text in self.is_text]
        lines = [f"## {self.title}", ""]
        lines += [f"| {' | '.join(cells)} |" for cells in (self.headings, rule, *self.rows)]
        return "\n".join(lines) + "\n" + (f"\n{self.note}\n" if self.note else "")

    def widths(self) -> list[int]:
        """Return the columns' widths; a heading may break between its words."""
        return [
            max(len(text) for text in (*heading.split(), *column))
            for heading, *column in zip(self.headings, *self.rows, strict=True)
        ]


def number(value: float | None) -> str:
    """Return an F1 with two decimals, or a dash where there is none."""
    return "–" if value is None else f"{value:.2f}"


def show(grids: Sequence[Grid], console: Console | None = None) -> None:
    """Print the grids to stdout (or ``console``).

    A grid wider than the terminal is printed in parts, each with the first column: no cell is cut.
    """
    from rich import box
    from rich.console import Console
    from rich.markup import escape  # a name in square brackets is no markup
    from rich.table import Table

    console = console or Console(highlight=False)
    for grid in grids:
        console.print(escape(grid.title), style="bold")
        for part in _parts(grid.widths(), console.width):
            table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True)
            for column in part:
                side: Literal["left", "right"] = "left" if grid.is_text[column] else "right"
                table.add_column(escape(grid.headings[column]), justify=side, no_wrap=column == 0)
            for row in grid.rows:
                table.add_row(*(escape(row[column]) for column in part))
            console.print(table)
        if grid.note:
            console.print(escape(grid.note), style="dim")
        console.print()


def _parts(widths: Sequence[int], room: int) -> list[list[int]]:
    """Share columns out over as few parts as fit into ``room``, of about the same width."""
    fewest = len(_filled(widths, room))
    narrowest = next(less for less in range(room + 1) if len(_filled(widths, less)) == fewest)
    return _filled(widths, narrowest)


def _filled(widths: Sequence[int], room: int) -> list[list[int]]:
    """Fill parts of ``room`` one after the other; every part begins with column 0."""
    parts: list[list[int]] = [[0]]
    for column in range(1, len(widths)):
        taken = sum(widths[each] + 2 for each in (*parts[-1], column)) + 3
        if taken > room and len(parts[-1]) > 1:
            parts.append([0])
        parts[-1].append(column)
    return parts


def save(
    prefix: str | Path,
    records: Sequence[Mapping[str, Any]],
    grids: Sequence[Grid],
    metadata: Mapping[str, Any],
) -> None:
    """Write ``prefix``.parquet and .csv (one record a row) and .md (the grids, if there are any).

    The Parquet file's metadata also holds the grids, so that ``attree table show`` prints what the
    Markdown says.
    """
    import pyarrow as pa

    from attree.schemas import write_table

    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {name: [record.get(name) for record in records] for name in names}
    table = pa.table(columns)
    packed = [[g.title, list(g.headings), [list(r) for r in g.rows], g.note] for g in grids]
    if grids:
        write_text(f"{prefix}.md", "\n".join(grid.markdown() for grid in grids))
    with whole_file(f"{prefix}.csv") as part:
        text = io.StringIO()
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        part.write_text(text.getvalue(), encoding="utf-8")
    write_table(
        f"{prefix}.parquet", table, schema=table.schema, metadata={**metadata, "grids": packed}
    )


def saved_grids(path: str | Path) -> list[Grid]:
    """Read back the grids of a table that :func:`save` wrote."""
    from attree.schemas import read_table

    _, metadata = read_table(path)
    return [Grid(*grid) for grid in metadata.get("grids", [])]
