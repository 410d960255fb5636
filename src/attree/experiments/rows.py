"""From the ``experiments`` of a configuration to rows: pure functions that read no file."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from attree.errors import AttreeError
from attree.plan import nearest
from attree.tables import METRICS

#: What decides a row's result, by the row's kind.
CODE = {
    "heads": ("attree.experiments.heads", "attree.experiments.data"),
    "trained": ("attree.experiments.trained", "attree.experiments.data"),
}
#: What rows of a kind do not run, though what they share with the other kind imports it.
SPARES = {
    "heads": ("attree.experiments.trained", "attree.fewshot.parser"),
    "trained": ("attree.experiments.heads", "attree.heads.model", "attree.heads.ranking"),
}

#: What a table's columns can be: the field of a row that tells them apart.
AXES = ("trees", "layer", "size", "max_words", "test", "step")

#: What a table can show: scores, and how fast rows ran.
SHOWN = (*METRICS, "sentences_a_second", "seconds")


#: The trees set apart from the draws, to choose settings or heads on.
APART = "apart"

#: Keys of a parser that averages heads.
_HEADS_KEYS = ("source", "association", "score", "decoder", "heads", "rank_by")

#: Keys of a ``trained`` parser that change its recipe, and those that change its training.
RECIPE_KEYS = ("objective", "association", "decoder", "dropout", "learning_rate", "heads")
TRAINING_KEYS = ("steps", "batch", "start", "specials", "weight_decay")

#: Keys that only change how its span scores become trees: rows that differ in them train once.
DECODING_KEYS = ("decoder", "threshold")

#: language/split
Set = str


@dataclass(frozen=True, slots=True)
class Row:
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

    def training(self) -> dict[str, Any]:
        """Return what decides the trained weights: all but how spans become trees, and of what."""
        found = asdict(self)
        for other in ("parser", "test", "max_words", "timed"):
            del found[other]
        found["settings"] = {k: v for k, v in self.settings.items() if k not in DECODING_KEYS}
        return found

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Row:
        """Build a row from its JSON."""
        lists = {key: tuple(found[key]) for key in ("candidates", "dropouts")}
        return cls(**{**found, **lists})


@dataclass(frozen=True, slots=True)
class Placed:
    """A row and where it stands in a table.

    Attributes:
        row: the row.
        label: the table's line; draws with the same one share a cell.
        column: the table's column.
    """

    row: Row
    label: str
    column: str


@dataclass(frozen=True)
class Experiment:
    """One table, with or without a picture.

    Attributes:
        name, title: of the table.
        axis: a name in :data:`AXES`.
        rows: in table order.
        metrics: the scores that are shown.
        tables: tables of the configuration whose rows stand here too.
        baselines: whether fixed and random trees stand beside.
        picture: whether lines are drawn over the columns.
        labels: whether label recall is shown.
        weights: whether learned weights over the encoder's heads are drawn.
        sentence: the test sentence whose association by each row is drawn, if any.
        published: test set, or ``*``, → the table of published figures.
        above: the line below which a few-shot parser is named in the table's note, if any.
    """

    name: str
    title: str
    axis: str
    rows: tuple[Placed, ...]
    metrics: tuple[str, ...]
    tables: tuple[str, ...] = ()
    baselines: bool = False
    picture: bool = False
    labels: bool = False
    weights: bool = False
    sentence: int | None = None
    published: Mapping[str, str] = field(default_factory=dict)
    above: str | None = None


def experiments(config: Mapping[str, Any], recipes: Iterable[str]) -> dict[str, Experiment]:
    """Expand every experiment of a checked configuration.

    Args:
        config: with its defaults filled in.
        recipes: the few-shot parsers that there are without being declared.

    Raises:
        AttreeError: an unknown parser, encoder or table, or two rows of one draw in one cell.
    """
    names = tuple(recipes)
    return {
        name: _experiment(name, spec, config, names)
        for name, spec in config["experiments"].items()
        if spec is not None
    }


def _experiment(
    name: str, spec: Mapping[str, Any], config: Mapping[str, Any], recipes: Sequence[str]
) -> Experiment:
    where = f"experiments.{name}"
    rows = []
    for position, run in enumerate(spec["runs"]):
        rows += list(_run(run, spec["columns"], config, recipes, f"{where}.runs[{position}]"))
    _check_cells(rows, where)
    for table in spec["tables"]:
        _known(table, config["tables"], f"{where}: table")
    published = spec["published"] or {}
    return Experiment(
        name=name,
        title=spec["title"],
        axis=spec["columns"],
        rows=tuple(rows),
        metrics=tuple(spec["metrics"]),
        tables=tuple(spec["tables"]),
        baselines=spec["baselines"],
        picture=spec["picture"],
        labels=spec["labels"],
        weights=spec["weights"],
        sentence=spec["sentence"],
        published={"*": published} if isinstance(published, str) else published,
        above=spec["above"],
    )


def _run(
    run: Mapping[str, Any],
    axis: str,
    config: Mapping[str, Any],
    recipes: Sequence[str],
    where: str,
) -> Iterable[Placed]:
    """Every parser × encoder × trees × draw × layer × size × length × test set of one entry."""
    sources = {slug: encoders_of(slug, config, where) for slug in run["encoders"]}
    for parser, slug in itertools.product(run["parsers"], run["encoders"]):
        kind, settings = _parser(parser, run, config, recipes, where)
        product = itertools.product(
            run["layers"], run["sizes"], run["trees"], run["max_words"], run["test"]
        )
        for layer, size, trees, longest, test in product:
            for encoder, seed in itertools.product(sources[slug], _draws(run, trees)):
                row = Row(
                    kind,
                    encoder,
                    parser,
                    settings,
                    train=run["train"],
                    trees=trees,
                    seed=seed,
                    test=test,
                    apart=run["apart"],
                    max_words=longest,
                    layer=None if kind == "heads" or layer is None else str(layer),
                    candidates=tuple(map(str, run["candidates"])) if layer == "tuned" else (),
                    dropouts=tuple(run["dropouts"]) if layer == "tuned" else (),
                    size=0 if kind == "heads" else size,
                    timed=run["timed"],
                )
                label = run["label"].format(
                    parser=parser, encoder=slug, layer=layer, size=size, trees=trees, test=test
                )
                # the trees set apart are the same in every column that the run names
                columns = map(str, run["across"]) if trees == APART else [column_of(row, axis)]
                yield from (Placed(row, label, column) for column in columns)


def encoders_of(slug: str, config: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return the encoders that a slug stands for: itself, or one a seed of masked-LM tuning."""
    if slug in config["masked_lm"]:
        return tuple(f"{slug}-{seed}" for seed in range(config["masked_lm"][slug]["seeds"]))
    _known(slug, {**config["encoders"], **config["masked_lm"]}, f"{where}: encoder")
    return (slug,)


def column_of(row: Row, axis: str) -> str:
    """Return the column that a row stands in."""
    if axis == "step":
        return str(row.settings.get("steps", 200))
    value = getattr(row, axis)
    if axis == "max_words":
        return "all" if value is None else f"≤{value}"
    if axis == "layer":
        return "middle" if value is None else str(value)
    return str(value)


def _draws(run: Mapping[str, Any], trees: int | str) -> range:
    """All of a set, and the trees set apart, are drawn once; the training keeps its seeds."""
    once = trees == APART or (trees == "all" and not run["seeds_of_all"])
    return range(1 if once else run["seeds_of_all"] if trees == "all" else run["draws"])


def _parser(
    name: str,
    run: Mapping[str, Any],
    config: Mapping[str, Any],
    recipes: Sequence[str],
    where: str,
) -> tuple[str, dict[str, Any]]:
    """Return a parser's kind and settings; those that a run names override its own."""
    if name in config["parsers"]:
        recipe = config["parsers"][name]
        found = {key: recipe[key] for key in _HEADS_KEYS}
        return "heads", found | ({"heads": run["heads"]} if run["heads"] else {})
    if name not in config["trained"] and name not in recipes:
        known = [*config["parsers"], *config["trained"], *recipes]
        raise AttreeError(f"{where}: unknown parser {name}", fix=nearest(name, known))
    own = dict(config["trained"].get(name) or {})
    base = own.pop("recipe", name)
    _known(base, recipes, f"trained.{name}: recipe")
    if run["steps"]:
        own["steps"] = run["steps"]
    return "trained", {"recipe": base, **own}


def _check_cells(rows: Sequence[Placed], where: str) -> None:
    seen: dict[tuple[Any, ...], Row] = {}
    for one in rows:
        place = (one.label, one.column, one.row.encoder, one.row.seed)
        if place in seen:
            raise AttreeError(
                f"{where}: two rows fall into line {one.label!r}, column {one.column}",
                fix="give one of the runs another label, such as '{parser}, layer {layer}'",
            )
        seen[place] = one.row


def _known(name: str, known: Iterable[str], what: str) -> None:
    known = list(known)
    if name not in known:
        raise AttreeError(f"{what} {name} is unknown", fix=nearest(name, known))
