"""``attree measures``: numbers of trees for a study, as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from attree import completion
from attree.options import Overwrite


def measures_command(
    inputs: Annotated[
        list[Path],
        Parameter(
            help="Treebank files of any format, sentence tables, folders of `attree parse`.",
        ),
    ],
    /,
    *,
    output: Annotated[Path, Parameter(help="Folder for the tables.")],
    plain: Annotated[
        bool,
        Parameter(
            help="Leave out one-word phrases, and all of a unary chain but one, as F1 does: to "
            "compare labelled trees with unlabelled ones.",
        ),
    ] = False,
    format: Annotated[
        str | None,
        Parameter(
            help="Of treebank files. Default: told by their extensions.",
            completer=completion.treebank_formats,
        ),
    ] = None,
    punctuation: Annotated[
        str, Parameter(help="Leave words out of treebank files: ptb, unicode, drop:TAG TAG.")
    ] = "keep",
    overwrite: Overwrite = False,
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
    """
    from attree.measures.sources import Reading
    from attree.measures.tables import check_output, write_measures
    from attree.text import safe

    check_output(output, overwrite=overwrite)
    reading = Reading(format, punctuation)
    rows = write_measures(reading.all(inputs), output, plain=plain)
    refused = f", {reading.refused:,} not read" if reading.refused else ""
    print(
        f"{rows['sentences']:,} sentences{refused}; {rows['words']:,} words; "
        f"{rows['phrases']:,} rows of phrase types"
    )
    print(safe(f"{output}/words.tsv, sentences.tsv, phrases.tsv; the same as .parquet"))
