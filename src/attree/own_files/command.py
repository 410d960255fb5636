"""``attree evaluate``: F1 of anyone's trees, or of parsers trained on a few trees."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attree import completion
from attree.errors import AttreeError

if TYPE_CHECKING:
    from attree.own_files.training import Plan
    from attree.treebank.sentence import Settings

_TRAIN = "Train and score"
#: What can be asked for: which files and slices are given.
_WAYS = ({"predictions", "gold"}, {"train", "test"}, {"train", "split"}, {"predictions", "split"})


def evaluate_command(
    predictions: Annotated[
        Path | None,
        typer.Argument(help="Trees to score against --gold, or to --split."),
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
    split: Annotated[
        str | None,
        typer.Option(
            help="Of one file: sentences to score on, such as 100:; the others train.",
            rich_help_panel=_TRAIN,
        ),
    ] = None,
    trees: Annotated[
        str, typer.Option(help="How many trees to train on.", rich_help_panel=_TRAIN)
    ] = "10,20,40",
    draws: Annotated[
        int, typer.Option(min=1, help="Draws of trees; F1 is the mean.", rich_help_panel=_TRAIN)
    ] = 1,
    parser: Annotated[
        str | None,
        typer.Option(
            help="Parsers of attree train; of upoa, upio, upio-log the trees choose heads. "
            "Default: the one of attree train, and upio.",
            rich_help_panel=_TRAIN,
            autocompletion=completion.methods,
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="A description, folder, name or package; by default a small English one.",
            rich_help_panel=_TRAIN,
            autocompletion=completion.encoders,
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
        str | None,
        typer.Option(
            help="The format of both files; by default each file's own.",
            autocompletion=completion.treebank_formats,
        ),
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
      attree evaluate mine.mrg --split 100: --draws 3
    """
    from attree.treebank.sentence import Settings

    settings = Settings(format=format, encoding=encoding, punctuation=punctuation)
    given = {
        "predictions": predictions,
        "gold": gold,
        "train": train,
        "test": test,
        "split": split,
    }
    asked = {name for name, value in given.items() if value is not None}
    if asked not in _WAYS:
        raise AttreeError(
            "it is not clear what to evaluate",
            fix="give PREDICTIONS and --gold, or --train and --test, or one file and --split 100:",
        )
    if predictions is not None and gold is not None:
        _score(predictions, gold, settings, max_words, worst)
        return
    from attree.own_files.training import Plan

    names = tuple(name.strip() for name in parser.split(",")) if parser is not None else ()
    plan = Plan(names, _numbers(trees), draws, encoder, steps, device, max_words, allow_overlap)
    own = train or predictions
    assert own is not None
    _train(own, test, split, plan, settings)


def _score(
    predictions: Path, gold: Path, settings: Settings, max_words: int | None, worst: int
) -> None:
    from attree.own_files.align import align
    from attree.own_files.predictions import Evaluation
    from attree.tables.render import show

    pairs = align(gold, predictions, settings)
    for line in pairs.refused:
        typer.echo(line, err=True)
    found = Evaluation(pairs, predictions.name, max_words)
    show([found.table()])
    for drawing in found.worst(worst):
        typer.echo(drawing)


def _train(own: Path, test: Path | None, tested: str | None, plan: Plan, how: Settings) -> None:
    from attree.given import Treebank
    from attree.own_files.training import evaluate_trained, split
    from attree.tables.render import show

    found = [Treebank.read(path, how) for path in (own, test) if path is not None]
    for line in (line for one in found for line in one.refused):
        typer.echo(line, err=True)
    train, other = found if tested is None else split(found[0], tested, own)
    show([evaluate_trained(train, other, plan)])


def _numbers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch("0*[1-9][0-9]{0,8}", part) for part in parts):
        raise AttreeError(f"--trees {text} is not numbers of trees", fix="write 10,20,40")
    return tuple(map(int, parts))
