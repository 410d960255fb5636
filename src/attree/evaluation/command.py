"""``attree score``, ``attree baselines``, ``attree evalb``: scores of parses and of fixed trees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from attree.evaluation import DEFAULT_LABELS

Profile = Annotated[
    str, typer.Option(help="default, or prpn: one-word sentences count as 1 in sentence F1.")
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        help="Labels whose recall is reported: NP,VP,…; repeatable.",
        show_default=",".join(DEFAULT_LABELS),
    ),
]
MaxWords = Annotated[
    int | None, typer.Option(min=1, help="Score only sentences of at most this many words.")
]


def _label_names(given: Sequence[str] | None) -> list[str]:
    """Return the labels of repeated or comma-separated options, else the usual ones."""
    names = [name.strip() for text in given or () for name in text.split(",")]
    return list(dict.fromkeys(name for name in names if name)) or list(DEFAULT_LABELS)


def score_command(
    parses: Annotated[Path, typer.Argument(help="The parses: a table of `attree decode`.")],
    sentences: Annotated[Path, typer.Option(help="Gold trees: a sentence table or treebank file.")],
    output: Annotated[Path, typer.Option(help="The table to write, a row a sentence (Parquet).")],
    summary: Annotated[Path, typer.Option(help="The summary to write (JSON).")],
    profile: Profile = "default",
    labels: Labels = None,
    max_words: MaxWords = None,
    encoder: Annotated[str | None, typer.Option(help="The encoder's name in tables.")] = None,
    parser: Annotated[str | None, typer.Option(help="The parser's name in tables.")] = None,
) -> None:
    """Score parses against gold trees: corpus F1, sentence F1 and recall by label."""
    from attree import process
    from attree.evaluation.summary import score_parses
    from attree.given import as_tables

    process.follow()
    with as_tables([sentences]) as (gold,):
        score_parses(
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


def baselines_command(
    sentences: Annotated[
        Path, typer.Argument(help="Gold trees: a sentence table or treebank file.")
    ],
    output: Annotated[Path, typer.Option(help="The summary to write (JSON).")],
    profile: Profile = "default",
    labels: Labels = None,
    max_words: MaxWords = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each kind of random trees.")] = 5,
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
    gold: Annotated[Path, typer.Argument(help="Gold trees in brackets, a tree a line.")],
    test: Annotated[Path, typer.Argument(help="The trees to score, in the same order.")],
    prm: Annotated[
        Path | None, typer.Option(help="A parameter file of EVALB; without it nothing is deleted.")
    ] = None,
    unlabelled: Annotated[bool, typer.Option("--unlabelled", help="Ignore labels.")] = False,
    release: Annotated[
        str, typer.Option(help="Print as the release of 2008, 2006 or 1997 does.")
    ] = "2008",
) -> None:
    """Score bracketed trees as EVALB does, with its parameters and its output.

    Example:
      attree evalb test.gold.mrg test.mine.mrg --prm COLLINS.prm
    """
    import dataclasses

    from attree.errors import AttreeError
    from attree.evaluation.evalb import results
    from attree.evaluation.evalb_parameters import Parameters, read_parameters
    from attree.evaluation.evalb_report import RELEASES, report

    if release not in RELEASES:
        fix = f"choose one of {', '.join(RELEASES)}"
        raise AttreeError(f"unknown release {release!r}", fix=fix)
    parameters = Parameters() if prm is None else read_parameters(prm)
    if unlabelled:
        parameters = dataclasses.replace(parameters, labelled=False)
    for line, is_error in report(results(gold, test, parameters), parameters, release):
        typer.echo(line, err=is_error)
