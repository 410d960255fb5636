"""Expand a configuration into the results to make; input functions of the workflow's rules.

A *row* is one parser of one encoder on one split of one language; it is what ``results/parses`` and
``results/scores`` hold a file for. The rules ask this module which rows there are and hold no logic
of their own.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.reading import read_json
from attree.base.registry import check_name
from attree.plan import paths
from attree.plan.paths import GRAMMAR, IMPORTED, path_of
from attree.ready import TRAINED, folder_of_start, trained_folder
from attree.training.recipes import FILES, STARTS

#: Language → its splits, in the order in which tables show them.
Splits = Mapping[str, Collection[str]]

#: Keys of a few-shot parser that apply when it parses, not when it is trained.
APPLIED = ("decoder", "threshold")

#: Fields that rows share whose parsers are timed side by side.
_TIMED_TOGETHER = ("encoder", "language", "split")


@dataclass(frozen=True, slots=True, order=True)
class TableRow:
    """One parser (``parser`` names a recipe of the configuration) on one split."""

    encoder: str
    parser: str
    language: str
    split: str


@dataclass(frozen=True, slots=True)
class Tuning:
    """The trees that heads are ranked on: all of a split, or ``trees`` of them by ``seed``."""

    language: str
    split: str
    trees: int | None
    seed: int


@dataclass(frozen=True)
class Plan:
    """The rows of all tables and comparisons of a configuration, and what they need.

    Attributes:
        tables: table name → its rows, in table order.
        tunings: (encoder, parser) → the trees that its heads are ranked on.
        splits: language → its splits.
        averages: name of an average → its members: parsers, imported systems, seeds of grammars.
        comparisons: comparison name → its rows, in the order of the configuration.
        grammars: parser → its grammar in the configuration, and its seed.
    """

    tables: Mapping[str, tuple[TableRow, ...]]
    tunings: Mapping[tuple[str, str], Tuning]
    splits: Splits
    averages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    comparisons: Mapping[str, tuple[TableRow, ...]] = field(default_factory=dict)
    grammars: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    @functools.cached_property
    def rows(self) -> tuple[TableRow, ...]:
        """The distinct rows of all tables, without those of comparisons."""
        return tuple(dict.fromkeys(row for rows in self.tables.values() for row in rows))

    def compared(self, comparison: str | None = None) -> tuple[TableRow, ...]:
        """Return the distinct rows of a comparison, or of all comparisons."""
        names = self.comparisons if comparison is None else [comparison]
        return tuple(dict.fromkeys(row for name in names for row in self.comparisons[name]))

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that tables show."""
        return tuple(dict.fromkeys(row.language for row in self.rows))

    @property
    def sized(self) -> tuple[tuple[str, str], ...]:
        """The (language, split) pairs of the dataset-size table."""
        return tuple((name, split) for name in self.languages for split in self.splits[name])

    def parsers(self, encoder: str, language: str, split: str) -> tuple[str, ...]:
        """Return the parsers that read this encoder's attention on this split."""
        return self._parsers.get((encoder, language, split), ())

    @functools.cached_property
    def _parsers(self) -> dict[tuple[str, str, str], tuple[str, ...]]:
        names: dict[tuple[str, str, str], dict[str, None]] = {}
        for row in (*self.rows, *self.compared()):
            for member in self.members(row) or (row,):
                if (member.encoder, member.parser) in self.tunings:
                    key = (member.encoder, member.language, member.split)
                    names.setdefault(key, {})[member.parser] = None
        return {key: tuple(parsers) for key, parsers in names.items()}

    def members(self, row: TableRow) -> tuple[TableRow, ...]:
        """Return the rows that a row averages; none if it is no average."""
        names = self.averages.get(row.parser, ())
        tuned = {parser for _, parser in self.tunings}
        other = {name: GRAMMAR if name in self.grammars else IMPORTED for name in names}
        return tuple(
            replace(row, parser=name, encoder=row.encoder if name in tuned else other[name])
            for name in names
        )

    def weights(self, parser: str) -> list[float]:
        """Return the weight of each member of an average: the seeds of a grammar share one vote."""
        names = [self.grammars.get(name, (name, 0))[0] for name in self.averages[parser]]
        return [round(1.0 / names.count(name), 6) for name in names]

    def scores(self, table: str | None = None, language: str | None = None) -> tuple[TableRow, ...]:
        """Return the rows of one table, or of one language in any table."""
        rows = self.rows if table is None else self.tables[table]
        return tuple(row for row in rows if language in (None, row.language))


def split_keys(rows: Iterable[TableRow]) -> tuple[tuple[str, str], ...]:
    """Return the distinct (language, split) pairs of ``rows``; each has one file of baselines."""
    return tuple(dict.fromkeys((row.language, row.split) for row in rows))


def make_plan(
    config: Mapping[str, Any],
    splits: Splits,
    problems: Mapping[str, AttreeError] | None = None,
    recipes: Iterable[str] = (),
) -> Plan:
    """Expand a checked configuration.

    Args:
        config: ``config.yaml`` with its defaults filled in.
        splits: language → its splits.
        problems: language that cannot be read → the error.
        recipes: names of the built-in few-shot parsers.

    Raises:
        AttreeError: a table or a corpus names an encoder, parser, language or split that does not
            exist, or a table names a language that cannot be read. Under ``languages: all`` such
            a language is left out.
    """
    trainable = (*config["trained"], *recipes, *folders_of(config))
    planner = _Planner(config, splits, problems or {}, trainable)
    planner.check_names()
    tables, comparisons = (
        {
            name: tuple(planner.rows(f"{section}.{name}", table))
            for name, table in config[section].items()
            if table is not None
        }
        for section in ("tables", "comparisons")
    )
    seeds = {name: seeds_of(name, config) for name in config["grammars"]}
    averages = {
        name: tuple(seed for member in average["of"] for seed in seeds.get(member, (member,)))
        for name, average in config["averages"].items()
    }
    rows = [row for table in (*tables.values(), *comparisons.values()) for row in table]
    pairs = [
        (row.encoder, parser)
        for row in rows
        if row.encoder not in (IMPORTED, GRAMMAR)
        for parser in averages.get(row.parser, (row.parser,))
        if parser in config["parsers"]
    ]
    tunings = {
        pair: tuning(config, *pair) for pair in dict.fromkeys([*pairs, *planner.corpus_parsers()])
    }
    for (encoder, parser), trees in tunings.items():
        where = f"tuning of parser {parser} with encoder {encoder}"
        planner.check_split(trees.language, trees.split, where)
    for parser in dict.fromkeys(row.parser for row in rows if row.parser in trainable):
        planner.check_treebanks(parser)
    grammars = {seed: (name, n) for name, names in seeds.items() for n, seed in enumerate(names)}
    return Plan(tables, tunings, splits, averages, comparisons, grammars)


@dataclass(frozen=True, slots=True)
class _Planner:
    """Makes rows of a configuration, and refuses names that do not exist.

    Attributes:
        config, splits, problems: as for :func:`make_plan`.
        trainable: names of few-shot parsers.
    """

    config: Mapping[str, Any]
    splits: Splits
    problems: Mapping[str, AttreeError]
    trainable: Collection[str]

    def check_names(self) -> None:
        """Refuse a name that is used twice, and a start that is no trained parser."""
        for name in (IMPORTED, GRAMMAR):
            if name in self.config["encoders"]:
                raise _name_taken(f"encoders: the name {name} is taken", "the encoder")
        others = {name for key in ("parsers", "systems", "averages") for name in self.config[key]}
        for name in self.config["grammars"]:
            if name in others:
                raise _name_taken(f"grammars: another parser has the name {name}")
        for name, settings in self.config["trained"].items():
            start = settings.get("start", STARTS[0])
            if start not in STARTS and folder_of_start(start) is None:
                problem = f"trained.{name}: start: {start} is no parser of `attree train`"
                fix = "write encoder, random, universal, or the folder of a trained parser"
                raise AttreeError("no-parser", problem, fix=fix)

    def rows(self, name: str, table: Mapping[str, Any]) -> Iterable[TableRow]:
        """Yield the rows of a table or comparison, in its order."""
        config = self.config
        parsers = [*config["parsers"], *config["averages"]]
        for position, run in enumerate(table["runs"]):
            where, split = f"{name}.runs[{position}]", run["split"]
            every = run["languages"] == "all"
            languages = self._languages(run, where)
            for encoder in run["encoders"]:
                _check_exists(encoder, config["encoders"], f"{where}: encoder")
                for parser in run["parsers"]:
                    _check_exists(parser, parsers, f"{where}: parser")
                    for language in languages:
                        self._check_members(parser, language, split, where)
                        yield TableRow(encoder, parser, language, split)
                for parser in run["trained"]:
                    _check_exists(parser, self.trainable, f"{where}: few-shot parser")
                    if parser in parsers:
                        raise _name_taken(f"{where}: two parsers have the name {parser}")
                    self._check_settings(parser, where)
                    yield from (
                        TableRow(encoder, parser, language, split) for language in languages
                    )
            for grammar in run["grammars"]:
                _check_exists(grammar, config["grammars"], f"{where}: grammar")
                if not name.startswith("comparisons."):  # comparisons mark undertrained grammars
                    problem = f"{where}: the grammar {grammar} cannot stand in a table"
                    fix = "name it in a run of `comparisons`, which `snakemake grammars` makes"
                    raise AttreeError("grammar-in-table", problem, fix=fix)
                for language in languages:
                    text = config["grammars"][grammar]["text"]
                    if not every or text in self.splits[language]:
                        self.check_split(language, text, f"grammars.{grammar}")
                        for seed in seeds_of(grammar, config):
                            yield TableRow(GRAMMAR, seed, language, split)
            for system in run["systems"]:
                _check_exists(system, config["systems"], f"{where}: system")
                for language in languages:
                    if not every or f"{language}/{split}" in config["systems"][system]:
                        self._check_trees(system, language, split, where)
                        yield TableRow(IMPORTED, system, language, split)

    def corpus_parsers(self) -> Iterable[tuple[str, str]]:
        """Yield the encoder and parser of each corpus whose parser averages heads."""
        for name, corpus in self.config["corpora"].items():
            _check_exists(corpus["encoder"], self.config["encoders"], f"corpora.{name}: encoder")
            if not folder_of(corpus["parser"]):
                _check_exists(corpus["parser"], self.config["parsers"], f"corpora.{name}: parser")
                yield corpus["encoder"], corpus["parser"]

    def check_split(self, language: str, split: str, where: str) -> None:
        """Refuse a language that is unknown, cannot be read, or lacks the split."""
        if language in self.problems:
            raise self.problems[language]
        _check_exists(language, self.splits, f"{where}: language")
        if split not in self.splits[language]:
            has = ", ".join(self.splits[language]) or "none"
            problem = f"{where}: language {language} has no split {split}"
            fix = f"it has {has}; add {split}.* to its folder or name another split"
            raise AttreeError("unknown-split", problem, fix=fix)

    def check_treebanks(self, parser: str) -> None:
        """Refuse a few-shot parser whose training sets or folder do not exist."""
        settings = self.config["trained"].get(parser, {})
        if folder := folders_of(self.config).get(parser):
            if not Path(folder, "parser.json").is_file():
                problem = f"trained.{parser}: folder holds no parser of `attree train`"
                raise AttreeError(
                    "no-parser", problem, file=folder, fix="name the --output of an `attree train`"
                )
            return
        if "sources" not in settings:
            training = self.config["training"]
            self.check_split(training["language"], training["split"], "training")
        treebanks = [bank for group in settings.get("sources", ()) for bank in group["treebanks"]]
        for treebank in treebanks:
            language, _, split = treebank.partition("/")
            self.check_split(language, split, f"trained.{parser}: sources")
        for treebank in settings.get("without", ()):
            _check_exists(treebank, treebanks, f"trained.{parser}: without:")

    def _languages(self, run: Mapping[str, Any], where: str) -> list[str]:
        """Return the languages of an entry; ``all`` means those that have its split."""
        split, named = run["split"], run["languages"]
        if named != "all":
            for language in named:
                self.check_split(language, split, where)
            return list(named)
        having = [language for language, splits in self.splits.items() if split in splits]
        if not having:
            problem = f"{where}: no language has a split {split}"
            fix = f"put <language>/{split}.* into a folder of treebanks.folders"
            raise AttreeError("unknown-split", problem, fix=fix)
        return having

    def _check_members(self, parser: str, language: str, split: str, where: str) -> None:
        """Refuse an average of unknown members, or of members without trees of a split."""
        grammars, systems = self.config["grammars"], self.config["systems"]
        parsers = self.config["parsers"]
        for name in self.config["averages"].get(parser, {}).get("of", ()):
            if name in grammars:
                self.check_split(language, grammars[name]["text"], f"grammars.{name}")
            elif name not in parsers:
                _check_exists(name, [*parsers, *systems, *grammars], f"averages.{parser}: parser")
                self._check_trees(name, language, split, where)

    def _check_settings(self, parser: str, where: str) -> None:
        """Refuse settings of a few-shot parser that have no effect on such rows."""
        settings = self.config["trained"].get(parser, {})
        for key in settings.keys() - {"folder", *APPLIED} if "folder" in settings else ():
            problem = f"trained.{parser}: {key} is of no effect on a parser that is already trained"
            raise AttreeError("option-without-effect", problem, fix="leave it out")
        for key in ("heads", "label_layers", "weight_decay"):
            if key in settings:
                problem = f"trained.{parser}: only experiments take {key}"
                fix = f"leave it out, or do not name it in {where}"
                raise AttreeError("experiments-alone", problem, fix=fix)

    def _check_trees(self, system: str, language: str, split: str, where: str) -> None:
        if f"{language}/{split}" not in self.config["systems"][system]:
            problem = f"{where}: system {system} has no trees of {language}/{split}"
            fix = f"add `{language}/{split}: FILE` to systems.{system}"
            raise AttreeError("missing-trees", problem, fix=fix)


def _check_exists(name: str, names: Iterable[str], what: str) -> None:
    check_name(name, names, f"{what} {name} does not exist", near=True)


def _name_taken(problem: str, owner: str = "one of them") -> AttreeError:
    return AttreeError("name-taken", problem, fix=f"give {owner} another name")


def files_of_start(settings: Mapping[str, Any]) -> list[str]:
    """Return the files of the parser that training starts from, if settings name one."""
    folder = folder_of_start(settings.get("start"))
    return [str(folder / name) for name in FILES[:2]] if folder else []


def seeds_of(name: str, config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parsers of a name: a grammar's seeds (c-pcfg-0, …), or the name itself."""
    grammar = config["grammars"].get(name)
    return tuple(f"{name}-{seed}" for seed in range(grammar["seeds"])) if grammar else (name,)


def folders_of(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the parsers that are already trained → their folders.

    These are the configuration's, and ready parsers whose name the configuration does not use.
    """
    used = {name for key in ("parsers", "averages", "trained") for name in config[key]}
    ready = {name: str(trained_folder(name)) for name in TRAINED if name not in used}
    trained = config["trained"].items()
    return ready | {name: settings["folder"] for name, settings in trained if "folder" in settings}


def folder_of(parser: str) -> str | None:
    """Return the folder of a trained parser (ready, or parsers/mine), or None for a recipe."""
    if ready := trained_folder(parser):
        return str(ready)
    return parser if "/" in parser else None


def tuning(config: Mapping[str, Any], encoder: str, parser: str) -> Tuning:
    """Return the trees that a parser's heads are ranked on.

    The parser's ``tuning`` overrides the encoder's key by key, which overrides the general one.
    """
    merged = dict(config["tuning"])
    for settings in (config["encoders"][encoder], config["parsers"][parser]):
        merged |= settings.get("tuning") or {}
    trees = None if merged["trees"] == "all" else int(merged["trees"])
    return Tuning(merged["language"], merged["split"], trees, merged["seed"])


def as_options(settings: Mapping[str, Any], **names: str) -> str:
    """Return settings as command-line options, quoted for the shell.

    A list repeats the option for each item; True gives the option without a value; None and False
    leave it out. ``names`` maps a key to its option where the two differ.
    """
    parts: list[str] = []
    for name, value in settings.items():
        option = f"--{names.get(name, name).replace('_', '-')}"
        if value is True:
            parts.append(option)
        elif value is not None and value is not False:
            for item in value if isinstance(value, list) else [value]:
                parts += [option, str(item)]
    return shlex.join(parts)


def omit(settings: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return settings without some keys, so that new keys of the schema are passed on."""
    return {key: value for key, value in settings.items() if key not in keys}


def without_null(config: Mapping[str, Any], *sections: str) -> dict[str, Any]:
    """Return sections of a configuration without the entries that an overlay set to null."""
    return {
        name: {key: value for key, value in config[name].items() if value is not None}
        for name in sections
        if isinstance(config.get(name), Mapping)
    }


def _row_paths(template: str, rows: Iterable[TableRow]) -> list[str]:
    return [path_of(template, **asdict(row)) for row in rows]


def _split_paths(template: str, rows: Iterable[TableRow]) -> list[str]:
    return [path_of(template, "/".join(pair)) for pair in split_keys(rows)]


class ParserInputs:
    """All comparisons of a configuration; its methods are the input functions of the rules.

    Args:
        config: checked, with its defaults filled in.
        plan: of its rows.
        recipes: the built-in few-shot parsers.
    """

    def __init__(self, config: Mapping[str, Any], plan: Plan, recipes: Mapping[str, Any]) -> None:
        self.config, self.plan, self.recipes = config, plan, recipes
        self.folders = folders_of(config)
        self.appliable = list(dict.fromkeys([*config["trained"], *recipes, *self.folders]))
        self.trainable = [name for name in self.appliable if name not in self.folders]

    def with_grammars(self, wanted: bool) -> list[str]:
        """Return the comparisons that need a grammar, or the others if not ``wanted``."""
        return [
            name
            for name, rows in self.plan.comparisons.items()
            if wanted
            is any(m.encoder == GRAMMAR for row in rows for m in (row, *self.plan.members(row)))
        ]

    def parser_file(self, wildcards: Any) -> str:
        """Return the file that describes a few-shot parser; its weights lie beside it."""
        if folder := self.folders.get(wildcards.parser):
            return f"{folder}/parser.json"
        return path_of(paths.FEWSHOT, encoder=wildcards.encoder, parser=wildcards.parser)

    def weights(self, wildcards: Any) -> list[str]:
        """Return the weights of a parser that was trained outside the workflow."""
        folder = self.folders.get(wildcards.parser)
        return [f"{folder}/weights.safetensors"] if folder else []

    def start(self, wildcards: Any) -> list[str]:
        """Return the files of the parser that training starts from."""
        return files_of_start(self._settings(wildcards.parser))

    def training_sets(self, wildcards: Any) -> list[str]:
        """Return the sentence tables that a few-shot parser is trained on."""
        if treebanks := self._treebanks(wildcards.parser):
            return [path_of(paths.SENTENCES_PATH, treebank) for treebank in treebanks]
        return [path_of(paths.SENTENCES_PATH, **omit(self.config["training"], "trees", "seed"))]

    def evaluated(self, wildcards: Any) -> list[str]:
        """Return the sentence tables that a parser with its own treebanks is scored on."""
        if not self._treebanks(wildcards.parser):
            return []
        rows = (*self.plan.rows, *self.plan.compared())
        return _split_paths(
            paths.SENTENCES_PATH, [row for row in rows if row.parser == wildcards.parser]
        )

    def _settings(self, parser: str) -> dict[str, Any]:
        """Return the settings of a few-shot parser in the configuration, if any."""
        return dict(self.config["trained"].get(parser, {}))

    def _treebanks(self, parser: str) -> dict[str, tuple[str, str]]:
        """Return language/split → trees and share, for a parser with its own treebanks."""
        settings = self._settings(parser)
        return {
            treebank: (str(group["trees"]), f"{group['share'] / len(group['treebanks']):.6g}")
            for group in settings.get("sources", ())
            for treebank in group["treebanks"]
            if treebank not in settings.get("without", ())
        }

    def training_options(self, wildcards: Any, input: Any) -> str:
        """Return the options of training: a recipe, and the declared changes to it."""
        files = {"sentences": list(input.sentences), "evaluate_on": list(input.evaluated)}
        settings = self._settings(wildcards.parser)
        recipe = settings.get("recipe", wildcards.parser)
        drawn = omit(self.config["training"], "language", "split")
        if treebanks := self._treebanks(wildcards.parser):
            trees, shares = (",".join(column) for column in zip(*treebanks.values(), strict=True))
            drawn |= {"trees": trees, "shares": shares}
        changes = omit(settings, "recipe", "sources", "without", *APPLIED)
        return as_options({**files, "parser": recipe, **drawn, **changes})

    def applying_options(self, wildcards: Any) -> str:
        """Return the options of parsing by a few-shot parser."""
        settings = self._settings(wildcards.parser)
        return as_options({key: value for key, value in settings.items() if key in APPLIED})

    def labelled(self, rows: Iterable[TableRow]) -> list[str]:
        """Return the pictures of confused labels, of rows whose trees have labels."""
        labelled = [row for row in rows if self._decoder(row.parser) == "labelled_risk"]
        return _row_paths(paths.LABELS_FIGURE, labelled)

    def _decoder(self, parser: str) -> str | None:
        """Return a few-shot parser's decoder: of its settings, its folder, or its recipe."""
        settings = self._settings(parser)
        trained: dict[str, Any] = {}
        if folder := self.folders.get(parser):
            file = Path(folder, "parser.json")
            trained = read_json(file, what="description of a trained parser")["recipe"]
        recipe = self.recipes.get(settings.get("recipe", parser))
        usual = trained.get("decoder") or getattr(recipe, "decoder", None)
        return settings.get("decoder", usual)

    def grammar_text(self, wildcards: Any) -> str:
        """Return the sentences whose words a grammar is learnt from."""
        name, _ = self.plan.grammars[wildcards.parser]
        split = self.config["grammars"][name]["text"]
        return path_of(paths.SENTENCES_PATH, language=wildcards.language, split=split)

    def grammar_options(self, wildcards: Any) -> str:
        """Return the options of learning a grammar."""
        name, seed = self.plan.grammars[wildcards.parser]
        settings = omit(self.config["grammars"][name], "text", "seeds")
        return as_options({"seed": seed, **settings}, held_out="held-out-share")

    def scores(self, wildcards: Any) -> list[str]:
        """Return the score summaries of all rows and of the baselines."""
        rows = self.plan.compared(wildcards.comparison)
        return _row_paths(paths.SCORES_PATH, rows) + _split_paths(paths.BASELINES_PATH, rows)

    def sentence_scores(self, wildcards: Any) -> list[str]:
        """Return the files of scores by sentence."""
        return _row_paths(paths.SENTENCE_SCORES, self.plan.compared(wildcards.comparison))

    def sentences(self, wildcards: Any) -> list[str]:
        """Return the sentence table of each split."""
        return _split_paths(paths.SENTENCES_PATH, self.plan.compared(wildcards.comparison))

    def speeds(self, wildcards: Any) -> list[str]:
        """Return a file of speeds for each encoder and split."""
        name = wildcards.comparison
        rows = (omit(asdict(row), "parser") for row in self.plan.compared(name) if self._file(row))
        return list(dict.fromkeys(path_of(paths.SPEEDS, comparison=name, **row) for row in rows))

    def published(self, wildcards: Any) -> list[str]:
        """Return the file of published figures, if the comparison names some."""
        rows = self.config["comparisons"][wildcards.comparison]["published"]
        return [self.config["published"]] if self.config["published"] and rows else []

    def options(self, wildcards: Any, input: Any) -> str:
        """Return the options of a comparison's table."""
        comparison = self.config["comparisons"][wildcards.comparison]
        options = {key: list(input[key]) for key in ("sentences", "speeds")}
        options |= {key: comparison[key] for key in ("title", "lengths", "first")}
        options |= omit(self.config["evaluation"], "labels")
        parsers = dict.fromkeys(row.parser for row in self.plan.compared(wildcards.comparison))
        averages = self.plan.averages
        options["average"] = [f"{n}={','.join(averages[n])}" for n in parsers if n in averages]
        if input.published:
            options["published"] = self.config["published"]
            options["row"] = [
                f"{parser}={row}"
                for name, rows in comparison["published"].items()
                for parser in self._rows_of(name, wildcards.comparison)
                for row in rows
            ]
        return as_options(options, first="timed")

    def timed(self, wildcards: Any) -> list[str]:
        """Return the files of the parsers that are timed with an encoder on a split."""
        return list(self._timed(wildcards).values())

    def timing_options(self, wildcards: Any, input: Any) -> str:
        """Return the options of timing; a few-shot parser is named by its folder."""
        files = zip(self._timed(wildcards), input.parsers, strict=True)
        parsers = [f"{name}={path.removesuffix('/parser.json')}" for name, path in files]
        first = self.config["comparisons"][wildcards.comparison]["first"]
        return as_options({"parser": parsers, "first": first})

    def _rows_of(self, name: str, comparison: str) -> tuple[str, ...]:
        """Return the rows that a published system stands beside; a grammar has its seeds."""
        compared = {row.parser for row in self.plan.compared(comparison)}
        seeds = seeds_of(name, self.config)
        return seeds if compared.issuperset(seeds) else (name,)

    def _timed(self, wildcards: Any) -> dict[str, str]:
        """Return parser → file, for a comparison's rows of one encoder and split."""
        return {
            row.parser: path
            for row in self.plan.compared(wildcards.comparison)
            if all(getattr(wildcards, key) == getattr(row, key) for key in _TIMED_TOGETHER)
            if (path := self._file(row))
        }

    def _file(self, row: TableRow) -> str | None:
        """Return a parser's file; None for averages, imported trees and grammars."""
        if row.encoder in (IMPORTED, GRAMMAR):
            return None
        if tuning := self.plan.tunings.get((row.encoder, row.parser)):
            tuned = {"language": tuning.language, "split": tuning.split}
            return path_of(paths.HEADS_PATH, encoder=row.encoder, parser=row.parser, **tuned)
        return self.parser_file(row) if row.parser in self.appliable else None
