"""Parse a treebank from the associations that the attention stage wrote."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attree.association.columns import AGREEMENT, check_selected_with, mean_column, read_selection
from attree.association.shards import read, read_manifest
from attree.base.errors import AttreeError
from attree.base.provenance import provenance
from attree.base.schemas import PARSES_SCHEMA, origin, write_table
from attree.base.terminal import progress
from attree.parsers.batches import Matrices, MatrixDecoder, Prepared
from attree.trees import OK
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
        selection: the file that ``attree heads`` wrote.
        output: the table to write (``schemas.PARSES_SCHEMA``), sorted by sentence.
        recipe: association, score and decoder; None takes that of the selection.

    Raises:
        AttreeError: the selection is of another encoder, or the association is missing, incomplete
            or not finite.
    """
    manifest, chosen = read_manifest(attention), read_selection(selection)
    used = {name: value or chosen.get(name) for name, value in recipe.items()}
    if missing := [name for name, value in used.items() if value is None]:
        problem = f"this selection names no {missing[0]}"
        raise AttreeError("bad-selection", problem, file=selection, fix=f"give --{missing[0]}")
    encoder = manifest["encoder"]
    fix = "give the selection made with this encoder"
    check_selected_with(chosen, encoder["slug"], encoder["fingerprint"], file=selection, fix=fix)
    column, _ = mean_column(chosen["heads"], source=chosen["source"])
    total, policy = manifest["counts"]["sentences"], manifest["too_long"]
    with progress("decoding", total=total) as advance:
        parses = parse_shards(attention, column, used, policy, advance=advance)
    if len(parses) != total or (np.diff(parses.sentence) == 0).any():
        problem = f"the shards hold {len(parses):,} sentences, and the manifest counts {total:,}"
        fix = "run `attree attention` again"
        raise AttreeError("sentence-count", problem, file=attention, fix=fix)
    sources = {"attention": manifest["provenance"], "selection": chosen.get("provenance")}
    made = provenance(code=CODE, settings={**used, "heads": chosen["heads"]}, **sources)
    facts = {**origin(manifest), "encoder": encoder["slug"], "selection": selection_data(chosen)}
    table = parses.table()
    write_table(output, table, schema=PARSES_SCHEMA, metadata={**facts, "provenance": made})
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
        column: the column of the association.
        recipe: association, score and decoder.
        policy: a key of :data:`attree.trees.parses.POLICIES`, for sentences without an association.
        units: the matrices of each sentence to average; None if each has one.
        advance: called with the number of sentences just parsed.
    """
    decoder = MatrixDecoder(recipe, scored=False)
    numbers, statuses, trees = [np.empty(0, np.int32)], [np.empty(0, np.str_)], []
    for batch in read(attention, column):
        rows = np.flatnonzero(batch.status == OK)
        values = batch.values if units is None else batch.averaged(units)
        n_words = batch.n_words.astype(np.int64)
        matrices = Matrices(values, n_words[rows], batch.sentence[rows])
        trees.append(Prepared(decoder, n_words, batch.status, [rows]).trees([matrices]))
        numbers.append(batch.sentence)
        statuses.append(batch.status)
        advance(batch.sentence.size)
    made = (np.concatenate(numbers), Trees.concatenate(trees), np.concatenate(statuses) == OK)
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
