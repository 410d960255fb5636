"""Which results a configuration asks for, and what the workflow's rules ask about them.

A *row* is one parser of one encoder on one split of one language; it is what ``results/parses`` and
``results/scores`` hold a file for. The rules ask this module which rows there are and hold no logic
of their own.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.files import read_json
from attree.base.registry import check_name
from attree.plan.paths import (
    BASELINES_PATH,
    FEWSHOT,
    GRAMMAR,
    HEADS_PATH,
    IMPORTED,
    LABELS_FIGURE,
    SCORES_PATH,
    SENTENCE_SCORES,
    SENTENCES_PATH,
    SPEEDS,
    path_of,
)
from attree.ready import TRAINED, folder_of_start, trained_folder
from attree.training.recipes import FILES, STARTS

#: Languages → the splits that they have, in the order in which tables show them.
Splits = Mapping[str, Collection[str]]

#: Keys of a few-shot parser of the configuration that count when it is applied, not trained.
APPLIED = ("decoder", "threshold")


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
    """Everything that a configuration asks for.

    Attributes:
        tables: table name → its rows, in table order.
        tunings: (encoder, parser) → what its heads are ranked on.
        splits: what each language has.
        averages: parsers that are averages → their members, parsers, imported systems or seeds of
            grammars.
        comparisons: comparison name → its rows, in the order of the configuration.
        grammars: parser → the grammar of the configuration that it is a seed of, and the seed.
    """

    tables: Mapping[str, tuple[TableRow, ...]]
    tunings: Mapping[tuple[str, str], Tuning]
    splits: Splits
    averages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    comparisons: Mapping[str, tuple[TableRow, ...]] = field(default_factory=dict)
    grammars: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    @functools.cached_property
    def rows(self) -> tuple[TableRow, ...]:
        """Every row of every table, once; those of comparisons are apart."""
        return tuple(dict.fromkeys(row for rows in self.tables.values() for row in rows))

    def compared(self, comparison: str | None = None) -> tuple[TableRow, ...]:
        """Return the rows of a comparison, or of all, each once."""
        names = self.comparisons if comparison is None else [comparison]
        return tuple(dict.fromkeys(row for name in names for row in self.comparisons[name]))

    @property
    def languages(self) -> tuple[str, ...]:
        """Every language that a table shows."""
        return tuple(dict.fromkeys(row.language for row in self.rows))

    @property
    def sized(self) -> tuple[tuple[str, str], ...]:
        """Every (language, split) that the dataset-size table counts."""
        return tuple((name, split) for name in self.languages for split in self.splits[name])

    def parsers(self, encoder: str, language: str, split: str) -> tuple[str, ...]:
        """Return the parsers that read this encoder's attention on this split."""
        return self._parsers.get((encoder, language, split), ())

    @functools.cached_property
    def _parsers(self) -> dict[tuple[str, str, str], tuple[str, ...]]:
        found: dict[tuple[str, str, str], dict[str, None]] = {}
        for row in (*self.rows, *self.compared()):
            for one in self.members(row) or (row,):
                if (one.encoder, one.parser) in self.tunings:
                    place = (one.encoder, one.language, one.split)
                    found.setdefault(place, {})[one.parser] = None
        return {place: tuple(parsers) for place, parsers in found.items()}

    def members(self, row: TableRow) -> tuple[TableRow, ...]:
        """Return the rows that a row averages, none where it is no average."""
        names = self.averages.get(row.parser, ())
        tuned = {parser for _, parser in self.tunings}
        other = {name: GRAMMAR if name in self.grammars else IMPORTED for name in names}
        return tuple(
            replace(row, parser=name, encoder=row.encoder if name in tuned else other[name])
            for name in names
        )

    def weights(self, parser: str) -> list[float]:
        """Return how much each row counts that an average is of: a grammar's seeds share a vote."""
        names = [self.grammars.get(each, (each, 0))[0] for each in self.averages[parser]]
        return [round(1.0 / names.count(name), 6) for name in names]

    def scores(self, table: str | None = None, language: str | None = None) -> tuple[TableRow, ...]:
        """Return the rows of one table, or of one language in whatever table."""
        rows = self.rows if table is None else self.tables[table]
        return tuple(row for row in rows if language in (None, row.language))


def split_keys(rows: Iterable[TableRow]) -> tuple[tuple[str, str], ...]:
    """Return the distinct (language, split) pairs of ``rows``, in order: one baseline file each."""
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
        splits: the languages found, and the splits that each has.
        problems: languages found that cannot be read, and why.
        recipes: the few-shot parsers that there are without being declared.

    Raises:
        AttreeError: a table or a corpus names an encoder, parser, language or split that is not
            there, or a table names a language that has a problem. One that only ``all`` would have
            meant is left out, and stops no other.
    """
    _check_names(config, (IMPORTED, GRAMMAR))
    _check_starts(config)
    found = _Found(splits, problems or {})
    trainable = (*config.get("trained", {}), *recipes, *folders_of(config))
    tables, comparisons = (
        {
            name: tuple(_table_rows(f"{section}.{name}", table, config, found, trainable))
            for name, table in config.get(section, {}).items()
            if table is not None
        }
        for section in ("tables", "comparisons")
    )
    seeds = {name: seeds_of(name, config) for name in config.get("grammars", {})}
    averages = {
        name: tuple(each for member in one["of"] for each in seeds.get(member, (member,)))
        for name, one in config.get("averages", {}).items()
    }
    rows = [row for table in (*tables.values(), *comparisons.values()) for row in table]
    pairs = [
        (row.encoder, parser)
        for row in rows
        if row.encoder not in (IMPORTED, GRAMMAR)
        for parser in averages.get(row.parser, (row.parser,))
        if parser in config["parsers"]
    ]
    for name, corpus in config.get("corpora", {}).items():
        _known(corpus["encoder"], config["encoders"], f"corpora.{name}: encoder")
        if folder_of(corpus["parser"]):  # no heads of it are tuned
            continue
        _known(corpus["parser"], config["parsers"], f"corpora.{name}: parser")
        pairs.append((corpus["encoder"], corpus["parser"]))
    tunings = {(e, p): tuning(config, e, p) for e, p in dict.fromkeys(pairs)}
    for (encoder, parser), one in tunings.items():
        where = f"tuning of parser {parser} with encoder {encoder}"
        found.check(one.language, one.split, where)
    for parser in dict.fromkeys(row.parser for row in rows if row.parser in trainable):
        _check_treebanks(parser, config, found)
    grammars = {each: (name, seed) for name in seeds for seed, each in enumerate(seeds[name])}
    return Plan(tables, tunings, splits, averages, comparisons, grammars)


def _check_starts(config: Mapping[str, Any]) -> None:
    """Raise unless the first weights of each few-shot parser are there."""
    for name, one in config.get("trained", {}).items():
        start = one.get("start", STARTS[0])
        if start not in STARTS and folder_of_start(start) is None:
            raise AttreeError(
                "no-parser",
                f"trained.{name}: start: {start}: no parser of `attree train` is there",
                fix="write encoder, random, universal, or the folder of a trained parser",
            )


def files_of_start(settings: Mapping[str, Any]) -> list[str]:
    """Return the files of the parser whose weights are the first, where settings name one."""
    folder = folder_of_start(settings.get("start"))
    return [str(folder / name) for name in FILES[:2]] if folder else []


def _check_treebanks(parser: str, config: Mapping[str, Any], found: _Found) -> None:
    """Raise unless there are the treebanks that a few-shot parser is trained on."""
    own = config.get("trained", {}).get(parser, {})
    if folder := folders_of(config).get(parser):
        if not Path(folder, "parser.json").is_file():
            problem = f"trained.{parser}: folder: no parser of `attree train` is there"
            raise AttreeError(
                "no-parser", problem, file=folder, fix="name the folder that was its --output"
            )
        return
    if "sources" not in own:
        found.check(config["training"]["language"], config["training"]["split"], "training")
    named = [treebank for group in own.get("sources", ()) for treebank in group["treebanks"]]
    for treebank in named:
        language, _, split = treebank.partition("/")
        found.check(language, split, f"trained.{parser}: sources")
    for treebank in own.get("without", ()):
        _known(treebank, named, f"trained.{parser}: without:")


def seeds_of(name: str, config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parsers that a name stands for: a grammar's seeds (c-pcfg-0, …), or itself."""
    grammar = config.get("grammars", {}).get(name)
    return tuple(f"{name}-{seed}" for seed in range(grammar["seeds"])) if grammar else (name,)


def folders_of(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the parsers that are trained already → their folders.

    They are those of the configuration, and ready ones of whose name it has no other parser.
    """
    own = {name for key in ("parsers", "averages", "trained") for name in config.get(key, {})}
    ready = {name: str(trained_folder(name)) for name in TRAINED if name not in own}
    trained = config.get("trained", {}).items()
    return ready | {name: one["folder"] for name, one in trained if "folder" in one}


def folder_of(parser: str) -> str | None:
    """Return the folder of a ready parser or of `attree train` (parsers/mine), None of a recipe."""
    if ready := trained_folder(parser):
        return str(ready)
    return parser if "/" in parser else None


@dataclass(frozen=True, slots=True)
class _Found:
    """The languages found, and why some of them cannot be read."""

    splits: Splits
    problems: Mapping[str, AttreeError]

    def check(self, language: str, split: str, where: str) -> None:
        """Raise unless there is such a language and it has the split."""
        if language in self.problems:
            raise self.problems[language]
        _known(language, self.splits, f"{where}: language")
        if split not in self.splits[language]:
            has = ", ".join(self.splits[language]) or "none"
            raise AttreeError(
                "unknown-split",
                f"{where}: language {language} has no split {split}",
                fix=f"it has {has}; add {split}.* to its folder or name another split",
            )

    def having(self, split: str, where: str) -> list[str]:
        """Return every language that has the split."""
        found = [language for language, own in self.splits.items() if split in own]
        if not found:
            raise AttreeError(
                "unknown-split",
                f"{where}: no language has a split {split}",
                fix=f"put <language>/{split}.* into a folder of treebanks.folders",
            )
        return found


def tuning(config: Mapping[str, Any], encoder: str, parser: str) -> Tuning:
    """Return what a parser's heads are ranked on.

    The parser's own ``tuning`` overrides the encoder's key by key, and that the general one.
    """
    merged = dict(config["tuning"])
    for own in (config["encoders"][encoder], config["parsers"][parser]):
        merged |= own.get("tuning") or {}
    trees = None if merged["trees"] == "all" else int(merged["trees"])
    return Tuning(merged["language"], merged["split"], trees, merged["seed"])


def as_options(settings: Mapping[str, Any], **names: str) -> str:
    """Return settings as command-line options, quoted for the shell.

    A list gives the option once for each item, and True the option alone; None and False leave it
    out. ``names`` are of options that are not called as their key.
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


def but(settings: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return settings without some of them: a further key of the schema is passed on by itself."""
    return {key: value for key, value in settings.items() if key not in keys}


def without_null(config: Mapping[str, Any], *sections: str) -> dict[str, Any]:
    """Return these sections of a configuration without the entries that an overlay set to null."""
    return {
        name: {key: value for key, value in config[name].items() if value is not None}
        for name in sections
        if isinstance(config.get(name), Mapping)
    }


def _table_rows(
    name: str,
    table: Mapping[str, Any],
    config: Mapping[str, Any],
    found: _Found,
    trainable: Collection[str],
) -> Iterable[TableRow]:
    names = [*config["parsers"], *config.get("averages", {})]
    for position, run in enumerate(table["runs"]):
        where = f"{name}.runs[{position}]"
        split = run["split"]
        if run["languages"] == "all":
            languages = found.having(split, where)
        else:
            languages = run["languages"]
            for language in languages:
                found.check(language, split, where)
        for encoder in run["encoders"]:
            _known(encoder, config["encoders"], f"{where}: encoder")
            for parser in run["parsers"]:
                _known(parser, names, f"{where}: parser")
                for language in languages:
                    _check_members(parser, language, split, config, found.check, where)
                    yield TableRow(encoder, parser, language, split)
            for parser in run.get("trained", ()):
                _known(parser, trainable, f"{where}: few-shot parser")
                _check_trained(parser, parser in names, config, where)
                yield from (TableRow(encoder, parser, language, split) for language in languages)
        for grammar in run.get("grammars", ()):
            _known(grammar, config.get("grammars", {}), f"{where}: grammar")
            _check_compared(grammar, where)
            for language in languages:
                text = config["grammars"][grammar]["text"]
                if run["languages"] != "all" or text in found.splits[language]:
                    found.check(language, text, f"grammars.{grammar}")
                    for each in seeds_of(grammar, config):
                        yield TableRow(GRAMMAR, each, language, split)
        for system in run.get("systems", ()):
            _known(system, config.get("systems", {}), f"{where}: system")
            for language in languages:
                if run["languages"] != "all" or f"{language}/{split}" in config["systems"][system]:
                    _has_trees(system, language, split, config, where)
                    yield TableRow(IMPORTED, system, language, split)


def _check_names(config: Mapping[str, Any], taken: Iterable[str]) -> None:
    """Raise where an encoder has a name that is taken, or a grammar that of another parser."""
    for name in taken:
        if name in config["encoders"]:
            problem = f"encoders: the name {name} is taken"
            raise AttreeError("name-taken", problem, fix="give the encoder another name")
    others = {name for key in ("parsers", "systems", "averages") for name in config.get(key, {})}
    for name in config.get("grammars", {}):
        if name in others:
            problem = f"grammars: another parser has the name {name}"
            raise AttreeError("name-taken", problem, fix="give one of them another name")


def _check_compared(grammar: str, where: str) -> None:
    """Raise unless a grammar is asked for where its rows are marked as undertrained if they are."""
    if not where.startswith("comparisons."):
        raise AttreeError(
            "grammar-in-table",
            f"{where}: the grammar {grammar} stands in a table",
            fix="name it in a run of `comparisons`, which `snakemake grammars` makes",
        )


def _check_members(
    parser: str,
    language: str,
    split: str,
    config: Mapping[str, Any],
    check: Callable[[str, str, str], None],
    where: str,
) -> None:
    """Raise unless an average's members are parsers, grammars, or systems with trees of a split.

    ``check`` raises unless a language has a split.
    """
    grammars = config.get("grammars", {})
    for name in config.get("averages", {}).get(parser, {}).get("of", ()):
        if name in grammars:
            check(language, grammars[name]["text"], f"grammars.{name}")
        elif name not in config["parsers"]:
            of = f"averages.{parser}: parser"
            _known(name, [*config["parsers"], *config.get("systems", {}), *grammars], of)
            _has_trees(name, language, split, config, where)


def _check_trained(parser: str, is_other: bool, config: Mapping[str, Any], where: str) -> None:
    """Raise unless a few-shot parser's name is its own and its settings are of such rows."""
    if is_other:
        problem = f"{where}: two parsers have the name {parser}"
        raise AttreeError("name-taken", problem, fix="give one of them another name")
    own = config.get("trained", {}).get(parser, {})
    for key in own.keys() - {"folder", *APPLIED} if "folder" in own else ():
        problem = f"trained.{parser}: {key} is of no effect on a parser that is trained already"
        raise AttreeError("option-without-effect", problem, fix="leave it out")
    for key in ("heads", "label_layers", "weight_decay"):
        if key in own:
            problem = f"trained.{parser}: {key} is for experiments alone"
            raise AttreeError(
                "experiments-alone", problem, fix=f"leave it out, or do not name it in {where}"
            )


def _has_trees(
    system: str, language: str, split: str, config: Mapping[str, Any], where: str
) -> None:
    """Raise unless a system has trees of a split."""
    if f"{language}/{split}" not in config["systems"][system]:
        raise AttreeError(
            "missing-trees",
            f"{where}: system {system} has no trees of {language}/{split}",
            fix=f"add `{language}/{split}: FILE` to systems.{system}",
        )


def _known(name: str, names: Iterable[str], what: str) -> None:
    check_name(name, names, f"{what} {name} does not exist", near=True)


class Comparisons:
    """All comparisons of a configuration; its methods are the input functions of the rules.

    Args:
        config: checked, with its defaults filled in.
        plan: of its rows.
        recipes: the few-shot parsers that there are without being declared.
    """

    def __init__(self, config: Mapping[str, Any], plan: Plan, recipes: Mapping[str, Any]) -> None:
        self.config, self.plan, self.recipes = config, plan, recipes
        self.folders = folders_of(config)
        self.appliable = list(dict.fromkeys([*config["trained"], *recipes, *self.folders]))
        self.trainable = [name for name in self.appliable if name not in self.folders]

    def with_grammars(self, wanted: bool) -> list[str]:
        """Return the comparisons that some grammar is to be learnt for, or the others."""
        found = []
        for name, rows in self.plan.comparisons.items():
            every = [*rows, *(member for row in rows for member in self.plan.members(row))]
            if any(row.encoder == GRAMMAR for row in every) is wanted:
                found.append(name)
        return found

    def parser_file(self, wildcards: Any) -> str:
        """Return the description of a few-shot parser, which its weights lie beside."""
        if folder := self.folders.get(wildcards.parser):
            return f"{folder}/parser.json"
        return path_of(FEWSHOT, encoder=wildcards.encoder, parser=wildcards.parser)

    def weights(self, wildcards: Any) -> list[str]:
        """Return the weights of a parser that no rule writes."""
        folder = self.folders.get(wildcards.parser)
        return [f"{folder}/weights.safetensors"] if folder else []

    def start(self, wildcards: Any) -> list[str]:
        """Return the files of the parser that a few-shot parser's training starts from."""
        return files_of_start(self.config["trained"].get(wildcards.parser, {}))

    def training_sets(self, wildcards: Any) -> list[str]:
        """Return the sentences that a few-shot parser is trained on."""
        if treebanks := self._treebanks(wildcards.parser):
            return [path_of(SENTENCES_PATH, one) for one in treebanks]
        return [path_of(SENTENCES_PATH, **but(self.config["training"], "trees", "seed"))]

    def evaluated(self, wildcards: Any) -> list[str]:
        """Return the sentences that a parser trained on treebanks of its own is scored on."""
        if not self._treebanks(wildcards.parser):
            return []
        rows = (*self.plan.rows, *self.plan.compared())
        own = [row for row in rows if row.parser == wildcards.parser]
        return [path_of(SENTENCES_PATH, "/".join(place)) for place in split_keys(own)]

    def _treebanks(self, parser: str) -> dict[str, tuple[str, str]]:
        """Return language/split → trees and share, of a parser with treebanks of its own."""
        own = self.config["trained"].get(parser, {})
        return {
            treebank: (str(group["trees"]), f"{group['share'] / len(group['treebanks']):.6g}")
            for group in own.get("sources", ())
            for treebank in group["treebanks"]
            if treebank not in own.get("without", ())
        }

    def training_options(self, wildcards: Any, input: Any) -> str:
        """Return the options of training; a parser that is declared changes another one's."""
        files = {"sentences": list(input.sentences), "evaluate_on": list(input.evaluated)}
        own = dict(self.config["trained"].get(wildcards.parser, {}))
        recipe = own.pop("recipe", wildcards.parser)
        drawn = but(self.config["training"], "language", "split")
        if treebanks := self._treebanks(wildcards.parser):
            trees, shares = (",".join(column) for column in zip(*treebanks.values(), strict=True))
            drawn |= {"trees": trees, "shares": shares}
        own = but(own, "sources", "without", *APPLIED)
        return as_options({**files, "parser": recipe, **drawn, **own})

    def applying_options(self, wildcards: Any) -> str:
        """Return the options of parsing by a few-shot parser."""
        own = self.config["trained"].get(wildcards.parser, {})
        return as_options({key: value for key, value in own.items() if key in APPLIED})

    def labelled(self, rows: Iterable[TableRow]) -> list[str]:
        """Return the pictures of labels taken for others, of rows whose trees have labels."""
        found = []
        for row in rows:
            own = self.config["trained"].get(row.parser, {})
            recipe = self.recipes.get(own.get("recipe", row.parser))
            usual = self._kept_decoder(row.parser) or getattr(recipe, "decoder", None)
            if own.get("decoder", usual) == "labelled_risk":
                found.append(path_of(LABELS_FIGURE, **asdict(row)))
        return found

    def _kept_decoder(self, parser: str) -> str | None:
        """Return the decoder of a parser that is trained already."""
        folder = self.folders.get(parser)
        file = Path(folder, "parser.json") if folder else None
        recipe = read_json(file, what="description of a trained parser")["recipe"] if file else {}
        return recipe.get("decoder")

    def grammar_text(self, wildcards: Any) -> str:
        """Return the sentences whose words a grammar is learnt from."""
        name, _ = self.plan.grammars[wildcards.parser]
        split = self.config["grammars"][name]["text"]
        return path_of(SENTENCES_PATH, language=wildcards.language, split=split)

    def grammar_options(self, wildcards: Any) -> str:
        """Return the options of learning a grammar."""
        name, seed = self.plan.grammars[wildcards.parser]
        settings = but(self.config["grammars"][name], "text", "seeds")
        return as_options({"seed": seed, **settings}, held_out="held-out-share")

    def scores(self, wildcards: Any) -> list[str]:
        """Return the summaries of every system and of the baselines."""
        rows = self.plan.compared(wildcards.comparison)
        baselines = [path_of(BASELINES_PATH, "/".join(place)) for place in split_keys(rows)]
        return [path_of(SCORES_PATH, **asdict(row)) for row in rows] + baselines

    def sentence_scores(self, wildcards: Any) -> list[str]:
        """Return the sentences' scores, which lie beside the summaries."""
        rows = self.plan.compared(wildcards.comparison)
        return [path_of(SENTENCE_SCORES, **asdict(row)) for row in rows]

    def sentences(self, wildcards: Any) -> list[str]:
        """Return the sentence table of each split."""
        places = split_keys(self.plan.compared(wildcards.comparison))
        return [path_of(SENTENCES_PATH, "/".join(place)) for place in places]

    def speeds(self, wildcards: Any) -> list[str]:
        """Return a file of speeds for each encoder and split."""
        places = {
            path_of(SPEEDS, comparison=wildcards.comparison, **but(asdict(row), "parser")): None
            for row in self.plan.compared(wildcards.comparison)
            if self._loaded_from(row)
        }
        return list(places)

    def published(self, wildcards: Any) -> list[str]:
        """Return the file of published figures, where some are named."""
        own = self.config["comparisons"][wildcards.comparison]["published"]
        return [self.config["published"]] if self.config["published"] and own else []

    def options(self, wildcards: Any, input: Any) -> str:
        """Return the options of a comparison's table."""
        one = self.config["comparisons"][wildcards.comparison]
        options = {key: list(input[key]) for key in ("sentences", "speeds")}
        options |= {key: one[key] for key in ("title", "lengths", "first")}
        options |= but(self.config["evaluation"], "labels")
        shown = dict.fromkeys(row.parser for row in self.plan.compared(wildcards.comparison))
        averages = {name: self.plan.averages[name] for name in shown if name in self.plan.averages}
        options["average"] = [f"{name}={','.join(of)}" for name, of in averages.items()]
        if input.published:
            places = one["published"].items()
            options["published"] = self.config["published"]
            options["row"] = [
                f"{each}={row}"
                for name, rows in places
                for each in self._rows_of(name, wildcards.comparison)
                for row in rows
            ]
        return as_options(options, first="timed")

    def timed(self, wildcards: Any) -> list[str]:
        """Return what the parsers of an encoder are loaded from, to time them on a split."""
        return list(self._timed(wildcards).values())

    def timing_options(self, wildcards: Any, input: Any) -> str:
        """Return the options of that; a folder of a few-shot parser is named by itself."""
        files = zip(self._timed(wildcards), input.parsers, strict=True)
        named = [f"{name}={path.removesuffix('/parser.json')}" for name, path in files]
        first = self.config["comparisons"][wildcards.comparison]["first"]
        return as_options({"parser": named, "first": first})

    def _rows_of(self, name: str, comparison: str) -> tuple[str, ...]:
        """Return the rows that a published system is set beside: a grammar's are its seeds."""
        there = {row.parser for row in self.plan.compared(comparison)}
        seeds = seeds_of(name, self.config)
        return seeds if there.issuperset(seeds) else (name,)

    def _timed(self, wildcards: Any) -> dict[str, str]:
        place = (wildcards.encoder, wildcards.language, wildcards.split)
        found = {
            row.parser: self._loaded_from(row)
            for row in self.plan.compared(wildcards.comparison)
            if (row.encoder, row.language, row.split) == place
        }
        return {name: path for name, path in found.items() if path}

    def _loaded_from(self, row: TableRow) -> str | None:
        """Return a parser's file; None for averages, imported trees and grammars."""
        if row.encoder in (IMPORTED, GRAMMAR):
            return None
        if one := self.plan.tunings.get((row.encoder, row.parser)):
            tuned = {"language": one.language, "split": one.split}
            return path_of(HEADS_PATH, encoder=row.encoder, parser=row.parser, **tuned)
        if row.parser in self.appliable:
            return self.parser_file(row)
        return None
