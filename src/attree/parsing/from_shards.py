"""Parses of a treebank from the associations that the attention stage left on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from attree.attention.columns import AGREEMENT, mean_column, read_selection
from attree.attention.shards import AssociationBatch, read, read_manifest
from attree.decoding.batch import decode
from attree.decoding.fixed import fixed_trees
from attree.errors import AttreeError
from attree.parses import Parses
from attree.progress import progress
from attree.provenance import provenance
from attree.schemas import FALLBACK, OK, PARSES, write_table
from attree.trees import Trees

#: The modules that decide a parse.
CODE = ("attree.parsing.from_shards",)


def write_parses(
    attention: Path, selection: Path, output: Path, *, recipe: dict[str, str | None]
) -> pa.Table:
    """Parse every sentence of a manifest by the mean of the selected heads; write the parses.

    Args:
        attention: a manifest that holds the mean of these heads.
        selection: what ``attree heads`` wrote.
        output: the table to write (``schemas.PARSES``), sorted by sentence.
        recipe: association, score and decoder; where one is None, the selection's own.

    Raises:
        AttreeError: the selection is of another encoder, or the association is missing, not
            whole, or not finite.
    """
    manifest, chosen = read_manifest(attention), read_selection(selection)
    used = {name: value or chosen.get(name) for name, value in recipe.items()}
    if missing := [name for name, value in used.items() if value is None]:
        raise AttreeError(
            f"this selection does not say which {missing[0]}",
            file=selection,
            fix=f"give --{missing[0]}",
        )
    encoder = manifest["encoder"]
    if chosen.get("encoder", encoder["fingerprint"]) != encoder["fingerprint"]:
        raise AttreeError(
            f"these heads were selected with another encoder than {encoder['slug']}",
            file=selection,
            fix="give the selection made with this encoder",
        )
    column, _ = mean_column(chosen["heads"], source=chosen["source"])
    total = manifest["counts"]["sentences"]
    parts = [PARSES.empty_table()]
    with progress("decoding", total=total) as advance:
        for batch in read(attention, column):
            parts.append(_parse(batch, used, manifest["too_long"]))
            advance(batch.sentence.size)
    parses = pa.concat_tables(parts).sort_by("sentence")
    numbers = parses["sentence"].to_numpy()
    if numbers.size != total or (np.diff(numbers) == 0).any():
        raise AttreeError(
            f"the shards hold {numbers.size:,} sentences where the manifest counts {total:,}",
            file=attention,
            fix="run `attree attention` again",
        )
    write_table(output, parses, schema=PARSES, metadata=_metadata(manifest, chosen, used))
    return parses


def _parse(batch: AssociationBatch, recipe: dict[str, Any], policy: str) -> pa.Table:
    """Return the parsed sentences of a batch, then those without an association."""
    parsed = np.array([status == OK for status in batch.status], dtype=bool)
    rows = np.concatenate([np.flatnonzero(parsed), np.flatnonzero(~parsed)])
    numbers = batch.sentence[rows]
    trees = decode(batch.values, batch.n_words[parsed], sentences=numbers, **recipe)
    others = fixed_trees(FALLBACK, batch.n_words[~parsed])
    both = Trees.concatenate([trees, others])
    return Parses.with_policy(numbers, both, parsed[rows], policy).table()


def _metadata(
    manifest: dict[str, Any], chosen: dict[str, Any], recipe: dict[str, Any]
) -> dict[str, Any]:
    made = provenance(
        code=CODE,
        settings={**recipe, "heads": chosen["heads"]},
        attention=manifest["provenance"],
        selection=chosen.get("provenance"),
    )
    return {
        "language": manifest["language"],
        "split": manifest["split"],
        "encoder": manifest["encoder"]["slug"],
        "selection": selection_data(chosen),
        "provenance": made,
    }


def selection_data(chosen: dict[str, Any]) -> str | None:
    """Name the data that heads were selected on, as in ``english dev (20 trees, seed 0)``."""
    if not chosen.get("language"):
        return None
    named = f"{chosen['language']} {chosen.get('split') or ''}".strip()
    if chosen.get("rank_by") == AGREEMENT:
        return f"{named}, text alone"
    if chosen.get("trees") is None:
        return named
    used = chosen.get("sentences")  # there may be fewer than were asked for
    return f"{named} ({used} trees, seed {chosen.get('seed')})"
