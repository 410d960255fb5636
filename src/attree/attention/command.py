"""``attree attention``: word × word matrices of a sentence table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from attree.attention.sources import HEADS, SOURCES
from attree.options import between


def attention_command(
    sentences: Annotated[Path, Parameter(help="A treebank file or a sentence table.")],
    /,
    *,
    encoder: Annotated[Path, Parameter(help="A description, a folder, a name, or a package.")],
    output: Annotated[
        Path, Parameter(help="The manifest to write; its shards are written beside it.")
    ],
    heads: Annotated[
        list[str] | None,
        Parameter(help="all: every head by itself; list:1.7,2.8: their mean. Repeatable."),
    ] = None,
    selections: Annotated[
        list[Path] | None,
        Parameter(help="A selection of `attree heads`: the mean of its heads. Repeatable."),
    ] = None,
    source: Annotated[
        list[str] | None,
        Parameter(
            help=f"What --heads are heads of: {', '.join(SOURCES)}. A layer of hidden states is "
            f"written 4.0. Repeatable; {HEADS} by default."
        ),
    ] = None,
    too_long: Annotated[
        str,
        Parameter(help="For sentences past the encoder's limit: right_branching, skip, error."),
    ] = "right_branching",
    precision: Annotated[
        str,
        Parameter(help="float32; float16 halves the shards and changes one tree in 900."),
    ] = "float32",
    partition_size: Annotated[
        int, Parameter(validator=between(1), help="Sentences in one shard.")
    ] = 2000,
    tokens_per_batch: Annotated[
        int | None,
        Parameter(
            validator=between(1), help="Word pieces in one batch; by default what suits the device."
        ),
    ] = None,
    workers: Annotated[
        int, Parameter(validator=between(1), help="Worker processes on this machine.")
    ] = 1,
    threads: Annotated[
        int | None, Parameter(validator=between(1), help="Threads of each worker.")
    ] = None,
    scheduler: Annotated[
        str,
        Parameter(help="local, or a Dask scheduler's address (TLS as Dask is configured)."),
    ] = "local",
    device: Annotated[
        str | None, Parameter(help="cpu, cuda, cuda:1…; by default a GPU if there is one.")
    ] = None,
) -> None:
    """Run an encoder over sentences and keep the attention of its heads, word by word."""
    from attree import process
    from attree.attention.compute import StageSettings
    from attree.attention.stage import columns_for, compute_attention
    from attree.encoder.source import find_encoder
    from attree.given import as_tables

    process.follow()
    described = find_encoder(encoder)
    every, sets = _asked(heads or [])
    columns = columns_for(
        described,
        every=every,
        sets=sets,
        selections=selections or [],
        sources=source or [HEADS],
        precision=precision,
    )
    settings = StageSettings(
        partition_size=partition_size,
        tokens_per_batch=tokens_per_batch,
        too_long=too_long,
        workers=workers,
        threads=threads,
        scheduler=scheduler,
        device=device,
    )
    with as_tables([sentences]) as (table,):
        compute_attention(table, described, columns, output, settings)


def _asked(heads: list[str]) -> tuple[bool, list[tuple[tuple[int, int], ...]]]:
    """Return whether every head is asked for, and the sets of which the mean is."""
    from attree.attention.columns import listed
    from attree.errors import AttreeError

    sets = [listed(text.removeprefix("list:")) for text in heads if text != "all"]
    known = [one for one in sets if one is not None]
    if len(known) < len(sets):
        raise AttreeError(
            "only `attree heads` can choose heads by their F1",
            fix="give --heads all, --heads list:LAYER.HEAD,… or --selections",
        )
    return "all" in heads, known
