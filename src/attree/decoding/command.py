"""``attree decode``: trees from the attention of selected heads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
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
    from attree.decoding.parses import write_parses

    process.follow()
    recipe = {"association": association, "score": score, "decoder": decoder}
    write_parses(attention, selection, output, recipe=recipe)
