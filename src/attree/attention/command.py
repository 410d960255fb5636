"""``attree attention``: the word-level attention of a sentence table."""

from __future__ import annotations

from pathlib import Path

import typer


def attention_command(
    sentences: Path = typer.Argument(..., help="A sentence table of `attree treebank`."),
    encoder: Path = typer.Option(..., help="A description of `attree encoder resolve`."),
    output: Path = typer.Option(..., help="The manifest to write; its shards lie beside it."),
    heads: list[str] = typer.Option(
        [], help="all: every head by itself; list:1.7,2.8: the mean of these. Repeatable."
    ),
    selections: list[Path] = typer.Option(
        [], help="A selection of `attree heads`: the mean of its heads. Repeatable."
    ),
    too_long: str = typer.Option(
        "right_branching",
        help="For sentences past the encoder's limit: right_branching, skip or error.",
    ),
    precision: str = typer.Option(
        "float32", help="float32; float16 halves the shards and moves a tree in 900."
    ),
    partition_size: int = typer.Option(2000, min=1, help="Sentences in one shard."),
    tokens_per_batch: int | None = typer.Option(
        None, min=1, help="Word pieces in one batch; by default what suits the device."
    ),
    workers: int = typer.Option(1, min=1, help="Worker processes on this machine."),
    threads: int | None = typer.Option(None, min=1, help="Threads of each worker."),
    scheduler: str = typer.Option("local", help="local, or a Dask scheduler's address."),
    device: str | None = typer.Option(None, help="cpu, cuda, cuda:1…; a GPU where there is one."),
) -> None:
    """Run an encoder over sentences and keep the attention of its heads, word by word."""
    from attree import process
    from attree.attention.columns import listed
    from attree.attention.job import Settings
    from attree.attention.stage import columns_for, compute_attention
    from attree.encoder.source import ResolvedEncoder
    from attree.errors import AttreeError

    process.follow()
    described = ResolvedEncoder.read(encoder)
    every = "all" in heads
    sets = [listed(text.removeprefix("list:")) for text in heads if text != "all"]
    if None in sets:
        raise AttreeError(
            "only `attree heads` can choose heads by their F1",
            fix="give --heads all, --heads list:LAYER.HEAD,… or --selections",
        )
    columns = columns_for(
        described,
        every=every,
        sets=[heads for heads in sets if heads is not None],
        selections=selections,
        precision=precision,
    )
    settings = Settings(
        partition_size=partition_size,
        tokens_per_batch=tokens_per_batch,
        too_long=too_long,
        workers=workers,
        threads=threads,
        scheduler=scheduler,
        device=device,
    )
    compute_attention(sentences, described, columns, output, settings)
