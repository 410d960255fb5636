"""``attree figure``: draw a stage's table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Draw figures from tables.", no_args_is_help=True, add_completion=False)


@app.callback()
def _group() -> None:
    """Keep `attree figure heads` a subcommand while there is only one."""


@app.command()
def heads(
    ranking: Annotated[Path, typer.Option(help="The table written by `attree heads`.")],
    output: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")],
    title: Annotated[str, typer.Option(help="Heading of the picture.")] = "",
) -> None:
    """The layer × head heat map: F1 of every head, the selected ones framed."""
    from attree.figures import check_format
    from attree.schemas import HEADS, read_table

    check_format(output)
    table, _ = read_table(ranking, schema=HEADS)
    from attree.figures.draw import heads_map  # takes seconds

    heads_map(table, title or str(ranking), output)
