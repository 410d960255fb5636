"""The keys of ``config.yaml`` and the values that they take.

A key that takes a name from a registry names the registry, such as ``attree.decoding:DECODERS``, so
that a new decoder needs no line here. An error quotes a key's description.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Meta, field

from attree.base.errors import AttreeError
from attree.base.settings import EMPTY, OPTIONAL, Keys, convert, expand_variables, one_of, unique
from attree.ready import TRAINED, trained_folder
from attree.training.recipes import RECIPES
from attree.treebank.language import NAME
from attree.treebank.language_file import LanguageKeys, read_yaml

_NO_PATH = r"""\A(?!-)[^\s"'$`\\<>{};&|()*?\[\]!#\x00-\x1f]+\Z"""
_HEADS = (
    r"\A(all|best(:[1-9][0-9]{0,8})?|above:[0-9]{1,9}(\.[0-9]+)?"
    r"|list:[0-9]{1,9}\.[0-9]{1,9}(,[0-9]{1,9}\.[0-9]{1,9})*)\Z"
)
_LABEL = r"\A([^{}]|\{(parser|encoder|layer|size|trees|test)\})*\Z"
_SET = r"\A[^/]+/[^/]+\Z"

Above0 = Annotated[int, Meta(ge=1)]
From0 = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Rate = Annotated[float, Meta(gt=0, le=1)]
Size = Annotated[int, Meta(ge=1, le=10_000)]
Symbols = Annotated[int, Meta(ge=1, le=1000)]
Share = Annotated[float, Meta(ge=0, le=1)]
Given = Annotated[str, Meta(min_length=1)]
#: ``--config`` on the command line gives strings.
Number = Above0 | Annotated[str, Meta(pattern=r"\A[1-9][0-9]*\Z")]
_FOLDER = 'a name of letters, digits, "_", "-" and ".", since it becomes a folder'
_TABLE = 'a name of letters, digits, "_", "-" and "." other than sizes, which is taken'
Slug = Annotated[str, Meta(description=_FOLDER, pattern=rf"\A{NAME.pattern}\Z")]
TableName = Annotated[str, Meta(description=_TABLE, pattern=rf"\A(?!sizes\Z){NAME.pattern}\Z")]
_T = TypeVar("_T")
Some = Annotated[list[_T], Meta(min_length=1)]
Different = Annotated[list[_T], Meta(min_length=1), unique]
Names = Different[str]
AnyNames = Annotated[list[str], unique]
Set = Annotated[str, Meta(description="language/split", pattern=_SET)]
Sets = Some[Set]
Dropout = Annotated[int, Meta(ge=0, le=0)] | Annotated[float, Meta(ge=0, le=0.9)]
Metric = Annotated[str, one_of("attree.plan.rows:SHOWN")]
Trees = Annotated[Literal["all"] | Above0, Meta(description="all, or how many trees are drawn")]
Seed = Annotated[int, Meta(ge=0, le=2**32 - 1, description="a whole number, the seed of the draw")]


#: What null leaves out, in an overlay; no value is None.
if TYPE_CHECKING:
    OrNull = Annotated[_T, ""]
else:
    OrNull = _T | None


def several(*items: Any) -> Any:
    """Return a default that is a new list of these items."""
    return field(default_factory=lambda: list(items))


class Treebanks(Keys):
    """Where treebanks are found.

    Attributes:
        folders: a list of folders; each of their sub-folders is a language
        languages: language → the settings that a language.yaml can hold
    """

    folders: list[Given] = several()
    languages: dict[Slug, LanguageKeys] = EMPTY


class OwnTuning(Keys):
    """What overrides keys of the general tuning.

    Attributes:
        language: the language whose trees heads are ranked on
        split: the split whose trees heads are ranked on
    """

    language: str = OPTIONAL
    split: str = OPTIONAL
    trees: Trees = OPTIONAL
    seed: Seed = OPTIONAL


class TuningSettings(Keys):
    """The trees that heads are ranked on.

    Attributes:
        language: the language whose trees heads are ranked on
        split: the split whose trees heads are ranked on, such as dev
    """

    language: str
    split: str
    trees: Trees = "all"
    seed: Seed = 0


class EncoderSettings(Keys):
    """The source of an encoder.

    Attributes:
        hub: a model's id on the hub, such as bert-base-uncased
        revision: the 40 hex digits of a commit on the hub, or null
        path: a folder with config.json, the tokeniser and model.safetensors
        package: an installed Python package that carries an encoder
        dtype: the type of its weights; auto is bfloat16 where the device has it
        tuning: overrides keys of the general tuning
    """

    EXACTLY_ONE: ClassVar[tuple[str, ...]] = ("hub", "path", "package")
    NEEDS: ClassVar[Mapping[str, str]] = {"revision": "hub"}

    hub: Given = OPTIONAL
    revision: Annotated[str, Meta(pattern=r"\A[0-9a-f]{40}\Z")] | None = OPTIONAL
    path: Given = OPTIONAL
    package: Given = OPTIONAL
    dtype: Annotated[str, one_of("attree.encoder.source:DTYPES")] = "float32"
    tuning: OwnTuning = OPTIONAL


class ParserSettings(Keys):
    """The recipe of a parser.

    Attributes:
        source: what is ranked and averaged: attention heads, layers of hidden states (written 4.0),
            or distances of neighbouring words
        association: the mean of the heads as it is, or its logarithm
        score: a split score
        decoder: a decoder
        heads: all, best, best:K (the K best), above:F (those with more than F percent) or
            list:LAYER.HEAD,… (0-based)
        rank_by: the F1 that heads are chosen by, or their agreement, which no gold tree is needed
            for
        tuning: overrides keys of the general tuning
    """

    score: Annotated[str, one_of("attree.scoring:SCORES")]
    decoder: Annotated[str, one_of("attree.decoding:DECODERS")]
    source: Annotated[str, one_of("attree.association.sources:SOURCES")] = "heads"
    association: Annotated[str, one_of("attree.scoring:ASSOCIATIONS")] = "raw"
    heads: Annotated[str, Meta(pattern=_HEADS)] = "above:30"
    rank_by: Annotated[str, one_of("attree.association.selection:RANKED_BY")] = "corpus_f1"
    tuning: OwnTuning = OPTIONAL


class Entry(Keys):
    """Rows of a table: encoders, parsers, languages and split.

    Attributes:
        encoders: a list of slugs of encoders
        parsers: a list of names of parsers and averages
        trained: a list of names of `trained` and of parsers of `attree train`, and universal
        grammars: a list of names of grammars, each with a row for every seed
        systems: a list of names of systems, whose trees are imported
        languages: all, or a list of languages
        split: the split that is parsed and scored, such as test
    """

    encoders: Names
    parsers: AnyNames = several()
    trained: AnyNames = several()
    grammars: AnyNames = several()
    systems: AnyNames = several()
    languages: Literal["all"] | Names = "all"
    split: str = "test"


class TableSettings(Keys):
    """A table over languages.

    Attributes:
        title: the table's heading
        published: the name, in the file that published names, of the table to set beside this one
        runs: a list; every encoder × parser × language of an entry is a row
    """

    runs: Some[Entry]
    title: str = "Across languages"
    published: str | None = None


class Comparison(Keys):
    """Every system side by side.

    Attributes:
        title: the heading
        lengths: a list of longest sentences, in words; all sentences stand beside them
        first: how many sentences of a set speed is measured on
        published: system → a list of rows of the file that `published` names, table/row
        runs: a list, as a table has
    """

    runs: Some[Entry]
    title: str = "Comparison"
    lengths: list[Annotated[int, Meta(ge=2)]] = several(10, 20, 30, 40)
    first: Above0 = 100
    published: dict[str, list[Annotated[str, Meta(pattern=_SET)]]] = EMPTY


class Training(Keys):
    """The trees that few-shot parsers of tables and comparisons are trained on.

    Attributes:
        language: the language of the trees
        split: the split of the trees, such as dev
    """

    language: str = "english"
    split: str = "dev"
    trees: Trees = 80
    seed: Seed = 0


class SystemSettings(Keys, forbid_unknown_fields=False):
    """Another parser's trees: language/split → a file in a treebank format.

    Attributes:
        accept_loss: the share of a set's sentences that may be without a tree
        files: every other key, language/split → file
    """

    OTHERS: ClassVar[str] = "files"

    accept_loss: Share = OPTIONAL
    files: dict[Set, Given] = EMPTY


class Grammar(Keys):
    """A grammar that is learnt from words; keys are options of `attree grammar train`.

    Attributes:
        text: split of each language that the grammar is learnt from
        seeds: how many are learnt
        epochs: passes over the sentences
        batch: sentences in a step
        learning_rate: a number above 0, at most 1
        longest: the longest sentence that is trained on, in words
        least: how often a word occurs that is known
        held_out: the share of sentences to measure on
        nonterminals: kinds of phrases
        preterminals: kinds of words
        symbol: size of a symbol's embedding
        latent: size of the vector of a sentence
        hidden: size of the LSTM
    """

    text: str = "train"
    seeds: Above0 = 3
    epochs: Above0 = OPTIONAL
    batch: Above0 = OPTIONAL
    learning_rate: Rate = OPTIONAL
    longest: Annotated[int, Meta(ge=2, le=250)] = OPTIONAL
    least: Above0 = OPTIONAL
    held_out: Annotated[float, Meta(gt=0, lt=0.5)] = OPTIONAL
    nonterminals: Symbols = OPTIONAL
    preterminals: Symbols = OPTIONAL
    symbol: Size = OPTIONAL
    latent: Size = OPTIONAL
    hidden: Size = OPTIONAL


class Average(Keys):
    """Parsers whose trees are averaged.

    Attributes:
        of: a list of names of parsers, systems and grammars
        threshold: null for binary trees, or the share of members from which on a span is kept
    """

    of: Names
    threshold: Share | None = None


class EvaluationSettings(Keys):
    """How trees are scored.

    Attributes:
        labels: a list of the labels whose recall is shown
        max_words: the longest sentence that is scored, in words, or null for all
    """

    labels: Some[Given] = several("NP", "VP", "PP", "ADJP", "SBAR", "ADVP")
    max_words: Above0 | None = None


class Attention(Keys):
    """How the encoder is run.

    Attributes:
        too_long: what becomes of sentences past the encoder's limit
        tokens_per_batch: how many word pieces go through the encoder at once, or null
        partition_size: how many sentences make a shard
        scheduler: local, or the address of a running Dask scheduler such as tcp://host:8786
    """

    too_long: Annotated[str, one_of("attree.trees.parses:POLICIES")] = "right_branching"
    tokens_per_batch: Above0 | None = None
    partition_size: Above0 = 500
    scheduler: Annotated[str, Meta(pattern=r"\A(local|[a-z]+://\S+)\Z")] = "local"


class Corpus(Keys):
    """Raw text, and by which parser it is parsed.

    Attributes:
        inputs: a list of files or folders of plain text, JSON Lines or Parquet
        encoder: a slug of `encoders`
        parser: a name of `parsers`, universal, or the path of a folder of `attree train`
        language: whose rules split text, a name or a code such as german or de, or null for the
            language of the parser's trees, or else the one that the text tells
        tokenizer: rules (the default), or whitespace for lines of words
        sentences: whether lines are split into sentences, or null; with a language they are
        column: the column of Parquet or field of JSON Lines that holds the text
        format: parquet, or parquet,brackets
        limit: how many lines are parsed, or null for all
        shard_lines: input lines of one shard, or null
    """

    inputs: Some[Given]
    encoder: str
    parser: str
    language: Given | None = None
    tokenizer: Literal["rules", "whitespace"] | None = None
    sentences: bool | None = None
    column: str = "text"
    format: Literal["parquet", "parquet,brackets"] = "parquet"
    limit: Number | None = None
    shard_lines: Number | None = None


class Sources(Keys):
    """A group of treebanks: treebanks, trees and share.

    Attributes:
        treebanks: a list of language/split
        share: a number above 0, what the group has of every batch
    """

    treebanks: Different[Set]
    trees: Trees
    share: Positive


class TrainedSettings(Keys):
    """A few-shot parser: recipe names the one that it changes, folder one that is trained already.

    Attributes:
        recipe: a parser of `attree train`, such as fpio
        folder: a folder of `attree train`, such as parsers/mine
        objective: an objective
        association: the projection's association as it is, or its logarithm
        decoder: a decoder
        threshold: the marginal below which spans are dropped, from 0 to 1; in experiments also
            chosen (on trees of the training set that are not drawn)
        dropout: a share from 0 to 1
        learning_rate: a number above 0, at most 1
        label_layers: a list of the hidden states that labels and tags are read from, in experiments
        steps: how many batches are trained on
        batch: how many trees make a batch
        start: the first weights: encoder, random, or a parser, such as universal or parsers/mine
        specials: true or false
        half_precision: true or false
        decay: true or false
        sources: a list of groups of treebanks to train on, in place of training
        without: a list of those language/split to leave out
    """

    EXACTLY_ONE: ClassVar[tuple[str, ...]] = ("recipe", "folder")

    recipe: str = OPTIONAL
    folder: Given = OPTIONAL
    objective: Annotated[str, one_of("attree.training.recipes:CHOICES.objective")] = OPTIONAL
    association: Annotated[str, one_of("attree.scoring:ASSOCIATIONS")] = OPTIONAL
    decoder: Annotated[str, one_of("attree.training.recipes:CHOICES.decoder")] = OPTIONAL
    threshold: Literal["chosen"] | Share = OPTIONAL
    dropout: Annotated[float, Meta(ge=0, lt=1)] = OPTIONAL
    learning_rate: Rate = OPTIONAL
    label_layers: Different[From0] = OPTIONAL
    steps: Above0 = OPTIONAL
    batch: Above0 = OPTIONAL
    start: Given = OPTIONAL
    specials: bool = OPTIONAL
    half_precision: bool = OPTIONAL
    decay: bool = OPTIONAL
    sources: Some[Sources] = OPTIONAL
    without: list[str] = OPTIONAL


class Ready(Keys):
    """What the model card of a ready parser says.

    Attributes:
        encoder: the slug of its encoder
        tables: a list of tables with its F1
        licence: of the weights, such as cc-by-4.0
        sources: treebanks and their licences in Markdown
    """

    encoder: str
    tables: Names
    licence: str
    sources: str


class MaskedLM(Keys):
    """An encoder tuned on raw text.

    Attributes:
        encoder: a slug of `encoders`
        text: a list of sets, language/split, whose words are the text
        seeds: how many runs
        epochs: passes over the text
        batch: sequences of a step
        learning_rate: at its peak, above 0, at most 1
        length: longest sequence in word pieces
        head_steps: steps that warm a new head up
    """

    encoder: str
    text: Sets
    seeds: Above0 = 5
    epochs: Above0 = 10
    batch: Above0 = OPTIONAL
    learning_rate: Rate = OPTIONAL
    length: Annotated[int, Meta(ge=8)] = OPTIONAL
    head_steps: From0 = OPTIONAL


class Run(Keys):
    """Rows of an experiment: encoders, parsers, train and test.

    Attributes:
        encoders: a list of slugs of encoders or of masked_lm
        parsers: a list of names of `parsers`, `trained` or parsers of `attree train`
        train: the set that trees are drawn from, language/split
        test: a list of the sets that are parsed
        languages: a list of languages, each of them an entry of its own: {language} in train and
            test stands for it
        trees: a list of numbers of trees, all, or apart (the trees set apart)
        draws: how many draws of each number
        apart: how many trees are kept out of every draw to choose settings on
        across: a list of the columns that every row stands in, in place of its own
        layers: a list of layers (3, or "2,3,4"), null for the middle, tuned for a choice
        candidates: a list of layers that tuned chooses among
        dropouts: a list of dropout rates, 0 to 0.9, that tuned chooses among with the layer; none:
            the parser's own
        sizes: a list of sizes of the projection, 0 for the encoder's own
        max_words: a list of longest sentences that are scored, null for all
        heads: a choice of heads, such as best:10
        steps: batches trained on
        timed: whether parsing is timed
        label: the line in the table; {parser}, {encoder}, {layer}, {size}, {trees}, {test}
    """

    encoders: Names
    parsers: Names
    train: Annotated[str, Meta(pattern=_SET)]
    test: Sets
    languages: AnyNames = several()
    trees: Different[Literal["all", "apart"] | Above0] = several("all")
    draws: Above0 = 1
    apart: From0 = 0
    across: list[int | str] = several()
    layers: Some[int | str | None] = several(None)
    candidates: list[int | str] = several()
    dropouts: list[Dropout] = several()
    sizes: Some[From0] = several(0)
    max_words: Some[Above0 | None] = several(None)
    heads: str | None = None
    steps: Above0 | None = None
    timed: bool = False
    label: Annotated[str, Meta(pattern=_LABEL)] = "{parser}"


class ExperimentSettings(Keys):
    """A table of rows over draws: title, columns and runs.

    Attributes:
        title: the table's heading
        columns: what tells the columns apart
        metrics: a list of metrics
        labels: whether label recall is shown
        picture: whether lines are drawn
        weights: whether learned weights over heads are drawn
        sentence: the number, from 1, of a test sentence whose association is drawn, or null
        baselines: whether fixed trees stand beside
        tables: a list of tables of `tables`, whose rows stand here too
        published: the table of published figures, or test set → table
        above: the line that few-shot parsers should be above; the table says which are not
        panels: whether each language tested has a table, and a part of the picture, of its own
        runs: a list; every combination of an entry's lists is a row
    """

    title: str
    columns: Annotated[str, one_of("attree.base.tables:AXES")]
    runs: list[Run]
    metrics: Some[Metric] = several("corpus_f1", "sentence_f1")
    labels: bool = False
    picture: bool = False
    weights: bool = False
    sentence: Above0 | None = None
    baselines: bool = False
    tables: list[str] = several()
    published: str | dict[str, str] | None = None
    above: str | None = None
    panels: bool = False


class Configuration(Keys):
    """What attree computes.

    Attributes:
        results: the folder that everything computed goes to
        treebanks: where treebanks are found
        encoders: slug → the source of an encoder
        tuning: the trees that heads are ranked on
        parsers: name → the recipe of a parser
        tables: name → a table over languages, or null for none
        comparisons: name → every system side by side, made by `snakemake comparison`, or null for
            none
        training: the trees that few-shot parsers of tables and comparisons are trained on
        systems: name of another parser → its trees, by set
        grammars: name → a grammar that is learnt from a language's words, without trees
        averages: name → parsers, systems and grammars, of which the trees that agree best with
            theirs are taken
        evaluation: how trees are scored
        attention: how the encoder is run
        corpora: name → raw text to be parsed by `snakemake corpus`
        trained: name → a few-shot parser, for those that are not recipes of `attree train` as they
            are
        ready: name of a parser of trained → what its model card says, made by `snakemake ready`
        masked_lm: slug → an encoder tuned on raw text, one a seed, named <slug>-<seed>
        experiments: name → a table of rows over draws, or null for none
        published: a CSV file of published figures, or null
    """

    encoders: Annotated[dict[Slug, EncoderSettings], Meta(min_length=1)]
    tuning: TuningSettings
    parsers: Annotated[dict[Slug, ParserSettings], Meta(min_length=1)]
    tables: dict[TableName, OrNull[TableSettings]]
    results: Annotated[str, Meta(pattern=_NO_PATH)] = "results"
    treebanks: Treebanks = field(default_factory=Treebanks)
    comparisons: dict[Slug, OrNull[Comparison]] = EMPTY
    training: Training = field(default_factory=Training)
    systems: dict[Slug, Annotated[SystemSettings, bool]] = EMPTY  # none is empty
    grammars: dict[Slug, Grammar] = EMPTY
    averages: dict[Slug, Average] = EMPTY
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    attention: Attention = field(default_factory=Attention)
    corpora: dict[Slug, Corpus] = EMPTY
    trained: dict[Slug, TrainedSettings] = EMPTY
    ready: dict[Slug, Ready] = EMPTY
    masked_lm: dict[Slug, MaskedLM] = EMPTY
    experiments: dict[Slug, OrNull[ExperimentSettings]] = EMPTY
    published: str | None = None

    @property
    def folders(self) -> dict[str, str]:
        """Parsers that are already trained → their folders.

        These are the configuration's, and ready parsers whose name it does not use.
        """
        used = {*self.parsers, *self.averages, *self.trained}
        ready = {name: str(trained_folder(name)) for name in TRAINED if name not in used}
        return ready | {name: one.folder for name, one in self.trained.items() if one.folder}

    @property
    def few_shot(self) -> list[str]:
        """The names of all few-shot parsers: its own, recipes, ready ones."""
        return list(dict.fromkeys([*self.trained, *RECIPES, *self.folders]))

    def few_shot_settings(self, parser: str) -> TrainedSettings:
        """Return the settings of a few-shot parser; empty for a recipe or a ready parser."""
        return self.trained.get(parser) or TrainedSettings()

    def seeds_of(self, name: str) -> tuple[str, ...]:
        """Return the parsers of a name: a grammar's seeds (c-pcfg-0, …), or the name itself."""
        if name not in self.grammars:
            return (name,)
        return tuple(f"{name}-{seed}" for seed in range(self.grammars[name].seeds))

    def tuning_of(self, encoder: str, parser: str) -> TuningSettings:
        """Return the trees that a parser's heads are ranked on.

        Its ``tuning`` overrides the encoder's key by key, which overrides the general one.
        """
        own = [one.tuning for one in (self.encoders[encoder], self.parsers[parser]) if one.tuning]
        keys = {key: value for one in own for key, value in one.given().items()}
        return msgspec.structs.replace(self.tuning, **keys)


def check_files(*paths: str | Path) -> None:
    """End the process with a one-line error if a file is not YAML or has a number out of bounds.

    Snakemake, which reads the files itself, would not name the line, or end with a traceback, and
    of a key that comes twice it takes the last. It reports a missing file itself.
    """
    try:
        for path in map(Path, paths):
            if path.is_file() and path.suffix != ".json":
                read_yaml(path, what="configuration", aliases=True)
    except AttreeError as error:
        sys.exit(f"attree: error: {error}")


def configured(config: Mapping[str, Any]) -> Configuration:
    """Check a configuration; return it with its defaults, and without entries that are null.

    Variables such as ``$HOME`` are expanded, but for those of treebanks, which warnings name as
    they are written.

    Raises:
        AttreeError: the first mistake, with the key, the problem and the fix in one line.
    """
    expand_variables(config.get("treebanks"), "treebanks")
    paths = [key for key in ("encoders", "systems", "published") if key in config]
    expanded = {**config, **{key: expand_variables(config[key], key) for key in paths}}
    made: Configuration = convert(expanded, Configuration, file="configuration")
    if made.published and not Path(made.published).is_file():
        problem = "published: this file does not exist"
        raise AttreeError("missing-file", problem, file=made.published)
    return made
