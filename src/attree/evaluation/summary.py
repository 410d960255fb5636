"""Summaries of scores as JSON: percentages, and the protocol that they were computed by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from attree.base.files import write_json
from attree.base.provenance import provenance
from attree.base.schemas import (
    PARSES_SCHEMA,
    SCORES_SCHEMA,
    SENTENCES_SCHEMA,
    read_table,
    write_table,
)
from attree.evaluation import METRICS, PROFILES
from attree.evaluation.counts import Counts
from attree.evaluation.metrics import score
from attree.trees.parses import Parses

#: The modules that decide a score.
CODE = ("attree.evaluation.summary",)

_METRIC = "; ".join(
    ["unlabelled F1 in percent over distinct spans of two words and more"]
    + [
        f"{metric.heading[0].lower()}{metric.heading[1:]}: {metric.meaning}"
        for metric in METRICS.values()
        if metric.in_tables
    ]
)


def percentages(counts: Counts) -> dict[str, Any]:
    """Return the scores that counts give; null where nothing is counted."""
    recalls = {
        name: {"recall": label.recall, "count": label.count}
        for name, label in counts.labels.items()
    }
    return {**{metric: getattr(counts, metric) for metric in METRICS}, "label_recall": recalls}


def protocol(
    about: Mapping[str, Any],
    counts: Counts,
    total: int,
    how: Mapping[str, Any],
    selection: str | None = None,
) -> dict[str, Any]:
    """Return how the scores were computed, so that unlike ones are never compared by accident.

    Args:
        about: metadata of the sentence table.
        counts: of the sentences scored.
        total: sentences in the table, too long ones for ``max_words`` among them.
        how: ``profile`` and ``max_words``, as for :func:`attree.evaluation.metrics.score`.
        selection: the data that heads or settings were chosen on.
    """
    outcomes = ("scored", "one_word", "skipped", "fallback")
    return {
        "metric": _METRIC,
        "profile": how["profile"],
        "one_word": PROFILES[how["profile"]],
        "punctuation": about.get("punctuation"),
        "derived": about.get("derived", "constituency"),
        "treebank": about.get("counts"),
        "root": "the whole sentence is a span of every gold and every predicted tree",
        "max_words": how["max_words"],
        "selection": selection,
        "sentences": {
            "total": total,
            "longer": total - counts.sentences,
            **{name: getattr(counts, name) for name in outcomes},
        },
    }


def read_gold(path: Path) -> tuple[Parses, dict[str, Any]]:
    """Read the gold trees of a sentence table, and its metadata."""
    table, about = read_table(path, schema=SENTENCES_SCHEMA)
    return Parses.gold(table), about


def score_parses(
    parses: Path,
    sentences: Path,
    *,
    output: Path,
    summary: Path,
    profile: str,
    labels: Sequence[str],
    max_words: int | None,
    encoder: str | None,
    parser: str | None,
) -> dict[str, Any]:
    """Score a table of parses; write a row a sentence, and the summary, which is returned."""
    gold, about = read_gold(sentences)
    parsed, made = read_table(parses, schema=PARSES_SCHEMA)
    how: dict[str, Any] = {"profile": profile, "labels": list(labels), "max_words": max_words}
    scored = score(gold, Parses.of_table(parsed), **how)
    facts = {
        "language": about.get("language"),
        "split": about.get("split"),
        "encoder": encoder or made.get("encoder"),
        "parser": parser or made.get("parser"),
    }
    history = provenance(code=CODE, settings=how, parses=made.get("provenance", made))
    rows: dict[str, Any] = {
        name: getattr(scored, name) for name in SCORES_SCHEMA.names if name != "sentence_f1"
    }
    rows["sentence_f1"] = pa.array(100.0 * scored.sentence_f1, from_pandas=True)
    write_table(output, pa.table(rows), schema=SCORES_SCHEMA, metadata={**facts, **history})
    found = {
        **facts,
        **percentages(scored.counts),
        "label_confusion": None if scored.confusion is None else scored.confusion.describe(),
        "protocol": protocol(about, scored.counts, len(gold), how, made.get("selection")),
        "provenance": history,
    }
    write_json(summary, found)
    return found
