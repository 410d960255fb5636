"""From the ``experiments`` of a configuration to rows: pure functions that read no file."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from attree.base.errors import AttreeError
from attree.base.registry import check_name
from attree.choosing import RANDOM
from attree.plan.experiments.rows import APART, TUNED, Experiment, ExperimentRow, Placed, Set
from attree.plan.plan import folders_of

#: Keys of a parser that averages heads.
_HEADS_KEYS = ("source", "association", "score", "decoder", "heads", "rank_by")


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
        for one in _of_languages(run):
            rows += list(_run(one, spec["columns"], config, recipes, f"{where}.runs[{position}]"))
    if spec["panels"]:
        rows = [replace(one, panel=one.row.test.partition("/")[0]) for one in rows]
    _check_cells(rows, where)
    if spec["price"] is not None:
        _known(spec["price"], {one.label for one in rows}, f"{where}: line")
    for table in spec["tables"]:
        _known(table, config["tables"], f"{where}: table")
    published = spec["published"] or {}
    figures = {"*": published} if isinstance(published, str) else published
    settings = {**spec, "axis": spec["columns"], "published": figures}
    return Experiment(name, tuple(rows), settings)


def _of_languages(run: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Yield an entry for each of its languages, which ``{language}`` stands for in its sets."""
    for language in run["languages"] or [""]:

        def own(one: Set, name: str = language) -> Set:
            return one.replace("{language}", name) if name else one

        yield {**run, "train": own(run["train"]), "test": [own(one) for one in run["test"]]}


def _run(
    run: Mapping[str, Any],
    axis: str,
    config: Mapping[str, Any],
    recipes: Sequence[str],
    where: str,
) -> Iterable[Placed]:
    """Every parser × encoder × trees × way × layer × size × length × test × draw of an entry."""
    sources = {slug: encoders_of(slug, config, where) for slug in run["encoders"]}
    for parser, slug in itertools.product(run["parsers"], run["encoders"]):
        kind, settings = _parser(parser, run, config, recipes, where)
        words = _words(run["words"], where)
        product = itertools.product(
            *(run[key] for key in ("layers", "sizes", "draw", "trees", "max_words", "test"))
        )
        for layer, size, way, trees, longest, test in product:
            _check_way(way, kind, trees, run["first"], where)
            for encoder, seed in itertools.product(sources[slug], _draws(run, trees)):
                row = ExperimentRow(
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
                    candidates=tuple(map(str, run["candidates"])) if layer == TUNED else (),
                    dropouts=tuple(run["dropouts"]) if layer == TUNED else (),
                    size=0 if kind == "heads" else size,
                    timed=run["timed"],
                    calibrated=run["calibrated"] and kind == "trained",
                    beside=run["beside"] if kind == "trained" and run["beside"]["train"] else None,
                    draw=way,
                    first=0 if way == RANDOM else run["first"],
                    words=words,
                )
                names = {"parser": parser, "encoder": slug, "layer": layer, "size": size}
                label = run["label"].format(**names, trees=trees, test=test, draw=way)
                columns = map(str, run["across"]) if run["across"] else [column_of(row, axis)]
                yield from (Placed(row, label, column) for column in columns)


def _check_way(way: str, kind: str, trees: int | str, first: int, where: str) -> None:
    """Refuse trees that are chosen for parsers which do not choose, or before any is drawn."""
    if way == RANDOM:
        return
    if kind == "heads":
        raise AttreeError(
            f"{where}: draw {way} is for parsers of `trained` and of attree train",
            fix=f"write draw: [{RANDOM}] for averaged heads",
        )
    if not isinstance(trees, int) or trees <= first:
        raise AttreeError(
            f"{where}: draw {way} chooses none of {trees} trees, of which the first {first} are "
            "drawn at random",
            fix="ask for more trees, or lower `first`",
        )


def _words(given: Sequence[int] | None, where: str) -> tuple[int, int] | None:
    """Return the lengths of sentences that trees are drawn from, the least and the most words."""
    if given is None:
        return None
    least, most = given
    if least > most:
        raise AttreeError(
            f"{where}: words: {least} is more than {most}", fix="write the smaller one first"
        )
    return least, most


def encoders_of(slug: str, config: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return the encoders that a slug stands for: itself, or one a seed of masked-LM tuning."""
    if slug in config["masked_lm"]:
        return tuple(f"{slug}-{seed}" for seed in range(config["masked_lm"][slug]["seeds"]))
    _known(slug, {**config["encoders"], **config["masked_lm"]}, f"{where}: encoder")
    return (slug,)


def column_of(row: ExperimentRow, axis: str) -> str:
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
    if name in folders_of(config):
        problem = f"{where}: {name} is trained already, and an experiment trains its parsers"
        raise AttreeError(problem, fix="name it under `trained` of a table's or comparison's run")
    known = [*config["parsers"], *config["trained"], *recipes]
    check_name(name, known, f"{where}: unknown parser {name}", near=True)
    own = dict(config["trained"].get(name) or {})
    base = own.pop("recipe", name)
    _known(base, recipes, f"trained.{name}: recipe")
    if run["steps"]:
        own["steps"] = run["steps"]
    return "trained", {"recipe": base, **own}


def _check_cells(rows: Sequence[Placed], where: str) -> None:
    seen: dict[tuple[Any, ...], ExperimentRow] = {}
    for one in rows:
        place = (one.panel, one.label, one.column, one.row.encoder, one.row.seed)
        if place in seen:
            raise AttreeError(
                f"{where}: two rows fall into line {one.label!r}, column {one.column}",
                fix="give one of the runs another label, such as '{parser}, layer {layer}'",
            )
        seen[place] = one.row


def _known(name: str, known: Iterable[str], what: str) -> None:
    check_name(name, known, f"{what} {name} is unknown", near=True)
