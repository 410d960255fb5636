"""An experiment's table: its records in cells, a line a parser, a column a number of trees…"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from attree.errors import AttreeError
from attree.experiments.cells import Cell
from attree.experiments.data import Records
from attree.experiments.notes import below, beside, note
from attree.experiments.price import prices
from attree.experiments.rows import SHOWN
from attree.figures import ARTICLE, BASELINE, CEILING, COMPUTED
from attree.files import read_json
from attree.tables import LABELLED, METRICS
from attree.tables.build import BASELINES, read_published
from attree.tables.render import Table, number


def cells(
    results: Iterable[Path], records: Path, layout: Mapping[str, Any], published: Path | None
) -> list[Cell]:
    """Return every cell, computed ones first, then baselines, then the article's.

    Args:
        results: lists of records, summaries of scores, and baselines.
        records: folder of the records.
        layout: title, axis, places and so on, of the plan.
        published: the article's figures.

    Raises:
        AttreeError: a row has no record.
    """
    names, summaries = record_names(results)
    computed = _computed(names, Records(records), layout["places"])
    baselines = []
    across = _columns_of_panels(computed)
    for summary in summaries:
        column = f"{summary['language']}/{summary['split']}"
        panel = summary["language"] if across else ""
        if "baselines" in summary:
            for each in across.get(panel, [column]):
                baselines += [replace(one, panel=panel) for one in _baselines(summary, each)]
        else:
            computed.append(replace(_scored(summary, column), panel=panel))
    found = computed + baselines
    for panel in dict.fromkeys(cell.panel for cell in found):
        own = [cell for cell in found if cell.panel == panel]
        tests = {cell.column: cell.about.get("test") or cell.column for cell in own}
        figures = _published(layout, published, list(tests), tests)
        found = found + [replace(one, panel=panel) for one in figures]
    return found


def _columns_of_panels(computed: Sequence[Cell]) -> dict[str, list[str]]:
    """Return the columns of each part of the table, none if it has one part only."""
    found: dict[str, list[str]] = {}
    for cell in computed:
        if cell.panel and cell.column not in found.setdefault(cell.panel, []):
            found[cell.panel].append(cell.column)
    return found


def record_names(results: Iterable[Path]) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return row → record of the lists among ``results``, and the others, which are summaries."""
    names: dict[str, str] = {}
    summaries = []
    for path in results:
        found = read_json(path, what="result")
        if "rows" in found:
            names |= {one["row"]: one["record"] for one in found["rows"]}
        else:
            summaries.append(found)
    return names, summaries


def _computed(
    names: Mapping[str, str], records: Records, places: Sequence[Sequence[str]]
) -> list[Cell]:
    found: dict[tuple[str, str, str], Cell] = {}
    for row, label, column, panel in places:
        record = records.get(names[row]) if row in names else None
        if record is None:
            raise AttreeError(
                f"the row {label!r}, column {column}, has no record",
                file=records.folder,
                fix="run the workflow again",
            )
        place = (panel, label, column)
        cell = found.setdefault(place, Cell(label, column, COMPUTED, panel=panel))
        _add(cell, record)
    return list(found.values())


def _add(cell: Cell, record: Mapping[str, Any]) -> None:
    """Add a draw to its cell."""
    row = record["row"]
    asked, used = row["trees"], record["used"]
    encoders = [*filter(None, cell.about.get("encoder", "").split(",")), row["encoder"]]
    cell.about |= {
        "encoder": ",".join(dict.fromkeys(encoders)),
        "parser": row["parser"],
        "train": row["train"],
        "beside": beside(record),
        "trees": str(asked),
        "trees_used": used,
        "draw": row["draw"],
        "test": row["test"],
        "layer": row["layer"],
        "layers_used": ",".join(map(str, record.get("layers", []))) or None,
        "dropout_used": record.get("dropout"),
        "size": record.get("size"),
        "max_words": row["max_words"],
        "sentences": record["sentences"],
        "overlap": record["overlap"],
        "punctuation": record["punctuation"],
        "derived": record["derived"],
    }
    for metric in SHOWN:
        if record.get(metric) is not None:
            cell.values.setdefault(metric, []).append(record[metric])
    for label, one in record["label_recall"].items():
        values = cell.recall.setdefault(label, [])
        if one["recall"] is not None:
            values.append(one["recall"])
        cell.counts[label] = one["count"]
    notes = []
    if isinstance(asked, int) and used < asked:
        notes.append(f"{used:,} trees")
    if record["new_head"]:
        notes.append("new head")
    cell.notes = list(dict.fromkeys([*cell.notes, *notes]))


def _scored(summary: Mapping[str, Any], column: str) -> Cell:
    """A row of a table over languages."""
    cell = Cell(summary["parser"], column, COMPUTED)
    protocol = summary["protocol"]
    cell.about = {
        "encoder": summary["encoder"],
        "parser": summary["parser"],
        "train": protocol.get("selection"),
        "test": column,
        "sentences": protocol["sentences"]["scored"],
        "punctuation": protocol.get("punctuation"),
        "derived": protocol.get("derived"),
    }
    cell.values = {metric: [summary[metric]] for metric in METRICS}
    for label, one in summary["label_recall"].items():
        cell.recall[label] = [] if one["recall"] is None else [one["recall"]]
        cell.counts[label] = one["count"]
    return cell


def _baselines(summary: Mapping[str, Any], column: str) -> list[Cell]:
    found = []
    for name, heading in BASELINES.items():
        one = summary["baselines"][name]
        source = CEILING if name == "upper_bound" else BASELINE
        test = f"{summary['language']}/{summary['split']}"
        cell = Cell(heading, column, source, {"test": test})
        cell.values = {metric: [one[metric]] for metric in METRICS if one[metric] is not None}
        for metric in METRICS if "seeds" in one else ():
            cell.deviation[metric] = one["std"][metric]
            cell.highest[metric] = one["max"][metric]
        found.append(cell)
    return found


def _published(
    layout: Mapping[str, Any],
    path: Path | None,
    columns: Sequence[str],
    tests: Mapping[str, str],
) -> list[Cell]:
    """The article's lines: a figure of a column is under ``metric@column``, or plainly ``metric``
    where the columns are test sets.
    """
    found: dict[tuple[str, str], Cell] = {}
    for column in columns:
        test = tests.get(column, column)
        table = layout["published"].get(test, layout["published"].get("*"))
        figures = read_published(path, table) if table else {}
        bare = column.removeprefix("≤")
        for (row, language, name), value in figures.items():
            metric, _, place = name.partition("@")
            if language != test.partition("/")[0] or place not in (
                {bare} if layout["axis"] != "test" else {"", bare}
            ):
                continue
            label = f"{row} (article)"
            cell = found.setdefault((label, column), Cell(label, column, ARTICLE, {"test": test}))
            _figure(cell, metric, value)
    return sorted(found.values(), key=lambda cell: cell.label)


def _figure(cell: Cell, metric: str, value: float) -> None:
    base, _, kind = metric.rpartition("_")
    if metric.startswith("recall_"):
        cell.recall[metric.removeprefix("recall_").upper()] = [value]
    elif kind == "max" and base in SHOWN:
        cell.highest[base] = value
    elif kind == "std" and base in SHOWN:
        cell.deviation[base] = value
    else:
        cell.values[metric] = [value]


def tables(found: Sequence[Cell], layout: Mapping[str, Any]) -> list[Table]:
    """Build a table for each part and metric, and for label recall where the table shows it."""
    made = []
    for panel in dict.fromkeys(cell.panel for cell in found):
        own = [cell for cell in found if cell.panel == panel]
        title = f"{layout['title']}, {panel}" if panel else layout["title"]
        made += [_table(own, metric, title, layout) for metric in layout["metrics"]]
        if layout["labels"]:
            columns = dict.fromkeys(cell.column for cell in own)
            made += [_labels(own, column, title) for column in columns]
    if line := layout.get("price"):
        made.append(prices(found, line, layout["title"]))
    return made


def _table(found: Sequence[Cell], metric: str, title: str, layout: Mapping[str, Any]) -> Table:
    columns = list(dict.fromkeys(cell.column for cell in found))
    by_place = {(cell.label, cell.column): cell for cell in found}
    rows = []
    for line in dict.fromkeys(cell.label for cell in found):
        there = [by_place.get((line, column)) for column in columns]
        if any(cell and cell.max(metric) is not None for cell in there):
            rows.append([line, *(cell.text(metric) if cell else "–" for cell in there)])
    heading = (METRICS | LABELLED).get(metric, metric.replace("_", " "))
    titles = [layout["axis"].replace("_", " "), *columns]
    said = (layout.get("note"), note(found), below(by_place, metric, layout.get("above")))
    return Table(f"{title}: {heading}", titles, rows, " ".join(filter(None, said)))


def _labels(found: Sequence[Cell], column: str, title: str) -> Table:
    own = [cell for cell in found if cell.column == column and cell.recall]
    labels = list(dict.fromkeys(label for cell in own for label in cell.recall))
    rows = [
        [cell.label]
        + [
            number(statistics.fmean(cell.recall[label])) if cell.recall.get(label) else "–"
            for label in labels
        ]
        for cell in own
    ]
    return Table(f"{title}, {column}: recall by label", ["parser", *labels], rows)
