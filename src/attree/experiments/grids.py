"""Tables of an experiment as people read them: a line a parser, a column a number of trees…"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from attree.experiments.collect import Cell
from attree.tables.collect import METRICS
from attree.tables.render import Grid, number


def grids(found: Sequence[Cell], look: Mapping[str, Any]) -> list[Grid]:
    """Build a grid for each metric, and for label recall where the table shows it."""
    columns = list(dict.fromkeys(cell.column for cell in found))
    lines = list(dict.fromkeys(cell.label for cell in found))
    by_place = {(cell.label, cell.column): cell for cell in found}
    made = []
    for metric in look["metrics"]:
        rows = []
        for line in lines:
            there = [by_place.get((line, column)) for column in columns]
            if any(cell and cell.max(metric) is not None for cell in there):
                rows.append([line, *(cell.text(metric) if cell else "–" for cell in there)])
        heading = METRICS.get(metric, metric.replace("_", " "))
        titles = [look["axis"].replace("_", " "), *columns]
        note = " ".join(filter(None, (_note(found), _below(by_place, metric, look.get("above")))))
        made.append(Grid(f"{look['title']}: {heading}", titles, rows, note))
    if look["labels"]:
        made += [_labels(found, column, look) for column in columns]
    return made


def _labels(found: Sequence[Cell], column: str, look: Mapping[str, Any]) -> Grid:
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
    return Grid(f"{look['title']}, {column}: recall by label", ["parser", *labels], rows)


def _note(found: Sequence[Cell]) -> str:
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
