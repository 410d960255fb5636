"""``attree score``, ``attree baselines``, ``attree evalb``: scores of parses and of fixed trees."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from attree.base import options
from attree.evaluation import DEFAULT_LABELS, METRICS
from attree.treebank.as_table import as_table


@dataclass(frozen=True, slots=True)
class Counting:
    """Settings for scoring trees.

    Attributes:
        recall: Labels whose recall is reported: NP,VP,…
        max_words: score only sentences of at most this many words.
    """

    recall: Annotated[tuple[str, ...], Parameter(converter=options.words)] = DEFAULT_LABELS
    max_words: options.MaxWords | None = None

    def settings(self) -> dict[str, Any]:
        """Return the settings as arguments for the functions that score."""
        return {"labels": list(dict.fromkeys(self.recall)), "max_words": self.max_words}


def score_command(
    parses: Path,
    /,
    *,
    sentences: options.Trees,
    output: options.Output,
    summary: Path,
    counting: Annotated[Counting, Parameter(name="*")] = Counting(),
    encoder_name: str | None = None,
    parser_name: str | None = None,
) -> None:
    """Score parses against gold trees: corpus F1, sentence F1 and recall by label.

    Prints the scores; `attree table show SUMMARY.json` prints them again.

    Args:
        parses: Parses: a table of `attree decode` or its like.
        output: Where to write: a table, a row a sentence (Parquet).
        summary: Where to write the summary (JSON).
        encoder_name: The encoder's name in tables.
        parser_name: The parser's name in tables.
    """
    from attree.evaluation.summary import score_parses

    names: dict[str, Any] = {"encoder": encoder_name, "parser": parser_name}
    with as_table(sentences) as gold:
        scores = score_parses(
            parses, gold, output=output, summary=summary, **names, **counting.settings()
        )
    counted = scores["protocol"]["sentences"]
    values = {metric.heading: scores.get(name) for name, metric in METRICS.items()}
    shown = [f"{name} {value:.2f}" for name, value in values.items() if value is not None]
    print(f"{counted['scored']:,} of {counted['total']:,} sentences: {', '.join(shown)}")


def baselines_command(
    sentences: options.Trees,
    /,
    *,
    output: options.Output,
    counting: Annotated[Counting, Parameter(name="*")] = Counting(),
    seeds: Annotated[int, Parameter(validator=options.between(1))] = 5,
) -> None:
    """Score left-branching, right-branching, balanced and random trees, and the binary ceiling.

    Args:
        output: Where to write: the summary (JSON).
        seeds: Seeds of each kind of random trees.
    """
    from attree.evaluation.baselines import write_baselines

    with as_table(sentences) as gold:
        write_baselines(gold, output, seeds=seeds, **counting.settings())


def evalb_command(
    gold: Path,
    test: Path,
    /,
    *,
    prm: Path | None = None,
    punctuation: options.Punctuation | None = None,
) -> None:
    """Score bracketed trees as EVALB (2008) does, with its parameters and its output.

    A bracket around the whole sentence counts nowhere without a label, nor with --prm collins as
    TOP, S1, ROOT or VROOT; with another label it is a phrase, in gold trees and others alike.
    Labelled F1 in other commands is that of --prm collins and the --punctuation that they name.

    Example:
      attree evalb test.gold.mrg test.mine.mrg --prm COLLINS.prm
      attree evalb test.gold.mrg test.mine.mrg --prm collins --punctuation ptb

    Args:
        gold: Gold trees in brackets, a tree a line: a file, or a pattern.
        test: Trees to score, in the same order: a file, or a pattern.
        prm: A parameter file of EVALB, or collins; without it nothing is deleted.
    """
    from attree.base.patterns import matching
    from attree.evaluation.evalb import Parameters, read_parameters, report, results

    parameters = Parameters() if prm is None else read_parameters(prm)
    scored = results(matching(gold), matching(test), parameters, punctuation=punctuation)
    for line, is_error in report(scored, parameters):
        print(line, file=sys.stderr if is_error else sys.stdout)
