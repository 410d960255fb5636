"""Gather the stages' summaries into rows: one a language, split, encoder and parser."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from attree import evaluation
from attree.errors import AttreeError
from attree.files import read_json

#: The scores that tables show, in order, with their headings.
METRICS = {name: metric.heading for name, metric in evaluation.METRICS.items() if metric.in_tables}

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
class ScoreRow:
    """The scores of one parser on one split; percentages, means where there are several seeds."""

    language: str
    split: str
    encoder: str
    parser: str
    corpus_f1: float | None
    corpus_f1_no_root: float | None
    sentence_f1: float | None
    sentences: int
    scored: int
    skipped: int
    fallback: int
    derived: str
    punctuation: str
    selection: str
    label_recall: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    published: Mapping[str, float] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        """The short name that a table's column carries."""
        return BASELINES.get(self.parser, self.parser)

    def flat(self) -> dict[str, Any]:
        """Return the row with label recalls and published figures as columns of their own."""
        row = asdict(self)
        recalls, published = row.pop("label_recall"), row.pop("published")
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


def score_rows(paths: Iterable[Path], published: Published) -> list[ScoreRow]:
    """Read summaries of ``attree score`` and ``attree baselines``, parsers before baselines."""
    parsers, baselines = [], []
    for path in paths:
        summary = read_json(path, what="score summary")
        if "baselines" not in summary:
            parsers.append(_row(summary, published, path))
            continue
        for name in BASELINES:
            one = {**summary, **summary["baselines"][name], "parser": name, "encoder": "none"}
            baselines.append(_row(one, published, path))
    return parsers + baselines


def _row(summary: Mapping[str, Any], published: Published, path: Path) -> ScoreRow:
    try:
        protocol = summary["protocol"]
        key = (summary["parser"].lower(), summary["language"].lower())
        return ScoreRow(
            language=summary["language"],
            split=summary["split"],
            encoder=summary["encoder"],
            parser=summary["parser"],
            **{metric: summary[metric] for metric in METRICS},  # null: nothing to score
            sentences=protocol["sentences"]["total"],
            scored=protocol["sentences"]["scored"],
            skipped=protocol["sentences"]["skipped"],
            fallback=protocol["sentences"].get("fallback", 0),
            derived=protocol["derived"],
            punctuation=protocol["punctuation"],
            selection=protocol.get("selection") or "",
            label_recall=summary.get("label_recall", {}),
            published={m: published[(*key, m)] for m in METRICS if (*key, m) in published},
        )
    except KeyError as error:
        raise AttreeError(
            f"this score summary has no {error}", file=path, fix="run `attree score` again"
        ) from None


def check_one_kind(rows: Sequence[ScoreRow]) -> None:
    """Refuse a table that mixes constituency treebanks with dependency-derived brackets."""
    if len({row.derived for row in rows}) > 1:
        mixed = sorted({row.language for row in rows if row.derived != "constituency"})
        raise AttreeError(
            f"dependency-derived brackets ({', '.join(mixed)}) cannot share a table with "
            "constituency treebanks",
            fix="give them a table of their own in config.yaml",
        )
