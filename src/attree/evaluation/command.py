"""``attree score``: F1 and label recall of parses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attree.evaluation.options import Labels, MaxWords, Profile, label_names


def run(
    parses: Annotated[Path, typer.Argument(help="The parses: a table of `attree decode`.")],
    sentences: Annotated[Path, typer.Option(help="The sentence table, with the gold trees.")],
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

    process.follow()
    score_parses(
        parses,
        sentences,
        output=output,
        summary=summary,
        profile=profile,
        labels=label_names(labels),
        max_words=max_words,
        encoder=encoder,
        parser=parser,
    )
