"""The dataset-size table: what there is in each split of each treebank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attree.schemas import SENTENCES, read_table
from attree.tables.build import Published
from attree.tables.render import Table


def size_rows(paths: Sequence[Path], published: Published) -> list[dict[str, Any]]:
    """Return one record a split: read, kept, rejected, words, and the published count if any."""
    import pyarrow.compute as pc

    records = []
    for path in paths:
        table, metadata = read_table(path, schema=SENTENCES)
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
