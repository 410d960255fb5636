"""What an experiment consists of: rows, where they stand, and what there is to choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from attree.choosing import RANDOM
from attree.evaluation import HEADINGS, LABELLED

#: What decides a row's result, by the row's kind.
CODE = {
    "heads": ("attree.experiments.heads", "attree.experiments.data"),
    "trained": ("attree.experiments.trained", "attree.experiments.data"),
}
#: What rows of a kind do not run, though what they share with the other kind imports it.
SPARES = {
    "heads": (
        *("attree.experiments.trained", "attree.stages.train", "attree.training.parser"),
        "attree.choosing.ranking",
    ),
    "trained": ("attree.experiments.heads", "attree.parsers.heads", "attree.association.ranking"),
}

#: What a table's columns can be: the field of a row that tells them apart.
AXES = ("trees", "layer", "size", "max_words", "test", "step")

#: What a table can show: scores, those of labels, how fast rows ran, how far their probabilities
#: are off (percent), brackets of the trees trained on.
SHOWN = (
    *HEADINGS,
    *LABELLED,
    *("sentences_a_second", "seconds"),
    *("calibration_error", "calibration_error_scaled", "temperature"),
    "brackets",
)


#: The trees set apart from the draws, to choose settings or heads on.
APART = "apart"

#: A layer that is chosen on them.
TUNED = "tuned"

#: How a row is trained on two sets: from the weights of the other's parser, or both in every batch.
BESIDE = ("start", "batches")

#: Keys of a ``trained`` parser that change its recipe, and those that change its training.
RECIPE_KEYS = (
    *("objective", "association", "decoder", "dropout", "learning_rate", "heads"),
    "label_layers",
)
TRAINING_KEYS = ("steps", "batch", "start", "specials", "weight_decay")

#: Keys that only change how its span scores become trees: rows that differ in them train once.
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
        seed: of the draw and of the training.
        apart: trees set apart before any draw, the same for every row.
        test: the set that is parsed.
        max_words: the longest sentence that is scored, or None.
        layer: hidden states read: None for the middle, ``3``, ``2,3,4``, or a choice ``tuned`` made
            on the trees set apart among ``candidates``.
        candidates: what a ``tuned`` layer is chosen among.
        dropouts: rates chosen among with it; the recipe's own if there are none.
        size: of the projection, 0 for the encoder's own.
        timed: whether the parsing is timed, from words to trees.
        calibrated: whether its probabilities of spans are compared with what is right.
        beside: another set that it is trained on too, such as English, or None: ``train``,
            ``trees``, ``how`` (a name in :data:`BESIDE`), ``shares`` and ``steps``.
        draw: how trees are drawn, a name in :data:`attree.choosing.WAYS`.
        first: trees drawn at random, on which a parser is trained that chooses the others; 0 where
            all are.
        words: of how many words trees are drawn, least and most, or None for all.
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
        """Every set that the row reads."""
        others = (self.beside["train"],) if self.beside else ()
        return (self.train, *others, self.test)

    @property
    def in_batches(self) -> bool:
        """Whether trees of the set beside stand in every batch."""
        return self.beside is not None and self.beside["how"] == "batches"

    def other(self) -> ExperimentRow | None:
        """Return the row that trains on the set beside alone, with the same seed; None if none."""
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
        """Return the row whose parser chooses this one's trees: on the first ones, at random."""
        return replace(self, trees=self.first, draw=RANDOM, first=0)

    @property
    def tuned(self) -> bool:
        """Whether settings are chosen on the trees set apart."""
        return self.layer == TUNED or len((self.beside or {}).get("shares", ())) > 1

    def training(self) -> dict[str, Any]:
        """Return the settings that decide the trained weights, not those of decoding or test."""
        found = asdict(self)
        for other in ("parser", "test", "max_words", "timed", "calibrated"):
            del found[other]
        found["settings"] = {k: v for k, v in self.settings.items() if k not in DECODING_KEYS}
        return found

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> ExperimentRow:
        """Build a row from its JSON."""
        lists = ("candidates", "dropouts", "words")
        as_tuples = {key: tuple(found[key]) for key in lists if found[key] is not None}
        return cls(**{**found, **as_tuples})


@dataclass(frozen=True, slots=True)
class Placed:
    """A row and where it stands in a table.

    Attributes:
        row: the row.
        label: the table's line; draws with the same one share a cell.
        column: the table's column.
        panel: the part of the table, or empty where it has one part only.
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
        settings: its entry of the configuration with defaults; ``axis``, a name in
            :data:`AXES`, for its ``columns``, and ``published`` as test set, or ``*``, → the table
            of published figures.
    """

    name: str
    rows: tuple[Placed, ...]
    settings: Mapping[str, Any]
