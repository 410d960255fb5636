"""Write tables as Markdown, CSV and Parquet, and print them on a terminal."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attree.base.errors import AttreeError
from attree.base.files import whole_file, write_text
from attree.base.reading import described
from attree.base.terminal import safe
from attree.base.text import markdown

if TYPE_CHECKING:
    from rich.console import Console


#: Sources of a cell of a table, or of a line of a figure.
COMPUTED, BASELINE, CEILING, ARTICLE = "computed", "baseline", "ceiling", "article"

#: Baseline → its short heading, in the order of tables; no parser of a workflow has such a name.
BASELINES = {
    "right_branching": "right",
    "left_branching": "left",
    "balanced": "balanced",
    "random_uniform_split": "random split",
    "random_shift_reduce": "random shift",
    "random_uniform_tree": "random tree",
    "upper_bound": "binary ceiling",
}

#: The fields of a row that can tell a table's columns apart, as pictures name them.
AXES = {
    "trees": "trees",
    "layer": "layer",
    "size": "size of the projection",
    "max_words": "longest sentence, in words",
    "test": "test set",
    "step": "steps",
}

#: A table in the metadata of its Parquet file: title, headings, rows, note.
_Packed = tuple[str, list[str], list[list[str]], str]


@dataclass(frozen=True, slots=True)
class Table:
    """A table for people: a title, headings, rows of formatted text, and a note below.

    The first ``names`` columns name the rows; each part of a wide table repeats them.
    """

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    names: int = 1

    @property
    def is_text(self) -> list[bool]:
        """Tell which columns hold names (flush left) rather than figures (flush right)."""
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.headings)
        return [any(cell[:1].isalpha() for cell in column) for column in columns]

    def markdown(self) -> str:
        """Return the table as a Markdown section."""
        rule = ["---" if text else "--:" for text in self.is_text]
        headings, *rows = [[markdown(cell) for cell in row] for row in (self.headings, *self.rows)]
        lines = [f"## {markdown(self.title)}", ""]
        lines += [f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows)]
        return "\n".join(lines) + "\n" + (f"\n{markdown(self.note)}\n" if self.note else "")

    def widths(self) -> list[int]:
        """Return the columns' widths; a heading may break between its words."""
        return [
            max(len(text) for text in (*heading.split(), *column))
            for heading, *column in zip(self.headings, *self.rows, strict=True)
        ]


def number(value: float | None) -> str:
    """Return an F1 with two decimals, or a dash where there is none."""
    return "–" if value is None else f"{value:.2f}"


def with_values(headings: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the headings of the columns that some row has a value of."""
    found = {key for row in rows for key, value in row.items() if value is not None}
    return {key: heading for key, heading in headings.items() if key in found}


def scores_table(
    title: str,
    names: Sequence[str],
    columns: Mapping[Any, str],
    rows: Iterable[tuple[Sequence[str], Mapping[Any, float | None]]],
    note: str = "",
) -> Table:
    """Build a table of scores, with a column for each metric, label or length.

    Args:
        title: of the table.
        names: headings of the columns that name a row.
        columns: metric, label or length → its heading.
        rows: the names of each row, and its scores by metric, label or length.
        note: printed below.
    """
    lines = [[*cells, *(number(values.get(key)) for key in columns)] for cells, values in rows]
    return Table(title, [*names, *columns.values()], lines, note)


def show(tables: Sequence[Table], console: Console | None = None) -> None:
    """Print the tables to stdout (or ``console``).

    A table wider than the terminal is printed in parts, each with the names of its rows.
    """
    from rich import box, markup
    from rich.console import Console
    from rich.table import Table as RichTable

    def escape(text: str) -> str:  # a name in square brackets is no markup of Rich
        return markup.escape(safe(text))

    console = console or Console(highlight=False)
    for table in tables:
        console.print(escape(table.title), style="bold")
        widths = table.widths()
        for part in _parts(widths, console.width, table.names):
            printed = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True)
            for column in part:
                side: Literal["left", "right"] = "left" if table.is_text[column] else "right"
                # broken here, or Rich would cut the column
                lines = textwrap.wrap(table.headings[column], widths[column])
                heading = "\n".join(map(escape, lines))
                printed.add_column(heading, justify=side, no_wrap=column < table.names)
            for row in table.rows:
                printed.add_row(*(escape(row[column]) for column in part))
            console.print(printed)
        if table.note:
            console.print(escape(table.note), style="dim")
        console.print()


def _parts(widths: Sequence[int], room: int, names: int) -> list[list[int]]:
    """Divide columns into as few parts of at most ``room`` as possible, of about equal width."""
    fewest = len(_fill(widths, room, names))
    enough = (less for less in range(room + 1) if len(_fill(widths, less, names)) == fewest)
    return _fill(widths, next(enough), names)


def _fill(widths: Sequence[int], room: int, names: int) -> list[list[int]]:
    """Fill parts of width ``room`` one after the other; every part begins with the names."""
    parts = [list(range(names))]
    for column in range(names, len(widths)):
        used = sum(widths[other] + 2 for other in (*parts[-1], column)) + 3
        if used > room and len(parts[-1]) > names:
            parts.append(list(range(names)))
        parts[-1].append(column)
    return parts


def save(
    prefix: str | Path,
    records: Sequence[Mapping[str, Any]],
    tables: Sequence[Table],
    metadata: Mapping[str, Any],
) -> None:
    """Write ``prefix``.parquet and .csv (one row for each record), and .md if there are tables.

    The Parquet file's metadata holds the tables too, so that ``attree table show`` prints them as
    the Markdown has them.
    """
    import pyarrow as pa

    from attree.base.schemas import write_table

    names = list(dict.fromkeys(name for record in records for name in record))
    numbers = pa.table({name: [record.get(name) for record in records] for name in names})
    packed = [[t.title, list(t.headings), [list(r) for r in t.rows], t.note] for t in tables]
    if tables:
        write_text(f"{prefix}.md", "\n".join(table.markdown() for table in tables))
    with whole_file(f"{prefix}.csv") as part, part.open("w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
    with_tables = {**metadata, "tables": packed}
    write_table(f"{prefix}.parquet", numbers, schema=numbers.schema, metadata=with_tables)


def saved_tables(path: str | Path) -> list[Table]:
    """Read back the tables that :func:`save` wrote."""
    from attree.base.schemas import read_table

    _, metadata = read_table(path)
    packed = described(metadata.get("tables", []), list[_Packed], file=path, what="table")
    tables = [Table(*table) for table in packed]
    if not tables or any(len(row) != len(table.headings) for table in tables for row in table.rows):
        fix = "name one of `attree table`"
        raise AttreeError("not-a-table", "this file holds no table to show", file=path, fix=fix)
    return tables
