"""Which rows run together, and what the workflow's rules ask about them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.files import write_json
from attree.base.provenance import digest
from attree.plan.experiments.expand import experiments
from attree.plan.experiments.rows import SPARES, Experiment, ExperimentRow, Set
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
from attree.plan.plan import Plan, as_options

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
        AttreeError: see :func:`attree.plan.experiments.expand.experiments`; an unknown set.
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
        return found

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
