"""Tables as Markdown, as CSV and Parquet, and on a terminal of 80 columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attree.files import whole_file, write_text


@dataclass(frozen=True, slots=True)
class Grid:
    """A table as people read it: a title, headings, rows of ready text, and a note below."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def markdown(self) -> str:
        """Return the grid as a Markdown section."""
        rule = ["---"] + ["--:"] * (len(self.headings) - 1)
        lines = [f"## {self.title}", ""]
        lines += [f"| {' | '.join(cells)} |" for cells in (self.headings, rule, *self.rows)]
        return "\n".join(lines) + "\n" + (f"\n{self.note}\n" if self.note else "")


def number(value: float | None) -> str:
    """Return an F1 with two decimals, or a dash where there is none."""
    return "–" if value is None else f"{value:.2f}"


def show(grids: Sequence[Grid]) -> None:
    """Print the grids to stdout, as wide as the terminal allows (80 columns are enough)."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    for grid in grids:
        table = Table(title=grid.title, caption=grid.note or None, box=box.SIMPLE_HEAD)
        table.title_justify = table.caption_justify = "left"
        for position, heading in enumerate(grid.headings):
            table.add_column(heading, justify="right" if position else "left", min_width=5)
        for row in grid.rows:
            table.add_row(*row)
        console.print(table)


def save(
    prefix: str | Path,
    records: Sequence[Mapping[str, Any]],
    grids: Sequence[Grid],
    metadata: Mapping[str, Any],
) -> None:
    """Write ``prefix``.parquet and .csv (one record a row) and .md (the grids).

    The Parquet file's metadata also holds the grids, so that ``attree table show`` prints what the
    Markdown says.
    """
    import pyarrow as pa

    from attree.records import write_table

    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {name: [record.get(name) for record in records] for name in names}
    table = pa.table(columns)
    packed = [[g.title, list(g.headings), [list(r) for r in g.rows], g.note] for g in grids]
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
    from attree.records import read_table

    _, metadata = read_table(path)
    return [Grid(*grid) for grid in metadata.get("grids", [])]
