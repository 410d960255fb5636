"""``attree apply``: trees of a treebank's sentences by a trained few-shot parser."""

from __future__ import annotations

from pathlib import Path

import typer


def run(
    sentences: Path = typer.Argument(..., help="A table of sentences (attree treebank)."),
    parser: Path = typer.Option(..., help="A folder that attree train wrote."),
    encoder: Path = typer.Option(..., help="The encoder it was trained with."),
    output: Path = typer.Option(..., help="The table of parses to write (Parquet)."),
    decoder: str | None = typer.Option(None, help="Another decoder than the parser's own."),
    threshold: str = typer.Option(
        "0",
        help="Drop spans of a lower marginal, so that trees need not be binary: a number, or "
        "chosen (on the held-out trees of its training).",
    ),
    too_long: str = typer.Option("right_branching", help="right_branching, skip or error."),
    allow_overlap: bool = typer.Option(False, help="Parse sentences it was trained on too."),
    device: str | None = typer.Option(None, help="cpu or cuda; a GPU where there is one."),
) -> None:
    """Parse every sentence of a table."""
    from attree import process
    from attree.encoder.load import load_encoder
    from attree.fewshot.apply import write_parses
    from attree.fewshot.parser_folder import load_parser

    process.follow()
    loaded = load_encoder(encoder, device=device)
    trained = load_parser(parser, device=str(loaded.device), decoder=decoder)
    write_parses(
        trained,
        loaded,
        sentences,
        output,
        threshold=trained.threshold(threshold),
        too_long=too_long,
        allow_overlap=allow_overlap,
    )
