"""Rows and jobs of the ``experiments`` of a configuration; input functions of the rules."""

import functools
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from msgspec.structs import replace as with_keys

from attree.base.errors import AttreeError
from attree.base.files import write_json
from attree.base.provenance import digest
from attree.base.registry import check_name
from attree.plan import paths
from attree.plan.configuration import Run
from attree.plan.inputs import Section, as_options, files_of_sets, files_of_start
from attree.plan.paths import files_of_rows, path_of
from attree.plan.plan import Plan, check_exists, refuse_keys
from attree.plan.rows import APART, NOT_RUN, TUNED, ExperimentRow, PlacedRow
from attree.training import STEPS
from attree.training.recipes import RECIPES

#: Stands for each of the languages of an entry, in the names of its sets.
_LANGUAGE = "{language}"


def column_of(row: ExperimentRow, axis: str) -> str:
    """Return the heading of a row's column."""
    value = row.settings.get("steps", STEPS) if axis == "step" else getattr(row, axis)
    if axis == "max_words":
        return "all" if value is None else f"≤{value}"
    return "middle" if axis == "layer" and value is None else str(value)


def _check_cells(rows: list[PlacedRow], tuned: Mapping[str, tuple[str, int]], where: str) -> None:
    """Refuse two rows of a cell that are not draws of one parser with one encoder.

    Seeds of an encoder's masked-LM tuning, see ``tuned``, count as draws.
    """
    cells: dict[tuple[str, str, str], dict[tuple[str, int], str]] = {}
    for placed in rows:
        draws = cells.setdefault((placed.panel, placed.label, placed.column), {})
        draw = (placed.row.encoder, placed.row.seed)
        encoder, _ = tuned.get(placed.row.encoder, (placed.row.encoder, 0))
        if draw in draws or {encoder, *draws.values()} != {encoder}:
            problem = f"{where}: two rows fall into line {placed.label!r}, column {placed.column}"
            fix = "give one of the runs another label, such as '{parser}, {encoder}, layer {layer}'"
            raise AttreeError("cell-twice", problem, fix=fix)
        draws[draw] = encoder


#: The most trainings, or rankings of heads, of one job: few jobs, yet enough to run in parallel.
AT_MOST = {"trained": 10, "heads": 60}


def jobs(experiment: str, placed: Iterable[PlacedRow]) -> dict[str, tuple[ExperimentRow, ...]]:
    """Group an experiment's rows into jobs, each of one kind and encoder: name → rows.

    Rows of one training stay together.
    """
    made = {}
    # draws of one number of trees stay side by side, since they share a choice of settings
    together: dict[tuple[str, str], dict[str, list[ExperimentRow]]] = {}
    for row in {digest(asdict(one.row)): one.row for one in placed}.values():
        trainings = together.setdefault((row.kind, row.encoder), {})
        trainings.setdefault(digest(row.training()), []).append(row)
    for (kind, encoder), trainings in together.items():
        groups, most = list(trainings.values()), AT_MOST[kind]
        for number, first in enumerate(range(0, len(groups), most)):
            part = itertools.chain.from_iterable(groups[first : first + most])
            made[f"{experiment}.{kind}.{encoder}.{number}"] = tuple(part)
    return made


class Experiments(Section):
    """The experiments, whose rows are run in jobs.

    Raises:
        AttreeError: an unknown parser, encoder, table or set, or two rows of one draw in one cell.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.rows = {name: self._placed(name) for name in self.config.experiments}
        self._of = {name: jobs(name, rows) for name, rows in self.rows.items()}
        self.jobs = {job: rows for group in self._of.values() for job, rows in group.items()}
        for name, placed in self.rows.items():
            for key in dict.fromkeys(key for one in placed for key in one.row.sets):
                plan.check_set(key, f"experiments.{name}")

    def _placed(self, name: str) -> tuple[PlacedRow, ...]:
        """Return the rows of an experiment, in table order."""
        spec, where = self.config.experiments[name], f"experiments.{name}"
        rows: list[PlacedRow] = []
        for position, run in enumerate(spec.runs):
            for language in run.languages or [_LANGUAGE]:
                train, *test = (x.replace(_LANGUAGE, language) for x in (run.train, *run.test))
                entry = with_keys(run, train=train, test=test)
                rows += self._rows_of(entry, spec.columns, f"{where}.runs[{position}]")
        if spec.panels:
            rows = [replace(placed, panel=placed.row.test.partition("/")[0]) for placed in rows]
        _check_cells(rows, self.tuned, where)
        if spec.sentence and len({placed.row.encoder for placed in rows}) > 1:
            problem = f"{where}: sentence draws heads of one encoder, and the rows have several"
            raise AttreeError("several-encoders", problem, fix="make an experiment of each")
        for table in spec.tables:
            check_exists(table, self.config.tables, f"{where}: table")
        return tuple(rows)

    def _rows_of(self, run: Run, axis: str, where: str) -> Iterable[PlacedRow]:
        """Yield a row for each combination of the run's parsers, encoders, trees and so on."""
        sources = {slug: self._encoders(slug, where) for slug in run.encoders}
        if not run.apart and (TUNED in run.layers or APART in run.trees):
            problem = f"{where}: no trees are set apart to choose on"
            raise AttreeError("none-apart", problem, fix="add `apart:` and their number")
        if TUNED not in run.layers and (run.candidates or run.dropouts):
            problem = f"{where}: candidates and dropouts are of no effect without a tuned layer"
            raise AttreeError("option-without-effect", problem, fix="add `layers: [tuned]`")
        lists = (run.parsers, run.encoders, run.layers, run.sizes, run.trees, run.max_words)
        for parser, slug, layer, size, trees, longest, test in itertools.product(*lists, run.test):
            kind, settings = self._parser(parser, run, where)
            is_trained = kind == "trained"
            # one draw of all trees, or of those set apart
            draws = range(1 if trees in (APART, "all") else run.draws)
            for encoder, seed in itertools.product(sources[slug], draws):
                row = ExperimentRow(
                    kind,
                    encoder,
                    parser,
                    settings,
                    train=run.train,
                    trees=trees,
                    seed=seed,
                    test=test,
                    apart=run.apart,
                    max_words=longest,
                    layer=str(layer) if is_trained and layer is not None else None,
                    candidates=tuple(map(str, run.candidates)) if layer == TUNED else (),
                    dropouts=tuple(run.dropouts) if layer == TUNED else (),
                    size=size if is_trained else 0,
                    timed=run.timed,
                )
                names = {"parser": parser, "encoder": slug, "layer": layer, "size": size}
                label = run.label.format(**names, trees=trees, test=test)
                columns = map(str, run.across) if run.across else [column_of(row, axis)]
                yield from (PlacedRow(row, label, column) for column in columns)

    def _encoders(self, slug: str, where: str) -> tuple[str, ...]:
        """Return the encoders of a slug: itself, or one for each seed of its tuning."""
        check_exists(slug, {**self.config.encoders, **self.config.masked_lm}, f"{where}: encoder")
        return tuple(name for name, (entry, _) in self.tuned.items() if entry == slug) or (slug,)

    def _parser(self, name: str, run: Run, where: str) -> tuple[str, dict[str, Any]]:
        """Return a parser's kind and settings; the run's settings override the parser's."""
        config = self.config
        if name in config.parsers:
            settings = config.parsers[name].given("tuning")
            return "heads", settings | ({"heads": run.heads} if run.heads else {})
        if name in config.folders:
            problem = f"{where}: {name} is already trained, and an experiment trains its parsers"
            fix = "name it under `trained` of a table's or comparison's run"
            raise AttreeError("trained-already", problem, fix=fix)
        names = [*config.parsers, *config.trained, *RECIPES]
        check_name(name, names, f"{where}: unknown parser {name}", near=True)
        asked = config.few_shot_settings(name)
        settings = {"recipe": name, **asked.given()}
        check_exists(settings["recipe"], RECIPES, f"trained.{name}: recipe")
        refuse_keys(name, asked, ("sources", "without", "half_precision"), "in experiments")
        return "trained", settings | ({"steps": run.steps} if run.steps else {})

    @functools.cached_property
    def tuned(self) -> dict[str, tuple[str, int]]:
        """Encoders made by masked-LM tuning: slug → name of the entry, and seed."""
        entries = self.config.masked_lm.items()
        seeds = [(name, seed) for name, entry in entries for seed in range(entry.seeds)]
        return {f"{name}-{seed}": (name, seed) for name, seed in seeds}

    def write(self, path: str | Path) -> None:
        """Write the rows of each job and the layout of each table, for the commands of the rules.

        A command line then names only the job and this file, however many rows the job has.
        """
        drawn = [name for name, one in self.config.experiments.items() if one.sentence]
        plan = {
            "results": self.config.results,
            "jobs": {name: list(map(asdict, rows)) for name, rows in self.jobs.items()},
            "tables": {name: self._layout(name) for name in self.rows},
            "rows": {name: list(map(asdict, self._sentence_rows(name))) for name in drawn},
        }
        write_json(path, plan)

    def _layout(self, name: str) -> dict[str, Any]:
        """Return what a table shows; ``published`` maps a test set, or ``*``, to a table."""
        spec = self.config.experiments[name]
        figures = {"*": spec.published} if isinstance(spec.published, str) else spec.published
        rows = [[digest(asdict(p.row)), p.label, p.column, p.panel] for p in self.rows[name]]
        shown = spec.given("columns", "picture", "weights", "tables", "runs")
        return {**shown, "axis": spec.columns, "published": figures or {}, "places": rows}

    def job_rows(self, wildcards: Any) -> str:
        """Return a hash of a job's rows: when it changes, the job runs again."""
        return digest(list(map(asdict, self.jobs[wildcards.job])))

    def not_run(self, wildcards: Any) -> tuple[str, ...]:
        """Return the modules that a job imports but does not run."""
        return NOT_RUN[self.jobs[wildcards.job][0].kind]

    def layout(self, wildcards: Any) -> str:
        """Return a hash of the layout of an experiment's table."""
        return digest(self._layout(wildcards.experiment))

    def encoder(self, wildcards: Any) -> str:
        """Return the file that describes a job's encoder."""
        return path_of(paths.ENCODER, encoder=self.jobs[wildcards.job][0].encoder)

    def inputs(self, wildcards: Any) -> list[str]:
        """Return the other files that a job reads."""
        rows = self.jobs[wildcards.job]
        sets = dict.fromkeys(name for row in rows for name in row.sets)
        files = files_of_sets(paths.SENTENCES_PATH, sets)
        if rows[0].kind == "heads":
            files += [path_of(paths.ALL_HEADS, name, encoder=rows[0].encoder) for name in sets]
        starts = (file for row in rows for file in files_of_start(row.settings.get("start")))
        return [*files, *dict.fromkeys(starts)]

    def all_options(self, wildcards: Any) -> str:
        """Return the options of attention of every unit of each source that is ranked on a set."""
        key, name = (wildcards.language, wildcards.split), f"{wildcards.language}/{wildcards.split}"
        rows = [row for rows in self.jobs.values() for row in rows if name in row.sets]
        ranked = [row for row in rows if (row.kind, row.encoder) == ("heads", wildcards.encoder)]
        sources = [row.settings["source"] for row in ranked]
        for (encoder, parser), trees in self.plan.tunings.items():
            if (encoder, trees.language, trees.split) == (wildcards.encoder, *key):
                sources.append(self.config.parsers[parser].source)
        return as_options({"heads": "all", "source": list(dict.fromkeys(sources))})

    def map_encoder(self, wildcards: Any) -> str:
        """Return the file that describes the encoder of a sentence's maps."""
        return path_of(paths.ENCODER, encoder=self._sentence_rows(wildcards.experiment)[0].encoder)

    def map_inputs(self, wildcards: Any) -> list[str]:
        """Return the other files that a sentence's maps read."""
        rows = self._sentence_rows(wildcards.experiment)
        files = files_of_sets(paths.SENTENCES_PATH, (name for row in rows for name in row.sets))
        ranked = dict.fromkeys(row.train for row in rows if row.kind == "heads")
        return files + [path_of(paths.ALL_HEADS, name, encoder=rows[0].encoder) for name in ranked]

    def _sentence_rows(self, experiment: str) -> list[ExperimentRow]:
        return [placed.row for placed in self.rows[experiment]]

    def results(self, wildcards: Any) -> list[str]:
        """Return the files that an experiment's table is gathered from."""
        name = wildcards.experiment
        spec = self.config.experiments[name]
        rows = [row for table in spec.tables for row in self.plan.tables[table]]
        files = [path_of(paths.JOB, job=job) for job in self._of[name]]
        files += files_of_rows(paths.SCORES_PATH, rows)
        files += [self.config.published] if spec.published and self.config.published else []
        if spec.baselines:
            tests = (placed.row.test for placed in self.rows[name])
            files += files_of_sets(paths.BASELINES_PATH, tests)
            files += files_of_rows(paths.BASELINES_PATH, rows)
        return list(dict.fromkeys(files))

    def tuning_inputs(self, wildcards: Any) -> dict[str, Any]:
        """Return the files that masked-LM tuning reads."""
        settings = self.config.masked_lm[self.tuned[wildcards.tuned][0]]
        return {
            "encoder": path_of(paths.ENCODER, encoder=settings.encoder),
            "text": files_of_sets(paths.SENTENCES_PATH, settings.text),
        }

    def tuning_options(self, wildcards: Any, input: Any) -> str:
        """Return the options of masked-LM tuning."""
        name, seed = self.tuned[wildcards.tuned]
        settings = self.config.masked_lm[name].given("encoder", "text", "seeds")
        return as_options({"text": list(input.text), "seed": seed, **settings})

    def tables(self, extension: str = "csv") -> list[str]:
        """Return the files of every table."""
        return [self._table(name, extension) for name in self.rows]

    def pictures(self) -> list[str]:
        """Return the files of every picture; the CSV and Parquet lie beside each."""
        kinds = {"picture": "png", "weights": "weights.png", "sentence": "sentence.png"}
        pairs = itertools.product(self.config.experiments.items(), kinds.items())
        return [self._table(name, end) for (name, spec), (key, end) in pairs if getattr(spec, key)]

    def _table(self, name: str, extension: str) -> str:
        path = path_of(paths.EXPERIMENT, experiment=name, results=self.config.results)
        return f"{path.removesuffix('csv')}{extension}"
