"""Gather the records of an experiment into the cells of its table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attree.errors import AttreeError
from attree.experiments.records import Records
from attree.files import read_json
from attree.tables.collect import BASELINES, METRICS, read_published
from attree.tables.render import number

COMPUTED, BASELINE, ARTICLE = "computed", "baseline", "article"

#: What is summed up over draws, besides label recall: mean, standard deviation, maximum.
SUMMED = (*METRICS, "sentences_a_second", "seconds")


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
        for metric in SUMMED:
            row[metric], row[f"{metric}_std"] = self.mean(metric), self.std(metric)
            row[f"{metric}_max"] = self.max(metric)
        for label, values in self.recall.items():
            row[f"recall_{label}"] = statistics.fmean(values) if values else None
            row[f"count_{label}"] = self.counts.get(label)
        return row | {"notes": "; ".join(self.notes)}


def cells(
    results: Iterable[Path], records: Path, look: Mapping[str, Any], published: Path | None
) -> list[Cell]:
    """Return every cell, computed ones first, then baselines, then the article's.

    Args:
        results: lists of records, summaries of scores, and baselines.
        records: folder of the records.
        look: title, axis, places and so on, from the plan.
        published: the article's figures.

    Raises:
        AttreeError: a row has no record.
    """
    names, summaries = record_names(results)
    computed = _computed(names, Records(records), look["places"])
    baselines = []
    for summary in summaries:
        column = f"{summary['language']}/{summary['split']}"
        if "baselines" in summary:
            baselines += _baselines(summary, column)
        else:
            computed.append(_scored(summary, column))
    columns = list(dict.fromkeys(cell.column for cell in (*computed, *baselines)))
    tests = {cell.column: cell.about.get("test") or cell.column for cell in computed}
    return computed + baselines + _published(look, published, columns, tests)


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
    for metric in SUMMED:
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
    look: Mapping[str, Any],
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
        table = look["published"].get(test, look["published"].get("*"))
        figures = read_published(path, table) if table else {}
        bare = column.removeprefix("≤")
        for (row, language, name), value in figures.items():
            metric, _, place = name.partition("@")
            if language != test.partition("/")[0] or place not in (
                {bare} if look["axis"] != "test" else {"", bare}
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
    elif kind == "max" and base in SUMMED:
        cell.highest[base] = value
    elif kind == "std" and base in SUMMED:
        cell.deviation[base] = value
    else:
        cell.values[metric] = [value]
