"""``attree score``, ``attree baselines``, ``attree evalb``: scores of parses and of fixed trees."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from attree.evaluation import DEFAULT_LABELS, METRICS
from attree.options import between

Profile = Annotated[
    str, Parameter(help="default, or prpn: one-word sentences count as 1 in sentence F1.")
]
Labels = Annotated[
    list[str] | None,
    Parameter(
        help="Labels whose recall is reported: NP,VP,…; repeatable.",
        show_default=",".join(DEFAULT_LABELS),
    ),
]
MaxWords = Annotated[
    int | None,
    Parameter(validator=between(1), help="Score only sentences of at most this many words."),
]


def _label_names(given: Sequence[str] | None) -> list[str]:
    """Return the labels of repeated or comma-separated options, else the usual ones."""
    names = [name.strip() for text in given or () for name in text.split(",")]
    return list(dict.fromkeys(name for name in names if name)) or list(DEFAULT_LABELS)


def score_command(
    parses: Annotated[Path, Parameter(help="The parses: a table of `attree decode`.")],
    /,
    *,
    sentences: Annotated[Path, Parameter(help="Gold trees: a sentence table or treebank file.")],
    output: Annotated[Path, Parameter(help="The table to write, a row a sentence (Parquet).")],
    summary: Annotated[Path, Parameter(help="The summary to write (JSON).")],
    profile: Profile = "default",
    labels: Labels = None,
    max_words: MaxWords = None,
    encoder: Annotated[str | None, Parameter(help="The encoder's name in tables.")] = None,
    parser: Annotated[str | None, Parameter(help="The parser's name in tables.")] = None,
) -> None:
    """Score parses against gold trees: corpus F1, sentence F1 and recall by label.

    Prints the scores; `attree table show SUMMARY.json` prints them again.
    """
    from attree import process
    from attree.evaluation.summary import score_parses
    from attree.given import as_tables

    process.follow()
    with as_tables([sentences]) as (gold,):
        found = score_parses(
            parses,
            gold,
            output=output,
            summary=summary,
            profile=profile,
            labels=_label_names(labels),
            max_words=max_words,
            encoder=encoder,
            parser=parser,
        )
    print(_told(found))


def _told(summary: Mapping[str, Any]) -> str:
    """Return what was found as a line: how many sentences, and each metric's value."""
    counted = summary["protocol"]["sentences"]
    found = [
        f"{one.heading} {summary[name]:.2f}"
        for name, one in METRICS.items()
        if summary.get(name) is not None
    ]
    return f"{counted['scored']:,} of {counted['total']:,} sentences: {', '.join(found)}"


def baselines_command(
    sentences: Annotated[Path, Parameter(help="Gold trees: a sentence table or treebank file.")],
    /,
    *,
    output: Annotated[Path, Parameter(help="The summary to write (JSON).")],
    profile: Profile = "default",
    labels: Labels = None,
    max_words: MaxWords = None,
    seeds: Annotated[
        int, Parameter(validator=between(1), help="Seeds of each kind of random trees.")
    ] = 5,
) -> None:
    """Score left-branching, right-branching, balanced and random trees, and the binary ceiling."""
    from attree import process
    from attree.evaluation.baselines import write_baselines
    from attree.given import as_tables

    process.follow()
    with as_tables([sentences]) as (gold,):
        write_baselines(
            gold,
            output,
            profile=profile,
            labels=_label_names(labels),
            max_words=max_words,
            seeds=seeds,
        )


def evalb_command(
    gold: Annotated[Path, Parameter(help="Gold trees in brackets, a tree a line.")],
    test: Annotated[Path, Parameter(help="The trees to score, in the same order.")],
    /,
    *,
    prm: Annotated[
        Path | None,
        Parameter(help="A parameter file of EVALB, or collins; without it nothing is deleted."),
    ] = None,
    punctuation: Annotated[
        str | None,
        Parameter(
            help="Words to remove from both trees, by the gold one: keep, ptb, unicode, 'drop:TAG'."
        ),
    ] = None,
    unlabelled: Annotated[bool, Parameter(help="Ignore labels.")] = False,
    release: Annotated[
        str, Parameter(help="Print as the release of 2008, 2006 or 1997 does.")
    ] = "2008",
) -> None:
    """Score bracketed trees as EVALB does, with its parameters and its output.

    A bracket around the whole sentence counts nowhere without a label, nor with --prm collins as
    TOP, S1, ROOT or VROOT; with another label it is a phrase, in gold trees and others alike.
    Labelled F1 in other commands is that of --prm collins and the --punctuation that they name.

    Example:
      attree evalb test.gold.mrg test.mine.mrg --prm COLLINS.prm
      attree evalb test.gold.mrg test.mine.mrg --prm collins --punctuation ptb
    """
    import dataclasses

    from attree.errors import AttreeError
    from attree.evaluation.evalb_files import results
    from attree.evaluation.evalb_parameters import Parameters, read_parameters
    from attree.evaluation.evalb_report import RELEASES, report

    if release not in RELEASES:
        fix = f"choose one of {', '.join(RELEASES)}"
        raise AttreeError(f"unknown release {release!r}", fix=fix)
    parameters = Parameters() if prm is None else read_parameters(prm)
    if unlabelled:
        parameters = dataclasses.replace(parameters, labelled=False)
    found = results(gold, test, parameters, punctuation=punctuation)
    for line, is_error in report(found, parameters, release):
        print(line, file=sys.stderr if is_error else sys.stdout)
