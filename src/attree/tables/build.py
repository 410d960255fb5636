"""From the stages' results to tables: scores over languages, and of one language."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from attree.errors import AttreeError
from attree.evaluation.confusion import Confusion, confusion_of
from attree.files import described, read_described
from attree.tables import LABELLED, METRICS
from attree.tables.labels import confusion_table, recall_tables
from attree.tables.render import Table, number
from attree.tables.resampling import SentenceScores, intervals

#: Baselines in table order, with short headings: they stand beside every parser.
BASELINES = {
    "right_branching": "right",
    "left_branching": "left",
    "balanced": "balanced",
    "random_uniform_split": "random split",
    "random_shift_reduce": "random shift",
    "random_uniform_tree": "random tree",
    "upper_bound": "binary ceiling",
}


@dataclass(frozen=True, slots=True)
class _Sentences:
    total: int
    scored: int
    skipped: int
    fallback: int = 0


@dataclass(frozen=True, slots=True)
class _Protocol:
    sentences: _Sentences
    derived: str
    punctuation: str | None
    selection: str | None = None
    treebank: dict[str, int] | None = None


@dataclass(frozen=True, slots=True)
class _Summary:
    """What tables need of a summary, the scores of each metric aside."""

    language: str | None
    split: str | None
    encoder: str
    parser: str
    protocol: _Protocol
    label_recall: dict[str, dict[str, float | None]] = field(default_factory=dict)


_WHAT, _AGAIN = "score summary", "run `attree score` again"


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The scores of one parser on one split, in percent; means where there are several seeds.

    Attributes:
        values: metric → score, None where nothing could be scored.
        sentences, scored, skipped, fallback: see :class:`attree.evaluation.counts.Counts`.
        treebank: what became of the sentences of the files: ``read``, ``failed``, ``emptied``…
        intervals: metric → the 95 % interval of its score, where each sentence's score is there.
        label_recall: label → ``recall`` and ``count``.
        published: metric → the article's figure.
        confusion: of labels, where trees have them.
    """

    language: str
    split: str
    encoder: str
    parser: str
    values: Mapping[str, float | None]
    sentences: int
    scored: int
    skipped: int
    fallback: int
    derived: str
    punctuation: str
    selection: str
    treebank: Mapping[str, int] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    label_recall: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    published: Mapping[str, float] = field(default_factory=dict)
    confusion: Confusion | None = None

    @property
    def lost(self) -> str:
        """What to say of a treebank that was not read whole; empty where it was."""
        read = self.treebank.get("read", 0)
        whole = read + sum(self.treebank.get(why, 0) for why in ("failed", "emptied", "left_out"))
        return "" if read == whole else f"{read:,} of {whole:,} sentences read"

    @property
    def heading(self) -> str:
        """The short name that a table's column carries."""
        return BASELINES.get(self.parser, self.parser)

    def flat(self) -> dict[str, Any]:
        """Return the row with label recalls and published figures as columns of their own."""
        row: dict[str, Any] = {}
        for key, value in asdict(replace(self, confusion=None)).items():
            row |= value if key == "values" else {key: value}
        del row["confusion"]
        recalls, published = row.pop("label_recall"), row.pop("published")
        counts, intervals = row.pop("treebank"), row.pop("intervals")
        row |= {f"treebank_{name}": count for name, count in counts.items()}
        for metric, (low, high) in intervals.items():
            row |= {f"{metric}_low": low, f"{metric}_high": high}
        for label, entry in recalls.items():
            row[f"recall_{label}"] = entry["recall"]
            row[f"count_{label}"] = entry["count"]
        for metric in METRICS:
            row[f"published_{metric}"] = published.get(metric)
        return row


Published = Mapping[tuple[str, str, str], float]


def read_published(path: Path | None, table: str) -> Published:
    """Read the published figures of one of the article's tables.

    Returns:
        ``(row, language, metric)`` in lower case → value; empty when there is no file.

    Raises:
        AttreeError: the file is absent, or lacks one of its columns.
    """
    if path is None:
        return {}
    if not path.is_file():
        raise AttreeError("this file of published figures does not exist", file=path)
    with path.open(encoding="utf-8", newline="") as handle:
        reader = csv.DictReader(handle)
        wanted = {"table", "row", "language", "metric", "value"}
        if missing := wanted - set(reader.fieldnames or ()):
            raise AttreeError(f"missing columns {', '.join(sorted(missing))}", file=path, line=1)
        return {
            (row["row"].lower(), row["language"].lower(), row["metric"].lower()): float(
                row["value"]
            )
            for row in reader
            if row["table"] == table
        }


def score_rows(
    paths: Iterable[Path], published: Published, *, resample: bool = True
) -> list[ScoreRow]:
    """Read summaries of ``attree score`` and ``attree baselines``, parsers before baselines.

    ``resample`` asks for intervals, which take a second a summary.
    """
    parsers, baselines = [], []
    for path in paths:
        summary = read_described(path, dict[str, Any], what=_WHAT, fix=_AGAIN)
        if "baselines" not in summary:
            parsers.append(_row(summary, published, path, resample))
            continue
        kind = dict[str, dict[str, Any]]
        each = described(summary["baselines"], kind, file=path, what=_WHAT, fix=_AGAIN)
        _check_has(each, BASELINES, path)
        for name in BASELINES:
            one = {**summary, **each[name], "parser": name, "encoder": "none"}
            baselines.append(_row(one, published, path, resample=False))
    return parsers + baselines


def _check_has(summary: Mapping[str, Any], names: Iterable[str], path: Path) -> None:
    for name in names:
        if name not in summary:
            raise AttreeError(f"this score summary has no {name!r}", file=path, fix=_AGAIN)


def _row(summary: Mapping[str, Any], published: Published, path: Path, resample: bool) -> ScoreRow:
    _check_has(summary, ("parser", "language", "split", "encoder", "protocol", *METRICS), path)
    found = described(summary, _Summary, file=path, what=_WHAT, fix=_AGAIN)
    scores = {metric: summary[metric] for metric in METRICS}  # null: nothing to score
    scores |= {metric: summary.get(metric) for metric in LABELLED}
    language, protocol = found.language or "", found.protocol
    key = (found.parser.lower(), language.lower())
    return ScoreRow(
        language=language,
        split=found.split or "",
        encoder=found.encoder,
        parser=found.parser,
        values=described(scores, dict[str, float | None], file=path, what=_WHAT, fix=_AGAIN),
        sentences=protocol.sentences.total,
        scored=protocol.sentences.scored,
        skipped=protocol.sentences.skipped,
        fallback=protocol.sentences.fallback,
        derived=protocol.derived,
        punctuation=protocol.punctuation or "",
        selection=protocol.selection or "",
        treebank=protocol.treebank or {},
        intervals=_intervals(path) if resample else {},
        label_recall=found.label_recall,
        published={m: published[(*key, m)] for m in METRICS if (*key, m) in published},
        confusion=confusion_of(summary, path),
    )


def _intervals(summary: Path) -> Mapping[str, tuple[float, float]]:
    """Return the intervals by the table of sentences that ``attree score`` writes beside."""
    scores = summary.with_suffix(".parquet")
    return intervals(SentenceScores.read(scores)) if scores.is_file() else {}


def crosslingual(rows: Sequence[ScoreRow], title: str) -> list[Table]:
    """Build a table for each metric: a row a language, a column a parser or baseline.

    Constituency treebanks and dependency-derived brackets never share a table. Where the article
    published a figure, it stands in a column of its own beside the computed one.
    """
    kinds = dict.fromkeys(["constituency", *(row.derived for row in rows)])
    tables = []
    for kind in kinds:
        own = [row for row in rows if row.derived == kind]
        heading = title if kind == "constituency" else f"{title}, {kind}-derived brackets"
        tables += [_across(own, metric, heading) for metric in ("corpus_f1", "sentence_f1") if own]
    return tables


def _across(rows: Sequence[ScoreRow], metric: str, title: str) -> Table:
    columns = list(dict.fromkeys(heading_of(row, rows) for row in rows))
    columns.sort(key=lambda heading: heading in BASELINES.values())
    by_cell = {(row.language, row.split, heading_of(row, rows)): row for row in rows}
    published = {heading_of(row, rows) for row in rows if metric in row.published}
    headings = ["language", "sentences"]
    for column in columns:
        headings += [column, f"{column} (article)"] if column in published else [column]
    lines = []
    for language, split in dict.fromkeys((row.language, row.split) for row in rows):
        cells = [by_cell.get((language, split, column)) for column in columns]
        first = next(row for row in cells if row is not None)
        line = [f"{_name(first)}{' *' if first.lost else ''}", f"{first.scored:,}"]
        for column, row in zip(columns, cells, strict=True):
            line.append(number(row.values[metric] if row else None))
            if column in published:
                line.append(number(row.published.get(metric) if row else None))
        lines.append(line)
    return Table(f"{title}: {METRICS[metric]}", headings, lines, _note(rows))


def _name(row: ScoreRow) -> str:
    return row.language if row.split == "test" else f"{row.language} {row.split}"


def language(rows: Sequence[ScoreRow], *, confusion: bool = True) -> list[Table]:
    """Build one language's tables: every parser's scores, recall by label, confusion of labels."""
    tables = []
    for name, split in dict.fromkeys((row.language, row.split) for row in rows):
        own = [row for row in rows if (row.language, row.split) == (name, split)]
        labelled = [m for m in LABELLED if any(row.values[m] is not None for row in own)]
        shown = METRICS | {metric: LABELLED[metric] for metric in labelled}
        headings = ["parser", "encoder", *shown.values()]
        lines = [
            [row.heading, row.encoder, *(number(row.values[metric]) for metric in shown)]
            for row in own
        ]
        tables.append(Table(f"{name}, {split}", headings, lines, _note(own)))
        tables += recall_tables(own, f"{name}, {split}")
        tables += [
            confusion_table(row.confusion, f"{name}, {split}: labels of {heading_of(row, own)}")
            for row in own
            if confusion and row.confusion is not None
        ]
    return tables


def heading_of(row: ScoreRow, rows: Sequence[ScoreRow]) -> str:
    """Name a parser's column by itself, and by the encoder too where one language has two."""
    if row.parser in BASELINES:
        return row.heading
    encoders = {
        other.encoder
        for other in rows
        if (other.language, other.split, other.parser) == (row.language, row.split, row.parser)
    }
    return row.heading if len(encoders) == 1 else f"{row.heading} {row.encoder}"


def _note(rows: Sequence[ScoreRow]) -> str:
    """Say what the figures of a table rest on."""
    parts = []
    if any(row.derived != "constituency" for row in rows):
        parts.append("Dependency-derived brackets: not comparable with constituency treebanks.")
    parts.append("Random rows are means over their seeds; one-word sentences are not scored.")
    if fallback := sum(row.fallback for row in rows):
        parts.append(f"{fallback:,} sentences past the encoder's limit were branched right.")
    for row in rows:
        if row.skipped and row.parser not in BASELINES:
            parts.append(
                f"{row.heading}, {_name(row)}: {row.skipped:,} of {row.sentences:,} sentences have"
                " no tree and are not scored."
            )
    if lost := {_name(row): row.lost for row in rows if row.lost}:
        parts += [f"* {name}: {what}." for name, what in lost.items()]
    if selection := sorted({row.selection for row in rows if row.selection}):
        parts.append(f"Tuned or trained on {', '.join(selection)}.")
    return " ".join(parts)
