"""What summaries of scores say, a row each; tables over languages, of one language, of sizes."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypedDict, TypeVar

import pyarrow.compute as pc

from attree.base.errors import AttreeError
from attree.base.reading import described, read_described, read_text
from attree.base.registry import check_name
from attree.base.schemas import PARTLY_BRACKETED, read_table
from attree.base.tables import BASELINES, Table, number, scores_table, with_values
from attree.evaluation import HEADED, HEADINGS, LABELLED, METRICS
from attree.evaluation.labels import NO_SPAN, Confusion, confusion_of
from attree.evaluation.metrics import Scored
from attree.evaluation.resampling import intervals
from attree.evaluation.rows import read_scored
from attree.plan.paths import TableRow

#: The article's table of the sizes of treebanks.
SIZES = "dataset-size"
_FORM: dict[str, Any] = {"what": "score summary", "fix": "run `attree score` again"}


class _Recall(TypedDict):
    recall: float | None
    count: float | None


@dataclass(frozen=True)
class ScoreRow:
    """The scores of one parser on one split, in percent; means over seeds if there are several.

    Most fields are keys of the summary or of its ``protocol``.

    Attributes:
        values: metric → score, None where nothing was scored.
        total, scored, skipped, fallback: numbers of sentences, see
            :class:`attree.evaluation.metrics.Counts`.
        selection: the trees that the parser was tuned or trained on; empty for none.
        treebank: ``read``, ``failed``, ``emptied``… → number of sentences of the files.
        metric: what the scores are, in words.
        label_recall: label → ``recall`` and ``count``.
        std, max: metric → standard deviation and maximum over several seeds.
        seen: number of sentences that the parser was trained on.
        published: metric → the article's figure.
        confusion: confusion of labels, if trees have them.
        file: of the summary; - for none.
        max_words: the longest sentence that was scored, None for all.
    """

    encoder: str
    parser: str
    values: Mapping[str, float | None]
    total: int
    scored: int
    skipped: int
    derived: str
    language: str = ""
    split: str = ""
    fallback: int = 0
    punctuation: str = ""
    selection: str = ""
    treebank: Mapping[str, int] = field(default_factory=dict)
    metric: str = ""
    label_recall: Mapping[str, _Recall] = field(default_factory=dict)
    std: Mapping[str, float] = field(default_factory=dict)
    max: Mapping[str, float] = field(default_factory=dict)
    seen: int = 0
    published: Mapping[str, float] = field(default_factory=dict)
    confusion: Confusion | None = None
    file: str = "-"
    max_words: int | None = None

    @property
    def test(self) -> tuple[str, str]:
        """Language and split."""
        return self.language, self.split

    @property
    def key(self) -> TableRow:
        """What the summary is of."""
        return TableRow(self.encoder, self.parser, self.language, self.split)

    @property
    def where(self) -> str:
        """Language, and the split if it is another than the test set."""
        return self.language if self.split == "test" else f"{self.language} {self.split}"

    @property
    def is_baseline(self) -> bool:
        """Whether the parser is a baseline or the binary ceiling."""
        return self.parser in BASELINES

    @property
    def heading(self) -> str:
        """The heading of the parser's column."""
        return BASELINES.get(self.parser, self.parser)

    @property
    def recall(self) -> dict[str, float | None]:
        """Label → recall in percent."""
        return {label: entry["recall"] for label, entry in self.label_recall.items()}

    @cached_property
    def each(self) -> Scored | None:
        """The scores of each sentence, if `attree score` wrote them beside the summary."""
        path = Path(self.file).with_suffix(".parquet")
        return None if self.is_baseline or not path.is_file() else read_scored(path)

    @cached_property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """Metric → 95 % interval of its score, if the sentences' scores are known."""
        scored = self.values["corpus_f1"] is not None and self.each
        return intervals(scored) if scored else {}

    @property
    def lost(self) -> str:
        """A remark on a treebank that was not read whole; empty if it was."""
        read = self.treebank.get("read", 0)
        whole = read + sum(self.treebank.get(why, 0) for why in ("failed", "emptied", "left_out"))
        return "" if read == whole else f"{read:,} of {whole:,} sentences read"

    def overlap(self, name: str = "") -> list[str]:
        """Return a remark on sentences that the parser was trained on, if there are some."""
        told = f"it was trained on {self.seen:,} of the {self.total:,} sentences."
        return [f"{name or self.heading}, {self.where}: {told}"] if self.seen else []

    def flat(self) -> dict[str, Any]:
        """Return the row as a flat record, with columns for label recalls and published figures."""
        row = {name: getattr(self, name) for name in ("language", "split", "encoder", "parser")}
        row |= {metric: self.values[metric] for metric in (*HEADINGS, *LABELLED, *HEADED)}
        if row["headed_precision"] is not None:
            row["seen"] = self.seen
        row["sentences"] = self.total
        more = ("scored", "skipped", "fallback", "derived", "punctuation", "selection")
        row |= {name: getattr(self, name) for name in more}
        row |= {f"treebank_{name}": count for name, count in self.treebank.items()}
        for metric, (low, high) in self.intervals.items():
            row |= {f"{metric}_low": low, f"{metric}_high": high}
        for label, entry in self.label_recall.items():
            row |= {f"recall_{label}": entry["recall"], f"count_{label}": entry["count"]}
        return row | self.article()

    def article(self) -> dict[str, float | None]:
        """Return the article's figures as columns."""
        return {f"published_{metric}": self.published.get(metric) for metric in HEADINGS}


class _Tested(Protocol):
    @property
    def test(self) -> tuple[str, str]: ...


_Row = TypeVar("_Row", bound=_Tested)


def by_test(rows: Iterable[_Row]) -> dict[tuple[str, str], list[_Row]]:
    """Group rows by (language, split), keeping their order."""
    tests: dict[tuple[str, str], list[_Row]] = {}
    for row in rows:
        tests.setdefault(row.test, []).append(row)
    return tests


def heading_of(row: ScoreRow, rows: Sequence[ScoreRow]) -> str:
    """Return the heading of a parser's column, with the encoder if the parser has several."""
    encoders = {other.encoder for other in rows if other.parser == row.parser}
    several = not row.is_baseline and len(encoders) != 1
    return f"{row.heading} {row.encoder}" if several else row.heading


Published = Mapping[tuple[str, str, str], float]


def read_published(path: Path | None, table: str) -> Published:
    """Read the published figures of one of the article's tables.

    Returns:
        ``(row, language, metric)`` in lower case → value; empty when there is no file.

    Raises:
        AttreeError: the file is missing or lacks a column or the table, or a figure is no number or
            stands twice with different values.
    """
    if path is None:
        return {}
    text = read_text(path, what="file of published figures")
    reader = csv.DictReader(text.splitlines(keepends=True))
    if missing := {"table", "row", "language", "metric", "value"} - set(reader.fieldnames or ()):
        problem = f"missing columns {', '.join(sorted(missing))}"
        raise AttreeError("missing-columns", problem, file=path, line=1)
    figures: dict[tuple[str, str, str], float] = {}
    names = {SIZES}  # which every file is asked for
    for line in reader:
        names.add(line["table"])
        if line["table"] != table:
            continue
        try:
            row, language, metric = (line[name].lower() for name in ("row", "language", "metric"))
            value = float(line["value"])
        except (AttributeError, TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value) or figures.setdefault((row, language, metric), value) != value:
            problem = "this figure is no number, or an earlier line gives it another value"
            raise AttreeError("bad-figure", problem, file=path, line=reader.line_num, fix="mend it")
    check_name(table, names, f"no figure is of the table {table}", file=path, near=True)
    return figures


def score_rows(paths: Iterable[Path], published: Published) -> list[ScoreRow]:
    """Read summaries of ``attree score`` and ``attree baselines``, parsers before baselines."""
    summaries = ((read_described(path, dict[str, Any], **_FORM), path) for path in paths)
    rows = [row for summary, path in summaries for row in rows_of(summary, path, published)]
    return sorted(rows, key=lambda row: row.is_baseline)


def rows_of(summary: Mapping[str, Any], path: Path | None, published: Published) -> list[ScoreRow]:
    """Return the row of a summary of ``attree score``, or the rows of one of ``attree baselines``.

    Raises:
        AttreeError: ``summary`` is no such summary.
    """
    if "baselines" not in summary:
        return [_row(summary, path, published)]
    scores = described(summary["baselines"], dict[str, dict[str, Any]], file=path, **_FORM)
    _check_has(scores, BASELINES, path)
    return [
        _row({**summary, **scores[name], "parser": name, "encoder": "none"}, path, published)
        for name in BASELINES
    ]


def _row(summary: Mapping[str, Any], path: Path | None, published: Published) -> ScoreRow:
    _check_has(summary, ("parser", "language", "split", "encoder", "protocol", *HEADINGS), path)
    facts = {**_at(summary, "protocol", "sentences"), **_at(summary, "protocol"), **summary}
    facts = {name: fact for name, fact in facts.items() if fact is not None}
    facts["values"] = {metric: summary.get(metric) for metric in METRICS}
    facts["seen"] = _at(summary, "provenance", "parses", "settings").get("overlap", 0)
    facts |= {"published": {}, "confusion": None, "file": str(path)}
    row = described(facts, ScoreRow, file=path, **_FORM)
    key = row.parser.lower(), row.language.lower()
    figures = {m: published[(*key, m)] for m in HEADINGS if (*key, m) in published}
    return replace(row, confusion=confusion_of(summary, path), published=figures)


def _at(summary: Any, *keys: str) -> dict[str, Any]:
    """Return a mapping inside a summary; empty if there is none."""
    for key in keys:
        summary = summary.get(key) if isinstance(summary, dict) else None
    return summary if isinstance(summary, dict) else {}


def _check_has(summary: Mapping[str, Any], names: Iterable[str], path: Path | None) -> None:
    for name in names:
        if name not in summary:
            problem = f"this score summary has no {name!r}"
            raise AttreeError("missing-columns", problem, file=path, fix=_FORM["fix"])


#: The note below a table of label recall.
RECALL = "Share of the gold constituents with this label that were found, in percent."
#: Number of labels with a row and a column of their own in a table of confused labels.
SHOWN = 12


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
        shown = [name for name, metric in METRICS.items() if metric.across and alike]
        tables += [_across(alike, metric, heading) for metric in shown]
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
        line = [f"{first.where}{' *' if first.lost else ''}", f"{first.scored:,}"]
        if metric in HEADED:
            seen = max(row.seen for row in same_test)
            line.append(f"{seen:,}" if seen else "none")
        for column in columns:
            row = cells.get(column)
            line.append(number(row.values[metric] if row else None))
            if column in published:
                line.append(number(row.published.get(metric) if row else None))
        lines.append(line)
    note = METRICS[metric].meaning if metric in HEADED else _note(rows)
    return Table(f"{title}: {METRICS[metric].heading}", headings, lines, note)


def language(rows: Sequence[ScoreRow], *, confusion: bool = True) -> list[Table]:
    """Build the tables of each test set: scores, recall by label, confusions of labels."""
    tables = []
    for test, tested in by_test(rows).items():
        title = ", ".join(test)
        shown = HEADINGS | with_values(LABELLED | HEADED, [row.values for row in tested])
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


def _note(rows: Sequence[ScoreRow]) -> str:
    """Return the note below a table of scores."""
    parts = []
    if any(row.derived != "constituency" for row in rows):
        parts.append("Dependency-derived brackets: not comparable with constituency treebanks.")
    parts.append("Random rows are means over their seeds; one-word sentences are not scored.")
    most = {row.test: max(x.fallback for x in rows if x.test == row.test) for row in rows}
    if fallback := sum(most.values()):
        parts.append(f"{fallback:,} sentences past the encoder's limit were branched right.")
    for row in rows:
        if row.skipped and not row.is_baseline:
            parts.append(
                f"{row.heading}, {row.where}: {row.skipped:,} of {row.total:,} sentences have"
                " no tree and are not scored."
            )
    parts += [remark for row in rows for remark in row.overlap()]
    parts += dict.fromkeys(f"* {row.where}: {row.lost}." for row in rows if row.lost)
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
    headings = {name: name for name in ("sentences", "rejected", "words", "longest")}
    if any(record["published"] is not None for record in records):
        headings["published"] = "article"
    rows = []
    for record in records:
        rejected = record["sentences_failed"] + record["sentences_emptied"]
        counts = ({**record, "rejected": rejected}[name] for name in headings)
        cells = ("–" if count is None else f"{count:,}" for count in counts)
        rows.append([record["language"], record["split"], *cells])
    note = "Rejected: unreadable trees and sentences that cleaning left without a word."
    return [Table("Treebanks", ["language", "split", *headings.values()], rows, note)]


def summary_table(summary: Mapping[str, Any]) -> Table:
    """Build the table of a summary of ``attree score`` or ``attree baselines``.

    Raises:
        AttreeError: ``summary`` is no such summary.
    """
    if not isinstance(summary, Mapping):
        problem, fix = "this is no summary of scores", "give one of `attree score`"
        raise AttreeError("not-a-summary", problem, fix=fix)
    named = {"parser": summary.get("parser") or "parses", "encoder": "none"}
    rows = rows_of({**summary, **named}, None, {})
    lines = [((row.parser,), row.values) for row in rows]
    note = f"{rows[0].scored:,} of {rows[0].total:,} sentences are scored"
    note += f", {rows[0].skipped:,} have no tree" if rows[0].skipped else ""
    title = " ".join(filter(None, rows[0].test)) or "Scores"
    headings = {name: metric.heading for name, metric in METRICS.items()}
    shown = with_values(headings, [values for _, values in lines])
    shown = shown or {"corpus_f1": HEADINGS["corpus_f1"]}
    return scores_table(title, ("",), shown, lines, f"{note}; {rows[0].metric}.")
