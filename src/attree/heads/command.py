"""``attree heads``: rank attention heads by F1 and select some."""

from __future__ import annotations

from pathlib import Path

import typer


def heads_command(
    attention: Path = typer.Argument(..., help="A manifest of `attree attention --heads all`."),
    sentences: Path = typer.Option(..., help="The sentence table it was made from, with trees."),
    association: str = typer.Option("raw", help="raw, or log."),
    score: str = typer.Option(..., help="outside, inside_outside or inside."),
    decoder: str = typer.Option(..., help="greedy or chart."),
    heads: str = typer.Option(
        "above:30", help="all, best, best:K, above:F1 (percent) or list:LAYER.HEAD,…"
    ),
    trees: str = typer.Option("all", help="Rank on so many trees, drawn at random, or on all."),
    seed: int = typer.Option(0, help="Seed of the draw."),
    output: Path = typer.Option(..., help="The table of all heads to write (Parquet)."),
    selection: Path = typer.Option(..., help="The selection to write (JSON)."),
) -> None:
    """Score every head as a parser of its own on gold trees, and select heads."""
    from attree import process
    from attree.decoding import Recipe
    from attree.errors import AttreeError
    from attree.heads.ranking import rank_heads
    from attree.heads.selection import HeadSelection

    process.follow()
    if trees != "all" and not (trees.isdigit() and int(trees) > 0):
        raise AttreeError(f"--trees {trees} is no number of trees", fix="give a number, or all")
    rank_heads(
        attention,
        sentences,
        Recipe(association, score, decoder),
        HeadSelection.parse(heads),
        trees=None if trees == "all" else int(trees),
        seed=seed,
        table=output,
        selection=selection,
    )
