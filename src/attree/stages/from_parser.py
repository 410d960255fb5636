"""Parses of a treebank by a trained parser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.base.progress import progress
from attree.base.registry import check_name
from attree.base.schemas import (
    ASSOCIATIONS_SCHEMA,
    HALF,
    HALF_KNOWN,
    OK,
    SENTENCES_SCHEMA,
    TOO_LONG,
    WORDS_SHOWN,
    read_table,
)
from attree.parsers.parser import Parser
from attree.training.parser import TrainedModel, TrainedParser
from attree.trees.constraints import Constraints
from attree.trees.parses import POLICIES, Parses, write_parsed
from attree.trees.sampling import refuse_overlap

#: The modules that decide a parse.
CODE = ("attree.cli.decode:apply_command",)

#: Sentences parsed between two signs of progress.
_AT_A_TIME = 256


def write_parses(
    model: TrainedModel,
    sentences: Path,
    output: Path,
    *,
    associations: Path | None = None,
    too_long: str = "right_branching",
    allow_overlap: bool = False,
    keep_known: bool = False,
) -> pa.Table:
    """Parse every sentence of a table and write the parses.

    Args:
        model: the parser.
        sentences: a SENTENCES table.
        output: the PARSES table to write.
        associations: the ASSOCIATIONS table to write beside it, if any.
        too_long: ``right_branching``, ``skip`` or ``error``.
        allow_overlap: parse sentences that were trained on too.
        keep_known: keep what the table's trees say: all of them, or, of half-known ones, a part.

    Raises:
        AttreeError: sentences that were trained on, or a sentence too long.
    """
    check_name(too_long, POLICIES, f"unknown policy for too long sentences: {too_long}")
    trained = model.trained
    table, metadata = read_table(sentences, schema=HALF_KNOWN if keep_known else SENTENCES_SCHEMA)
    words = table.column("words").to_pylist()
    known = list(_known(table)) if keep_known else []
    shared = refuse_overlap(trained.trained_on, words, allow=allow_overlap)
    matrices: dict[int, NDArray[np.float32]] = {}

    def keep(places: NDArray[np.int64], features: Any) -> None:
        if associations and model.has_association:
            each = zip(places.tolist(), model.associations(features), strict=True)
            matrices.update((place, one) for place, one in each if len(one) <= WORDS_SHOWN)

    with progress("parsing", total=len(words)) as advance:
        trees, status = Parser(model).trees(
            words, known, at_a_time=_AT_A_TIME, watch=keep, advance=advance
        )
    if too_long == "error" and (status == TOO_LONG).any():
        place = int(np.flatnonzero(status == TOO_LONG)[0])
        pieces = len(model.encoder.tokenise([words[place]])[0].ids)
        most = model.encoder.max_pieces
        problem = f"sentence {place} has {pieces} word pieces, the encoder takes {most}"
        fix = "pass --too-long right_branching or --too-long skip"
        raise AttreeError("too-many-pieces", problem, fix=fix)
    found = Parses.with_policy(table["sentence"].to_numpy(), trees, status == OK, too_long)
    parses = found.table()
    settings = {**trained.describe(), "threshold": model.threshold, "overlap": shared}
    settings |= {"keep_known": True} if keep_known else {}
    about = {"encoder": model.encoder.slug, "selection": _trained_on(trained)}
    how: dict[str, Any] = {"code": CODE, "settings": settings, **about}
    if associations:
        write_parsed(associations, _said(found, matrices), metadata, **how)
    write_parsed(output, parses, metadata, **how)
    return parses


def _known(table: pa.Table) -> Iterator[Constraints]:
    """Yield what each tree of a table says.

    Raises:
        AttreeError: one contradicts itself.
    """
    for row in table.to_pylist():
        spans = zip(row["starts"], row["ends"], row["labels"], strict=True)
        half = row.get(HALF.name, False)
        try:
            yield Constraints.of_tree(len(row["words"]), spans, half=half)
        except AttreeError as error:
            raise error.replace(file=row["file"], line=row["line"]) from None


def _said(parses: Parses, matrices: Mapping[int, NDArray[np.float32]]) -> pa.Table:
    """Return what is known of the sentences that were parsed (``schemas.ASSOCIATIONS_SCHEMA``)."""
    likely, starts = parses.trees.marginals, parses.trees.offsets
    rows = np.flatnonzero(parses.status == OK).tolist()
    flat = {place: matrix.ravel() for place, matrix in matrices.items()}
    shares = [None if likely is None else likely[starts[row] : starts[row + 1]] for row in rows]
    columns = [parses.sentence[rows], shares, [flat.get(row) for row in rows]]
    return pa.table(
        [*map(pa.array, columns, ASSOCIATIONS_SCHEMA.types)], schema=ASSOCIATIONS_SCHEMA
    )


def _trained_on(trained: TrainedParser) -> str:
    about = trained.about
    table = about.get("table") or {}
    named = " ".join(part for part in (table.get("language"), table.get("split")) if part)
    if (treebanks := len(about.get("sources") or ())) > 1:
        named = f"{treebanks} treebanks"
    return f"{named} ({about.get('trees')} trees, seed {about.get('seed')})".strip()
