"""``attree decode`` and ``attree apply``: parses of a treebank's sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def decode_command(
    attention: Annotated[Path, typer.Argument(help="A manifest of `attree attention`.")],
    selection: Annotated[Path, typer.Option(help="A selection of `attree heads`.")],
    output: Annotated[Path, typer.Option(help="The table of parses to write (Parquet).")],
    association: Annotated[
        str | None, typer.Option(help="raw or log; default: as in the selection.")
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(help="outside, inside_outside or inside; default: as in the selection."),
    ] = None,
    decoder: Annotated[
        str | None,
        typer.Option(
            help="greedy, chart, normalised_chart or marginal_chart; default: as in the selection."
        ),
    ] = None,
) -> None:
    """Parse every sentence by the mean attention of the selected heads."""
    from attree import process
    from attree.parsing.from_shards import write_parses

    process.follow()
    recipe = {"association": association, "score": score, "decoder": decoder}
    write_parses(attention, selection, output, recipe=recipe)


def apply_command(
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
    from attree.fewshot.parser import TrainedModel, load_parser
    from attree.parsing.from_parser import write_parses

    process.follow()
    loaded = load_encoder(encoder, device=device)
    trained = load_parser(parser, device=str(loaded.device), decoder=decoder)
    model = TrainedModel(trained, loaded, trained.threshold(threshold))
    write_parses(model, sentences, output, too_long=too_long, allow_overlap=allow_overlap)
