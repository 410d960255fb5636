"""Score a table of parses: its rows of scores, and a summary of them and how they were computed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from attree.base import schemas
from attree.base.files import write_json
from attree.base.provenance import provenance
from attree.evaluation import METRICS
from attree.evaluation.metrics import WRITTEN, Counts, Scored, score
from attree.evaluation.rows import SCORES_SCHEMA
from attree.trees.parses import Parses

#: The modules that decide a score.
CODE = ("attree.evaluation.summary",)

_METRIC = "unlabelled F1 in percent over distinct spans of two words and more" + "".join(
    f"; {metric.heading[0].lower()}{metric.heading[1:]}: {metric.meaning}"
    for metric in METRICS.values()
    if metric.kind == "f1"
)


def percentages(scored: Scored) -> dict[str, Any]:
    """Return scores in percent; None where nothing was counted."""
    counts, labels = scored.counts, scored.labels.items()
    recalls = {name: {"recall": label.recall, "count": label.count} for name, label in labels}
    return {**{metric: getattr(counts, metric) for metric in METRICS}, "label_recall": recalls}


def protocol(
    metadata: Mapping[str, Any],
    counts: Counts,
    total: int,
    max_words: int | None,
    selection: str | None = None,
) -> dict[str, Any]:
    """Describe how the scores were computed, so that only comparable scores are compared.

    Args:
        metadata: metadata of the sentence table.
        counts: counts of the scored sentences.
        total: sentences in the table, with those longer than ``max_words``.
        max_words: the longest sentence that was scored.
        selection: the data that heads or settings were chosen on.
    """
    outcomes = ("scored", "one_word", "skipped", "fallback")
    return {
        "metric": _METRIC,
        "one_word": "sentences of one word are skipped",
        "punctuation": metadata.get("punctuation"),
        "derived": metadata.get("derived", "constituency"),
        "treebank": metadata.get("counts"),
        "root": "the whole sentence is a span of every gold and every predicted tree",
        "max_words": max_words,
        "selection": selection,
        "sentences": {
            "total": total,
            "longer": total - counts.sentences,
            **{name: getattr(counts, name) for name in outcomes},
        },
    }


def read_gold(path: Path) -> tuple[Parses, dict[str, Any]]:
    """Read the gold trees of a sentence table, and its metadata."""
    table, metadata = schemas.read_table(path, schema=schemas.PARTLY_BRACKETED)
    return Parses.gold(table), metadata


def score_parses(
    parses: Path,
    sentences: Path,
    *,
    output: Path,
    summary: Path,
    labels: Sequence[str],
    max_words: int | None,
    encoder: str | None,
    parser: str | None,
) -> dict[str, Any]:
    """Score a table of parses; write one row per sentence and a summary, and return the summary."""
    gold, metadata = read_gold(sentences)
    parsed, history = schemas.read_table(parses, schema=schemas.PARSES_SCHEMA)
    how: dict[str, Any] = {"labels": list(labels), "max_words": max_words}
    scored = score(gold, Parses.of_table(parsed), **how)
    facts = {
        **schemas.origin(metadata),
        "encoder": encoder or history.get("encoder"),
        "parser": parser or history.get("parser"),
    }
    record = provenance(code=CODE, settings=how, parses=history.get("provenance", history))
    each = (getattr(scored.each, count) for count in WRITTEN)
    f1 = pa.array(100.0 * scored.sentence_f1, from_pandas=True)
    columns = [scored.sentence, scored.n_words, scored.status, *each, f1]
    rows = pa.table(columns, SCORES_SCHEMA.names)
    schemas.write_table(output, rows, schema=SCORES_SCHEMA, metadata={**facts, **record})
    selection = history.get("selection")
    result = {
        **facts,
        **percentages(scored),
        "label_confusion": None if scored.confusion is None else scored.confusion.describe(),
        "protocol": protocol(metadata, scored.counts, len(gold), max_words, selection),
        "provenance": record,
    }
    write_json(summary, result)
    return result
