"""Input functions of the workflow's rules: files that jobs read, and options of their commands.

A class has those of one section of the configuration. Snakemake calls them with a job's wildcards,
and options also with the files that the job has got.
"""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attree.association.sources import not_run_by
from attree.base.patterns import files_below
from attree.base.reading import read_json
from attree.plan import paths
from attree.plan.paths import GRAMMAR, IMPORTED, TableRow, files_of_rows, path_of
from attree.plan.plan import Plan, folder_of
from attree.plan.rows import DECODING_KEYS
from attree.ready import folder_of_start
from attree.training.recipes import FILES, RECIPES
from attree.treebank.language import Catalogue


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


def files_of_start(start: str | None) -> list[str]:
    """Return the files of the parser that training starts from, if ``start`` names one."""
    folder = folder_of_start(start)
    return [str(folder / name) for name in FILES[:2]] if folder else []


def files_of_sets(template: str, sets: Iterable[str]) -> list[str]:
    """Return the file of each set, language/split, once."""
    return [path_of(template, name) for name in dict.fromkeys(sets)]


@dataclass(frozen=True)
class Treebanks:
    """The treebanks that were found."""

    languages: Catalogue

    def files(self, wildcards: Any) -> list[str]:
        """Return the files of a split."""
        return list(map(str, self.languages[wildcards.language].files(wildcards.split)))

    def arguments(self, wildcards: Any) -> str:
        """Return the arguments of reading it, with patterns in place of thousands of names."""
        return self.languages[wildcards.language].arguments(wildcards.split)

    def threads(self, wildcards: Any) -> int:
        """Return how many workers encode it: each loads an encoder, which pays from about 2 MB."""
        files = self.languages[wildcards.language].files(wildcards.split)
        return max(1, min(8, sum(file.stat().st_size for file in files) // 2_000_000))


class Section:
    """A section of a configuration, whose rows are planned."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.config = plan, plan.config


class Encoders(Section):
    """The encoders."""

    def files(self, wildcards: Any) -> list[str]:
        """Return the files of an encoder that is a folder."""
        folder = self.config.encoders[wildcards.encoder].given().get("path")
        files = Path(folder).glob("*") if folder else ()
        return sorted(str(file) for file in files if file.is_file())

    def options(self, wildcards: Any) -> str:
        """Return the options of finding one."""
        return as_options(self.config.encoders[wildcards.encoder].given("tuning"))

    def running_options(self, wildcards: Any) -> str:
        """Return the options of running one; the command has no scheduler where it is local."""
        settings = self.config.attention
        return as_options(settings.given(*(["scheduler"] if settings.scheduler == "local" else [])))


class Heads(Section):
    """The parsers that average heads."""

    def file(self, stage: str, extension: str, encoder: str, parser: str) -> str:
        """Return a file of a stage that looks at the trees that heads are ranked on."""
        trees = self.plan.tunings[encoder, parser]
        return f"<results>/{stage}/{encoder}/{parser}/{trees.language}/{trees.split}.{extension}"

    def files(self, stage: str, extension: str) -> list[str]:
        """Return the files of a stage of all these parsers."""
        return [self.file(stage, extension, *pair) for pair in self.plan.tunings]

    def selection(self, wildcards: Any) -> str:
        """Return the file of a parser's heads."""
        return self.file("heads", "json", wildcards.encoder, wildcards.parser)

    def selections(self, wildcards: Any) -> list[str]:
        """Return the files of the heads of all parsers that read a split's attention."""
        parsers = self.plan.parsers(wildcards.encoder, wildcards.language, wildcards.split)
        return [self.file("heads", "json", wildcards.encoder, parser) for parser in parsers]

    def selections_options(self, wildcards: Any, input: Any) -> str:
        """Return these files as options."""
        return as_options({"selection": list(input.selections)})

    def recipe_options(self, wildcards: Any) -> str:
        """Return the options of parsing."""
        parser = self.config.parsers[wildcards.parser]
        return as_options(parser.given("heads", "rank_by", "source", "tuning"))

    def selection_options(self, wildcards: Any) -> str:
        """Return the options of choosing heads."""
        trees = self.plan.tunings[wildcards.encoder, wildcards.parser]
        parser = self.config.parsers[wildcards.parser]
        chosen = parser.given("association", "score", "decoder", "tuning")
        return as_options(chosen | trees.given("language", "split"))

    def not_run(self, wildcards: Any) -> tuple[str, ...]:
        """Return the modules of sources of association that no parser reads."""
        return not_run_by(parser.source for parser in self.config.parsers.values())


class Trained(Section):
    """The few-shot parsers."""

    @property
    def trainable(self) -> list[str]:
        """Those that are not trained yet."""
        return [name for name in self.config.few_shot if name not in self.config.folders]

    def file(self, wildcards: Any) -> str:
        """Return the file that describes a parser; its weights lie beside it."""
        if folder := self.config.folders.get(wildcards.parser):
            return f"{folder}/parser.json"
        return path_of(paths.FEWSHOT, encoder=wildcards.encoder, parser=wildcards.parser)

    def weights(self, wildcards: Any) -> list[str]:
        """Return the weights of a parser that was trained outside the workflow."""
        folder = self.config.folders.get(wildcards.parser)
        return [f"{folder}/weights.safetensors"] if folder else []

    def start(self, wildcards: Any) -> list[str]:
        """Return the files of the parser that training starts from."""
        return files_of_start(self.config.few_shot_settings(wildcards.parser).start)

    def sentences(self, wildcards: Any) -> list[str]:
        """Return the sentence tables that a parser is trained on."""
        training = self.config.training
        treebanks = self._treebanks(wildcards.parser) or [f"{training.language}/{training.split}"]
        return files_of_sets(paths.SENTENCES_PATH, treebanks)

    def evaluated(self, wildcards: Any) -> list[str]:
        """Return the sentence tables that a parser with its own treebanks is scored on."""
        if not self._treebanks(wildcards.parser):
            return []
        rows = (*self.plan.rows, *self.plan.compared())
        own = (row for row in rows if row.parser == wildcards.parser)
        # partly bracketed trees have no F1 and may be trained on: tables say how many were
        whole = (row for row in own if row.language not in self.plan.partly)
        return files_of_rows(paths.SENTENCES_PATH, whole)

    def _treebanks(self, parser: str) -> dict[str, tuple[str, str]]:
        """Return language/split → trees and share, for a parser with its own treebanks."""
        settings = self.config.few_shot_settings(parser)
        return {
            treebank: (str(group.trees), f"{group.share / len(group.treebanks):.6g}")
            for group in settings.sources or ()
            for treebank in group.treebanks
            if treebank not in (settings.without or ())
        }

    def options(self, wildcards: Any, input: Any) -> str:
        """Return the options of training: a recipe, and the declared changes to it."""
        files = {"sentences": list(input.sentences), "evaluate_on": list(input.evaluated)}
        settings = self.config.few_shot_settings(wildcards.parser)
        drawn = self.config.training.given("language", "split")
        if treebanks := self._treebanks(wildcards.parser):
            trees, shares = (",".join(column) for column in zip(*treebanks.values(), strict=True))
            drawn |= {"trees": trees, "shares": shares}
        changes = settings.given("recipe", "sources", "without", "threshold")
        recipe = {"parser": settings.recipe or wildcards.parser}
        return as_options({**files, **recipe, **drawn, **changes})

    def applying_options(self, wildcards: Any) -> str:
        """Return the options of parsing."""
        settings = self.config.few_shot_settings(wildcards.parser).given()
        options = {key: value for key, value in settings.items() if key in DECODING_KEYS}
        return as_options({**options, "too_long": self.config.attention.too_long})

    def labelled(self, rows: Iterable[TableRow]) -> list[str]:
        """Return the pictures of confused labels, of rows whose trees have labels."""
        labelled = [row for row in rows if self._decoder(row.parser) == "labelled_risk"]
        return files_of_rows(paths.LABELS_FIGURE, labelled)

    def _decoder(self, parser: str) -> str | None:
        """Return a few-shot parser's decoder: of its settings, its folder, or its recipe."""
        settings = self.config.few_shot_settings(parser)
        made: dict[str, str] = {}
        if folder := self.config.folders.get(parser):
            file = Path(folder, "parser.json")
            made = read_json(file, what="description of a trained parser")["recipe"]
        recipe = RECIPES.get(settings.recipe or parser)
        return settings.decoder or made.get("decoder") or (recipe.decoder if recipe else None)


class Grammars(Section):
    """The grammars, of which each seed is a parser."""

    def text(self, wildcards: Any) -> str:
        """Return the sentences whose words a grammar is learnt from."""
        name, _ = self.plan.grammars[wildcards.parser]
        split = self.config.grammars[name].text
        return path_of(paths.SENTENCES_PATH, language=wildcards.language, split=split)

    def options(self, wildcards: Any) -> str:
        """Return the options of learning a grammar."""
        name, seed = self.plan.grammars[wildcards.parser]
        settings = self.config.grammars[name].given("text", "seeds")
        return as_options({"seed": seed, **settings}, held_out="held-out-share")


class Systems(Section):
    """Other parsers' trees."""

    def trees(self, wildcards: Any) -> str:
        """Return the file of a system's trees of a split."""
        key = f"{wildcards.language}/{wildcards.split}"
        return self.config.systems[wildcards.parser].files[key]

    def options(self, wildcards: Any) -> str:
        """Return the options of importing them."""
        return as_options(self.config.systems[wildcards.parser].given("files"))


class Averages(Section):
    """Averages of parsers' trees."""

    def parses(self, wildcards: Any) -> list[str]:
        """Return the trees that a row averages."""
        return files_of_rows(paths.PARSES_PATH, self.plan.members(TableRow(**wildcards)))

    def options(self, wildcards: Any) -> str:
        """Return the options of averaging them."""
        weights = self.plan.weights(wildcards.parser)
        weighted = {"weight": weights} if min(weights) < 1 else {}
        settings = self.config.averages[wildcards.parser].given("of")
        return as_options(settings | weighted, threshold="majority")


class Tables(Section):
    """Tables over languages; those of each language, and of the treebanks' sizes."""

    def rows(self, wildcards: Any) -> tuple[TableRow, ...]:
        """Return the rows of a comparison, a table, a language or all tables."""
        if comparison := getattr(wildcards, "comparison", None):
            return self.plan.compared(comparison)
        if table := getattr(wildcards, "table", None):
            return self.plan.tables[table]
        language = getattr(wildcards, "language", None)
        return tuple(row for row in self.plan.rows if language in (None, row.language))

    def scores(self, wildcards: Any) -> list[str]:
        """Return the score summaries of all rows and of the baselines."""
        rows = self.rows(wildcards)
        return files_of_rows(paths.SCORES_PATH, rows) + files_of_rows(paths.BASELINES_PATH, rows)

    def sentence_scores(self, wildcards: Any) -> list[str]:
        """Return the files of scores by sentence."""
        return files_of_rows(paths.SENTENCE_SCORES, self.rows(wildcards))

    def sentences(self, wildcards: Any) -> list[str]:
        """Return the sentence table of each split."""
        return files_of_rows(paths.SENTENCES_PATH, self.rows(wildcards))

    def treebanks(self, wildcards: Any) -> list[str]:
        """Return the sentence table of every split of the languages that tables show."""
        return files_of_sets(paths.SENTENCES_PATH, map("/".join, self.plan.sized))

    def published(self, wildcards: Any) -> list[str]:
        """Return the file of published figures, if the table or the comparison shows some."""
        table, comparison = (getattr(wildcards, kind, "") for kind in ("table", "comparison"))
        one = self.config.tables.get(table) or self.config.comparisons.get(comparison)
        file = self.config.published
        return [file] if file and (one is None or one.published) else []

    def options(self, wildcards: Any, input: Any) -> str:
        """Return the options of a table."""
        table = self.config.tables[wildcards.table]
        options = table.given("runs", "published")
        if input.published:
            options |= {"published": list(input.published), "published-table": table.published}
        return as_options(options)


class Comparisons(Tables):
    """Every system side by side."""

    def with_grammars(self, wanted: bool) -> list[str]:
        """Return the comparisons that need a grammar, or the others if not ``wanted``."""

        def has_grammar(rows: Iterable[TableRow]) -> bool:
            return any(m.encoder == GRAMMAR for row in rows for m in (row, *self.plan.members(row)))

        return [name for name, rows in self.plan.comparisons.items() if has_grammar(rows) is wanted]

    def speeds(self, wildcards: Any) -> list[str]:
        """Return a file of speeds for each encoder and split."""
        rows = (row for row in self.rows(wildcards) if self._file(row))
        return files_of_rows(paths.SPEEDS, rows, comparison=wildcards.comparison)

    def options(self, wildcards: Any, input: Any) -> str:
        """Return the options of a comparison's table."""
        comparison = self.config.comparisons[wildcards.comparison]
        options = {key: list(input[key]) for key in ("sentences", "speeds")}
        options |= comparison.given("runs", "published") | self.config.evaluation.given("labels")
        parsers = dict.fromkeys(row.parser for row in self.rows(wildcards))
        averages = self.plan.averages
        options["average"] = [f"{n}={','.join(averages[n])}" for n in parsers if n in averages]
        if input.published:
            options["published"] = list(input.published)
            given = comparison.published.items()
            own = [(self._rows_of(name, wildcards), rows) for name, rows in given]
            options["row"] = [f"{x}={row}" for seeds, rows in own for x in seeds for row in rows]
        return as_options(options, first="timed")

    def timed(self, wildcards: Any) -> list[str]:
        """Return the files of the parsers that are timed with an encoder on a split."""
        return list(self._timed(wildcards).values())

    def timing_options(self, wildcards: Any, input: Any) -> str:
        """Return the options of timing; a few-shot parser is named by its folder."""
        files = zip(self._timed(wildcards), input.parsers, strict=True)
        parsers = [f"{name}={path.removesuffix('/parser.json')}" for name, path in files]
        first = self.config.comparisons[wildcards.comparison].first
        return as_options({"parser": parsers, "first": first})

    def _rows_of(self, name: str, wildcards: Any) -> tuple[str, ...]:
        """Return the rows that a published system stands beside; a grammar has its seeds."""
        seeds = self.config.seeds_of(name)
        return seeds if {row.parser for row in self.rows(wildcards)}.issuperset(seeds) else (name,)

    def _timed(self, wildcards: Any) -> dict[str, str]:
        """Return parser → file, for a comparison's rows of one encoder and split."""
        job = (wildcards.encoder, wildcards.language, wildcards.split)
        rows = [x for x in self.rows(wildcards) if (x.encoder, x.language, x.split) == job]
        return {row.parser: path for row in rows if (path := self._file(row))}

    def _file(self, row: TableRow) -> str | None:
        """Return the file of a parser that is timed: no average, imported trees or grammar.

        Nor is a few-shot parser by another decoder than that of its folder.
        """
        if (row.encoder, row.parser) in self.plan.tunings:
            return Heads(self.plan).selection(row)
        own = row.encoder not in (IMPORTED, GRAMMAR) and row.parser in self.config.few_shot
        settings = self.config.few_shot_settings(row.parser)
        other = settings.folder and settings.decoder
        return Trained(self.plan).file(row) if own and not other else None


class Corpora(Section):
    """Raw text that is parsed."""

    def text(self, wildcards: Any) -> list[str]:
        """Return the files of a corpus."""
        texts = map(Path, self.config.corpora[wildcards.corpus].inputs)
        files = (files_below(text) if text.is_dir() else [text] for text in texts)
        return [str(file) for some in files for file in some]

    def inputs(self, wildcards: Any) -> list[str]:
        """Return the files and folders of a corpus as they are named."""
        return self.config.corpora[wildcards.corpus].inputs

    def encoder(self, wildcards: Any) -> str:
        """Return the file that describes its encoder."""
        return path_of(paths.ENCODER, encoder=self.config.corpora[wildcards.corpus].encoder)

    def parser(self, wildcards: Any) -> list[str]:
        """Return the files of its parser: those of a folder, or of its heads."""
        corpus = self.config.corpora[wildcards.corpus]
        if folder := folder_of(corpus.parser):
            return [f"{folder}/{name}" for name in ("parser.json", "weights.safetensors")]
        return [Heads(self.plan).selection(corpus)]

    def parser_option(self, wildcards: Any, input: Any) -> str:
        """Return its parser: a folder, or the file of its heads."""
        return folder_of(self.config.corpora[wildcards.corpus].parser) or input.parser

    def options(self, wildcards: Any) -> str:
        """Return the options of parsing it."""
        corpus = self.config.corpora[wildcards.corpus]
        settings = corpus.given("inputs", "encoder", "parser")
        unsplit = {"no-split-lines": corpus.sentences is False}
        return as_options(settings | unsplit, format="to", sentences="split-lines")


class Ready(Section):
    """Few-shot parsers that are published."""

    def parser(self, wildcards: Any) -> str:
        """Return the file that describes a parser."""
        encoder = self.config.ready[wildcards.ready].encoder
        return path_of(paths.FEWSHOT, encoder=encoder, parser=wildcards.ready)

    def tables(self, wildcards: Any) -> list[str]:
        """Return the tables of its model card."""
        return [f"<results>/tables/{name}.md" for name in self.config.ready[wildcards.ready].tables]

    def options(self, wildcards: Any, input: Any) -> str:
        """Return the options of publishing it."""
        settings = self.config.ready[wildcards.ready].given("encoder", "tables")
        return as_options({**settings, "table": list(input.tables)})
