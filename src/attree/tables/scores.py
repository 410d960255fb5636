"""The tables of scores: over languages, and one language's."""

from __future__ import annotations

from collections.abc import Sequence

from attree.tables.collect import BASELINES, METRICS, ScoreRow
from attree.tables.render import Grid, number


def crosslingual(rows: Sequence[ScoreRow], title: str) -> list[Grid]:
    """Build a grid for each metric: a row a language, a column a parser or baseline.

    Where the article published a figure, it stands in a column of its own beside the computed one.
    """
    languages = list(dict.fromkeys((row.language, row.split) for row in rows))
    columns = list(dict.fromkeys(_column(row, rows) for row in rows))
    columns.sort(key=lambda heading: heading in BASELINES.values())
    by_cell = {(row.language, row.split, _column(row, rows)): row for row in rows}
    grids = []
    for metric in ("corpus_f1", "sentence_f1"):
        published = {c for c in columns for key in languages
                     if (row := by_cell.get((*key, c))) and metric in row.published}  # fmt: skip
        headings = ["language", "sentences"]
        for column in columns:
            headings += [column, f"{column} (article)"] if column in published else [column]
        lines = []
        for language, split in languages:
            cells = [by_cell.get((language, split, column)) for column in columns]
            size = next(row.scored for row in cells if row is not None)
            line = [language if split == "test" else f"{language} {split}", f"{size:,}"]
            for column, row in zip(columns, cells, strict=True):
                line.append(number(getattr(row, metric) if row else None))
                if column in published:
                    line.append(number(row.published.get(metric) if row else None))
            lines.append(line)
        grids.append(Grid(f"{title}: {METRICS[metric]}", headings, lines, _note(rows)))
    return grids


def language(rows: Sequence[ScoreRow]) -> list[Grid]:
    """Build one language's grids: all three F1 scores, then label recall, for every parser."""
    grids = []
    for name, split in dict.fromkeys((row.language, row.split) for row in rows):
        own = [row for row in rows if (row.language, row.split) == (name, split)]
        headings = ["parser", "encoder", *METRICS.values()]
        lines = [
            [row.heading, row.encoder, *(number(getattr(row, metric)) for metric in METRICS)]
            for row in own
        ]
        grids.append(Grid(f"{name}, {split}", headings, lines, _note(own)))
        labels = {
            label: int(entry["count"])
            for label, entry in own[0].label_recall.items()
            if entry["count"]
        }
        if labels:
            headings = ["parser", *(f"{label} ({count:,})" for label, count in labels.items())]
            lines = [
                [row.heading]
                + [number(row.label_recall.get(label, {}).get("recall")) for label in labels]
                for row in own
            ]
            note = "Share of the gold constituents with this label that were found, in percent."
            grids.append(Grid(f"{name}, {split}: recall by label", headings, lines, note))
    return grids


def _column(row: ScoreRow, rows: Sequence[ScoreRow]) -> str:
    """Name a column by the parser, and by the encoder too where one language has two."""
    if row.parser in BASELINES:
        return row.heading
    encoders = {
        other.encoder
        for other in rows
        if (other.language, other.split, other.parser) == (row.language, row.split, row.parser)
    }
    return row.heading if len(encoders) == 1 else f"{row.heading} {row.encoder}"


def _note(rows: Sequence[ScoreRow]) -> str:
    """Say what the figures of a grid rest on."""
    parts = []
    if any(row.derived != "constituency" for row in rows):
        parts.append("Dependency-derived brackets: not comparable with constituency treebanks.")
    parts.append("Random rows are means over their seeds; one-word sentences are not scored.")
    if fallback := sum(row.fallback for row in rows):
        parts.append(f"{fallback:,} sentences past the encoder's limit were branched right.")
    if selection := sorted({row.selection for row in rows if row.selection}):
        parts.append(f"Heads selected on {', '.join(selection)}.")
    return " ".join(parts)
