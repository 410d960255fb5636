"""An experiment's table: its records in cells, a line a parser, a column a number of trees…"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attree.errors import AttreeError
from attree.experiments.data import Records
from attree.experiments.rows import SHOWN
from attree.figures import ARTICLE, BASELINE, COMPUTED
from attree.files import read_json
from attree.tables import METRICS
from attree.tables.build import BASELINES, read_published
from attree.tables.render import Table, number


@dataclass(slots=True)
class Cell:
    """One line and column: the draws of one parser, or one published figure.

    Attributes:
        label, column: where it stands.
        source: ``computed``, ``baseline`` or ``article``.
        about: what all its draws have in common, for the CSV.
        values: metric → one value a draw.
        highest, deviation: given ones, where there are no single draws.
        recall: label → one recall a draw.
        counts: label → gold constituents.
        notes: what must be said of it.
    """

    label: str
    column: str
    source: str
    about: dict[str, Any] = field(default_factory=dict)
    values: dict[str, list[float]] = field(default_factory=dict)
    highest: dict[str, float] = field(default_factory=dict)
    deviation: dict[str, float] = field(default_factory=dict)
    recall: dict[str, list[float]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def draws(self) -> int:
        """How many values there are of each metric."""
        return max(map(len, self.values.values()), default=0)

    def mean(self, metric: str) -> float | None:
        """The mean over draws."""
        values = self.values.get(metric)
        return statistics.fmean(values) if values else None

    def std(self, metric: str) -> float | None:
        """The standard deviation of a sample; None of one draw."""
        values = self.values.get(metric, [])
        found = self.deviation.get(metric)
        return statistics.stdev(values) if len(values) > 1 else found

    def max(self, metric: str) -> float | None:
        """The maximum over draws."""
        values = self.values.get(metric)
        return self.highest.get(metric, max(values) if values else None)

    def text(self, metric: str) -> str:
        """What a reader sees: ``58.60 ± 1.40 (60.21) [2,794 trees]``."""
        mean, std, highest = self.mean(metric), self.std(metric), self.max(metric)
        if mean is None:
            return "–" if highest is None else f"({number(highest)})"
        parts = [number(mean)]
        if std is not None:
            parts.append(f"± {number(std)}")
        if highest is not None and (self.draws > 1 or metric in self.highest):
            parts.append(f"({number(highest)})")
        return " ".join([*parts, *(f"[{note}]" for note in self.notes)])

    def flat(self) -> dict[str, Any]:
        """Return the cell as a row of the CSV."""
        row = {"label": self.label, "column": self.column, "source": self.source, **self.about}
        row["draws"] = self.draws if self.source == COMPUTED else None
        for metric in SHOWN:
            row[metric], row[f"{metric}_std"] = self.mean(metric), self.std(metric)
            row[f"{metric}_max"] = self.max(metric)
        for label, values in self.recall.items():
            row[f"recall_{label}"] = statistics.fmean(values) if values else None
            row[f"count_{label}"] = self.counts.get(label)
        return row | {"notes": "; ".join(self.notes)}


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
    for summary in summaries:
        column = f"{summary['language']}/{summary['split']}"
        if "baselines" in summary:
            baselines += _baselines(summary, column)
        else:
            computed.append(_scored(summary, column))
    columns = list(dict.fromkeys(cell.column for cell in (*computed, *baselines)))
    tests = {cell.column: cell.about.get("test") or cell.column for cell in computed}
    return computed + baselines + _published(layout, published, columns, tests)


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
    found: dict[tuple[str, str], Cell] = {}
    for row, label, column in places:
        record = records.get(names[row]) if row in names else None
        if record is None:
            raise AttreeError(
                f"the row {label!r}, column {column}, has no record",
                file=records.folder,
                fix="run the workflow again",
            )
        cell = found.setdefault((label, column), Cell(label, column, COMPUTED))
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
        "trees": str(asked),
        "trees_used": used,
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
        cell = Cell(heading, column, BASELINE, {"test": column})
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
    """Build a table for each metric, and for label recall where the table shows it."""
    columns = list(dict.fromkeys(cell.column for cell in found))
    lines = list(dict.fromkeys(cell.label for cell in found))
    by_place = {(cell.label, cell.column): cell for cell in found}
    made = []
    for metric in layout["metrics"]:
        rows = []
        for line in lines:
            there = [by_place.get((line, column)) for column in columns]
            if any(cell and cell.max(metric) is not None for cell in there):
                rows.append([line, *(cell.text(metric) if cell else "–" for cell in there)])
        heading = METRICS.get(metric, metric.replace("_", " "))
        titles = [layout["axis"].replace("_", " "), *columns]
        note = " ".join(filter(None, (_note(found), _below(by_place, metric, layout.get("above")))))
        made.append(Table(f"{layout['title']}: {heading}", titles, rows, note))
    if layout["labels"]:
        made += [_labels(found, column, layout) for column in columns]
    return made


def _labels(found: Sequence[Cell], column: str, layout: Mapping[str, Any]) -> Table:
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
    return Table(f"{layout['title']}, {column}: recall by label", ["parser", *labels], rows)


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
