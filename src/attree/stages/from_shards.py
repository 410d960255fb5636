"""Parses of a treebank from the associations that the attention stage left on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attree.association.columns import AGREEMENT, check_selected_with, mean_column, read_selection
from attree.association.shards import AssociationBatch, read, read_manifest
from attree.base.errors import AttreeError
from attree.base.progress import progress
from attree.base.provenance import provenance
from attree.base.schemas import OK, PARSES_SCHEMA, write_table
from attree.parsers.batches import Matrices, MatrixDecoder, Prepared
from attree.trees.parses import Parses
from attree.trees.trees import Trees

#: The modules that decide a parse.
CODE = ("attree.stages.from_shards",)


def write_parses(
    attention: Path, selection: Path, output: Path, *, recipe: dict[str, str | None]
) -> pa.Table:
    """Parse every sentence of a manifest by the mean of the selected heads; write the parses.

    Args:
        attention: a manifest that holds the mean of these heads.
        selection: what ``attree heads`` wrote.
        output: the table to write (``schemas.PARSES_SCHEMA``), sorted by sentence.
        recipe: association, score and decoder; where one is None, the selection's own.

    Raises:
        AttreeError: the selection is of another encoder, or the association is missing, not
            whole, or not finite.
    """
    manifest, chosen = read_manifest(attention), read_selection(selection)
    used = {name: value or chosen.get(name) for name, value in recipe.items()}
    if missing := [name for name, value in used.items() if value is None]:
        problem = f"this selection does not say which {missing[0]}"
        raise AttreeError("bad-selection", problem, file=selection, fix=f"give --{missing[0]}")
    encoder = manifest["encoder"]
    fix = "give the selection made with this encoder"
    which = (encoder["slug"], encoder["fingerprint"])
    check_selected_with(chosen, *which, file=selection, fix=fix)
    column, _ = mean_column(chosen["heads"], source=chosen["source"])
    total, policy = manifest["counts"]["sentences"], manifest["too_long"]
    with progress("decoding", total=total) as advance:
        parses = parse_shards(attention, column, used, policy, advance=advance)
    if len(parses) != total or (np.diff(parses.sentence) == 0).any():
        problem = f"the shards hold {len(parses):,} sentences where the manifest counts {total:,}"
        fix = "run `attree attention` again"
        raise AttreeError("sentence-count", problem, file=attention, fix=fix)
    made = provenance(
        code=CODE,
        settings={**used, "heads": chosen["heads"]},
        attention=manifest["provenance"],
        selection=chosen.get("provenance"),
    )
    about = {
        "language": manifest["language"],
        "split": manifest["split"],
        "encoder": encoder["slug"],
        "selection": selection_data(chosen),
        "provenance": made,
    }
    table = parses.table()
    write_table(output, table, schema=PARSES_SCHEMA, metadata=about)
    return table


def parse_shards(
    attention: Path,
    column: str,
    recipe: Mapping[str, Any],
    policy: str,
    *,
    units: NDArray[np.intp] | None = None,
    advance: Callable[[int], None] = lambda count: None,
) -> Parses:
    """Parse every sentence of a manifest, sorted by number.

    Args:
        attention: the manifest.
        column: its association.
        recipe: association, score and decoder.
        policy: of sentences without an association, a key of :data:`attree.trees.parses.POLICIES`.
        units: which matrices of each sentence are averaged; by default there is one.
        advance: told how many sentences are done.
    """
    decoder = MatrixDecoder(recipe, scored=False)
    numbers, statuses, trees = [np.empty(0, np.int32)], [np.empty(0, np.str_)], []
    for batch in read(attention, column):
        status = np.array(batch.status, dtype=np.str_)
        there = np.flatnonzero(status == OK)
        values = batch.values if units is None else _averaged(batch, units)
        n_words = batch.n_words.astype(np.int64)
        matrices = Matrices(values, n_words[there], batch.sentence[there])
        prepared = Prepared(decoder, n_words, status, [there])
        trees.append(prepared.trees([matrices]))
        numbers.append(batch.sentence)
        statuses.append(status)
        advance(batch.sentence.size)
    parsed = np.concatenate(statuses) == OK
    made = (np.concatenate(numbers), Trees.concatenate(trees), parsed)
    return Parses.with_policy(*made, policy).sorted()


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


def _averaged(batch: AssociationBatch, units: NDArray[np.intp]) -> NDArray[np.float32]:
    """Return the mean of some of each sentence's matrices, flat, one after the other."""
    means, begin = [np.empty(0, np.float32)], 0
    for n_words in batch.n_associated.astype(int):
        size = batch.matrices_each * n_words * n_words
        matrices = batch.values[begin : begin + size].reshape(batch.matrices_each, -1)
        means.append(matrices[units].mean(0, dtype=np.float32))
        begin += size
    return np.concatenate(means)
