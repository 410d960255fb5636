"""Build tables of the stages' results: scores over languages, of one language, sizes, a summary."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import pyarrow.compute as pc

from attree.base.errors import AttreeError
from attree.base.reading import described, read_described
from attree.base.schemas import PARTLY_BRACKETED, read_table
from attree.base.tables import Table, number, scores_table
from attree.evaluation import HEADED, HEADINGS, LABELLED, METRICS
from attree.evaluation.counts import NO_SPAN, Confusion, confusion_of
from attree.evaluation.resampling import SentenceCounts, intervals

#: The note below a table of label recall.
RECALL = "Share of the gold constituents with this label that were found, in percent."
_HEADED_NOTE = {
    "headed_precision": "Share of the phrases with exactly one word whose head lies outside. "
    "Trained on: how many of these sentences; none: a treebank that was never seen.",
    "subtree_recall": "Share of the words with all their dependents, if these are a span, that "
    "are phrases.",
}
#: Number of labels with a row and a column of their own in a table of confused labels.
SHOWN = 12

#: baseline → its short heading, in the order of tables
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
class _Settings:
    overlap: int = 0


@dataclass(frozen=True, slots=True)
class _Parses:
    settings: _Settings = _Settings()


@dataclass(frozen=True, slots=True)
class _Provenance:
    parses: _Parses = _Parses()


class _Recall(TypedDict):
    recall: float | None
    count: float | None


@dataclass(frozen=True, slots=True)
class _Summary:
    """The parts of a summary that tables need, apart from the scores."""

    language: str | None
    split: str | None
    encoder: str
    parser: str
    protocol: _Protocol
    label_recall: dict[str, _Recall] = field(default_factory=dict)
    std: dict[str, float] = field(default_factory=dict)
    max: dict[str, float] = field(default_factory=dict)
    provenance: _Provenance = _Provenance()


_FORM: dict[str, Any] = {"what": "score summary", "fix": "run `attree score` again"}


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The scores of one parser on one split, in percent; means over seeds if there are several.

    Attributes:
        values: metric → score, None where nothing was scored.
        sentences, scored, skipped, fallback: see :class:`attree.evaluation.counts.Counts`.
        selection: the trees that the parser was tuned or trained on; empty for none.
        seen: number of sentences that the parser was trained on.
        treebank: ``read``, ``failed``, ``emptied``… → number of sentences of the files.
        intervals: metric → 95 % interval of its score, if the sentences' scores are known.
        label_recall: label → ``recall`` and ``count``.
        deviation, highest: metric → standard deviation and maximum over several seeds.
        published: metric → the article's figure.
        confusion: confusion of labels, if trees have them.
        name: its name in a comparison, which may include its encoder.
        kind: in a comparison: computed (undertrained), imported or published.
        speed: sentences per second.
        each: the counts of each sentence, if they are known.
        by_length: longest sentence in words → corpus F1 in percent.
        p: p value of the difference in corpus F1 from the best system; NaN for the best itself.
    """

    language: str
    split: str
    encoder: str
    parser: str
    values: Mapping[str, float | None]
    sentences: int = 0
    scored: int = 0
    skipped: int = 0
    fallback: int = 0
    derived: str = ""
    punctuation: str = ""
    selection: str = ""
    seen: int = 0
    treebank: Mapping[str, int] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    label_recall: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    deviation: Mapping[str, float] = field(default_factory=dict)
    highest: Mapping[str, float] = field(default_factory=dict)
    published: Mapping[str, float] = field(default_factory=dict)
    confusion: Confusion | None = None
    name: str = ""
    kind: str = ""
    speed: float | None = None
    each: SentenceCounts | None = None
    by_length: Mapping[int, float | None] = field(default_factory=dict)
    p: float | None = None

    @property
    def test(self) -> tuple[str, str]:
        """Language and split."""
        return self.language, self.split

    @property
    def is_baseline(self) -> bool:
        """Whether the parser is a baseline or the binary ceiling."""
        return self.parser in BASELINES

    @property
    def lost(self) -> str:
        """A remark on a treebank that was not read whole; empty if it was."""
        read = self.treebank.get("read", 0)
        whole = read + sum(self.treebank.get(why, 0) for why in ("failed", "emptied", "left_out"))
        return "" if read == whole else f"{read:,} of {whole:,} sentences read"

    @property
    def overlap(self) -> str:
        """A remark on sentences that the parser was trained on; empty if there are none."""
        if not self.seen:
            return ""
        who = f"{self.name or self.heading}, {_name(self)}"
        return f"{who}: it was trained on {self.seen:,} of the {self.sentences:,} sentences."

    @property
    def heading(self) -> str:
        """The heading of the parser's column."""
        return BASELINES.get(self.parser, self.parser)

    @property
    def recall(self) -> dict[str, float | None]:
        """Label → recall in percent."""
        return {label: entry.get("recall") for label, entry in self.label_recall.items()}

    def flat(self) -> dict[str, Any]:
        """Return the row as a flat record, with columns for label recalls and published figures."""
        row = {name: getattr(self, name) for name in ("language", "split", "encoder", "parser")}
        row |= self.values
        if self.values.get("headed_precision") is not None:
            row["seen"] = self.seen
        row |= {name: getattr(self, name) for name in _PROTOCOL}
        row |= {f"treebank_{name}": count for name, count in self.treebank.items()}
        for metric, (low, high) in self.intervals.items():
            row |= {f"{metric}_low": low, f"{metric}_high": high}
        for label, entry in self.label_recall.items():
            row |= {f"recall_{label}": entry["recall"], f"count_{label}": entry["count"]}
        return row | self.article()

    def article(self) -> dict[str, float | None]:
        """Return the article's figures as columns."""
        return {f"published_{metric}": self.published.get(metric) for metric in HEADINGS}


_COUNTS = ("sentences", "scored", "skipped", "fallback")
_PROTOCOL = (*_COUNTS, "derived", "punctuation", "selection")


def by_test(rows: Iterable[ScoreRow]) -> dict[tuple[str, str], list[ScoreRow]]:
    """Group rows by (language, split), keeping their order."""
    tests: dict[tuple[str, str], list[ScoreRow]] = {}
    for row in rows:
        tests.setdefault(row.test, []).append(row)
    return tests


Published = Mapping[tuple[str, str, str], float]


def read_published(path: Path | None, table: str) -> Published:
    """Read the published figures of one of the article's tables.

    Returns:
        ``(row, language, metric)`` in lower case → value; empty when there is no file.

    Raises:
        AttreeError: the file is missing, or lacks a column.
    """
    if path is None:
        return {}
    if not path.is_file():
        problem = "this file of published figures does not exist"
        raise AttreeError("missing-file", problem, file=path)
    with path.open(encoding="utf-8", newline="") as handle:
        reader = csv.DictReader(handle)
        wanted = {"table", "row", "language", "metric", "value"}
        if missing := wanted - set(reader.fieldnames or ()):
            problem = f"missing columns {', '.join(sorted(missing))}"
            raise AttreeError("missing-columns", problem, file=path, line=1)
        lines = [line for line in reader if line["table"] == table]
    figures = {}
    for line in lines:
        row, language, metric = (line[name].lower() for name in ("row", "language", "metric"))
        figures[row, language, metric] = float(line["value"])
    return figures


def score_rows(
    paths: Iterable[Path], published: Published, *, resample: bool = True
) -> list[ScoreRow]:
    """Read summaries of ``attree score`` and ``attree baselines``, parsers before baselines.

    ``resample`` computes intervals, which takes a second per summary.
    """
    parsers, baselines = [], []
    for path in paths:
        summary = read_described(path, dict[str, Any], **_FORM)
        if "baselines" not in summary:
            parsers.append(_row(summary, published, path, resample))
            continue
        scores = described(summary["baselines"], dict[str, dict[str, Any]], file=path, **_FORM)
        _check_has(scores, BASELINES, path)
        for name in BASELINES:
            whole = {**summary, **scores[name], "parser": name, "encoder": "none"}
            baselines.append(_row(whole, published, path, resample=False))
    return parsers + baselines


def _check_has(summary: Mapping[str, Any], names: Iterable[str], path: Path) -> None:
    for name in names:
        if name not in summary:
            problem = f"this score summary has no {name!r}"
            raise AttreeError("missing-columns", problem, file=path, fix=_FORM["fix"])


def _row(summary: Mapping[str, Any], published: Published, path: Path, resample: bool) -> ScoreRow:
    _check_has(summary, ("parser", "language", "split", "encoder", "protocol", *HEADINGS), path)
    fields = described(summary, _Summary, file=path, **_FORM)
    values = {metric: summary.get(metric) for metric in (*HEADINGS, *LABELLED, *HEADED)}
    language, protocol, counts = fields.language or "", fields.protocol, fields.protocol.sentences
    key = (fields.parser.lower(), language.lower())
    scores = path.with_suffix(".parquet")  # written by `attree score` too
    return ScoreRow(
        language,
        fields.split or "",
        fields.encoder,
        fields.parser,
        described(values, dict[str, float | None], file=path, **_FORM),
        sentences=counts.total,
        scored=counts.scored,
        skipped=counts.skipped,
        fallback=counts.fallback,
        derived=protocol.derived,
        punctuation=protocol.punctuation or "",
        selection=protocol.selection or "",
        seen=fields.provenance.parses.settings.overlap,
        treebank=protocol.treebank or {},
        intervals=intervals(SentenceCounts.read(scores))
        if resample and scores.is_file() and summary["corpus_f1"] is not None
        else {},
        label_recall=fields.label_recall,
        deviation=fields.std,
        highest=fields.max,
        published={m: published[(*key, m)] for m in HEADINGS if (*key, m) in published},
        confusion=confusion_of(summary, path),
    )


def crosslingual(rows: Sequence[ScoreRow], title: str) -> list[Table]:
    """Build a table for each metric, with a row per language and a column per parser or baseline.

    Constituency treebanks and dependency-derived brackets never share a table. The article's
    figures have columns of their own beside the computed ones. Where heads of words are known,
    phrases are compared with these instead.
    """
    with_heads = {row.test for row in rows if row.values.get("headed_precision") is not None}
    headed = [row for row in rows if row.test in with_heads and row.parser != "upper_bound"]
    tables = [_across(headed, metric, title) for metric in HEADED if headed]
    others = [row for row in rows if row.test not in with_heads]
    for kind in dict.fromkeys(["constituency", *(row.derived for row in others)]):
        alike = [row for row in others if row.derived == kind]
        heading = title if kind == "constituency" else f"{title}, {kind}-derived brackets"
        tables += [
            _across(alike, metric, heading) for metric in ("corpus_f1", "sentence_f1") if alike
        ]
    return tables


def _across(rows: Sequence[ScoreRow], metric: str, title: str) -> Table:
    columns = list(dict.fromkeys(heading_of(row, rows) for row in rows))
    columns.sort(key=lambda heading: heading in BASELINES.values())
    published = {heading_of(row, rows) for row in rows if metric in row.published}
    headings = ["language", "sentences", *(["trained on"] if metric in HEADED else [])]
    for column in columns:
        headings += [column, f"{column} (article)"] if column in published else [column]
    lines = []
    for same_test in by_test(rows).values():
        first, cells = same_test[0], {heading_of(row, rows): row for row in same_test}
        line = [f"{_name(first)}{' *' if first.lost else ''}", f"{first.scored:,}"]
        if metric in HEADED:
            seen = max(row.seen for row in same_test)
            line.append(f"{seen:,}" if seen else "none")
        for column in columns:
            row = cells.get(column)
            line.append(number(row.values[metric] if row else None))
            if column in published:
                line.append(number(row.published.get(metric) if row else None))
        lines.append(line)
    note = _HEADED_NOTE[metric] if metric in HEADED else _note(rows)
    return Table(f"{title}: {METRICS[metric].heading}", headings, lines, note)


def _name(row: ScoreRow) -> str:
    return row.language if row.split == "test" else f"{row.language} {row.split}"


def language(rows: Sequence[ScoreRow], *, confusion: bool = True) -> list[Table]:
    """Build the tables of each test set: scores, recall by label, confusions of labels."""
    tables = []
    for test, tested in by_test(rows).items():
        title = ", ".join(test)
        others = LABELLED | HEADED
        shown = HEADINGS | {
            metric: heading
            for metric, heading in others.items()
            if any(row.values.get(metric) is not None for row in tested)
        }
        lines = [((row.heading, row.encoder), row.values) for row in tested]
        tables.append(scores_table(title, ("parser", "encoder"), shown, lines, _note(tested)))
        counts = {label: entry["count"] for label, entry in tested[0].label_recall.items()}
        if labels := {label: f"{label} ({count:,.0f})" for label, count in counts.items() if count}:
            recalls = [((row.heading,), row.recall) for row in tested]
            recall_title = f"{title}: recall by label"
            tables.append(scores_table(recall_title, ("parser",), labels, recalls, RECALL))
        tables += [
            confusion_table(row.confusion, f"{title}: labels of {heading_of(row, tested)}")
            for row in tested
            if confusion and row.confusion is not None
        ]
    return tables


def confusion_table(confusion: Confusion, title: str) -> Table:
    """Build a table of gold against predicted labels."""
    shown = confusion.most_frequent(SHOWN)
    lines = [
        [name, *(f"{count:,}" if count else "·" for count in row)]
        for name, row in zip(shown.headings, shown.counts.tolist(), strict=True)
    ]
    note = (
        "Gold labels down, predicted ones of the same spans across, counted as EVALB counts "
        f"brackets; {NO_SPAN}: the other tree has no such span, or it has fewer labels there."
    )
    if foreign := confusion.foreign:
        note += f" Predicted labels that the treebank does not have: {', '.join(foreign)}."
    return Table(title, ["gold", *shown.headings], lines, note)


def heading_of(row: ScoreRow, rows: Sequence[ScoreRow]) -> str:
    """Return the heading of a parser's column, with the encoder if a test set has several."""
    twins = [other for other in rows if (other.test, other.parser) == (row.test, row.parser)]
    several = not row.is_baseline and len({twin.encoder for twin in twins}) != 1
    return f"{row.heading} {row.encoder}" if several else row.heading


def _note(rows: Sequence[ScoreRow]) -> str:
    """Return the note below a table of scores."""
    parts = []
    if any(row.derived != "constituency" for row in rows):
        parts.append("Dependency-derived brackets: not comparable with constituency treebanks.")
    parts.append("Random rows are means over their seeds; one-word sentences are not scored.")
    if fallback := sum(row.fallback for row in rows):
        parts.append(f"{fallback:,} sentences past the encoder's limit were branched right.")
    for row in rows:
        if row.skipped and not row.is_baseline:
            parts.append(
                f"{row.heading}, {_name(row)}: {row.skipped:,} of {row.sentences:,} sentences have"
                " no tree and are not scored."
            )
    parts += [row.overlap for row in rows if row.overlap]
    parts += dict.fromkeys(f"* {_name(row)}: {row.lost}." for row in rows if row.lost)
    if selection := sorted({row.selection for row in rows if row.selection}):
        parts.append(f"Tuned or trained on {', '.join(selection)}.")
    return " ".join(parts)


def size_rows(paths: Sequence[Path], published: Published) -> list[dict[str, Any]]:
    """Return a record per split: sentences read and rejected, words, and the published count."""
    records = []
    for path in paths:
        table, facts = read_table(path, schema=PARTLY_BRACKETED)
        lengths = pc.list_value_length(table["words"])
        counted = published.get((facts["split"].lower(), facts["language"].lower(), "sentences"))
        records.append(
            {
                "language": facts["language"],
                "split": facts["split"],
                "sentences": table.num_rows,
                **{f"sentences_{name}": count for name, count in facts["counts"].items()},
                "words": pc.sum(lengths).as_py() or 0,
                "longest": pc.max(lengths).as_py() or 0,
                "derived": facts["derived"],
                "punctuation": facts["punctuation"],
                "published": None if counted is None else int(counted),
            }
        )
    return records


def sizes(records: Sequence[dict[str, Any]]) -> list[Table]:
    """Build the table of sizes, with a row per language and split."""
    columns = ["sentences", "rejected", "words", "longest"]
    if any(record["published"] is not None for record in records):
        columns.append("published")
    rows = []
    for record in records:
        rejected = record["sentences_failed"] + record["sentences_emptied"]
        counts = ({**record, "rejected": rejected}[name] for name in columns)
        cells = ("–" if count is None else f"{count:,}" for count in counts)
        rows.append([record["language"], record["split"], *cells])
    headings = ["language", "split", *columns[:4], *["article"] * (len(columns) - 4)]
    note = "Rejected: unreadable trees and sentences that cleaning left without a word."
    return [Table("Treebanks", headings, rows, note)]


@dataclass(frozen=True, slots=True)
class _Told:
    sentences: _Sentences
    metric: str


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is shown of a summary beside its scores."""

    protocol: _Told
    parser: str | None = None
    language: str | None = None
    split: str | None = None
    baselines: dict[str, dict[str, Any]] | None = None


def summary_table(summary: Mapping[str, Any]) -> Table:
    """Build the table of a summary of ``attree score`` or ``attree baselines``.

    Raises:
        AttreeError: ``summary`` is no such summary.
    """
    protocol = summary.get("protocol") if isinstance(summary, Mapping) else None
    if not isinstance(protocol, Mapping) or "sentences" not in protocol:
        raise AttreeError(
            "not-a-summary", "this is no summary of scores", fix="give one of `attree score`"
        )
    of = described(summary, _Shown, **_FORM)
    named = of.baselines or {of.parser or "parses": dict(summary)}
    rows = {
        name: described({key: row.get(key) for key in METRICS}, dict[str, float | None], **_FORM)
        for name, row in named.items()
    }
    shown = {
        name: metric.heading
        for name, metric in METRICS.items()
        if any(row.get(name) is not None for row in rows.values())
    }
    counted = of.protocol.sentences
    note = f"{counted.scored:,} of {counted.total:,} sentences are scored"
    skipped = f", {counted.skipped:,} have no tree" if counted.skipped else ""
    title = " ".join(filter(None, (of.language, of.split))) or "Scores"
    note += f"{skipped}; {of.protocol.metric}."
    lines = [((name,), row) for name, row in rows.items()]
    return scores_table(title, ("",), shown or {"corpus_f1": HEADINGS["corpus_f1"]}, lines, note)
