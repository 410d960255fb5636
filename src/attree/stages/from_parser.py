"""Parse a treebank by a trained parser; measure the speed of parsers, words to trees."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attree.base import schemas
from attree.base.errors import AttreeError
from attree.base.files import write_json
from attree.base.provenance import provenance
from attree.base.terminal import progress
from attree.encoder.load import load_encoder
from attree.encoder.source import find_encoder
from attree.parsers.find import Overrides, find_parser
from attree.parsers.parser import Parser
from attree.training.features import pieces_of
from attree.training.parser import TrainedModel, TrainedParser
from attree.treebank.table import from_table
from attree.trees import OK
from attree.trees.constraints import Constraints
from attree.trees.parses import Parses, write_parsed
from attree.trees.sampling import refuse_overlap

#: The modules that decide a parse.
CODE = ("attree.cli.decode:apply_command",)

#: Sentences parsed between two updates of the progress bar.
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
        sentences: a SENTENCES table, or one of partly bracketed trees.
        output: the PARSES table to write.
        associations: the ASSOCIATIONS table to write beside it, if any.
        too_long: ``right_branching``, ``skip`` or ``error``.
        allow_overlap: whether sentences that were trained on are parsed too.
        keep_known: whether the brackets of the table's trees, which may be partial, are kept.

    Raises:
        AttreeError: the parser was trained on some sentences, or a sentence is too long.
    """
    trained = model.trained
    table, metadata = schemas.read_table(sentences, schema=schemas.PARTLY_BRACKETED)
    words = table.column("words").to_pylist()
    constraints = list(_read_constraints(table)) if keep_known else []
    shared = refuse_overlap(trained.trained_on, words, allow=allow_overlap)
    if too_long == "error":
        pieces_of(model.encoder, words, fix="pass --too-long right_branching or --too-long skip")
    matrices: dict[int, NDArray[np.float32]] = {}

    def keep(rows: NDArray[np.int64], features: Any) -> None:
        if associations and model.has_association:
            pairs = zip(rows.tolist(), model.associations(features), strict=True)
            matrices.update(pair for pair in pairs if len(pair[1]) <= schemas.WORDS_SHOWN)

    with progress("parsing", total=len(words)) as advance:
        trees, status = Parser(model).trees(
            words, constraints, at_a_time=_AT_A_TIME, watch=keep, advance=advance
        )
    parsed = Parses.with_policy(table["sentence"].to_numpy(), trees, status == OK, too_long)
    parses = parsed.table()
    settings = {**trained.describe(), "threshold": model.threshold, "overlap": shared}
    settings |= {"keep_known": True} if keep_known else {}
    details = {"encoder": model.encoder.slug, "selection": _trained_on(trained)}
    how: dict[str, Any] = {"code": CODE, "settings": settings, **details}
    if associations:
        write_parsed(associations, _association_table(parsed, matrices), metadata, **how)
    write_parsed(output, parses, metadata, **how)
    return parses


def _read_constraints(table: pa.Table) -> Iterator[Constraints]:
    """Yield the constraints that each tree of a table gives.

    Raises:
        AttreeError: the brackets of a tree contradict each other.
    """
    for tree in from_table(table):
        try:
            yield Constraints.of_tree(len(tree.words), tree.spans, partial=tree.partial)
        except AttreeError as error:
            raise error.replace(file=tree.file, line=tree.line) from None


def _association_table(parses: Parses, matrices: Mapping[int, NDArray[np.float32]]) -> pa.Table:
    """Return span probabilities and matrices of the parsed sentences (ASSOCIATIONS_SCHEMA)."""
    likely, starts = parses.trees.marginals, parses.trees.offsets
    rows = np.flatnonzero(parses.status == OK).tolist()
    flat = {position: matrix.ravel() for position, matrix in matrices.items()}
    shares = [None if likely is None else likely[starts[row] : starts[row + 1]] for row in rows]
    columns = [parses.sentence[rows], shares, [flat.get(row) for row in rows]]
    arrays = list(map(pa.array, columns, schemas.ASSOCIATIONS_SCHEMA.types))
    return pa.table(arrays, schema=schemas.ASSOCIATIONS_SCHEMA)


def _trained_on(trained: TrainedParser) -> str:
    training = trained.about
    table = training.get("table") or {}
    named = " ".join(part for part in (table.get("language"), table.get("split")) if part)
    if (treebanks := len(training.get("sources") or ())) > 1:
        named = f"{treebanks} treebanks"
    return f"{named} ({training.get('trees')} trees, seed {training.get('seed')})".strip()


def write_speeds(
    parsers: Mapping[str, str],
    sentences: Path,
    encoder: str | Path,
    output: Path,
    *,
    first: int,
    device: str | None,
) -> dict[str, Any]:
    """Time parsers of one encoder in turn on the same sentences, on one thread of a CPU.

    Args:
        parsers: name → a selection of ``attree heads`` or a folder of ``attree train``.
        sentences: a SENTENCES table.
        encoder: description of the encoder; it is loaded before timing, and again for each parser
            with an adapted encoder.
        output: the JSON file to write.
        first: how many sentences of the table are parsed.
        device: as for :func:`attree.encoder.load.load_encoder`.
    """
    table, metadata = schemas.read_table(sentences, schema=schemas.SENTENCES_SCHEMA)
    words = table["words"].slice(0, first).to_pylist()
    chosen = Overrides(encoder=str(encoder))
    sources = {name: find_parser(path, chosen) for name, path in parsers.items()}
    loaded = load_encoder(find_encoder(encoder), device=device, threads=1)
    speeds = {}
    for name, source in sources.items():
        alike = source.encoder.fingerprint == loaded.fingerprint
        used = loaded if alike else load_encoder(source.encoder, device=device, threads=1)
        speeds[name] = Parser(source.on(used)).sentences_a_second(words)
    made = {
        **schemas.origin(metadata),
        "encoder": loaded.slug,
        "sentences": len(words),
        "sentences_a_second": speeds,
        "provenance": provenance(code=["attree.stages.from_parser"], settings={"first": first}),
    }
    write_json(output, made)
    return made
