"""An experiment's table: its cells, a line a parser, a column a number of trees…, and its note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attree.base.tables import Table, number, scores_table
from attree.evaluation import HEADINGS, LABELLED
from attree.experiments.cells import Cell
from attree.experiments.price import prices


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
    heading = (HEADINGS | LABELLED).get(metric, metric.replace("_", " "))
    titles = [layout["axis"].replace("_", " "), *columns]
    said = (layout.get("note"), _note(found), _below(by_place, metric, layout.get("above")))
    return Table(f"{title}: {heading}", titles, rows, " ".join(filter(None, said)))


def _labels(found: Sequence[Cell], column: str, title: str) -> Table:
    own = [cell for cell in found if cell.column == column and cell.labels]
    labels = {metric: label for cell in own for metric, label in cell.labels.items()}
    rows = [((cell.label,), {metric: cell.mean(metric) for metric in labels}) for cell in own]
    return scores_table(f"{title}, {column}: recall by label", ("parser",), labels, rows)


def _note(found: Sequence[Cell]) -> str:
    """Say what some cells rest on."""
    parts = []
    draws = max((cell.draws for cell in found), default=1)
    if draws > 1:
        parts.append(f"Mean ± standard deviation (maximum) of up to {draws} draws.")
    if any("trees" in note for cell in found for note in cell.notes):
        parts.append("[n trees]: the set holds no more than these.")
    if any("new head" in cell.notes for cell in found):
        parts.append("[new head]: masked-LM tuning began from a new language-model head.")
    chosen = {
        f"{cell.label}, {cell.column}: {cell.about['layers_used']} ({cell.about['dropout_used']})"
        for cell in found
        if cell.about.get("layer") == "tuned"
    }
    if chosen:
        parts.append(f"Layers (dropout) chosen: {'; '.join(sorted(chosen))}.")
    if overlap := max((cell.about.get("overlap") or 0 for cell in found), default=0):
        which = "One sentence" if overlap == 1 else f"Up to {overlap:,} of the sentences"
        parts.append(f"{which} scored may also stand in the trees drawn from.")
    if others := {cell.about["beside"] for cell in found if cell.about.get("beside")}:
        parts.append(f"Trained on too: {', '.join(sorted(others))}.")
    if trained := sorted({str(cell.about["train"]) for cell in found if cell.about.get("train")}):
        parts.append(f"Trees from {', '.join(trained)}.")
    return " ".join(parts)


def _below(found: Mapping[tuple[str, str], Cell], metric: str, line: str | None) -> str:
    """Say which few-shot parsers are not above a line, and in which columns."""
    if line is None:
        return ""
    below: dict[str, list[str]] = {}
    trained = 0
    for (label, column), cell in found.items():
        bar = found.get((line, column))
        ours, theirs = cell.mean(metric), bar.mean(metric) if bar else None
        if cell.about.get("layers_used") is None or ours is None or theirs is None:
            continue
        trained += 1
        if ours <= theirs:
            below.setdefault(label, []).append(f"{column} ({number(ours)}, {number(theirs)})")
    if not trained:
        return ""
    if not below:
        return f"Every few-shot parser is above {line} in every column."
    said = "; ".join(f"{label} on {', '.join(columns)}" for label, columns in below.items())
    return f"Few-shot parsers not above {line}: {said}."
