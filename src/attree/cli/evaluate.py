"""``attree evaluate``: F1 of anyone's trees, or of parsers trained on a few trees."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from attree.base import completion, options
from attree.base.errors import AttreeError
from attree.base.options import ReadingOptions

if TYPE_CHECKING:
    from attree.apps.evaluate.systems import How
    from attree.apps.evaluate.training import FewShotPlan
    from attree.treebank.sentence import SplitSettings

_TRAIN = "Train and score"
_NUMBERS_OF_TREES = ["10", "20", "40"]
#: What can be asked for: which files and slices are given.
_TRAINED = ({"train", "test"}, {"train", "split"}, {"predictions", "split"})
_KEPT = ({"predictions", "gold"}, {"predictions", "test"}, {"test"}, {"gold"})


@options.needs(trees="train split", draws="train split", steps="train split", start="train split")
@options.excludes("gold test", "worst train", "worst split")
def evaluate_command(
    predictions: options.TreebankFiles | None = None,
    /,
    *,
    gold: options.TreebankFiles | None = None,
    worst: Annotated[int, Parameter(validator=options.between(0))] = 0,
    max_words: options.MaxWords | None = None,
    train: Annotated[options.TreebankFiles | None, Parameter(group=_TRAIN)] = None,
    test: Annotated[options.TreebankFiles | None, Parameter(group=_TRAIN)] = None,
    split: Annotated[str | None, Parameter(group=_TRAIN)] = None,
    trees: Annotated[options.Words, Parameter(group=_TRAIN)] = _NUMBERS_OF_TREES,
    draws: Annotated[int, Parameter(validator=options.between(1), group=_TRAIN)] = 1,
    parser: Annotated[options.Words | None, Parameter(completer=completion.methods)] = None,
    encoder: Annotated[options.Encoder | None, Parameter(group=_TRAIN)] = None,
    steps: Annotated[options.Steps, Parameter(group=_TRAIN)] = 200,
    start: Annotated[str | None, Parameter(group=_TRAIN)] = None,
    allow_overlap: options.AllowOverlap = False,
    accept_loss: options.AcceptLoss = 0.0,
    device: Annotated[options.Device | None, Parameter(group=_TRAIN)] = None,
    reading: Annotated[ReadingOptions, Parameter(name="*")] = ReadingOptions(),
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

    Args:
        predictions: Predicted trees: what to score against --gold; or the treebank that --split
            cuts.
        gold: Gold trees: treebank files, patterns, folders.
        worst: Draw this many of the worst sentences.
        train: Trees to train on: treebank files, patterns, folders.
        test: Trees to score on: treebank files, patterns, folders.
        split: Sentences of one treebank to score on, such as 100:, the others train.
        trees: How many trees are drawn at random: a parser is trained on each number.
        draws: Draws of trees; F1 is the mean.
        parser: Parser: of --train those of attree train; of upoa, upio, upio-log the trees choose
            heads. Default: the one of attree train, and upio. Else what you kept: folders of attree
            train, ready parsers, trees. Default: universal.
        start: First weights: encoder, random, or a parser. Default: as attree train has it.
    """
    from attree.treebank.language_file import settings_of

    settings = settings_of(**reading.given(), accept_loss=accept_loss)
    given = {
        "predictions": predictions,
        "gold": gold,
        "train": train,
        "test": test,
        "split": split,
    }
    asked = {name for name, value in given.items() if value}
    names = tuple(parser or ())
    if asked in _KEPT:
        from attree.apps.evaluate.systems import How

        how = How(settings, encoder, device, max_words, allow_overlap)
        kept = [*map(str, predictions or ()), *names] or ["universal"]
        _score(kept, gold or test or (), how, worst, accept_loss)
        return
    if asked not in _TRAINED:
        raise AttreeError(
            "nothing-to-evaluate",
            "it is not clear what to evaluate",
            fix="give --test, or PREDICTIONS and --gold, or --train and --test, or "
            "one file and --split 100:",
        )
    from attree.apps.evaluate.training import FewShotPlan

    plan = FewShotPlan(
        names, _numbers(trees), draws, encoder, steps, device, max_words, allow_overlap, start
    )
    _train(train or predictions or (), test, split, plan, settings)


def _score(
    names: list[str], gold: Sequence[Path], how: How, worst: int, accept_loss: float
) -> None:
    from attree.apps.evaluate.systems import evaluate
    from attree.base.tables import show
    from attree.evaluation.side_by_side import Gold

    found = Gold.read(gold, how.settings)
    for line in found.refused:
        print(line, file=sys.stderr)
    made = evaluate(found, names, how)
    show(made.tables())
    for drawing in made.worst(worst):
        print(drawing)
    made.check_missing(accept_loss)


def _train(
    own: Sequence[Path],
    test: Sequence[Path] | None,
    tested: str | None,
    plan: FewShotPlan,
    how: SplitSettings,
) -> None:
    from attree.apps.evaluate.training import evaluate_trained, split
    from attree.base.tables import show
    from attree.treebank.given import Treebank

    found = [Treebank.of(paths, how) for paths in (own, test) if paths]
    for line in (line for one in found for line in one.refused):
        print(line, file=sys.stderr)
    train, other = found if tested is None else split(found[0], tested, own[0])
    show(evaluate_trained(train, other, plan).tables())


def _numbers(parts: Sequence[str]) -> tuple[int, ...]:
    if not all(re.fullmatch("0*[1-9][0-9]{0,8}", part) for part in parts):
        problem = f"--trees {','.join(parts)} is not numbers of trees"
        raise AttreeError("not-a-number", problem, fix="write 10,20,40")
    return tuple(map(int, parts))
