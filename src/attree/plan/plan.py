"""Expand a configuration into the results to make."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from attree.base.errors import AttreeError
from attree.base.registry import check_name
from attree.base.settings import EMPTY
from attree.base.tables import BASELINES
from attree.plan.configuration import Configuration, Entry, TrainedSettings
from attree.plan.paths import GRAMMAR, IMPORTED, TableRow
from attree.plan.rows import DECODING_KEYS
from attree.ready import folder_of_start, trained_folder
from attree.training.recipes import STARTS

#: Language → its splits, in the order in which tables show them.
Splits = Mapping[str, Collection[str]]


class Plan:
    """The rows of all tables and comparisons of a configuration, and what they need.

    Args:
        config: the configuration.
        splits: language → its splits.
        problems: language that cannot be read → the error.
        partly: languages whose trees are partly bracketed.

    Attributes:
        tables: table name → its rows, in table order.
        comparisons: comparison name → its rows, in the order of the configuration.
        averages: name of an average → its members: parsers, imported systems, seeds of grammars.
        grammars: parser → its grammar in the configuration, and its seed.
        tunings: (encoder, parser) → the trees that its heads are ranked on.

    Raises:
        AttreeError: a table or a corpus names an encoder, parser, language or split that does not
            exist, or a table names a language that cannot be read. Under ``languages: all`` such
            a language is left out.
    """

    def __init__(
        self,
        config: Configuration,
        splits: Splits,
        problems: Mapping[str, AttreeError] = EMPTY,
        partly: Collection[str] = (),
    ) -> None:
        self.config, self.splits, self._problems, self.partly = config, splits, problems, partly
        self._check_names()
        self.tables, self.comparisons = map(self._rows_of, ("tables", "comparisons"))
        seeds = {name: config.seeds_of(name) for name in config.grammars}
        self.grammars = {seed: (name, n) for name, of in seeds.items() for n, seed in enumerate(of)}
        self.averages = {
            name: tuple(seed for member in average.of for seed in seeds.get(member, (member,)))
            for name, average in config.averages.items()
        }
        rows = (*self.rows, *self.compared())
        pairs = [
            (row.encoder, parser)
            for row in rows
            if row.encoder not in (IMPORTED, GRAMMAR)
            for parser in self.averages.get(row.parser, (row.parser,))
            if parser in config.parsers
        ]
        pairs += self._corpus_parsers()
        self.tunings = {pair: config.tuning_of(*pair) for pair in dict.fromkeys(pairs)}
        for (encoder, parser), trees in self.tunings.items():
            where = f"tuning of parser {parser} with encoder {encoder}"
            self._check_split(trees.language, trees.split, where)
        trained = [row.parser for row in rows if row.parser in config.few_shot]
        for parser in dict.fromkeys([*trained, *config.ready]):
            self._check_treebanks(parser)

    @property
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
        rows = [row for one in (*self.rows, *self.compared()) for row in self.members(one) or [one]]
        job = (encoder, language, split)
        names = (row.parser for row in rows if (row.encoder, row.language, row.split) == job)
        return tuple(dict.fromkeys(name for name in names if (encoder, name) in self.tunings))

    def members(self, row: TableRow) -> tuple[TableRow, ...]:
        """Return the rows that a row averages; none if it is no average."""
        names = self.averages.get(row.parser, ())
        encoders = {name: GRAMMAR if name in self.grammars else IMPORTED for name in names}
        encoders |= dict.fromkeys(self.config.parsers, row.encoder)
        return tuple(row._replace(parser=name, encoder=encoders[name]) for name in names)

    def weights(self, parser: str) -> list[float]:
        """Return the weight of each member of an average: the seeds of a grammar share one vote."""
        names = [self.grammars.get(name, (name, 0))[0] for name in self.averages[parser]]
        return [round(1.0 / names.count(name), 6) for name in names]

    def _check_names(self) -> None:
        """Refuse names used twice, ready parsers and texts that do not exist, a start without."""
        config = self.config
        own = {*config.parsers, *config.averages}
        for name in (IMPORTED, GRAMMAR):
            if name in config.encoders:
                raise _name_taken(f"encoders: the name {name} is taken", "the encoder")
        for name in config.grammars:
            if name in {*own, *config.systems}:
                raise _name_taken(f"grammars: another parser has the name {name}")
        for name in sorted(own & {*config.few_shot}):
            raise _name_taken(f"parsers: another parser has the name {name}")
        named = {*own, *config.trained, *config.systems}
        for name in sorted(named & {*BASELINES, *BASELINES.values()}):
            raise _name_taken(f"parsers: a baseline has the name {name}", "the parser")
        for name, ready in config.ready.items():
            trainable = [name for name in config.few_shot if name not in config.folders]
            check_exists(name, trainable, "ready: few-shot parser")
            check_exists(ready.encoder, config.encoders, f"ready.{name}: encoder")
            for table in ready.tables:
                check_exists(table, config.tables, f"ready.{name}: table")
            refuse_keys(name, config.few_shot_settings(name), ["threshold"], "under ready")
        for name, tuning in config.masked_lm.items():
            check_exists(tuning.encoder, config.encoders, f"masked_lm.{name}: encoder")
            for text in tuning.text:
                self.check_set(text, f"masked_lm.{name}: text")
            made = {name, *(f"{name}-{seed}" for seed in range(tuning.seeds))}
            for encoder in sorted(made & {*config.encoders}):
                raise _name_taken(f"masked_lm.{name}: the name of encoder {encoder} is taken")
        for name, settings in config.trained.items():
            start = settings.start or STARTS[0]
            if start not in STARTS and folder_of_start(start) is None:
                problem = f"trained.{name}: start: {start} is no parser of `attree train`"
                fix = "write encoder, random, universal, or the folder of a trained parser"
                raise AttreeError("no-parser", problem, fix=fix)

    def _rows_of(self, section: str) -> dict[str, tuple[TableRow, ...]]:
        """Return table name → its rows, of the configuration's tables or comparisons."""
        tables = getattr(self.config, section).items()
        return {name: tuple(self._rows(f"{section}.{name}", table.runs)) for name, table in tables}

    def _rows(self, name: str, runs: Sequence[Entry]) -> Iterable[TableRow]:
        """Yield the rows of a table or comparison, in its order."""
        config = self.config
        for position, run in enumerate(runs):
            where, split = f"{name}.runs[{position}]", run.split
            every = run.languages == "all"
            languages = self._languages(run, where)
            for encoder in run.encoders:
                check_exists(encoder, config.encoders, f"{where}: encoder")
                for parser in run.parsers:
                    check_exists(parser, [*config.parsers, *config.averages], f"{where}: parser")
                    for language in languages:
                        self._check_members(parser, language, split, where)
                        yield TableRow(encoder, parser, language, split)
                for parser in run.trained:
                    check_exists(parser, config.few_shot, f"{where}: few-shot parser")
                    self._check_settings(parser, where)
                    yield from (TableRow(encoder, parser, name, split) for name in languages)
            for grammar in run.grammars:
                check_exists(grammar, config.grammars, f"{where}: grammar")
                if not name.startswith("comparisons."):  # comparisons mark undertrained grammars
                    problem = f"{where}: the grammar {grammar} cannot stand in a table"
                    fix = "name it in a run of `comparisons`, which `snakemake grammars` makes"
                    raise AttreeError("grammar-in-table", problem, fix=fix)
                text = config.grammars[grammar].text
                for language in languages:
                    if not every or text in self.splits[language]:
                        self._check_split(language, text, f"grammars.{grammar}")
                        for seed in config.seeds_of(grammar):
                            yield TableRow(GRAMMAR, seed, language, split)
            for system in run.systems:
                check_exists(system, config.systems, f"{where}: system")
                for language in languages:
                    if not every or f"{language}/{split}" in config.systems[system].files:
                        self._check_trees(system, language, split, where)
                        yield TableRow(IMPORTED, system, language, split)

    def _corpus_parsers(self) -> Iterable[tuple[str, str]]:
        """Yield the encoder and parser of each corpus whose parser averages heads."""
        for name, corpus in self.config.corpora.items():
            check_exists(corpus.encoder, self.config.encoders, f"corpora.{name}: encoder")
            if not folder_of(corpus.parser):
                check_exists(corpus.parser, self.config.parsers, f"corpora.{name}: parser")
                yield corpus.encoder, corpus.parser

    def check_set(self, name: str, where: str) -> None:
        """Refuse a set, language/split, as `_check_split` does."""
        language, _, split = name.partition("/")
        self._check_split(language, split, where)

    def _check_split(self, language: str, split: str, where: str) -> None:
        """Refuse a language that is unknown, cannot be read, or lacks the split."""
        if language in self._problems:
            raise self._problems[language]
        check_exists(language, self.splits, f"{where}: language")
        if split not in self.splits[language]:
            has = ", ".join(self.splits[language]) or "none"
            problem = f"{where}: language {language} has no split {split}"
            fix = f"it has {has}; add {split}.* to its folder or name another split"
            raise AttreeError("unknown-split", problem, fix=fix)

    def _check_treebanks(self, parser: str) -> None:
        """Refuse a few-shot parser whose training sets or folder do not exist."""
        if folder := self.config.folders.get(parser):
            if not Path(folder, "parser.json").is_file():
                problem = f"trained.{parser}: folder holds no parser of `attree train`"
                fix = "name the --output of an `attree train`"
                raise AttreeError("no-parser", problem, file=folder, fix=fix)
            return
        settings, training = self.config.few_shot_settings(parser), self.config.training
        if not settings.sources:
            self._check_split(training.language, training.split, "training")
        treebanks = [bank for group in settings.sources or () for bank in group.treebanks]
        for treebank in treebanks:
            self.check_set(treebank, f"trained.{parser}: sources")
        for treebank in settings.without or ():
            check_exists(treebank, treebanks, f"trained.{parser}: without:")

    def _languages(self, run: Entry, where: str) -> list[str]:
        """Return the languages of an entry; ``all`` means those that have its split."""
        if not isinstance(run.languages, str):
            for language in run.languages:
                self._check_split(language, run.split, where)
            return run.languages
        having = [language for language, splits in self.splits.items() if run.split in splits]
        if not having:
            problem = f"{where}: no language has a split {run.split}"
            fix = f"put <language>/{run.split}.* into a folder of treebanks.folders"
            none = AttreeError("unknown-split", problem, fix=fix)
            raise next(iter(self._problems.values()), none)  # one that cannot be read may have it
        return having

    def _check_members(self, parser: str, language: str, split: str, where: str) -> None:
        """Refuse an average of unknown members, or of members without trees of a split."""
        config = self.config
        for name in config.averages[parser].of if parser in config.averages else ():
            if name in config.grammars:
                self._check_split(language, config.grammars[name].text, f"grammars.{name}")
            elif name not in config.parsers:
                names = [*config.parsers, *config.systems, *config.grammars]
                check_exists(name, names, f"averages.{parser}: parser")
                self._check_trees(name, language, split, where)

    def _check_settings(self, parser: str, where: str) -> None:
        """Refuse settings of a few-shot parser that have no effect on such rows."""
        settings = self.config.few_shot_settings(parser)
        if settings.folder:
            others = settings.given("folder", *DECODING_KEYS)
            refuse_keys(parser, settings, others, "on a parser that is already trained")
        given = settings.given()
        if "label_layers" in given or given.get("threshold") == "chosen":
            key = "label_layers" if "label_layers" in given else "a chosen threshold"
            problem = f"trained.{parser}: only experiments take {key}"
            fix = f"leave it out, or do not name it in {where}"
            raise AttreeError("experiments-alone", problem, fix=fix)

    def _check_trees(self, system: str, language: str, split: str, where: str) -> None:
        if f"{language}/{split}" not in self.config.systems[system].files:
            problem = f"{where}: system {system} has no trees of {language}/{split}"
            fix = f"add `{language}/{split}: FILE` to systems.{system}"
            raise AttreeError("missing-trees", problem, fix=fix)


def check_exists(name: str, names: Iterable[str], what: str) -> None:
    """Refuse a name that is not one of ``names``; the error has the nearest one."""
    check_name(name, names, f"{what} {name} does not exist", near=True)


def refuse_keys(parser: str, settings: TrainedSettings, keys: Collection[str], where: str) -> None:
    """Refuse settings of a few-shot parser that are of no effect ``where`` it is named."""
    for key in settings.given():
        if key in keys:
            problem = f"trained.{parser}: {key} is of no effect {where}"
            raise AttreeError("option-without-effect", problem, fix="leave it out")


def _name_taken(problem: str, owner: str = "one of them") -> AttreeError:
    return AttreeError("name-taken", problem, fix=f"give {owner} another name")


def folder_of(parser: str) -> str | None:
    """Return the folder of a trained parser (ready, or parsers/mine), or None for a recipe."""
    if ready := trained_folder(parser):
        return str(ready)
    return parser if "/" in parser else None
