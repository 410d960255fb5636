"""``attree evaluate``: F1 of anyone's trees, or of parsers trained on a few trees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attree.errors import AttreeError

if TYPE_CHECKING:
    from attree.evaluate.training import Plan
    from attree.treebank.sentence import Settings

_TRAIN = "Train and score"


def evaluate_command(
    predictions: Annotated[
        Path | None, typer.Argument(help="Trees of any parser, to score against --gold.")
    ] = None,
    gold: Annotated[Path | None, typer.Option(help="Gold trees: a treebank file.")] = None,
    worst: Annotated[int, typer.Option(min=0, help="Draw this many of the worst sentences.")] = 0,
    max_words: Annotated[
        int | None, typer.Option(min=1, help="Score only sentences of at most this many words.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="Trees to train on.", rich_help_panel=_TRAIN)
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="Trees to score on.", rich_help_panel=_TRAIN)
    ] = None,
    trees: Annotated[
        str, typer.Option(help="How many trees to train on.", rich_help_panel=_TRAIN)
    ] = "10,20,40",
    draws: Annotated[
        int, typer.Option(min=1, help="Draws of trees; F1 is the mean.", rich_help_panel=_TRAIN)
    ] = 1,
    parser: Annotated[
        str, typer.Option(help="Few-shot parsers of attree train.", rich_help_panel=_TRAIN)
    ] = "tree-crf-full",
    encoder: Annotated[
        str | None,
        typer.Option(
            help="A description, folder or package; by default a small English one.",
            rich_help_panel=_TRAIN,
        ),
    ] = None,
    steps: Annotated[
        int, typer.Option(min=1, help="Batches trained on.", rich_help_panel=_TRAIN)
    ] = 200,
    allow_overlap: Annotated[
        bool,
        typer.Option(
            "--allow-overlap", help="Train on sentences of --test too.", rich_help_panel=_TRAIN
        ),
    ] = False,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.", rich_help_panel=_TRAIN)] = None,
    format: Annotated[
        str | None, typer.Option(help="The format of both files; by default each file's own.")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Of both files; by default UTF-8.")] = None,
    punctuation: Annotated[
        str | None, typer.Option(help="Which words to remove: keep, ptb, unicode, 'drop:TAG TAG'.")
    ] = None,
) -> None:
    """Score trees of any parser against gold trees, or train parsers on a few trees and score them.

    Right and left branching, balanced trees and the binary ceiling stand beside. Sentences are
    paired by their words; one without a partner is reported with file, line and reason.

    Example:
      attree evaluate benepar.mrg --gold test.mrg --worst 3
      attree evaluate --train mine.mrg --test test.mrg --trees 10,20,40
    """
    from attree.treebank.sentence import Settings

    settings = Settings(format=format, encoding=encoding, punctuation=punctuation)
    if predictions is not None and gold is not None and train is None and test is None:
        _score(predictions, gold, settings, max_words, worst)
    elif predictions is None and gold is None and train is not None and test is not None:
        from attree.evaluate.training import Plan

        names = tuple(name.strip() for name in parser.split(","))
        plan = Plan(names, _numbers(trees), draws, encoder, steps, device, max_words, allow_overlap)
        _train(train, test, plan, settings)
    else:
        raise AttreeError(
            "it is not clear what to evaluate",
            fix="give PREDICTIONS and --gold, or --train and --test",
        )


def _score(
    predictions: Path, gold: Path, settings: Settings, max_words: int | None, worst: int
) -> None:
    from attree.evaluate.align import align
    from attree.evaluate.predictions import Evaluation
    from attree.tables.render import show

    pairs = align(gold, predictions, settings)
    for line in pairs.refused:
        typer.echo(line, err=True)
    found = Evaluation(pairs, predictions.name, max_words)
    show([found.table()])
    for drawing in found.worst(worst):
        typer.echo(drawing)


def _train(train: Path, test: Path, plan: Plan, settings: Settings) -> None:
    from attree.evaluate.training import Treebank, evaluate_trained
    from attree.tables.render import show

    own, other = (Treebank.read(path, settings) for path in (train, test))
    for line in own.refused + other.refused:
        typer.echo(line, err=True)
    show([evaluate_trained(own, other, plan)])


def _numbers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise AttreeError(f"--trees {text} is not numbers of trees", fix="write 10,20,40")
    return tuple(map(int, parts))
