"""Rows of experiments, their places in tables, and the names that settings choose from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from attree.evaluation import HEADINGS, LABELLED

#: Kind of row → the modules that decide its result.
CODE = {
    "heads": ("attree.experiments.heads", "attree.experiments.data"),
    "trained": ("attree.experiments.trained", "attree.experiments.data"),
}
#: Kind of row → modules that it imports but does not run: the other kind's rows and parsers.
NOT_RUN = {
    "heads": ("attree.experiments.trained", "attree.training.parser"),
    "trained": ("attree.experiments.heads", "attree.parsers.heads"),
}

#: The metrics that a table can show: F1, labelled F1, speed, and the seconds of training.
SHOWN = (*HEADINGS, *LABELLED, "sentences_a_second", "seconds")

#: Stands for the trees set apart from the draws, to choose settings or heads on.
APART = "apart"

#: Stands for a layer that is chosen on these trees.
TUNED = "tuned"

#: Keys of a ``trained`` parser that change its recipe, and keys that change its training.
RECIPE_KEYS = ("objective", "association", "decoder", "dropout", "learning_rate", "label_layers")
TRAINING_KEYS = ("steps", "batch", "start", "specials", "decay")

#: Keys of a few-shot parser that apply when it parses: rows that differ in nothing else share a
#: training.
DECODING_KEYS = ("decoder", "threshold")

#: language/split
Set = str


@dataclass(frozen=True, slots=True)
class ExperimentRow:
    """One parser from one draw of trees on one test set.

    Attributes:
        kind: ``heads`` (heads chosen by F1 and averaged) or ``trained`` (a few-shot parser).
        encoder: its slug.
        parser: its name in the configuration.
        settings: the parser's settings, as JSON.
        train: the set that trees are drawn from, ``language/split``.
        trees: how many, ``all``, or ``apart``: those set apart.
        seed: seed of the draw and of the training.
        apart: trees set apart before any draw, the same for every row.
        test: the set that is parsed.
        max_words: the longest sentence that is scored, or None.
        layer: hidden states read: None for the middle, ``3``, ``2,3,4``, or a choice ``tuned`` made
            on the trees set apart among ``candidates``.
        candidates: what a ``tuned`` layer is chosen among.
        dropouts: rates chosen among with it; the recipe's own if there are none.
        size: of the projection, 0 for the encoder's own.
        timed: whether the parsing is timed, from words to trees.
    """

    kind: str
    encoder: str
    parser: str
    settings: Mapping[str, Any]
    train: Set
    trees: int | str
    seed: int
    test: Set
    apart: int = 0
    max_words: int | None = None
    layer: str | None = None
    candidates: tuple[str, ...] = ()
    dropouts: tuple[int | float, ...] = ()  # 0 stays 0 in JSON, since rows are named by its hash
    size: int = 0
    timed: bool = False

    @property
    def sets(self) -> tuple[Set, ...]:
        """The sets that the row reads."""
        return (self.train, self.test)

    def training(self) -> dict[str, Any]:
        """Return the settings that decide the trained weights, without decoding and test."""
        settings = asdict(self)
        for key in ("parser", "test", "max_words", "timed"):
            del settings[key]
        # a layer is chosen by the trees that the decoder makes
        left_out = {*DECODING_KEYS} - ({"decoder"} if self.layer == TUNED else set())
        settings["settings"] = {k: v for k, v in self.settings.items() if k not in left_out}
        return settings


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A row and its place in a table.

    Attributes:
        row: the row.
        label: the table's line; draws with the same one share a cell.
        column: the table's column.
        panel: the part of the table; empty if the table has one part.
    """

    row: ExperimentRow
    label: str
    column: str
    panel: str = ""
