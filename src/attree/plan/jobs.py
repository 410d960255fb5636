"""From the ``experiments`` of a configuration to rows and jobs, and what the rules ask of them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.files import write_json
from attree.base.provenance import digest
from attree.base.registry import check_name
from attree.choosing import RANDOM
from attree.plan import paths
from attree.plan.paths import path_of
from attree.plan.plan import Plan, as_options, files_of_start, folders_of
from attree.plan.rows import APART, SPARES, TUNED, Experiment, ExperimentRow, Placed, Set

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
    expander = _Expander(config, tuple(recipes))
    return {
        name: expander.experiment(name, spec)
        for name, spec in config["experiments"].items()
        if spec is not None
    }


@dataclass(frozen=True, slots=True)
class _Expander:
    """Expands experiments of a configuration, with the few-shot parsers that there are."""

    config: Mapping[str, Any]
    recipes: Sequence[str]

    def experiment(self, name: str, spec: Mapping[str, Any]) -> Experiment:
        where = f"experiments.{name}"
        rows: list[Placed] = []
        for position, run in enumerate(spec["runs"]):
            for language in run["languages"] or [""]:
                sets = {key: _in_language(run[key], language) for key in ("train", "test")}
                entry = {**run, **sets}
                rows += self._rows(entry, spec["columns"], f"{where}.runs[{position}]")
        if spec["panels"]:
            rows = [replace(one, panel=one.row.test.partition("/")[0]) for one in rows]
        _check_cells(rows, where)
        if spec["price"] is not None:
            _known(spec["price"], {one.label for one in rows}, f"{where}: line")
        for table in spec["tables"]:
            _known(table, self.config["tables"], f"{where}: table")
        published = spec["published"] or {}
        figures = {"*": published} if isinstance(published, str) else published
        settings = {**spec, "axis": spec["columns"], "published": figures}
        return Experiment(name, tuple(rows), settings)

    def _rows(self, run: Mapping[str, Any], axis: str, where: str) -> Iterable[Placed]:
        """Yield each parser × encoder × layer × size × way × trees × length × test × draw."""
        sources = {slug: self._encoders(slug, where) for slug in run["encoders"]}
        if run["words"] and run["words"][0] > run["words"][1]:
            least, most = run["words"]
            problem = f"{where}: words: {least} is more than {most}"
            raise AttreeError("bad-words", problem, fix="write the smaller one first")
        lists = ("parsers", "encoders", "layers", "sizes", "draw", "trees", "max_words", "test")
        for parser, slug, layer, size, way, trees, longest, test in itertools.product(
            *(run[key] for key in lists)
        ):
            kind, settings = self._parser(parser, run, where)
            is_trained = kind == "trained"
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
                    layer=str(layer) if is_trained and layer is not None else None,
                    candidates=tuple(map(str, run["candidates"])) if layer == TUNED else (),
                    dropouts=tuple(run["dropouts"]) if layer == TUNED else (),
                    size=size if is_trained else 0,
                    timed=run["timed"],
                    calibrated=run["calibrated"] and is_trained,
                    beside=run["beside"] if is_trained and run["beside"]["train"] else None,
                    draw=way,
                    first=0 if way == RANDOM else run["first"],
                    words=tuple(run["words"]) if run["words"] else None,
                )
                names = {"parser": parser, "encoder": slug, "layer": layer, "size": size}
                label = run["label"].format(**names, trees=trees, test=test, draw=way)
                columns = map(str, run["across"]) if run["across"] else [column_of(row, axis)]
                yield from (Placed(row, label, column) for column in columns)

    def _encoders(self, slug: str, where: str) -> tuple[str, ...]:
        """Return what a slug stands for: itself, or an encoder for each seed of its tuning."""
        tuned = self.config["masked_lm"]
        if slug in tuned:
            return tuple(f"{slug}-{seed}" for seed in range(tuned[slug]["seeds"]))
        _known(slug, {**self.config["encoders"], **tuned}, f"{where}: encoder")
        return (slug,)

    def _parser(self, name: str, run: Mapping[str, Any], where: str) -> tuple[str, dict[str, Any]]:
        """Return a parser's kind and settings; those that a run names override its own."""
        config = self.config
        if name in config["parsers"]:
            settings = {key: config["parsers"][name][key] for key in _HEADS_KEYS}
            return "heads", settings | ({"heads": run["heads"]} if run["heads"] else {})
        if name in folders_of(config):
            problem = f"{where}: {name} is trained already, and an experiment trains its parsers"
            fix = "name it under `trained` of a table's or comparison's run"
            raise AttreeError("trained-already", problem, fix=fix)
        names = [*config["parsers"], *config["trained"], *self.recipes]
        check_name(name, names, f"{where}: unknown parser {name}", near=True)
        settings = {"recipe": name, **(config["trained"].get(name) or {})}
        _known(settings["recipe"], self.recipes, f"trained.{name}: recipe")
        return "trained", settings | ({"steps": run["steps"]} if run["steps"] else {})


def _in_language(sets: Any, language: str) -> Any:
    """Return a set, or several, with the language that ``{language}`` stands for, if one does."""
    if isinstance(sets, list):
        return [_in_language(one, language) for one in sets]
    return sets.replace("{language}", language) if language else sets


def _check_way(way: str, kind: str, trees: int | str, first: int, where: str) -> None:
    """Refuse trees that are chosen for parsers which do not choose, or before any is drawn."""
    if way == RANDOM:
        return
    if kind == "heads":
        problem = f"{where}: draw {way} is for parsers of `trained` and of attree train"
        fix = f"write draw: [{RANDOM}] for averaged heads"
        raise AttreeError("draw-without-parser", problem, fix=fix)
    if not isinstance(trees, int) or trees <= first:
        raise AttreeError(
            "draw-too-few",
            f"{where}: draw {way} chooses none of {trees} trees, of which the first {first} are "
            "drawn at random",
            fix="ask for more trees, or lower `first`",
        )


def column_of(row: ExperimentRow, axis: str) -> str:
    """Return the column that a row stands in."""
    value = row.settings.get("steps", 200) if axis == "step" else getattr(row, axis)
    if axis == "max_words":
        return "all" if value is None else f"≤{value}"
    return "middle" if axis == "layer" and value is None else str(value)


def _draws(run: Mapping[str, Any], trees: Any) -> range:
    """Return the seeds: the trees set apart are drawn once, all of a set for each of its own."""
    return range({APART: 1, "all": run["seeds_of_all"]}.get(trees, run["draws"]))


def _check_cells(rows: Sequence[Placed], where: str) -> None:
    seen = set()
    for one in rows:
        cell = (one.panel, one.label, one.column, one.row.encoder, one.row.seed)
        if cell in seen:
            problem = f"{where}: two rows fall into line {one.label!r}, column {one.column}"
            fix = "give one of the runs another label, such as '{parser}, layer {layer}'"
            raise AttreeError("cell-twice", problem, fix=fix)
        seen.add(cell)


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
    rows = {digest(asdict(one.row)): one.row for one in experiment.rows}.values()
    # draws of one number of trees stay side by side: a choice of settings is theirs in common
    together: dict[tuple[str, str], dict[str, list[ExperimentRow]]] = {}
    for row in rows:
        trainings = together.setdefault((row.kind, row.encoder), {})
        trainings.setdefault(digest(row.training()), []).append(row)
    for (kind, encoder), trainings in together.items():
        groups, most = list(trainings.values()), AT_MOST[kind]
        for number, first in enumerate(range(0, len(groups), most)):
            part = tuple(itertools.chain.from_iterable(groups[first : first + most]))
            name = f"{experiment.name}.{kind}.{encoder}.{number}"
            found.append(ExperimentJob(name, kind, encoder, part))
    return found


class Experiments:
    """All experiments of a configuration; its methods are the input functions of the rules.

    Args:
        config: checked, with its defaults filled in.
        recipes: the few-shot parsers that there are.
        plan: of the tables over languages.

    Raises:
        AttreeError: see :func:`attree.plan.jobs.experiments`; an unknown set.
    """

    def __init__(self, config: Mapping[str, Any], recipes: Iterable[str], plan: Plan) -> None:
        self.config, self.plan = config, plan
        self.experiments = experiments(config, recipes)
        self._jobs = {name: jobs(one) for name, one in self.experiments.items()}
        self.by_name = {job.name: job for each in self._jobs.values() for job in each}
        there = {
            f"{language}/{split}" for language in plan.splits for split in plan.splits[language]
        }
        for name, each in self._jobs.items():
            if unknown := [one for job in each for one in job.sets if one not in there]:
                problem = f"experiments: {name} asks for the unknown set {unknown[0]}"
                fix = f"the languages are {', '.join(plan.splits)}"
                raise AttreeError("unknown-set", problem, fix=fix)

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
        drawn = [name for name, one in self.experiments.items() if one.settings["sentence"]]
        found = {
            "results": self.config["results"],
            "jobs": {name: list(map(asdict, job.rows)) for name, job in self.by_name.items()},
            "tables": {name: self._layout(one) for name, one in self.experiments.items()},
            "rows": {name: list(map(asdict, self._mapped(name))) for name in drawn},
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
        return path_of(paths.ENCODER, encoder=self.by_name[wildcards.job].encoder)

    def inputs(self, wildcards: Any) -> list[str]:
        """Return the other files that a job reads."""
        job = self.by_name[wildcards.job]
        found = [path_of(paths.SENTENCES_PATH, one) for one in job.sets]
        if job.kind == "heads":
            found += [path_of(paths.ALL_HEADS, one, encoder=job.encoder) for one in job.sets]
        starts = (file for row in job.rows for file in files_of_start(row.settings))
        return [*found, *dict.fromkeys(starts)]

    def sources(self, encoder: str, one: Set) -> list[str]:
        """Return the sources whose units rows of averaged heads read of a set."""
        jobs = (j for j in self.by_name.values() if (j.kind, j.encoder) == ("heads", encoder))
        rows = (row for job in jobs for row in job.rows if one in (row.train, row.test))
        return list(dict.fromkeys(row.settings["source"] for row in rows))

    def map_encoder(self, wildcards: Any) -> str:
        """Return the encoder of a sentence's maps."""
        return path_of(paths.ENCODER, encoder=self._mapped(wildcards.experiment)[0].encoder)

    def map_inputs(self, wildcards: Any) -> list[str]:
        """Return the other files that a sentence's maps read."""
        rows = self._mapped(wildcards.experiment)
        sets = dict.fromkeys(one for row in rows for one in row.sets)
        ranked = dict.fromkeys(row.train for row in rows if row.kind == "heads")
        found = [path_of(paths.SENTENCES_PATH, one) for one in sets]
        return found + [path_of(paths.ALL_HEADS, one, encoder=rows[0].encoder) for one in ranked]

    def _mapped(self, experiment: str) -> list[ExperimentRow]:
        return [placed.row for placed in self.experiments[experiment].rows]

    def results(self, wildcards: Any) -> list[str]:
        """Return the files that an experiment's table is gathered from."""
        one = self.experiments[wildcards.experiment]
        found = [path_of(paths.JOB, job=job.name) for job in self._jobs[one.name]]
        rows = [row for table in one.settings["tables"] for row in self.plan.tables[table]]
        found += [path_of(paths.SCORES_PATH, **asdict(row)) for row in rows]
        if one.settings["baselines"]:
            from_tables = [f"{row.language}/{row.split}" for row in rows]
            tests = dict.fromkeys([placed.row.test for placed in one.rows] + from_tables)
            found += [path_of(paths.BASELINES_PATH, test) for test in tests]
        return found

    def tuning_inputs(self, wildcards: Any) -> dict[str, Any]:
        """What masked-LM tuning reads."""
        name, _ = self.tuned[wildcards.tuned]
        one = self.config["masked_lm"][name]
        return {
            "encoder": path_of(paths.ENCODER, encoder=one["encoder"]),
            "text": [path_of(paths.SENTENCES_PATH, text) for text in one["text"]],
        }

    def tuning_options(self, wildcards: Any) -> str:
        """Return the options of masked-LM tuning."""
        name, seed = self.tuned[wildcards.tuned]
        one = self.config["masked_lm"][name]
        results = self.config["results"]
        text = [path_of(paths.SENTENCES_PATH, text, results=results) for text in one["text"]]
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
        path = path_of(paths.EXPERIMENT, experiment=name, results=self.config["results"])
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
