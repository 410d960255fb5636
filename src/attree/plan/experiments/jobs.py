"""From the ``experiments`` of a configuration to rows and jobs, and what the rules ask of them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.files import write_json
from attree.base.provenance import digest
from attree.base.registry import check_name
from attree.choosing import RANDOM
from attree.plan.experiments.rows import (
    APART,
    SPARES,
    TUNED,
    Experiment,
    ExperimentRow,
    Placed,
    Set,
)
from attree.plan.paths import (
    ALL_HEADS,
    BASELINES_PATH,
    ENCODER,
    EXPERIMENT,
    JOB,
    SCORES_PATH,
    SENTENCES_PATH,
    path_of,
)
from attree.plan.plan import Plan, as_options, files_of_start, folders_of

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
            "draw-without-parser",
            f"{where}: draw {way} is for parsers of `trained` and of attree train",
            fix=f"write draw: [{RANDOM}] for averaged heads",
        )
    if not isinstance(trees, int) or trees <= first:
        raise AttreeError(
            "draw-too-few",
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
            "bad-words",
            f"{where}: words: {least} is more than {most}",
            fix="write the smaller one first",
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
        raise AttreeError(
            "trained-already",
            problem,
            fix="name it under `trained` of a table's or comparison's run",
        )
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
                "cell-twice",
                f"{where}: two rows fall into line {one.label!r}, column {one.column}",
                fix="give one of the runs another label, such as '{parser}, layer {layer}'",
            )
        seen[place] = one.row


def _known(name: str, known: Iterable[str], what: str) -> None:
    check_name(name, known, f"{what} {name} is unknown", near=True)


#: trainings, or rankings of heads, of one job at most: few jobs, yet enough to share out
AT_MOST = {"trained": 10, "heads": 60}


@dataclass(frozen=True, slots=True)
class ExperimentJob:
    """Rows of one experiment, kind and encoder."""

    name: str
    kind: str
    encoder: str
    rows: tuple[ExperimentRow, ...]

    @property
    def sets(self) -> tuple[Set, ...]:
        """Every set whose sentences the rows read."""
        return tuple(dict.fromkeys(one for row in self.rows for one in row.sets))


def jobs(experiment: Experiment) -> list[ExperimentJob]:
    """Share an experiment's rows out; those of one training stay together."""
    found = []
    # a row that stands in several columns is run once
    rows = list({digest(asdict(one.row)): one.row for one in experiment.rows}.values())
    for kind, encoder in dict.fromkeys((row.kind, row.encoder) for row in rows):
        own = [row for row in rows if (row.kind, row.encoder) == (kind, encoder)]
        for number, part in enumerate(_parts(own, AT_MOST[kind])):
            name = f"{experiment.name}.{kind}.{encoder}.{number}"
            found.append(ExperimentJob(name, kind, encoder, part))
    return found


def _parts(rows: Sequence[ExperimentRow], most: int) -> Iterator[tuple[ExperimentRow, ...]]:
    """Yield rows of at most ``most`` trainings, in the order in which these first come."""
    together: dict[str, list[ExperimentRow]] = {}
    for row in rows:
        together.setdefault(digest(row.training()), []).append(row)
    # draws of one number of trees stay side by side: a choice of settings is theirs in common
    groups = list(together.values())
    for first in range(0, len(groups), most):
        yield tuple(row for group in groups[first : first + most] for row in group)


class Experiments:
    """All experiments of a configuration; its methods are the input functions of the rules.

    Args:
        config: checked, with its defaults filled in.
        recipes: the few-shot parsers that there are.
        plan: of the tables over languages.

    Raises:
        AttreeError: see :func:`attree.plan.experiments.jobs.experiments`; an unknown set.
    """

    def __init__(self, config: Mapping[str, Any], recipes: Iterable[str], plan: Plan) -> None:
        self.config, self.plan = config, plan
        self.experiments = experiments(config, recipes)
        self._jobs = {name: jobs(one) for name, one in self.experiments.items()}
        self.by_name = {job.name: job for each in self._jobs.values() for job in each}
        for job in self.by_name.values():
            for one in job.sets:
                self._check(one, job.name)

    def _check(self, one: Set, where: str) -> None:
        language, _, split = one.partition("/")
        if split not in self.plan.splits.get(language, ()):
            raise AttreeError(
                "unknown-set",
                f"experiments: {where.partition('.')[0]} asks for the unknown set {one}",
                fix=f"the languages are {', '.join(self.plan.splits)}",
            )

    @functools.cached_property
    def tuned(self) -> dict[str, tuple[str, int]]:
        """Encoders made by masked-LM tuning: slug → its entry, and the seed."""
        return {
            f"{name}-{seed}": (name, seed)
            for name, one in self.config["masked_lm"].items()
            for seed in range(one["seeds"])
        }

    def write(self, path: str | Path) -> None:
        """Write what the commands of the rules read: the rows of each job, each table's layout.

        A job's command line names the job and this file, however many rows it has.
        """
        own = self.experiments
        found = {
            "results": self.config["results"],
            "jobs": {name: [asdict(row) for row in job.rows] for name, job in self.by_name.items()},
            "tables": {name: self._layout(one) for name, one in own.items()},
            "rows": {
                name: [asdict(placed.row) for placed in one.rows]
                for name, one in own.items()
                if one.settings["sentence"] is not None
            },
        }
        write_json(path, found)

    def _layout(self, one: Experiment) -> dict[str, Any]:
        places = [[digest(asdict(p.row)), p.label, p.column, p.panel] for p in one.rows]
        return {**{key: one.settings[key] for key in _LAYOUT}, "places": places}

    def rows(self, wildcards: Any) -> str:
        """Return a hash of a job's rows: when it changes, the job runs again."""
        return digest([asdict(row) for row in self.by_name[wildcards.job].rows])

    def spares(self, wildcards: Any) -> tuple[str, ...]:
        """Return the modules that a job does not run, though what it runs imports them."""
        return SPARES[self.by_name[wildcards.job].kind]

    def layout(self, wildcards: Any) -> str:
        """Return a hash of how an experiment's table is laid out."""
        return digest(self._layout(self.experiments[wildcards.experiment]))

    def encoder(self, wildcards: Any) -> str:
        """Return the description of a job's encoder."""
        return path_of(ENCODER, encoder=self.by_name[wildcards.job].encoder)

    def inputs(self, wildcards: Any) -> list[str]:
        """Return the other files that a job reads."""
        job = self.by_name[wildcards.job]
        found = [path_of(SENTENCES_PATH, one) for one in job.sets]
        if job.kind == "heads":
            found += [path_of(ALL_HEADS, one, encoder=job.encoder) for one in job.sets]
        starts = (file for row in job.rows for file in files_of_start(row.settings))
        return [*found, *dict.fromkeys(starts)]

    def sources(self, encoder: str, one: Set) -> list[str]:
        """Return the sources whose units rows of averaged heads read of a set."""
        rows = (row for job in self.by_name.values() for row in job.rows)
        own = (row for row in rows if (row.kind, row.encoder) == ("heads", encoder))
        read = (row for row in own if one in (row.train, row.test))
        return list(dict.fromkeys(row.settings["source"] for row in read))

    def map_encoder(self, wildcards: Any) -> str:
        """Return the encoder of a sentence's maps."""
        return path_of(ENCODER, encoder=self._mapped(wildcards)[0].encoder)

    def map_inputs(self, wildcards: Any) -> list[str]:
        """Return the other files that a sentence's maps read."""
        rows = self._mapped(wildcards)
        sets = dict.fromkeys(one for row in rows for one in row.sets)
        ranked = dict.fromkeys(row.train for row in rows if row.kind == "heads")
        encoder = rows[0].encoder
        found = [path_of(SENTENCES_PATH, one) for one in sets]
        return found + [path_of(ALL_HEADS, one, encoder=encoder) for one in ranked]

    def _mapped(self, wildcards: Any) -> list[ExperimentRow]:
        return [placed.row for placed in self.experiments[wildcards.experiment].rows]

    def results(self, wildcards: Any) -> list[str]:
        """Return the files that an experiment's table is gathered from."""
        one = self.experiments[wildcards.experiment]
        found = [path_of(JOB, job=job.name) for job in self._jobs[one.name]]
        rows = [row for table in one.settings["tables"] for row in self.plan.tables[table]]
        found += [path_of(SCORES_PATH, **asdict(row)) for row in rows]
        if one.settings["baselines"]:
            from_tables = [f"{row.language}/{row.split}" for row in rows]
            tests = dict.fromkeys([placed.row.test for placed in one.rows] + from_tables)
            found += [path_of(BASELINES_PATH, test) for test in tests]
        return found

    def tuning_inputs(self, wildcards: Any) -> dict[str, Any]:
        """What masked-LM tuning reads."""
        name, _ = self.tuned[wildcards.tuned]
        one = self.config["masked_lm"][name]
        return {
            "encoder": path_of(ENCODER, encoder=one["encoder"]),
            "text": [path_of(SENTENCES_PATH, text) for text in one["text"]],
        }

    def tuning_options(self, wildcards: Any) -> str:
        """Return the options of masked-LM tuning."""
        name, seed = self.tuned[wildcards.tuned]
        one = self.config["masked_lm"][name]
        text = [
            path_of(SENTENCES_PATH, text, results=self.config["results"]) for text in one["text"]
        ]
        keys = ("epochs", "batch", "learning_rate", "length", "head_steps")
        return as_options({"text": text, "seed": seed, **{key: one.get(key) for key in keys}})

    def tables(self, extension: str = "csv") -> list[str]:
        """Every table."""
        return [self._table(name, extension) for name in self.experiments]

    def pictures(self) -> list[str]:
        """Every picture; its CSV and Parquet lie beside it."""
        return [
            self._table(name, f"{kind}png")
            for name, one in self.experiments.items()
            for key, kind in _PICTURES.items()
            if one.settings[key] not in (None, False)
        ]

    def _table(self, name: str, extension: str) -> str:
        path = path_of(EXPERIMENT, experiment=name, results=self.config["results"])
        return f"{path.removesuffix('csv')}{extension}"


_LAYOUT = (
    *("title", "axis", "metrics", "baselines", "labels", "published", "above", "sentence"),
    *("panels", "note", "price"),
)
#: what an experiment asks for → what the picture's name has before its ending
_PICTURES = {
    "picture": "",
    "weights": "weights.",
    "reliability": "reliability.",
    "sentence": "sentence.",
}
