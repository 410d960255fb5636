"""What users ask of trees: ``attree evaluate``, F1; ``measures``, shapes; ``search``, nodes."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from attree.base import options
from attree.base.errors import AttreeError
from attree.base.options import ReadingOptions
from attree.base.terminal import in_json, safe, say
from attree.cli.treebank import TreeOptions
from attree.training.options import Steps
from attree.treebank.language_file import settings_of

if TYPE_CHECKING:
    from attree.apps.search import Match


_TRAIN = "Train and score"
_NUMBERS_OF_TREES = ["10", "20", "40"]
#: Combinations of options that train parsers, and that score kept ones.
_TRAINED = ({"train", "test"}, {"train", "split"}, {"predictions", "split"})
_KEPT = ({"predictions", "gold"}, {"predictions", "test"}, {"test"}, {"gold"})


@options.needs(trees="train split", draws="train split", steps="train split", start="train split")
@options.excludes("gold test", "worst train", "worst split")
def evaluate_command(
    predictions: options.TreebankFiles | None = None,
    /,
    *,
    # what follows a file of gold trees may be PREDICTIONS
    gold: Annotated[options.TreebankFiles | None, Parameter(consume_multiple=False)] = None,
    worst: Annotated[int, Parameter(validator=options.between(0))] = 0,
    max_words: options.MaxWords | None = None,
    train: Annotated[options.TreebankFiles | None, Parameter(group=_TRAIN)] = None,
    test: Annotated[options.TreebankFiles | None, Parameter(group=_TRAIN)] = None,
    split: Annotated[str | None, Parameter(group=_TRAIN)] = None,
    trees: Annotated[options.Words, Parameter(group=_TRAIN)] = _NUMBERS_OF_TREES,
    draws: Annotated[int, Parameter(validator=options.between(1), group=_TRAIN)] = 1,
    parser: Annotated[options.Words | None, Parameter(completer=options.methods)] = None,
    encoder: Annotated[options.Encoder | None, Parameter(group=_TRAIN)] = None,
    steps: Annotated[Steps | None, Parameter(group=_TRAIN)] = None,
    start: Annotated[str | None, Parameter(group=_TRAIN)] = None,
    allow_overlap: options.AllowOverlap = False,
    accept_loss: options.AcceptLoss = 0.0,
    device: Annotated[options.Device | None, Parameter(group=_TRAIN)] = None,
    reading: Annotated[ReadingOptions, Parameter(name="*")] = ReadingOptions(),
) -> None:
    """Score parsers that you kept, or anyone's trees; or train parsers on a few trees and score.

    Right and left branching, balanced trees and the binary ceiling stand beside, with 95 %
    intervals, and p of every two parsers. Against dependency trees (CoNLL-U), F1 gives way to
    headed precision and recall of subtrees. A table .tsv has simple sentences: language, words,
    phrases, impossible spans (0-2 3-5). --parser takes folders of attree train, ready parsers,
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
    from attree.base.tables import show

    settings = settings_of(**reading.given(), accept_loss=accept_loss)
    words = {"predictions": predictions, "gold": gold, "train": train, "test": test, "split": split}
    named = {name for name, value in words.items() if value}
    names = tuple(parser or ())
    if named in _KEPT:
        from attree.apps.systems import How, evaluate, evaluate_simple
        from attree.evaluation.side_by_side import Gold

        how = How(settings, encoder, device, max_words, allow_overlap)
        systems = [*map(str, predictions or ()), *names] or ["universal"]
        scored_on = gold or test or []
        if [path.suffix for path in scored_on] == [".tsv"]:  # a table of simple sentences
            asked = {"worst": worst, "max_words": max_words, **reading.given()}
            for option in ("worst", "max_words", "punctuation"):
                if asked.get(option):
                    problem = f"--{option.replace('_', '-')} is of no effect on simple sentences"
                    raise AttreeError("option-without-effect", problem, fix="leave it out")
            table, wrong, done = evaluate_simple(scored_on[0], systems, how)
            show([table])
            print("\n".join(wrong))
            done.check_missing(accept_loss)
            return
        gold_trees = Gold.read(scored_on, settings)
        for line in gold_trees.refused:
            say(line)
        scored = evaluate(gold_trees, systems, how)
        show(scored.tables())
        for drawing in scored.worst(worst):
            print(drawing)
        scored.check_missing(accept_loss)
        return
    if named not in _TRAINED:
        fix = "give --test, or PREDICTIONS and --gold, or --train and --test, or "
        fix += "one file and --split 100:"
        raise AttreeError("nothing-to-evaluate", "it is not clear what to evaluate", fix=fix)
    from attree.apps.few_shot import FewShotPlan, evaluate_trained
    from attree.apps.few_shot import split as split_by
    from attree.treebank.as_table import Treebank

    if not all(re.fullmatch("0*[1-9][0-9]{0,8}", number) for number in trees):
        problem = f"--trees {','.join(trees)} is no list of numbers"
        raise AttreeError("not-a-number", problem, fix="write 10,20,40")
    sizes = tuple(map(int, trees))
    plan = FewShotPlan(names, sizes, draws, encoder, steps, device, max_words, allow_overlap, start)
    trained = train or predictions or []
    treebanks = [Treebank.read_all(paths, settings) for paths in (trained, test) if paths]
    for line in (line for treebank in treebanks for line in treebank.refused):
        say(line)
    drawn, tested = treebanks if split is None else split_by(treebanks[0], split, trained[0])
    show(evaluate_trained(drawn, tested, plan).tables())


def measures_command(
    trees: options.TreebankFiles,
    /,
    *,
    output: options.Output,
    plain: bool = False,
    how: Annotated[ReadingOptions, Parameter(name="*")] = ReadingOptions(),
    overwrite: options.Overwrite = False,
) -> None:
    """Measure trees (depth, branching, node counts); tables as Parquet and TSV.

    words: of each word the phrases that a top-down, a bottom-up and a left-corner parser makes at
    it (node counts; tags over words do not count), and its depth. sentences: phrases, depth, mean
    length of phrases, shares of right and left branching. phrases: how often each label occurs
    in a sentence, of trees with labels. The status of bulk output is in every row: trees of
    too_long and failed sentences are right-branching stand-ins.

    Example:
      attree measures trees/de --output measures/de
      attree measures wsj_0001.mrg --output measures/wsj

    Args:
        trees: Trees: treebank files, patterns, folders, tables, output of `attree parse`.
        output: Where to write: a folder for the tables.
        plain: Leave out one-word phrases, and all of a unary chain but one, as F1 does: to compare
            labelled trees with unlabelled ones.
    """
    from attree.apps.measures import check_output, write_measures
    from attree.apps.reading import Reading

    check_output(output, overwrite=overwrite)
    reading = Reading(settings_of(**{"punctuation": "keep", **how.given()}))
    rows = write_measures(reading.all(trees), output, plain=plain)
    refused = f", {reading.refused:,} not read" if reading.refused else ""
    print(
        f"{rows['sentences']:,} sentences{refused}; {rows['words']:,} words; "
        f"{rows['phrases']:,} rows of phrase types"
    )
    print(safe(f"{output}/words.tsv, sentences.tsv, phrases.tsv; the same as .parquet"))


@options.excludes("count json", "count context", "context json")
def search_command(
    pattern: str,
    trees: options.TreebankFiles,
    /,
    *,
    count: bool = False,
    as_json: options.AsJson = False,
    context: Annotated[int, Parameter(validator=options.between(0))] = 8,
    reading: Annotated[ReadingOptions, Parameter(name="*")] = ReadingOptions(),
    reading_trees: Annotated[TreeOptions, Parameter(name="*")] = TreeOptions(),
) -> None:
    """Find nodes of trees by a pattern, as Tregex and NLTK's tgrep know them.

    Prints a line for each match: its file and line, and the match in brackets among its words;
    with --json an object, of file, line, sentence, status, label, start, end, text and words.
    nltk.tgrep reads the pattern: "NP < PP" is an NP with a child PP, "<<" any below, "." right
    before, "$" a sister, "!" not, /^N/ a regular expression, "VP < (NP . PP)" in brackets.
    --functions keep leaves NP-SBJ as it is.

    Example:
      attree search "NP < PP" trees/
      attree search "VP << /^giv/" wsj_0001.mrg --json
      attree search "NP !<< NP" trees/ --count

    Args:
        pattern: What to look for.
        trees: Trees: treebank files, patterns, folders, tables, output of `attree parse`.
        count: Count the matches, and the trees with one, of each file.
        context: So many words before and after.
    """
    from attree.apps.reading import Reading
    from attree.apps.search import Pattern, search

    compiled = Pattern(pattern)
    read = Reading(settings_of(**{"punctuation": "keep"} | reading.given() | reading_trees.given()))
    all_trees, matched, with_match = (Counter[str]() for _ in range(3))
    for found in search(compiled, read.all(trees)):
        for line in found.refused:
            read.refuse(line)
        all_trees.update(found.files)
        matched.update(match.file for match in found.matches)
        sentences = {(match.file, match.line, match.sentence) for match in found.matches}
        with_match.update(file for file, *_ in sentences)
        for match in [] if count else found.matches:
            print(_json(match) if as_json else _line(match, context))
    if count:
        print("matches\ttrees with one\ttrees\tfile")
        for file, number in all_trees.items():
            print(f"{matched[file]}\t{with_match[file]}\t{number}\t{safe(file)}")
    refused = f", {read.refused:,} not read" if read.refused else ""
    say(
        f"{matched.total():,} matches in {with_match.total():,} of {all_trees.total():,} "
        f"trees{refused}"
    )


def _json(match: Match) -> str:
    values = dataclasses.asdict(match)
    words = values.pop("words")
    return in_json(values | {"text": " ".join(words[match.start : match.end]), "words": words})


def _line(match: Match, context: int) -> str:
    """Return a line of a concordance."""
    words, start, end = match.words, match.start, match.end
    before, after = words[max(0, start - context) : start], words[end : end + context]
    text = " ".join([*before, f"[{match.label} {' '.join(words[start:end])}]", *after])
    return safe(f"{match.file}:{match.line}: {text}")
