"""``attree train``: train a few-shot parser from a handful of trees."""

from __future__ import annotations

from pathlib import Path

import typer


def train_command(
    sentences: Path = typer.Option(..., help="Table of trees to choose from (attree treebank)."),
    encoder: Path = typer.Option(..., help="Resolved encoder (attree encoder resolve)."),
    output: Path = typer.Option(..., help="Folder for the trained parser."),
    parser: str = typer.Option(
        "tree-crf", help="fpio, fpoa, tree-crf, tree-crf-full, head-weights…"
    ),
    trees: str = typer.Option("80", help="How many trees to draw, or all."),
    ids: str | None = typer.Option(None, help="Sentence numbers instead of a draw: 3,17,40."),
    seed: int = typer.Option(0, help="Seed of the draw and of the training."),
    layer: str | None = typer.Option(
        None, help="Hidden states: 3, or 2,3,4; the middle if not said."
    ),
    size: int = typer.Option(0, help="Size of the projection; 0 for the encoder's own."),
    start: str = typer.Option("encoder", help="First weights: encoder (its own) or random."),
    association: str | None = typer.Option(None, help="log or raw, instead of the parser's own."),
    objective: str | None = typer.Option(None, help="likelihood, margin or tree_crf instead."),
    decoder: str | None = typer.Option(None, help="Another decoder than the parser's own."),
    dropout: float | None = typer.Option(None, min=0, max=0.9, help="On the hidden states."),
    learning_rate: float | None = typer.Option(None, help="Of Adam."),
    steps: int = typer.Option(200, min=1, help="Batches trained on."),
    batch: int = typer.Option(10, min=1, help="Trees in one batch."),
    specials: bool = typer.Option(False, help="Keep [CLS] and [SEP] in the softmax."),
    factor: str = typer.Option("right", help="How wide nodes are made binary: right or left."),
    held_out: int = typer.Option(0, help="So many further trees for early stopping."),
    tune_on: int = typer.Option(0, help="Choose layers (dropout) on so many further trees."),
    tune_layers: str | None = typer.Option(None, help="Layers to choose among: 2;3;2,3,4."),
    tune_dropout: list[float] = typer.Option(
        [], min=0, max=0.9, help="A rate to choose among; again for more."
    ),
    evaluate_on: list[Path] = typer.Option([], help="Tables that no training tree may be in."),
    allow_overlap: bool = typer.Option(False, help="Train on trees of those tables all the same."),
    device: str | None = typer.Option(None, help="cpu or cuda; a GPU where there is one."),
) -> None:
    """Train a few-shot parser and write its folder."""
    from attree import process
    from attree.fewshot import session
    from attree.fewshot.choice import Choice
    from attree.fewshot.recipes import adapted, recipe

    process.follow()
    changes = {"objective": objective, "association": association, "decoder": decoder}
    first = {"size": size, "start": start}
    request = session.Request(
        sentences,
        encoder,
        adapted(recipe(parser), dropout=dropout, learning_rate=learning_rate, **changes),
        Choice(trees, ids, seed, factor, held_out=held_out, tuning=tune_on),
        layers=session.parse_layers(layer) if layer else None,
        training={**first, "specials": specials, "steps": steps, "batch": batch},
        tune_layers=tuple(map(session.parse_layers, tune_layers.split(";") if tune_layers else [])),
        tune_dropouts=tuple(tune_dropout),
        evaluated=evaluate_on,
        allow_overlap=allow_overlap,
        device=device,
    )
    print(session.summary(session.train_parser(request, output), output))
