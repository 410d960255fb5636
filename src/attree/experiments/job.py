"""Run the rows of a job that have no record yet, and list all its records."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attree.base.files import write_json
from attree.base.provenance import digest, provenance
from attree.base.terminal import progress
from attree.encoder.source import find_encoder, has_new_head
from attree.experiments.data import SentenceSet, content, drawn, key, read_record
from attree.plan.rows import CODE, ExperimentRow


def run_job(
    rows: Sequence[ExperimentRow],
    *,
    encoder: str | Path,
    sets: Mapping[str, Path],
    manifests: Mapping[str, Path],
    records: Path,
    output: Path,
    device: str | None = None,
) -> None:
    """Run the unfinished rows of one encoder, and write a record for each.

    Args:
        rows: the rows, all of one kind; those that share a training stand side by side.
        encoder: what ``attree encoder resolve`` wrote.
        sets: sentence tables by set.
        manifests: set → manifest of the attention of every head, for rows of heads.
        records: folder of the records of all experiments.
        output: where to write the list of this job's rows and records, last of all.
        device: ``cpu`` or ``cuda``.
    """
    resolved = find_encoder(encoder)
    if resolved.dtype == "auto":
        from attree.encoder.device import settle_dtype

        resolved = settle_dtype(resolved, device)
    tables = {name: SentenceSet.read(name, path) for name, path in sets.items()}
    hashes = {name: content(table.hash, manifests.get(name)) for name, table in tables.items()}
    names = [
        key(row, encoder=resolved, sets=hashes, used=len(drawn(row, tables[row.train])))
        for row in rows
    ]

    @functools.cache
    def load() -> Any:
        from attree.encoder.load import load_encoder

        return load_encoder(resolved, device=device)

    @functools.cache
    def runner() -> Any:
        if rows[0].kind == "heads":
            from attree.experiments.heads import Averager

            return Averager(tables, manifests, load)
        from attree.experiments.trained import Trainer

        return Trainer(load(), tables, records, output.parent)

    head = has_new_head(Path(resolved.folder))
    with progress("experiments", total=len(rows), unit="rows") as advance:
        for row, name in zip(rows, names, strict=True):
            if read_record(records, name) is None:
                test = tables[row.test].about
                record = {
                    "row": asdict(row),
                    "new_head": head,
                    "punctuation": test.get("punctuation"),
                    "derived": test.get("derived", "constituency"),
                    **runner().run(row),
                }
                write_json(records / f"{name}.json", record)
            advance(1)
    fields = [asdict(row) for row in rows]
    pairs = [{"row": digest(row), "record": name} for row, name in zip(fields, names, strict=True)]
    made = provenance(code=CODE[rows[0].kind], settings={"rows": fields})
    write_json(output, {"rows": pairs, "provenance": made})
