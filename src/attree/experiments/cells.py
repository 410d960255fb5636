"""One cell of an experiment's table: the draws of one parser, of records and summaries."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.files import read_described
from attree.base.tables import number
from attree.evaluation import HEADINGS
from attree.experiments.data import Records
from attree.plan.experiments.rows import SHOWN
from attree.reports.figures import ARTICLE, BASELINE, CEILING, COMPUTED
from attree.reports.tables.build import BASELINES, ScoreRow, read_published, score_rows

_RECALL = "recall_"


@dataclass(slots=True)
class Cell:
    """One line and column: the draws of one parser, or one published figure.

    Attributes:
        label, column: where it stands.
        source: ``computed``, ``baseline``, ``ceiling`` or ``article``.
        about: what all its draws have in common, for the CSV.
        values: metric → one value a draw; the recall of NP is the metric ``recall_NP``.
        highest, deviation: given ones, where there are no single draws.
        counts: label → gold constituents.
        notes: what must be said of it.
        panel: the part of the table, or empty.
    """

    label: str
    column: str
    source: str
    about: dict[str, Any] = field(default_factory=dict)
    values: dict[str, list[float]] = field(default_factory=dict)
    highest: dict[str, float] = field(default_factory=dict)
    deviation: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    panel: str = ""

    @property
    def draws(self) -> int:
        """How many values there are of each metric."""
        return max(map(len, self.values.values()), default=0)

    @property
    def labels(self) -> dict[str, str]:
        """Metric → label, of the labels whose recall is known."""
        return {
            name: name.removeprefix(_RECALL) for name in self.values if name.startswith(_RECALL)
        }

    def add(
        self,
        scores: Mapping[str, Any],
        metrics: Iterable[str],
        recalls: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """Add a draw: its scores by metric, and its ``recall`` and ``count`` by label."""
        found = {metric: scores.get(metric) for metric in metrics}
        found |= {f"{_RECALL}{label}": one["recall"] for label, one in recalls.items()}
        for metric, value in found.items():
            self.values.setdefault(metric, []).extend([] if value is None else [value])
        self.counts |= {label: int(one["count"]) for label, one in recalls.items()}

    def mean(self, metric: str) -> float | None:
        """Return the mean over draws."""
        values = self.values.get(metric)
        return statistics.fmean(values) if values else None

    def std(self, metric: str) -> float | None:
        """Return the standard deviation of a sample; None of one draw."""
        values = self.values.get(metric, [])
        return statistics.stdev(values) if len(values) > 1 else self.deviation.get(metric)

    def max(self, metric: str) -> float | None:
        """Return the maximum over draws."""
        return self.highest.get(metric, max(self.values.get(metric, ()), default=None))

    def text(self, metric: str) -> str:
        """Return what a reader sees: ``58.60 ± 1.40 (60.21) [2,794 trees]``."""
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
        row: dict[str, Any] = {"panel": self.panel, "label": self.label, "column": self.column}
        row |= {"source": self.source, **self.about}
        row["draws"] = self.draws if self.source == COMPUTED else None
        for metric in SHOWN:
            row[metric], row[f"{metric}_std"] = self.mean(metric), self.std(metric)
            row[f"{metric}_max"] = self.max(metric)
        for metric, label in self.labels.items():
            row |= {metric: self.mean(metric), f"count_{label}": self.counts.get(label)}
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
    names, summaries = read_results(results)
    computed = _computed(placed_records(names, records, layout))
    across = _columns_of_panels(computed)
    rows = score_rows(summaries, {}, resample=False)
    for row in rows:
        if row.parser not in BASELINES:
            computed.append(_scored(row, "/".join(row.test), across))
    baselines = []
    for test in dict.fromkeys(row.test for row in rows):
        fixed = [row for row in rows if row.test == test and row.parser in BASELINES]
        columns = across.get(test[0] if across else "", ["/".join(test)])
        baselines += [_scored(row, column, across) for column in columns for row in fixed]
    found = computed + baselines
    for panel in dict.fromkeys(cell.panel for cell in found):
        own = [cell for cell in found if cell.panel == panel]
        tests = {cell.column: cell.about.get("test") or cell.column for cell in own}
        figures = _published(layout, published, tests)
        found = found + [replace(one, panel=panel) for one in figures]
    return found


def _columns_of_panels(computed: Sequence[Cell]) -> dict[str, list[str]]:
    """Return the columns of each part of the table, none if it has one part only."""
    found: dict[str, list[str]] = {}
    for cell in computed:
        if cell.panel and cell.column not in found.setdefault(cell.panel, []):
            found[cell.panel].append(cell.column)
    return found


@dataclass(frozen=True, slots=True)
class _Result:
    """A list of rows and their records; of a summary of scores there is none."""

    rows: list[dict[str, str]] | None = None


def read_results(results: Iterable[Path]) -> tuple[dict[str, str], list[Path]]:
    """Return row → record of the lists among ``results``, and the others, which are summaries."""
    names: dict[str, str] = {}
    summaries = []
    for path in results:
        found = read_described(path, _Result, what="result", fix="run the workflow again").rows
        names |= {one["row"]: one["record"] for one in found or ()}
        summaries += [path] if found is None else []
    return names, summaries


def placed_records(
    names: Mapping[str, str], records: Path, layout: Mapping[str, Any]
) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield label, column, panel and record of each row of a table.

    Args:
        names: row → record.
        records: folder of the records.
        layout: of the table; only ``places`` counts.

    Raises:
        AttreeError: a row has no record.
    """
    store = Records(records)
    for row, label, column, panel in layout["places"]:
        record = store.get(names[row]) if row in names else None
        if record is None:
            raise AttreeError(
                f"the row {label!r}, column {column}, has no record",
                file=records,
                fix="run the workflow again",
            )
        yield label, column, panel, record


def _computed(placed: Iterable[tuple[str, str, str, Mapping[str, Any]]]) -> list[Cell]:
    found: dict[tuple[str, str, str], Cell] = {}
    for label, column, panel, record in placed:
        empty = Cell(label, column, COMPUTED, panel=panel)
        _add(found.setdefault((panel, label, column), empty), record)
    return list(found.values())


def _add(cell: Cell, record: Mapping[str, Any]) -> None:
    """Add a draw to its cell."""
    row, other = record["row"], record["row"]["beside"]
    asked, used = row["trees"], record["used"]
    encoders = [*filter(None, cell.about.get("encoder", "").split(",")), row["encoder"]]
    cell.about |= {
        "encoder": ",".join(dict.fromkeys(encoders)),
        "parser": row["parser"],
        "train": row["train"],
        "beside": f"{record['beside']:,} trees of {other['train']}" if other else None,
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
    cell.add(record, SHOWN, record["label_recall"])
    notes = []
    if isinstance(asked, int) and used < asked:
        notes.append(f"{used:,} trees")
    if record["new_head"]:
        notes.append("new head")
    cell.notes = list(dict.fromkeys([*cell.notes, *notes]))


def _scored(row: ScoreRow, column: str, panels: Collection[str]) -> Cell:
    """Return the cell of a summary of scores: a parser of a table over languages, or a baseline."""
    about: dict[str, Any] = {"test": "/".join(row.test)}
    baseline = CEILING if row.parser == "upper_bound" else BASELINE
    cell = Cell(row.heading, column, baseline if row.parser in BASELINES else COMPUTED, about)
    cell.panel = row.language if panels else ""
    if cell.source == COMPUTED:
        cell.about = {
            "encoder": row.encoder,
            "parser": row.parser,
            "train": row.selection or None,
            **about,
            "sentences": row.scored,
            "punctuation": row.punctuation or None,
            "derived": row.derived,
        }
    cell.deviation, cell.highest = dict(row.deviation), dict(row.highest)
    cell.add(row.values, HEADINGS, row.label_recall if cell.source == COMPUTED else {})
    return cell


def _published(
    layout: Mapping[str, Any], path: Path | None, tests: Mapping[str, str]
) -> list[Cell]:
    """Return the article's lines, of each column and its test set.

    A figure of a column is under ``metric@column``, or plainly ``metric`` where the columns are
    test sets.
    """
    found: dict[tuple[str, str], Cell] = {}
    for column, test in tests.items():
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
    if metric.startswith(_RECALL):
        cell.values[f"{_RECALL}{metric.removeprefix(_RECALL).upper()}"] = [value]
    elif kind == "max" and base in SHOWN:
        cell.highest[base] = value
    elif kind == "std" and base in SHOWN:
        cell.deviation[base] = value
    else:
        cell.values[metric] = [value]
