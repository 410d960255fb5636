"""Rows and jobs of the ``experiments`` of a configuration; input functions of the rules."""

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
from attree.plan import paths
from attree.plan.paths import path_of
from attree.plan.plan import Plan, as_options, files_of_start, folders_of
from attree.plan.rows import APART, NOT_RUN, TUNED, Experiment, ExperimentRow, PlacedRow, Set
from attree.training import STEPS

#: Keys of a parser that averages heads.
_HEADS_KEYS = ("source", "association", "score", "decoder", "heads", "rank_by")


def experiments(config: Mapping[str, Any], recipes: Iterable[str]) -> dict[str, Experiment]:
    """Expand every experiment of a checked configuration.

    Args:
        config: with its defaults filled in.
        recipes: names of the built-in few-shot parsers.

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
    """Expands experiments of a configuration; ``recipes`` are the built-in few-shot parsers."""

    config: Mapping[str, Any]
    recipes: Sequence[str]

    def experiment(self, name: str, spec: Mapping[str, Any]) -> Experiment:
        where = f"experiments.{name}"
        rows: list[PlacedRow] = []
        for position, run in enumerate(spec["runs"]):
            for language in run["languages"] or [""]:
                sets = {key: _in_language(run[key], language) for key in ("train", "test")}
                entry = {**run, **sets}
                rows += self._rows(entry, spec["columns"], f"{where}.runs[{position}]")
        if spec["panels"]:
            rows = [replace(placed, panel=placed.row.test.partition("/")[0]) for placed in rows]
        _check_cells(rows, where)
        for table in spec["tables"]:
            _check_exists(table, self.config["tables"], f"{where}: table")
        published = spec["published"] or {}
        figures = {"*": published} if isinstance(published, str) else published
        settings = {**spec, "axis": spec["columns"], "published": figures}
        return Experiment(name, tuple(rows), settings)

    def _rows(self, run: Mapping[str, Any], axis: str, where: str) -> Iterable[PlacedRow]:
        """Yield a row for each combination of the run's parsers, encoders, trees and so on."""
        sources = {slug: self._encoders(slug, where) for slug in run["encoders"]}
        lists = ("parsers", "encoders", "layers", "sizes", "trees", "max_words", "test")
        for parser, slug, layer, size, trees, longest, test in itertools.product(
            *(run[key] for key in lists)
        ):
            kind, settings = self._parser(parser, run, where)
            is_trained = kind == "trained"
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
                )
                names = {"parser": parser, "encoder": slug, "layer": layer, "size": size}
                label = run["label"].format(**names, trees=trees, test=test)
                columns = map(str, run["across"]) if run["across"] else [column_of(row, axis)]
                yield from (PlacedRow(row, label, column) for column in columns)

    def _encoders(self, slug: str, where: str) -> tuple[str, ...]:
        """Return the encoders of a slug: itself, or one for each seed of its tuning."""
        tuned = self.config["masked_lm"]
        if slug in tuned:
            return tuple(f"{slug}-{seed}" for seed in range(tuned[slug]["seeds"]))
        _check_exists(slug, {**self.config["encoders"], **tuned}, f"{where}: encoder")
        return (slug,)

    def _parser(self, name: str, run: Mapping[str, Any], where: str) -> tuple[str, dict[str, Any]]:
        """Return a parser's kind and settings; the run's settings override the parser's."""
        config = self.config
        if name in config["parsers"]:
            settings = {key: config["parsers"][name][key] for key in _HEADS_KEYS}
            return "heads", settings | ({"heads": run["heads"]} if run["heads"] else {})
        if name in folders_of(config):
            problem = f"{where}: {name} is already trained, and an experiment trains its parsers"
            fix = "name it under `trained` of a table's or comparison's run"
            raise AttreeError("trained-already", problem, fix=fix)
        names = [*config["parsers"], *config["trained"], *self.recipes]
        check_name(name, names, f"{where}: unknown parser {name}", near=True)
        settings = {"recipe": name, **(config["trained"].get(name) or {})}
        _check_exists(settings["recipe"], self.recipes, f"trained.{name}: recipe")
        return "trained", settings | ({"steps": run["steps"]} if run["steps"] else {})


def _in_language(sets: Any, language: str) -> Any:
    """Put a language, if there is one, for ``{language}`` in the name of a set, or of several."""
    if isinstance(sets, list):
        return [_in_language(name, language) for name in sets]
    return sets.replace("{language}", language) if language else sets


def column_of(row: ExperimentRow, axis: str) -> str:
    """Return the heading of a row's column."""
    value = row.settings.get("steps", STEPS) if axis == "step" else getattr(row, axis)
    if axis == "max_words":
        return "all" if value is None else f"≤{value}"
    return "middle" if axis == "layer" and value is None else str(value)


def _draws(run: Mapping[str, Any], trees: Any) -> range:
    """Return the seeds: one for trees set apart, ``seeds_of_all`` for all trees, or ``draws``."""
    return range({APART: 1, "all": run["seeds_of_all"]}.get(trees, run["draws"]))


def _check_cells(rows: Sequence[PlacedRow], where: str) -> None:
    seen = set()
    for placed in rows:
        cell = (placed.panel, placed.label, placed.column, placed.row.encoder, placed.row.seed)
        if cell in seen:
            problem = f"{where}: two rows fall into line {placed.label!r}, column {placed.column}"
            fix = "give one of the runs another label, such as '{parser}, layer {layer}'"
            raise AttreeError("cell-twice", problem, fix=fix)
        seen.add(cell)


def _check_exists(name: str, names: Iterable[str], what: str) -> None:
    check_name(name, names, f"{what} {name} is unknown", near=True)


#: The most trainings, or rankings of heads, of one job: few jobs, yet enough to run in parallel.
AT_MOST = {"trained": 10, "heads": 60}


@dataclass(frozen=True, slots=True)
class ExperimentJob:
    """A job: rows of one experiment, kind and encoder."""

    name: str
    kind: str
    encoder: str
    rows: tuple[ExperimentRow, ...]

    @property
    def sets(self) -> tuple[Set, ...]:
        """The sets that the rows read."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.sets))


def jobs(experiment: Experiment) -> list[ExperimentJob]:
    """Group an experiment's rows into jobs; rows of one training stay together."""
    made = []
    # a row in several columns runs once
    rows = {digest(asdict(placed.row)): placed.row for placed in experiment.rows}.values()
    # draws of one number of trees stay side by side, since they share a choice of settings
    together: dict[tuple[str, str], dict[str, list[ExperimentRow]]] = {}
    for row in rows:
        trainings = together.setdefault((row.kind, row.encoder), {})
        trainings.setdefault(digest(row.training()), []).append(row)
    for (kind, encoder), trainings in together.items():
        groups, most = list(trainings.values()), AT_MOST[kind]
        for number, first in enumerate(range(0, len(groups), most)):
            part = tuple(itertools.chain.from_iterable(groups[first : first + most]))
            name = f"{experiment.name}.{kind}.{encoder}.{number}"
            made.append(ExperimentJob(name, kind, encoder, part))
    return made


class Experiments:
    """All experiments of a configuration; its methods are the input functions of the rules.

    Args:
        config: checked, with its defaults filled in.
        recipes: names of the built-in few-shot parsers.
        plan: of the tables over languages.

    Raises:
        AttreeError: see :func:`attree.plan.jobs.experiments`; an unknown set.
    """

    def __init__(self, config: Mapping[str, Any], recipes: Iterable[str], plan: Plan) -> None:
        self.config, self.plan = config, plan
        self.experiments = experiments(config, recipes)
        self._jobs = {name: jobs(experiment) for name, experiment in self.experiments.items()}
        self.by_name = {job.name: job for group in self._jobs.values() for job in group}
        sets = {
            f"{language}/{split}" for language in plan.splits for split in plan.splits[language]
        }
        for name, group in self._jobs.items():
            if unknown := [key for job in group for key in job.sets if key not in sets]:
                problem = f"experiments: {name} asks for the unknown set {unknown[0]}"
                fix = f"the languages are {', '.join(plan.splits)}"
                raise AttreeError("unknown-set", problem, fix=fix)

    @functools.cached_property
    def tuned(self) -> dict[str, tuple[str, int]]:
        """Encoders made by masked-LM tuning: slug → name of the entry, and seed."""
        return {
            f"{name}-{seed}": (name, seed)
            for name, settings in self.config["masked_lm"].items()
            for seed in range(settings["seeds"])
        }

    def write(self, path: str | Path) -> None:
        """Write the rows of each job and the layout of each table, for the commands of the rules.

        A command line then names only the job and this file, however many rows the job has.
        """
        drawn = [name for name, table in self.experiments.items() if table.settings["sentence"]]
        plan = {
            "results": self.config["results"],
            "jobs": {name: list(map(asdict, job.rows)) for name, job in self.by_name.items()},
            "tables": {name: self._layout(table) for name, table in self.experiments.items()},
            "rows": {name: list(map(asdict, self._sentence_rows(name))) for name in drawn},
        }
        write_json(path, plan)

    def _layout(self, experiment: Experiment) -> dict[str, Any]:
        rows = [[digest(asdict(p.row)), p.label, p.column, p.panel] for p in experiment.rows]
        return {**{key: experiment.settings[key] for key in _LAYOUT}, "places": rows}

    def rows(self, wildcards: Any) -> str:
        """Return a hash of a job's rows: when it changes, the job runs again."""
        return digest([asdict(row) for row in self.by_name[wildcards.job].rows])

    def not_run(self, wildcards: Any) -> tuple[str, ...]:
        """Return the modules that a job imports but does not run."""
        return NOT_RUN[self.by_name[wildcards.job].kind]

    def layout(self, wildcards: Any) -> str:
        """Return a hash of the layout of an experiment's table."""
        return digest(self._layout(self.experiments[wildcards.experiment]))

    def encoder(self, wildcards: Any) -> str:
        """Return the file that describes a job's encoder."""
        return path_of(paths.ENCODER, encoder=self.by_name[wildcards.job].encoder)

    def inputs(self, wildcards: Any) -> list[str]:
        """Return the other files that a job reads."""
        job = self.by_name[wildcards.job]
        files = [path_of(paths.SENTENCES_PATH, name) for name in job.sets]
        if job.kind == "heads":
            files += [path_of(paths.ALL_HEADS, name, encoder=job.encoder) for name in job.sets]
        starts = (file for row in job.rows for file in files_of_start(row.settings))
        return [*files, *dict.fromkeys(starts)]

    def sources(self, encoder: str, name: Set) -> list[str]:
        """Return the sources of units that rows of averaged heads read for a set."""
        jobs = (j for j in self.by_name.values() if (j.kind, j.encoder) == ("heads", encoder))
        rows = (row for job in jobs for row in job.rows if name in (row.train, row.test))
        return list(dict.fromkeys(row.settings["source"] for row in rows))

    def map_encoder(self, wildcards: Any) -> str:
        """Return the file that describes the encoder of a sentence's maps."""
        return path_of(paths.ENCODER, encoder=self._sentence_rows(wildcards.experiment)[0].encoder)

    def map_inputs(self, wildcards: Any) -> list[str]:
        """Return the other files that a sentence's maps read."""
        rows = self._sentence_rows(wildcards.experiment)
        sets = dict.fromkeys(name for row in rows for name in row.sets)
        ranked = dict.fromkeys(row.train for row in rows if row.kind == "heads")
        files = [path_of(paths.SENTENCES_PATH, name) for name in sets]
        return files + [path_of(paths.ALL_HEADS, name, encoder=rows[0].encoder) for name in ranked]

    def _sentence_rows(self, experiment: str) -> list[ExperimentRow]:
        return [placed.row for placed in self.experiments[experiment].rows]

    def results(self, wildcards: Any) -> list[str]:
        """Return the files that an experiment's table is gathered from."""
        experiment = self.experiments[wildcards.experiment]
        files = [path_of(paths.JOB, job=job.name) for job in self._jobs[experiment.name]]
        rows = [row for table in experiment.settings["tables"] for row in self.plan.tables[table]]
        files += [path_of(paths.SCORES_PATH, **asdict(row)) for row in rows]
        if experiment.settings["baselines"]:
            from_tables = [f"{row.language}/{row.split}" for row in rows]
            tests = dict.fromkeys([placed.row.test for placed in experiment.rows] + from_tables)
            files += [path_of(paths.BASELINES_PATH, test) for test in tests]
        return files

    def tuning_inputs(self, wildcards: Any) -> dict[str, Any]:
        """Return the files that masked-LM tuning reads."""
        name, _ = self.tuned[wildcards.tuned]
        settings = self.config["masked_lm"][name]
        return {
            "encoder": path_of(paths.ENCODER, encoder=settings["encoder"]),
            "text": [path_of(paths.SENTENCES_PATH, text) for text in settings["text"]],
        }

    def tuning_options(self, wildcards: Any) -> str:
        """Return the options of masked-LM tuning."""
        name, seed = self.tuned[wildcards.tuned]
        settings = self.config["masked_lm"][name]
        results = self.config["results"]
        text = [path_of(paths.SENTENCES_PATH, text, results=results) for text in settings["text"]]
        keys = ("epochs", "batch", "learning_rate", "length", "head_steps")
        return as_options({"text": text, "seed": seed, **{key: settings.get(key) for key in keys}})

    def tables(self, extension: str = "csv") -> list[str]:
        """Return the files of every table."""
        return [self._table(name, extension) for name in self.experiments]

    def pictures(self) -> list[str]:
        """Return the files of every picture; the CSV and Parquet lie beside each."""
        return [
            self._table(name, f"{kind}png")
            for name, experiment in self.experiments.items()
            for key, kind in _PICTURES.items()
            if experiment.settings[key] not in (None, False)
        ]

    def _table(self, name: str, extension: str) -> str:
        path = path_of(paths.EXPERIMENT, experiment=name, results=self.config["results"])
        return f"{path.removesuffix('csv')}{extension}"


_LAYOUT = (
    *("title", "axis", "metrics", "baselines", "labels", "published", "above", "sentence"),
    *("panels", "note"),
)
#: Setting of an experiment → what the picture's file name has before its extension.
_PICTURES = {"picture": "", "weights": "weights.", "sentence": "sentence."}
