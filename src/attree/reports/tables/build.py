"""From the stages' results to tables: scores over languages, of one language, sizes, a summary.

How sure a figure is: intervals of F1, and differences of two parsers, by paired bootstrap.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree import evaluation
from attree.base.errors import AttreeError
from attree.base.files import described, read_described
from attree.base.schemas import SCORES_SCHEMA, SENTENCES_SCHEMA, read_table
from attree.base.tables import Table, number, scores_table
from attree.evaluation import HEADINGS, LABELLED
from attree.evaluation.counts import NO_SPAN, Confusion, Counts, confusion_of
from attree.evaluation.significance import Difference, corpus_f1_parts, paired_bootstraps

#: Resamples of the sentences, and the seed that draws them: equal input gives equal intervals.
RESAMPLES, SEED = 2000, 0
_AT_ONCE = 4_000_000
_MIDDLE = [(1 - 0.95) / 2, (1 + 0.95) / 2]

#: What a sentence adds to :class:`attree.evaluation.counts.Counts`.
PARTS = ("gold", "predicted", "matched", "scored", "sentence_f1_sum", "sentence_f1_count")

F1s = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class SentenceCounts:
    """What the F1 of a parser is made of, sentence by sentence.

    Attributes:
        sentence: int32 (sentences,), their numbers.
        n_words: int32 (sentences,).
        parts: float64 (sentences, 6), of :data:`PARTS`: they add up to counts.
    """

    sentence: NDArray[np.int32]
    n_words: NDArray[np.int32]
    parts: NDArray[np.float64]

    @classmethod
    def read(cls, path: Path) -> SentenceCounts:
        """Read a table that ``attree score`` wrote."""
        table, _ = read_table(path, schema=SCORES_SCHEMA)
        columns = {name: table[name].to_numpy() for name in table.schema.names}
        return cls.of(columns, columns["sentence_f1"].astype(np.float64) / 100)

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]], each: NDArray[np.float64]) -> SentenceCounts:
        """Take the columns of such a table, and each sentence's F1 (of 1, or NaN)."""
        parts = [columns[name] for name in ("gold", "predicted", "matched")]
        parts += [columns["gold"] > 0, np.nan_to_num(each), ~np.isnan(each)]
        order = np.argsort(columns["sentence"], kind="stable")
        sentence, n_words = columns["sentence"][order], columns["n_words"][order]
        return cls(sentence, n_words, np.stack(parts, axis=1).astype(float)[order])

    def where(self, kept: NDArray[np.bool_]) -> SentenceCounts:
        """Return some of the sentences."""
        return SentenceCounts(self.sentence[kept], self.n_words[kept], self.parts[kept])

    def f1(self, weights: NDArray[np.int64] | None = None) -> F1s:
        """Return metric → F1 in percent, one a resample.

        Args:
            weights: int64 (resamples, sentences), how often each sentence is drawn; once if None.
        """
        if weights is None:
            weights = np.ones((1, len(self.parts)), np.int64)
        counts = Counts(**dict(zip(PARTS, (weights @ self.parts).T, strict=True)))
        return {metric: getattr(counts, metric) for metric in HEADINGS}

    def ratio(self, metric: str) -> NDArray[np.float64]:
        """Return (sentences, 2), numerator and denominator of each sentence's share in a metric."""
        if metric == "sentence_f1":
            return self.parts[:, [PARTS.index("sentence_f1_sum"), PARTS.index("sentence_f1_count")]]
        counts = self.parts[:, [PARTS.index(name) for name in ("matched", "gold", "predicted")]]
        return corpus_f1_parts(counts, root=metric == "corpus_f1")


def intervals(scores: SentenceCounts) -> dict[str, tuple[float, float]]:
    """Return metric → the 95 % interval of its F1 in percent by bootstrap over sentences."""
    found = {}
    for metric, values in _resampled(scores).items():
        low, high = np.nanquantile(values, _MIDDLE)
        found[metric] = float(low), float(high)
    return found


def differences(a: SentenceCounts, b: SentenceCounts) -> dict[str, Difference]:
    """Compare two parsers on the same sentences: metric → difference (paired bootstrap).

    Raises:
        AttreeError: they are not scores of the same sentences.
    """
    if not np.array_equal(a.sentence, b.sentence):
        raise AttreeError(
            "other-sentences",
            f"the two tables score different sentences ({a.sentence.size:,} and "
            f"{b.sentence.size:,})",
            fix="compare two parsers on one split, scored with the same max_words",
        )
    return {metric: found[0, 1] for metric, found in every_difference([a, b]).items()}


def every_difference(
    parsers: Sequence[SentenceCounts],
) -> dict[str, dict[tuple[int, int], Difference]]:
    """Compare every two of several parsers on the same sentences: metric → places → difference."""
    return {
        metric: paired_bootstraps(
            np.stack([one.ratio(metric) for one in parsers]), resamples=RESAMPLES, seed=SEED
        )
        for metric in HEADINGS
    }


def _resampled(scores: SentenceCounts) -> F1s:
    """Return metric → the F1 of each resample of the sentences."""
    n = len(scores.parts)
    rng = np.random.default_rng(SEED)
    chunk = max(1, _AT_ONCE // max(n, 1))
    found: list[F1s] = []
    for first in range(0, RESAMPLES, chunk):
        size = min(chunk, RESAMPLES - first)
        weights = rng.multinomial(n, np.full(n, 1 / max(n, 1)), size=size)
        found.append(scores.f1(weights))
    return {metric: np.concatenate([part[metric] for part in found]) for metric in HEADINGS}


#: What a table of label recall says below.
RECALL = "Share of the gold constituents with this label that were found, in percent."
#: Labels that have a row and a column of their own in a table of confused labels.
SHOWN = 12

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
    std: dict[str, float] = field(default_factory=dict)
    max: dict[str, float] = field(default_factory=dict)


_WHAT, _AGAIN = "score summary", "run `attree score` again"


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The scores of one parser on one split, in percent; means where there are several seeds.

    Attributes:
        values: metric → score, None where nothing could be scored.
        sentences, scored, skipped, fallback: see :class:`attree.evaluation.counts.Counts`.
        selection: the trees that it was tuned or trained on, empty for none.
        treebank: what became of the sentences of the files: ``read``, ``failed``, ``emptied``…
        intervals: metric → the 95 % interval of its score, where each sentence's score is there.
        label_recall: label → ``recall`` and ``count``.
        deviation, highest: metric → standard deviation and maximum over several seeds.
        published: metric → the article's figure.
        confusion: of labels, where trees have them.
        name: what a comparison calls it, which may name its encoder too.
        kind: in a comparison: computed (undertrained), imported or published.
        speed: sentences a second.
        each: the scores of each sentence, where they are known.
        by_length: longest sentence in words → corpus F1 in percent.
        p: of the difference in corpus F1 from the best system; NaN for the best itself.
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
    treebank: Mapping[str, int] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    label_recall: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
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
        """Its language and split."""
        return self.language, self.split

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

    @property
    def recall(self) -> dict[str, float | None]:
        """Label → recall in percent."""
        return {label: entry.get("recall") for label, entry in self.label_recall.items()}

    def flat(self) -> dict[str, Any]:
        """Return the row with label recalls and published figures as columns of their own."""
        row = {key: getattr(self, key) for key in ("language", "split", "encoder", "parser")}
        row |= self.values
        row |= {key: getattr(self, key) for key in _PROTOCOL}
        row |= {f"treebank_{name}": count for name, count in self.treebank.items()}
        for metric, (low, high) in self.intervals.items():
            row |= {f"{metric}_low": low, f"{metric}_high": high}
        for label, entry in self.label_recall.items():
            row |= {f"recall_{label}": entry["recall"], f"count_{label}": entry["count"]}
        return row | self.article()

    def article(self) -> dict[str, float | None]:
        """Return the article's figures as columns."""
        return {f"published_{metric}": self.published.get(metric) for metric in HEADINGS}


_PROTOCOL = (
    *("sentences", "scored", "skipped", "fallback"),
    *("derived", "punctuation", "selection"),
)

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
        raise AttreeError(
            "missing-file", "this file of published figures does not exist", file=path
        )
    with path.open(encoding="utf-8", newline="") as handle:
        reader = csv.DictReader(handle)
        wanted = {"table", "row", "language", "metric", "value"}
        if missing := wanted - set(reader.fieldnames or ()):
            raise AttreeError(
                "missing-columns",
                f"missing columns {', '.join(sorted(missing))}",
                file=path,
                line=1,
            )
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
            raise AttreeError(
                "missing-columns", f"this score summary has no {name!r}", file=path, fix=_AGAIN
            )


def _row(summary: Mapping[str, Any], published: Published, path: Path, resample: bool) -> ScoreRow:
    _check_has(summary, ("parser", "language", "split", "encoder", "protocol", *HEADINGS), path)
    found = described(summary, _Summary, file=path, what=_WHAT, fix=_AGAIN)
    scores = {metric: summary[metric] for metric in HEADINGS}  # null: nothing to score
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
        deviation=found.std,
        highest=found.max,
        published={m: published[(*key, m)] for m in HEADINGS if (*key, m) in published},
        confusion=confusion_of(summary, path),
    )


def _intervals(summary: Path) -> Mapping[str, tuple[float, float]]:
    """Return the intervals by the table of sentences that ``attree score`` writes beside."""
    scores = summary.with_suffix(".parquet")
    return intervals(SentenceCounts.read(scores)) if scores.is_file() else {}


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
    by_cell = {(row.test, heading_of(row, rows)): row for row in rows}
    published = {heading_of(row, rows) for row in rows if metric in row.published}
    headings = ["language", "sentences"]
    for column in columns:
        headings += [column, f"{column} (article)"] if column in published else [column]
    lines = []
    for test in dict.fromkeys(row.test for row in rows):
        cells = [by_cell.get((test, column)) for column in columns]
        first = next(row for row in cells if row is not None)
        line = [f"{_name(first)}{' *' if first.lost else ''}", f"{first.scored:,}"]
        for column, row in zip(columns, cells, strict=True):
            line.append(number(row.values[metric] if row else None))
            if column in published:
                line.append(number(row.published.get(metric) if row else None))
        lines.append(line)
    return Table(f"{title}: {HEADINGS[metric]}", headings, lines, _note(rows))


def _name(row: ScoreRow) -> str:
    return row.language if row.split == "test" else f"{row.language} {row.split}"


def language(rows: Sequence[ScoreRow], *, confusion: bool = True) -> list[Table]:
    """Build one language's tables: every parser's scores, recall by label, confusion of labels."""
    tables = []
    for test in dict.fromkeys(row.test for row in rows):
        own, title = [row for row in rows if row.test == test], ", ".join(test)
        labelled = [m for m in LABELLED if any(row.values[m] is not None for row in own)]
        shown = HEADINGS | {metric: LABELLED[metric] for metric in labelled}
        lines = [((row.heading, row.encoder), row.values) for row in own]
        tables.append(scores_table(title, ("parser", "encoder"), shown, lines, _note(own)))
        counts = {label: entry["count"] for label, entry in own[0].label_recall.items()}
        if labels := {label: f"{label} ({count:,.0f})" for label, count in counts.items() if count}:
            recalls = [((row.heading,), row.recall) for row in own]
            title = f"{title}: recall by label"
            tables.append(scores_table(title, ("parser",), labels, recalls, RECALL))
        tables += [
            confusion_table(row.confusion, f"{', '.join(test)}: labels of {heading_of(row, own)}")
            for row in own
            if confusion and row.confusion is not None
        ]
    return tables


def confusion_table(found: Confusion, title: str) -> Table:
    """Build the table of how often each gold label has been given each predicted one."""
    shown = found.most_frequent(SHOWN)
    lines = [
        [name, *(f"{count:,}" if count else "·" for count in row)]
        for name, row in zip(shown.headings, shown.counts.tolist(), strict=True)
    ]
    note = (
        "Gold labels down, predicted ones of the same spans across, counted as EVALB counts "
        f"brackets; {NO_SPAN}: the other tree has no such span, or it has fewer labels there."
    )
    if foreign := found.foreign:
        note += f" Predicted labels that the treebank does not have: {', '.join(foreign)}."
    return Table(title, ["gold", *shown.headings], lines, note)


def heading_of(row: ScoreRow, rows: Sequence[ScoreRow]) -> str:
    """Name a parser's column by itself, and by the encoder too where one language has two."""
    if row.parser in BASELINES:
        return row.heading
    encoders = {
        other.encoder for other in rows if (other.test, other.parser) == (row.test, row.parser)
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


def size_rows(paths: Sequence[Path], published: Published) -> list[dict[str, Any]]:
    """Return one record a split: read, kept, rejected, words, and the published count if any."""
    import pyarrow.compute as pc

    records = []
    for path in paths:
        table, metadata = read_table(path, schema=SENTENCES_SCHEMA)
        counts = metadata["counts"]
        lengths = pc.list_value_length(table["words"])
        key = (metadata["split"].lower(), metadata["language"].lower(), "sentences")
        records.append(
            {
                "language": metadata["language"],
                "split": metadata["split"],
                "sentences": table.num_rows,
                **{f"sentences_{name}": count for name, count in counts.items()},
                "words": pc.sum(lengths).as_py() or 0,
                "longest": pc.max(lengths).as_py() or 0,
                "derived": metadata["derived"],
                "punctuation": metadata["punctuation"],
                "published": int(published[key]) if key in published else None,
            }
        )
    return records


def sizes(records: Sequence[dict[str, Any]]) -> list[Table]:
    """Build the table: a row a language and split."""
    with_published = any(record["published"] is not None for record in records)
    headings = ["language", "split", "sentences", "rejected", "words", "longest"]
    rows = []
    for record in records:
        rejected = record["sentences_failed"] + record["sentences_emptied"]
        row = [record["language"], record["split"], f"{record['sentences']:,}", f"{rejected:,}"]
        row += [f"{record['words']:,}", f"{record['longest']:,}"]
        if with_published:
            row.append("–" if record["published"] is None else f"{record['published']:,}")
        rows.append(row)
    note = "Rejected: unreadable trees and sentences that cleaning left without a word."
    return [Table("Treebanks", headings + ["article"] * with_published, rows, note)]


def summary_table(summary: Mapping[str, Any]) -> Table:
    """Return what ``attree score`` or ``attree baselines`` found, as people read it.

    Raises:
        AttreeError: this is no such summary.
    """
    if not isinstance(summary.get("protocol"), Mapping) or "sentences" not in summary["protocol"]:
        raise AttreeError(
            "not-a-summary", "this is no summary of scores", fix="name one of `attree score`"
        )
    name = summary.get("parser") or "parses"
    rows = summary.get("baselines") or {name: summary}
    shown = {
        name: metric.heading
        for name, metric in evaluation.METRICS.items()
        if any(row.get(name) is not None for row in rows.values())
    }
    counted = summary["protocol"]["sentences"]
    note = f"{counted['scored']:,} of {counted['total']:,} sentences are scored"
    skipped = f", {counted['skipped']:,} have no tree" if counted["skipped"] else ""
    title = " ".join(filter(None, (summary.get("language"), summary.get("split")))) or "Scores"
    note += f"{skipped}; {summary['protocol']['metric']}."
    lines = [((name,), row) for name, row in rows.items()]
    return scores_table(title, ("",), shown or {"corpus_f1": HEADINGS["corpus_f1"]}, lines, note)
