"""Options that ``attree score`` and ``attree baselines`` share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from attree.evaluation import DEFAULT_LABELS

Profile = Annotated[
    str, typer.Option(help="default, or prpn: one-word sentences count as 1 in sentence F1.")
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        help="Labels whose recall is reported: NP,VP,… or one a time.",
        show_default=",".join(DEFAULT_LABELS),
    ),
]
MaxWords = Annotated[
    int | None, typer.Option(min=1, help="Score only sentences of at most so many words.")
]


def label_names(given: Sequence[str] | None) -> list[str]:
    """Return the labels of repeated or comma-separated options, else the usual ones."""
    names = [name.strip() for text in given or () for name in text.split(",")]
    return list(dict.fromkeys(name for name in names if name)) or list(DEFAULT_LABELS)
