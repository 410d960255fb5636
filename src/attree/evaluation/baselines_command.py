"""``attree baselines``: scores of trees that look at nothing but the number of words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attree.evaluation.options import Labels, MaxWords, Profile, label_names


def run(
    sentences: Annotated[Path, typer.Argument(help="The sentence table, with the gold trees.")],
    output: Annotated[Path, typer.Option(help="The summary to write (JSON).")],
    profile: Profile = "default",
    labels: Labels = None,
    max_words: MaxWords = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each kind of random trees.")] = 5,
) -> None:
    """Score left-branching, right-branching, balanced and random trees, and the binary ceiling."""
    from attree import process
    from attree.evaluation.baselines import write_baselines

    process.follow()
    write_baselines(
        sentences,
        output,
        profile=profile,
        labels=label_names(labels),
        max_words=max_words,
        seeds=seeds,
    )
