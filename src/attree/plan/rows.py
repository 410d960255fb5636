"""Rows of experiments, their places in tables, and the names that settings choose from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from attree.choosing import RANDOM
from attree.evaluation import HEADINGS, LABELLED

#: Kind of row → the modules that decide its result.
CODE = {
    "heads": ("attree.experiments.heads", "attree.experiments.data"),
    "trained": ("attree.experiments.trained", "attree.experiments.data"),
}
#: Kind of row → modules that it imports but does not run.
SPARES = {
    "heads": (
        *("attree.experiments.trained", "attree.stages.train", "attree.training.parser"),
        "attree.choosing.ranking",
    ),
    "trained": ("attree.experiments.heads", "attree.parsers.heads", "attree.association.ranking"),
}

#: The fields of a row that can tell a table's columns apart.
AXES = ("trees", "layer", "size", "max_words", "test", "step")

#: The metrics that a table can show: F1, labelled F1, speed, calibration errors (percent), and the
#: number of brackets trained on.
SHOWN = (
    *HEADINGS,
    *LABELLED,
    *("sentences_a_second", "seconds"),
    *("calibration_error", "calibration_error_scaled", "temperature"),
    "brackets",
)


#: Stands for the trees set apart from the draws, to choose settings or heads on.
APART = "apart"

#: Stands for a layer that is chosen on these trees.
TUNED = "tuned"

#: Ways to train on a second set: start from its parser's weights, or mix its trees into batches.
BESIDE = ("start", "batches")

#: Keys of a ``trained`` parser that change its recipe, and keys that change its training.
RECIPE_KEYS = (
    *("objective", "association", "decoder", "dropout", "learning_rate", "heads"),
    "label_layers",
)
TRAINING_KEYS = ("steps", "batch", "start", "specials", "weight_decay")

#: Keys that only change decoding: rows that differ in nothing else share a training.
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
        calibrated: whether span probabilities are compared with the share that is right.
        beside: a second set to train on, such as English, or None: ``train``,
            ``trees``, ``how`` (a name in :data:`BESIDE`), ``shares`` and ``steps``.
        draw: how trees are drawn, a name in :data:`attree.choosing.WAYS`.
        first: how many trees are drawn at random, to train the parser that chooses the others; 0
            if all are drawn at random.
        words: the fewest and most words of a drawn tree, or None for any length.
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
    dropouts: tuple[float, ...] = ()
    size: int = 0
    timed: bool = False
    calibrated: bool = False
    beside: Mapping[str, Any] | None = None
    draw: str = RANDOM
    first: int = 0
    words: tuple[int, int] | None = None

    @property
    def sets(self) -> tuple[Set, ...]:
        """The sets that the row reads."""
        others = (self.beside["train"],) if self.beside else ()
        return (self.train, *others, self.test)

    @property
    def in_batches(self) -> bool:
        """Whether every batch has trees of the second set."""
        return self.beside is not None and self.beside["how"] == "batches"

    def other(self) -> ExperimentRow | None:
        """Return the row of the same seed that is trained on the second set alone, or None."""
        if self.beside is None:
            return None
        steps = {"steps": self.beside["steps"]} if self.beside["steps"] else {}
        return replace(
            self,
            settings={**self.settings, **steps},
            train=self.beside["train"],
            trees=self.beside["trees"],
            apart=0,
            layer=None if self.layer == TUNED else self.layer,
            candidates=(),
            dropouts=(),
            beside=None,
            draw=RANDOM,
            first=0,
            words=None,
        )

    def chooser(self) -> ExperimentRow:
        """Return the row whose parser, trained on the first trees, chooses the others."""
        return replace(self, trees=self.first, draw=RANDOM, first=0)

    @property
    def tuned(self) -> bool:
        """Whether settings are chosen on the trees set apart."""
        return self.layer == TUNED or len((self.beside or {}).get("shares", ())) > 1

    def training(self) -> dict[str, Any]:
        """Return the settings that decide the trained weights, without decoding and test."""
        settings = asdict(self)
        for key in ("parser", "test", "max_words", "timed", "calibrated"):
            del settings[key]
        settings["settings"] = {k: v for k, v in self.settings.items() if k not in DECODING_KEYS}
        return settings

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> ExperimentRow:
        """Build a row from its JSON."""
        lists = ("candidates", "dropouts", "words")
        as_tuples = {key: tuple(fields[key]) for key in lists if fields[key] is not None}
        return cls(**{**fields, **as_tuples})


@dataclass(frozen=True, slots=True)
class Placed:
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


@dataclass(frozen=True, slots=True)
class Experiment:
    """One table, with or without pictures.

    Attributes:
        name: of the table.
        rows: in table order.
        settings: its entry of the configuration with defaults; ``axis``, a name in :data:`AXES`,
            stands for ``columns``; ``published`` maps a test set, or ``*``, to a table of figures.
    """

    name: str
    rows: tuple[Placed, ...]
    settings: Mapping[str, Any]
