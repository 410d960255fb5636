"""Parses of a treebank by a trained parser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attree.decoding.fixed import fixed_trees
from attree.encoder.batches import batches
from attree.encoder.load import Encoder
from attree.encoder.pieces import Pieces
from attree.errors import AttreeError
from attree.fewshot.decoders import likelihoods
from attree.fewshot.draw import refuse_overlap
from attree.fewshot.parser import TrainedParser
from attree.progress import progress
from attree.provenance import provenance
from attree.schemas import FALLBACK, OK, PARSES, SENTENCES, SKIPPED, read_table, write_table

#: The modules that decide a parse.
CODE = ("attree.fewshot.command:apply_command",)

#: what becomes of a sentence past the encoder's limit → its status
TOO_LONG = {"right_branching": FALLBACK, "skip": SKIPPED}

Spans = tuple[NDArray[np.int32], NDArray[np.int32]]


def write_parses(
    parser: TrainedParser,
    encoder: Encoder,
    sentences: Path,
    output: Path,
    *,
    threshold: float = 0.0,
    too_long: str = "right_branching",
    allow_overlap: bool = False,
) -> pa.Table:
    """Parse every sentence of a table and write the parses.

    Args:
        parser: the parser.
        encoder: the one it was trained with.
        sentences: a SENTENCES table.
        output: the PARSES table to write.
        threshold: spans of a lower marginal are dropped (0: trees stay binary).
        too_long: ``right_branching``, ``skip`` or ``error``.
        allow_overlap: parse sentences that were trained on too.

    Raises:
        AttreeError: another encoder, sentences that were trained on, a sentence too long.
    """
    parser.check(encoder)
    table, metadata = read_table(sentences, schema=SENTENCES, what="sentence table")
    words = table.column("words").to_pylist()
    shared = refuse_overlap(parser.trained_on, words, allow=allow_overlap)
    pieces = encoder.tokenise(words)
    found = _parse(parser, encoder, pieces, threshold)
    status = [OK] * len(words)
    for place in (place for place, sentence in enumerate(pieces) if sentence.too_long):
        status[place], found[place] = _without(pieces[place], place, too_long)
    rows = {
        "sentence": table.column("sentence"),
        "n_words": pa.array([len(each) for each in words], pa.int32()),
        "status": pa.array(status),
        "starts": pa.array([starts for starts, _ in found]),
        "ends": pa.array([ends for _, ends in found]),
    }
    parses = pa.table(rows).cast(PARSES)
    settings = {**parser.describe(), "threshold": threshold, "overlap": shared}
    made = provenance(code=CODE, settings=settings, treebank=metadata.get("provenance"))
    about = {
        "language": metadata.get("language"),
        "split": metadata.get("split"),
        "encoder": encoder.slug,
        "selection": _trained_on(parser),
        "provenance": made,
    }
    write_table(output, parses, schema=PARSES, metadata=about)
    return parses


def _parse(
    parser: TrainedParser, encoder: Encoder, pieces: Sequence[Pieces], threshold: float
) -> list[Spans]:
    """Return the spans of each sentence, none for those too long."""
    nothing = np.empty(0, np.int32)
    found: list[Spans] = [(nothing, nothing)] * len(pieces)
    usable = [place for place, sentence in enumerate(pieces) if not sentence.too_long]
    lengths = [len(pieces[place].ids) for place in usable]
    with progress("parsing", total=len(usable)) as advance:
        for group in batches(lengths, tokens_per_batch=2048, cells_per_batch=100_000):
            places = [usable[row] for row in group]
            batch = parser.features(encoder, [pieces[place] for place in places])
            starts, ends, _ = parser.trees(batch)
            each = np.array([max(pieces[place].n_words - 1, 0) for place in places])
            kept = np.ones(len(starts), bool)
            if threshold > 0:
                kept = likelihoods(parser.span_scores(batch), starts, ends) >= threshold
            tree = np.repeat(np.arange(len(each)), each)
            for row, place in enumerate(places):
                chosen = kept & (tree == row)
                found[place] = (starts[chosen], ends[chosen])
            advance(len(places))
    return found


def _without(sentence: Pieces, place: int, too_long: str) -> tuple[str, Spans]:
    if too_long not in TOO_LONG:
        raise AttreeError(
            f"sentence {place} has {len(sentence.ids)} word pieces, past the encoder's limit",
            fix="pass --too-long right_branching or --too-long skip",
        )
    status = TOO_LONG[too_long]
    return status, fixed_trees(FALLBACK, [sentence.n_words if status == FALLBACK else 0])


def _trained_on(parser: TrainedParser) -> str:
    about = parser.about
    table = about.get("table") or {}
    named = " ".join(part for part in (table.get("language"), table.get("split")) if part)
    return f"{named} ({about.get('trees')} trees, seed {about.get('seed')})".strip()
