"""``attree evaluate``: F1 of anyone's trees against gold trees."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def evaluate_command(
    predictions: Annotated[Path, typer.Argument(help="The trees to score, of any parser.")],
    gold: Annotated[Path, typer.Option(help="The gold trees: a treebank file, or a table.")],
    format: Annotated[
        str | None, typer.Option(help="The format of both files; by default each file's own.")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Of both files; by default UTF-8.")] = None,
    punctuation: Annotated[
        str | None, typer.Option(help="Which words to remove: keep, ptb, unicode, 'drop:TAG TAG'.")
    ] = None,
    max_words: Annotated[
        int | None, typer.Option(min=1, help="Score only sentences of at most this many words.")
    ] = None,
    worst: Annotated[int, typer.Option(min=0, help="Draw this many of the worst sentences.")] = 0,
) -> None:
    """Score trees of any parser against gold trees, beside left and right branching.

    Sentences are paired by their words; one without a partner is reported with file, line and
    reason, and costs no other.

    Example:
      attree evaluate benepar.mrg --gold test.mrg --worst 3
    """
    from attree.evaluate.align import align
    from attree.evaluate.predictions import Evaluation
    from attree.tables.render import show
    from attree.treebank.sentence import Settings

    settings = Settings(format=format, encoding=encoding, punctuation=punctuation)
    pairs = align(gold, predictions, settings)
    for line in pairs.refused:
        typer.echo(line, err=True)
    found = Evaluation(pairs, predictions.name, max_words)
    show([found.grid()])
    for drawing in found.worst(worst):
        typer.echo(drawing)
