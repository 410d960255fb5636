"""Recipes of few-shot parsers, training plans, and the description in a parser's folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from attree.base.errors import AttreeError
from attree.base.reading import described, read_described
from attree.base.registry import check_name
from attree.decoding import DECODERS
from attree.training import STEPS

#: Ranges of a recipe's numbers; a file with others is refused. Sizes are far above any encoder's.
Share = Annotated[float, Meta(ge=0, le=1)]
Rate = Annotated[float, Meta(gt=0, le=1)]
Size = Annotated[int, Meta(ge=0, le=100_000)]
_Size = Annotated[int, Meta(ge=1, le=100_000)]
Few = Annotated[int, Meta(ge=0, le=1_000)]


@dataclass(frozen=True, slots=True)
class FewShotRecipe:
    """A few-shot parser.

    Attributes:
        parts: whose span scores are summed, names of :data:`attree.training.parts.PARTS`:
            ``projection`` (trained query and key over hidden states), ``heads`` (weights over the
            encoder's own heads), ``boundary`` (linear in the hidden states at a span's ends),
            ``spans`` (a perceptron over the differences of these), ``dependencies`` (what
            words' heads say of spans), ``labels``, ``tags``.
        objective: a name in :data:`attree.training.objectives.OBJECTIVES`.
        score: ``inside_outside``, or ``outside`` for a projection alone; a name in
            :data:`attree.training.scores.TERMS`.
        decoder: see :func:`attree.training.scores.decode`.
        dropout: on the hidden states.
        association: of the projection, ``log`` or ``raw``.
        heads: of the projection; 0 for as many as a layer of the encoder has.
        combination: of the encoder's heads, a name in :data:`attree.training.parts.COMBINATIONS`.
        separate: whether inside and outside scores have separate head weights.
        learning_rate, head_rate: of Adam; the latter for head weights.
        label_layers: hidden states that labels and tags read; if none are named, see
            :func:`for_trees`.
        wide: whether boundaries and labels read every layer of the projection, instead of one.
        threshold: for ``labelled_risk``, what a label must gain to be kept.
        unlabelled: for ``labelled_risk``, the share of unlabelled F1 in what it maximises.
        spread: number of layers on each side of the middle one that are read by default.
        rank: of the low-rank weights that adapt the encoder to the trees, trained together with
            the parser (see :mod:`attree.training.adapting`); 0 leaves the encoder as it is.
        encoder_rate: Adam's learning rate for low-rank weights.
        rounds: number of rounds of self-training, on raw sentences that the parser itself parsed
            (see :func:`attree.training.self_training.fit_in_rounds`).
    """

    parts: tuple[str, ...]
    objective: str
    score: str
    decoder: str
    dropout: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    association: str = "log"
    heads: Size = 1
    combination: str = "log"
    separate: bool = False
    learning_rate: Rate = 1e-3
    head_rate: Rate = 1e-2
    spread: Few = 0
    label_layers: tuple[Few, ...] = ()
    wide: bool = False
    threshold: Share = 0.0
    unlabelled: Share = 0.0
    rank: Size = 0
    encoder_rate: Rate = 5e-4
    rounds: Few = 0

    @property
    def has_distribution(self) -> bool:
        """Whether training makes span scores a distribution over trees."""
        return self.objective in DISTRIBUTIONS


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """Settings of one training run.

    Attributes:
        recipe: of the parser.
        layers: hidden states that the projection reads.
        boundary: those that the boundary part reads; by default the middle one of ``layers``.
        size: of the projection; 0 for the encoder's own.
        start: ``encoder`` (its query and key) or ``random``.
        specials: keep ``[CLS]`` and ``[SEP]`` in the softmax.
        steps, batch, seed: of the training.
        decay: whether learning rates fall linearly to 0 at the last step.
        to_learn: how much few trees can teach the parser to start from, from 0 to 1 (see
            :func:`attree.training.start.to_learn`): labels keep so much of what training changes,
            the structure half as much. None: both keep all.
        labels: of the parser to start from, chains joined; training adds those of its trees.
        tags: the same for tags.
        shares: share of each treebank in a batch; empty if trees are drawn alike.
    """

    recipe: FewShotRecipe
    layers: tuple[int, ...] = ()
    boundary: tuple[int, ...] = ()
    size: int = 0
    start: str = "encoder"
    specials: bool = False
    steps: int = STEPS
    batch: int = 10
    seed: int = 0
    decay: bool = False
    to_learn: float | None = None
    labels: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()


#: setting → its values, listed here to check names before torch is loaded
CHOICES = {
    "objective": ("likelihood", "margin", "tree_crf", "chart_margin", "labelled_tree_crf"),
    "association": ("log", "raw"),
    "combination": ("log", "article"),
    "score": ("outside", "inside_outside"),
    "decoder": (*DECODERS, "minimum_risk", "optional_chart", "labelled_risk"),
}

#: First weights of a projection: the encoder's own query and key, or random ones.
STARTS = ("encoder", "random")

#: Objectives under which a tree's probability is the normalised exponential of its span scores.
DISTRIBUTIONS = ("tree_crf", "labelled_tree_crf")

#: Choices that only parsers with labels allow.
LABELLED = ("labelled_tree_crf", "labelled_risk")

_IO = "inside_outside"

_FULL = FewShotRecipe(
    ("projection", "boundary", "heads"),
    "tree_crf",
    _IO,
    "minimum_risk",
    dropout=0.3,
    heads=0,
    separate=True,
    head_rate=1e-3,
    spread=1,
)

_SPANS = FewShotRecipe(("spans",), "chart_margin", _IO, "optional_chart", dropout=0.3)

_JOINT = FewShotRecipe(
    ("projection", "boundary", "labels", "tags"),
    "labelled_tree_crf",
    _IO,
    "labelled_risk",
    dropout=0.3,
    heads=0,
    learning_rate=1.5e-3,
    spread=1,
    wide=True,
    threshold=0.375,
    unlabelled=0.25,
)

RECIPES: dict[str, FewShotRecipe] = {
    "fpio": FewShotRecipe(("projection",), "likelihood", _IO, "normalised_chart", dropout=0.1),
    "fpoa": FewShotRecipe(("projection",), "margin", "outside", "greedy", dropout=0.3),
    "tree-crf": FewShotRecipe(("projection",), "tree_crf", _IO, "chart", dropout=0.3, heads=0),
    # beyond the article: association, boundaries and heads in one tree CRF
    "tree-crf-full": _FULL,
    # with labels, nodes of more than two children, and tags if the trees have some
    "tree-crf-labelled": replace(
        _FULL, parts=(*_FULL.parts, "labels", "tags"), decoder="labelled_risk", threshold=0.2
    ),
    # for thousands of trees: labels are trained with the structure; no heads are read, so the
    # encoder runs only up to its middle layers
    "tree-crf-joint": _JOINT,
    # the same with dependencies, on an encoder whose lower half is adapted to the trees
    "tree-crf-adapted": replace(
        _JOINT,
        parts=("projection", "boundary", "dependencies", "labels", "tags"),
        rank=16,
        encoder_rate=3e-4,
        threshold=0.4,
        unlabelled=0.5,
    ),
    # a rival: the supervised span parser of Kitaev et al. on the same states
    "span-parser": _SPANS,
    # another rival: the same with self-training
    "fss": replace(_SPANS, rounds=1),
    "head-weights": FewShotRecipe(("heads",), "tree_crf", _IO, "chart", separate=True),
    "head-weights-tied": FewShotRecipe(("heads",), "tree_crf", _IO, "chart"),
    "head-weights-article": FewShotRecipe(
        ("heads",), "likelihood", _IO, "normalised_chart", combination="article"
    ),
}


#: Default parsers, the best for trees with and without labels.
WITH_LABELS, WITHOUT_LABELS = "tree-crf-labelled", "tree-crf-full"


def recipe(name: str) -> FewShotRecipe:
    """Return the recipe called ``name``.

    Raises:
        AttreeError: no recipe has this name.
    """
    check_name(name, RECIPES, f"unknown few-shot parser {name!r}")
    return RECIPES[name]


def adapted(base: FewShotRecipe, **changes: object) -> FewShotRecipe:
    """Return ``base`` with the settings in ``changes`` that are not None.

    Raises:
        AttreeError: an objective, association or decoder does not exist, or needs labels and the
            parser has none.
    """
    settings = {key: value for key, value in changes.items() if value is not None}
    for key, value in settings.items():
        if key in CHOICES:
            check_name(value, CHOICES[key], f"unknown {key} {value!r}")
    rate = settings.get("learning_rate", base.learning_rate)
    if not (isinstance(rate, int | float) and 0 < rate <= 1):
        fix = "give one above 0 and at most 1, such as 0.001"
        raise AttreeError("bad-rate", f"the learning rate is {rate}", fix=fix)
    settings["learning_rate"] = float(rate)
    wrong = next((value for value in settings.values() if value in LABELLED), None)
    wrong = "label_layers" if "label_layers" in settings else wrong
    if wrong is not None and "labels" not in base.parts:
        fix = "choose tree-crf-labelled, or leave it out"
        raise AttreeError("needs-labels", f"{wrong} needs a parser with labels", fix=fix)
    return replace(base, **settings)  # type: ignore[arg-type]


#: Parsers of so many trees, or that start from another, are overconfident: their labels need at
#: least this threshold.
LEAST_THRESHOLD, MANY_TREES = 0.25, 40


#: Trust in dependencies of a trained parser that knows some: the power of the probability that a
#: span has no second head (see :class:`attree.training.parts.DependencyPart`).
TRUST = 0.4


def with_least_threshold(base: FewShotRecipe) -> FewShotRecipe:
    """Return ``base`` with a threshold of labels, if it has one, of at least `LEAST_THRESHOLD`."""
    return replace(base, threshold=max(base.threshold, LEAST_THRESHOLD)) if base.threshold else base


def for_trees(base: FewShotRecipe, n_trees: int, n_layers: int) -> FewShotRecipe:
    """Return ``base`` with the label layers and the threshold for a number of trees to train on.

    Labels are read from the layer a third of the way up. `MANY_TREES` trees are enough for labels
    that read the middle one too, and make a parser more confident. A recipe without labels stays as
    it is.

    Args:
        base: the recipe; label layers that it names stay.
        n_trees: number of trees to train on.
        n_layers: number of layers of the encoder.
    """
    if "labels" not in base.parts:
        return base
    many = n_trees >= MANY_TREES
    if not base.label_layers and not base.wide:
        layers = {n_layers // 3, n_layers // 2} if many else {n_layers // 3}
        base = replace(base, label_layers=tuple(sorted(layers)))
    return with_least_threshold(base) if many else base


#: Files of a trained parser's folder; the card alone does not make a parser.
FILES = (WEIGHTS, ABOUT, CARD) = ("weights.safetensors", "parser.json", "README.md")
DESCRIPTION, _AGAIN = "description of a trained parser", "train it again"
#: A language's code, as :func:`attree.base.languages.code_of` gives it; empty for several.
_CODE = r"\A([a-z]{2,3}|x(-[A-Za-z0-9]{1,8})+)?\Z"


class _Encoder(msgspec.Struct):
    slug: Annotated[str, Meta(pattern=r"\A[^/\x00]{1,255}\Z")]
    fingerprint: str
    kind: str | None = None
    id: str | None = None
    revision: str | None = None


class _Part(msgspec.Struct):
    """The settings of a part, each with its range."""

    layers: Annotated[list[Few], Meta(min_length=1)] | msgspec.UnsetType = msgspec.UNSET
    hidden: _Size = 1
    size: _Size = 1
    heads: _Size = 1
    specials: bool = False
    names: list[str] = []


class _Table(msgspec.Struct):
    punctuation: str | None = None


class _Training(msgspec.Struct):
    """Facts of a training; the language is a code, empty for several."""

    table: _Table = msgspec.field(default_factory=_Table)
    language: Annotated[str, Meta(pattern=_CODE)] = ""
    threshold: Share | None = None


class Description(msgspec.Struct):
    """Contents of ``parser.json``.

    Attributes:
        recipe: of the parser.
        shape: part → its settings.
        encoder: with which it was trained.
        about: facts about its training that are read before it is loaded.
        raw: the whole JSON object.
    """

    recipe: FewShotRecipe
    shape: dict[str, dict[str, Any]]
    encoder: _Encoder
    about: _Training
    raw: dict[str, Any] = {}


def read_description(folder: str | Path) -> Description:
    """Read and check ``parser.json`` of a folder.

    Raises:
        AttreeError: the file is absent or damaged, or a key of it has a bad value.
    """
    path = Path(folder) / ABOUT
    raw = read_described(path, dict[str, Any], what=DESCRIPTION, fix=_AGAIN)
    description = described(raw, Description, file=path, what=DESCRIPTION, fix=_AGAIN)
    description.raw = raw
    parts = {part for recipe in RECIPES.values() for part in recipe.parts}
    for key, names in {**CHOICES, "parts": tuple(sorted(parts))}.items():
        value = getattr(description.recipe, key)
        for name in (value or ("",)) if key == "parts" else (value,):
            problem = f"this {DESCRIPTION} is not valid: recipe.{key}: unknown {name!r}"
            check_name(name, names, problem, file=path)
    for part, settings in description.shape.items():
        described(settings, _Part, file=path, what=f"shape of the part {part}", fix=_AGAIN)
    return description
