"""``attree measures``: numbers of trees for a study, as tables."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from attree.base import options


def measures_command(
    trees: options.TreebankFiles,
    /,
    *,
    output: options.Output,
    plain: bool = False,
    how: Annotated[options.ReadingOptions, Parameter(name="*")] = options.ReadingOptions(),
    overwrite: options.Overwrite = False,
) -> None:
    """Take numbers out of trees for a study, each table as Parquet and as TSV.

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
    from attree.apps.measures.tables import Reading, check_output, write_measures
    from attree.base.text import safe
    from attree.treebank.language_file import settings_of

    check_output(output, overwrite=overwrite)
    reading = Reading(settings_of(**{"punctuation": "keep", **how.given()}))
    rows = write_measures(reading.all(trees), output, plain=plain)
    refused = f", {reading.refused:,} not read" if reading.refused else ""
    print(
        f"{rows['sentences']:,} sentences{refused}; {rows['words']:,} words; "
        f"{rows['phrases']:,} rows of phrase types"
    )
    print(safe(f"{output}/words.tsv, sentences.tsv, phrases.tsv; the same as .parquet"))
