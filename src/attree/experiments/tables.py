"""Gather the records of an experiment's rows into cells, and cells into tables."""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.reading import read_described
from attree.base.registry import check_name
from attree.base.tables import ARTICLE, BASELINE, CEILING, COMPUTED, Table, number, scores_table
from attree.evaluation import HEADINGS, LABELLED
from attree.experiments.data import read_record
from attree.plan.rows import SHOWN
from attree.reports.tables.summaries import ScoreRow, heading_of, read_published, score_rows

_RECALL = "recall_"

#: Panel and column → test set and longest sentence of its rows, where these are no summaries.
_Sentences = dict[tuple[str, str], set[tuple[str, int | None]]]


@dataclass(slots=True)
class Cell:
    """A cell of a table: the draws of one parser, or one published figure.

    Attributes:
        label, column: its line and column.
        source: ``computed``, ``baseline``, ``ceiling`` or ``article``.
        about: fields that all its draws share, for the CSV.
        values: metric → a value for each draw; the recall of NP is the metric ``recall_NP``.
        highest, deviation: metric → maximum and deviation, if single draws are not known.
        counts: label → number of gold constituents.
        notes: remarks shown in brackets.
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
        """The number of draws."""
        return max(map(len, self.values.values()), default=0)

    @property
    def labels(self) -> dict[str, str]:
        """Metric → label, for labels whose recall is known."""
        return {key: key.removeprefix(_RECALL) for key in self.values if key.startswith(_RECALL)}

    def add(
        self,
        scores: Mapping[str, Any],
        metrics: Iterable[str],
        recalls: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """Add a draw: its scores by metric, and its ``recall`` and ``count`` by label."""
        values = {metric: scores.get(metric) for metric in metrics}
        values |= {f"{_RECALL}{label}": counts["recall"] for label, counts in recalls.items()}
        for metric, value in values.items():
            self.values.setdefault(metric, []).extend([] if value is None else [value])
        self.counts |= {label: int(counts["count"]) for label, counts in recalls.items()}

    def mean(self, metric: str) -> float | None:
        """Return the mean over draws."""
        values = self.values.get(metric)
        return statistics.fmean(values) if values else None

    def std(self, metric: str) -> float | None:
        """Return the sample standard deviation over draws, or None for one draw."""
        values = self.values.get(metric, [])
        return statistics.stdev(values) if len(values) > 1 else self.deviation.get(metric)

    def max(self, metric: str) -> float | None:
        """Return the maximum over draws."""
        return self.highest.get(metric, max(self.values.get(metric, ()), default=None))

    def text(self, metric: str) -> str:
        """Return the cell as text: ``58.60 ± 1.40 (60.21) [2,794 trees]``."""
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
    """Return every cell: computed ones, then baselines, then those of the article.

    Args:
        results: lists of records, summaries of scores, and baselines.
        records: folder of the records.
        layout: the table's layout in the plan: title, axis, places and so on.
        published: file of published figures.

    Raises:
        AttreeError: a row has no record, or its cell another one too.
    """
    names, summaries = read_results(results)
    placed: dict[tuple[str, str, str], Cell] = {}
    for label, column, panel, record in placed_records(names, records, layout):
        empty = Cell(label, column, COMPUTED, panel=panel)
        _add(placed.setdefault((panel, label, column), empty), record)
    computed = list(placed.values())
    scored: _Sentences = {}
    for cell in computed:
        sentences = cell.about["test"], cell.about["max_words"]
        scored.setdefault((cell.panel, cell.column), set()).add(sentences)
    rows = score_rows(summaries, {})
    for row in rows:
        if not row.is_baseline:
            computed += [_scored_cell(row, rows, *place) for place in _places(row, scored)]
    baselines = []
    for test in dict.fromkeys(row.test for row in rows if row.is_baseline):
        fixed = [row for row in rows if row.test == test and row.is_baseline]
        for place in _places(fixed[0], scored):
            baselines += [_scored_cell(row, rows, *place) for row in fixed]
    made = computed + baselines
    places = Counter((cell.panel, cell.label, cell.column) for cell in made)
    for (_, label, column), number_of in places.items():
        if number_of > 1:
            problem = f"{layout['title']}: two rows fall into line {label!r}, column {column}"
            fix = "give the experiment's run another label than the row of its tables has"
            raise AttreeError("cell-twice", problem, fix=fix)
    for panel in dict.fromkeys(cell.panel for cell in made):
        part = [cell for cell in made if cell.panel == panel]
        tests = {cell.column: cell.about.get("test") or cell.column for cell in part}
        made += [replace(cell, panel=panel) for cell in _published(layout, published, tests)]
    return made


@dataclass(frozen=True, slots=True)
class _Result:
    """A job's list of rows and their records; None in a summary of scores."""

    rows: list[dict[str, str]] | None = None


def read_results(results: Iterable[Path]) -> tuple[dict[str, str], list[Path]]:
    """Split results into row → record, from the lists, and the paths of score summaries."""
    names: dict[str, str] = {}
    summaries = []
    for path in results:
        rows = read_described(path, _Result, what="result", fix="run the workflow again").rows
        names |= {row["row"]: row["record"] for row in rows or ()}
        summaries += [path] if rows is None else []
    return names, summaries


def placed_records(
    names: Mapping[str, str], records: Path, layout: Mapping[str, Any]
) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield label, column, panel and record of each row of a table.

    Args:
        names: row → record.
        records: folder of the records.
        layout: layout of the table; only ``places`` counts.

    Raises:
        AttreeError: a row has no record.
    """
    for row, label, column, panel in layout["places"]:
        record = read_record(records, names[row]) if row in names else None
        if record is None:
            problem = f"the row {label!r}, column {column}, has no record"
            raise AttreeError("missing-record", problem, file=records, fix="run the workflow again")
        yield label, column, panel, record


def _add(cell: Cell, record: Mapping[str, Any]) -> None:
    """Add a draw to its cell."""
    row, used = record["row"], record["used"]
    asked = row["trees"]
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
        **{key: record[key] for key in ("sentences", "punctuation", "derived")},
        "overlap": max(record["overlap"], cell.about.get("overlap", 0)),
    }
    cell.add(record, SHOWN, record["label_recall"])
    notes = []
    if isinstance(asked, int) and used < asked:
        notes.append(f"{used:,} trees")
    if record["new_head"]:
        notes.append("new head")
    cell.notes = list(dict.fromkeys([*cell.notes, *notes]))


def _places(row: ScoreRow, scored: _Sentences) -> list[tuple[str, str]]:
    """Return panel and column of each cell of a score summary: never beside other sentences.

    A baseline stands in every column of its panel that is of its sentences alone. Whatever has no
    such column has one of its test set, which names its lengths where others are there.
    """
    panel, test = row.language if any(part for part, _ in scored) else "", "/".join(row.test)
    own, longest = (test, row.max_words), f"≤{row.max_words}" if row.max_words else "all"
    alike = [place for place, sets in scored.items() if (place[0], sets) == (panel, {own})]
    column = test if own in scored.get((panel, test), {(test, None)}) else f"{test} {longest}"
    return alike if panel and row.is_baseline and alike else [(panel, column)]


def _scored_cell(row: ScoreRow, rows: Sequence[ScoreRow], panel: str, column: str) -> Cell:
    """Return the cell of a score summary: a parser of a table over languages, or a baseline."""
    details: dict[str, Any] = {"highest": dict(row.max), "deviation": dict(row.std), "panel": panel}
    source = CEILING if row.parser == "upper_bound" else BASELINE
    fields: dict[str, Any] = {"test": "/".join(row.test)}
    if not row.is_baseline:
        source = COMPUTED
        fields = {
            "encoder": row.encoder,
            "parser": row.parser,
            "train": row.selection or None,
            **fields,
            "max_words": row.max_words,
            "sentences": row.scored,
            "punctuation": row.punctuation or None,
            "derived": row.derived,
        }
    cell = Cell(heading_of(row, rows), column, source, fields, **details)
    cell.add(row.values, HEADINGS, {} if row.is_baseline else row.label_recall)
    return cell


def _published(layout: Mapping[str, Any], path: Path | None, sets: Mapping[str, str]) -> list[Cell]:
    """Return the article's cells for each column and its test set, sorted by label.

    The file names a column's figure ``metric@column``, or ``metric`` if columns are test sets.
    """
    cells: dict[tuple[str, str], Cell] = {}
    for column, test in sets.items():
        table = layout["published"].get(test, layout["published"].get("*"))
        figures = read_published(path, table) if table else {}
        own = "" if (layout["axis"], test) == ("test", column) else None
        named = {column.removeprefix("≤"), own}
        for (row, language, name), value in figures.items():
            metric, _, heading = name.partition("@")
            if language == test.partition("/")[0] and heading in named:
                label = f"{row} (article)"
                empty = Cell(label, column, ARTICLE, {"test": test})
                _figure(cells.setdefault((label, column), empty), metric, value)
    return sorted(cells.values(), key=lambda cell: cell.label)


def _figure(cell: Cell, metric: str, value: float) -> None:
    base, _, kind = metric.rpartition("_")
    if metric.startswith(_RECALL):
        cell.values[f"{_RECALL}{metric.removeprefix(_RECALL).upper()}"] = [value]
    elif kind in ("max", "std") and base in SHOWN:
        (cell.highest if kind == "max" else cell.deviation)[base] = value
    else:
        cell.values[metric] = [value]


def tables(cells: Sequence[Cell], layout: Mapping[str, Any]) -> list[Table]:
    """Build a table for each panel and metric, and tables of label recall if asked for."""
    made = []
    if above := layout.get("above"):
        problem = f"{layout['title']}: above: no line is called {above}"
        check_name(above, {cell.label for cell in cells}, problem, near=True)
    for panel in dict.fromkeys(cell.panel for cell in cells):
        part = [cell for cell in cells if cell.panel == panel]
        title = f"{layout['title']}, {panel}" if panel else layout["title"]
        made += [_table(part, metric, title, layout) for metric in layout["metrics"]]
        if layout["labels"]:
            columns = dict.fromkeys(cell.column for cell in part)
            made += [_labels(part, column, title) for column in columns]
    return made


def _table(cells: Sequence[Cell], metric: str, title: str, layout: Mapping[str, Any]) -> Table:
    columns = list(dict.fromkeys(cell.column for cell in cells))
    by_place = {(cell.label, cell.column): cell for cell in cells}
    rows = []
    for line in dict.fromkeys(cell.label for cell in cells):
        line_cells = [by_place.get((line, column)) for column in columns]
        if any(cell and cell.max(metric) is not None for cell in line_cells):
            rows.append([line, *(cell.text(metric) if cell else "–" for cell in line_cells)])
    heading = (HEADINGS | LABELLED).get(metric, metric.replace("_", " "))
    titles = [layout["axis"].replace("_", " "), *columns]
    notes = (_note(cells), _list_below(by_place, metric, layout.get("above")))
    return Table(f"{title}: {heading}", titles, rows, " ".join(filter(None, notes)))


def _labels(cells: Sequence[Cell], column: str, title: str) -> Table:
    labelled = [cell for cell in cells if cell.column == column and cell.labels]
    labels = {metric: label for cell in labelled for metric, label in cell.labels.items()}
    rows = [((cell.label,), {metric: cell.mean(metric) for metric in labels}) for cell in labelled]
    return scores_table(f"{title}, {column}: recall by label", ("parser",), labels, rows)


def _note(cells: Sequence[Cell]) -> str:
    """Return the note below a table: draws, sets of trees, settings that were chosen."""
    parts = []
    if (draws := max((cell.draws for cell in cells), default=1)) > 1:
        parts.append(f"Mean ± standard deviation (maximum) of up to {draws} draws.")
    if any("trees" in note for cell in cells for note in cell.notes):
        parts.append("[n trees]: the set holds no more than these.")
    if any("new head" in cell.notes for cell in cells):
        parts.append("[new head]: masked-LM tuning began from a new language-model head.")
    chosen = {
        f"{cell.label}, {cell.column}: {cell.about['layers_used']} ({cell.about['dropout_used']})"
        for cell in cells
        if cell.about.get("layer") == "tuned"
    }
    if chosen:
        parts.append(f"Layers (dropout) chosen: {'; '.join(sorted(chosen))}.")
    if overlap := max((cell.about.get("overlap") or 0 for cell in cells), default=0):
        which = "One sentence" if overlap == 1 else f"Up to {overlap:,} of the sentences"
        parts.append(f"{which} scored may also stand in the trees drawn from.")
    if trained := sorted({str(cell.about["train"]) for cell in cells if cell.about.get("train")}):
        parts.append(f"Trees from {', '.join(trained)}.")
    return " ".join(parts)


def _list_below(cells: Mapping[tuple[str, str], Cell], metric: str, line: str | None) -> str:
    """Return a sentence on the few-shot parsers that are not above a line, by column."""
    if line is None:
        return ""
    below: dict[str, list[str]] = {}
    trained = 0
    for (label, column), cell in cells.items():
        bar = cells.get((line, column))
        f1, bar_f1 = cell.mean(metric), bar.mean(metric) if bar else None
        if cell.about.get("layers_used") is None or f1 is None or bar_f1 is None:
            continue
        trained += 1
        if f1 <= bar_f1:
            below.setdefault(label, []).append(f"{column} ({number(f1)}, {number(bar_f1)})")
    if not trained:
        return ""
    if not below:
        return f"Every few-shot parser is above {line} in every column."
    listed = "; ".join(f"{label} on {', '.join(columns)}" for label, columns in below.items())
    return f"Few-shot parsers not above {line}: {listed}."
