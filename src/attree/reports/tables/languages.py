"""Tables of scores and sizes: over languages, of one language, of one summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from attree.base.errors import AttreeError
from attree.base.schemas import PARTLY_BRACKETED, read_table
from attree.base.tables import Table, number, scores_table
from attree.evaluation import HEADED, HEADINGS, LABELLED, METRICS
from attree.evaluation.labels import NO_SPAN, Confusion
from attree.reports.tables.summaries import (
    BASELINES,
    Published,
    ScoreRow,
    by_test,
    heading_of,
    rows_of,
)

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
        tables += [_across(alike, key, heading) for key in ("corpus_f1", "sentence_f1") if alike]
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
    note = _HEADED_NOTE[metric] if metric in HEADED else _note(rows)
    return Table(f"{title}: {METRICS[metric].heading}", headings, lines, note)


def language(rows: Sequence[ScoreRow], *, confusion: bool = True) -> list[Table]:
    """Build the tables of each test set: scores, recall by label, confusions of labels."""
    tables = []
    for test, tested in by_test(rows).items():
        title = ", ".join(test)
        shown = HEADINGS | _with_values((*LABELLED, *HEADED), tested)
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


def _with_values(metrics: Iterable[str], rows: Sequence[ScoreRow]) -> dict[str, str]:
    """Return the headings of the metrics that some row has a value of."""
    shown = (m for m in metrics if any(row.values[m] is not None for row in rows))
    return {metric: METRICS[metric].heading for metric in shown}


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
    if fallback := sum(row.fallback for row in rows):
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
    shown = _with_values(METRICS, rows) or {"corpus_f1": HEADINGS["corpus_f1"]}
    return scores_table(title, ("",), shown, lines, f"{note}; {rows[0].metric}.")
