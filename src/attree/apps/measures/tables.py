"""The tables of measures, as Parquet and as tab-separated text, of trees wherever they lie."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from attree.apps.measures.counts import distinct, of_trees, of_words, phrase_types
from attree.base.errors import AttreeError
from attree.base.files import check_folder, whole_file
from attree.base.schemas import OK
from attree.base.text import name_of, say
from attree.bulk.output import is_output, read_shards
from attree.treebank.formats import together
from attree.treebank.pairing import read_whole
from attree.treebank.sentence import Sentence, SplitSettings
from attree.trees.trees import Trees

#: Sentences that are measured at a time.
_AT_A_TIME = 1000


@dataclass(frozen=True, slots=True)
class MeasuredTrees:
    """Some sentences and their trees.

    Attributes:
        file, line, sentence, status: of each; ``sentence`` counts within a line of bulk output,
            else from the beginning of the input.
        words: of each.
        trees: of each.
    """

    file: Sequence[str]
    line: Sequence[int]
    sentence: Sequence[int]
    status: Sequence[str]
    words: Sequence[Sequence[str]]
    trees: Trees


@dataclass(slots=True)
class Reading:
    """How inputs are read.

    Attributes:
        settings: of treebank files.
        refused: sentences that could not be read, each told on stderr.
    """

    settings: SplitSettings = field(default_factory=lambda: SplitSettings(punctuation="keep"))
    refused: int = field(default=0, init=False)

    def all(self, inputs: Iterable[Path]) -> Iterator[MeasuredTrees]:
        """Yield what inputs hold, some sentences at a time.

        Raises:
            AttreeError: an input that is not there, or no trees.
        """
        for path in inputs:
            if is_output(path):
                yield from of_folder(path)
                continue
            for files in together(path, self.settings.format):
                yield from self._of_files(files)

    def _of_files(self, files: Sequence[Path]) -> Iterator[MeasuredTrees]:
        path = files[0]
        if not path.exists():
            raise AttreeError("missing-file", "this file does not exist", file=path)
        number, sentences = (
            0,
            read_whole(files, self.settings, self._refuse, punctuation=self.settings.punctuation),
        )
        while some := list(islice(sentences, _AT_A_TIME)):
            yield _of_sentences(some, number)
            number += len(some)
        if not number:
            raise AttreeError("no-sentences", "no sentence could be read", file=path)

    def _refuse(self, line: str) -> None:
        self.refused += 1
        say(line)


def _of_sentences(some: Sequence[Sentence], first: int) -> MeasuredTrees:
    spans = [[(start, end) for start, end, _ in one.spans] for one in some]
    labels = [[label for _, _, label in one.spans] for one in some]
    return MeasuredTrees(
        [name_of(one.file) for one in some],
        [one.line for one in some],
        range(first, first + len(some)),
        [OK] * len(some),
        [one.words for one in some],
        Trees.from_spans([len(one.words) for one in some], spans, labels),
    )


def of_folder(folder: Path) -> Iterator[MeasuredTrees]:
    """Yield what a folder of ``attree parse`` holds, a shard at a time.

    Raises:
        AttreeError: no such folder, or a damaged shard.
    """
    shards = 0
    for table, trees in read_shards(folder):
        names = ("file", "line", "sentence", "status", "words")
        file, line, sentence, status, texts = (table[name].to_pylist() for name in names)
        words = [text.split(" ") if text else [] for text in texts]
        yield MeasuredTrees(file, line, sentence, status, words, trees)
        shards += 1
    if not shards:
        raise AttreeError(
            "no-run",
            "this folder has no trees of `attree parse`",
            file=folder,
            fix="give its --output folder, or treebank files",
        )


_WHERE = [
    pa.field("file", pa.string(), nullable=False),
    pa.field("line", pa.int64(), nullable=False),
    pa.field("sentence", pa.int32(), nullable=False),
    pa.field("status", pa.string(), nullable=False),
]


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([*_WHERE, *(pa.field(name, kind) for name, kind in columns.items())])


_INT, _FLOAT = pa.int32(), pa.float64()
#: One row a word, in order; ``word`` counts from 0. See
#: :class:`attree.apps.measures.counts.OfWords`.
WORDS = _schema(
    word=_INT, text=pa.string(), top_down=_INT, bottom_up=_INT, left_corner=_INT, depth=_INT
)
#: One row a sentence, those without a tree too. See :class:`attree.apps.measures.counts.OfTrees`.
SENTENCES = _schema(
    words=_INT,
    nodes=_INT,
    depth=_INT,
    mean_phrase_length=_FLOAT,
    right_branching=_FLOAT,
    left_branching=_FLOAT,
)
#: One row a sentence and label, of trees with labels.
PHRASES = _schema(label=pa.string(), count=_INT, mean_length=_FLOAT)

FORMATS = (".parquet", ".tsv")
#: Of each row its sentence's position, and the further columns.
Rows = tuple[NDArray[np.int64], list[Any]]

#: What readers of tab-separated text take for the end of a cell or a row.
_ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _words(one: MeasuredTrees, trees: Trees) -> Rows:
    found, n_words = of_words(trees), trees.n_words
    first = np.repeat(np.cumsum(n_words) - n_words, n_words)
    numbers = (found.top_down, found.bottom_up, found.left_corner, found.depth)
    texts = list(chain.from_iterable(one.words))
    place = np.arange(len(texts)) - first
    return np.repeat(np.arange(len(trees)), n_words), [place, texts, *numbers]


def _sentences(one: MeasuredTrees, trees: Trees) -> Rows:
    found = of_trees(trees)
    shares = (found.mean_phrase_length, found.right_branching, found.left_branching)
    counts = [trees.n_words, found.nodes, found.depth]
    return np.arange(len(trees)), [*counts, *(pa.array(each, from_pandas=True) for each in shares)]


def _phrases(one: MeasuredTrees, trees: Trees) -> Rows:
    found = phrase_types(trees)
    return found.tree, [found.label, found.count, found.mean_length]


#: table → its columns, and what makes its rows of some sentences and their trees.
TABLES: dict[str, tuple[pa.Schema, Callable[[MeasuredTrees, Trees], Rows]]] = {
    "words": (WORDS, _words),
    "sentences": (SENTENCES, _sentences),
    "phrases": (PHRASES, _phrases),
}


class _Table:
    """A table that grows in two files, both whole or absent in the end."""

    def __init__(
        self,
        folder: Path,
        name: str,
        schema: pa.Schema,
        make: Callable[[MeasuredTrees, Trees], Rows],
        stack: ExitStack,
    ) -> None:
        parts = [stack.enter_context(whole_file(folder / f"{name}{x}")) for x in FORMATS]
        self._schema, self._make, self.rows = schema, make, 0
        self._parquet = stack.enter_context(pq.ParquetWriter(parts[0], schema, compression="zstd"))
        handle = stack.enter_context(parts[1].open("w", encoding="utf-8", newline=""))
        self._text = csv.writer(handle, delimiter="\t", lineterminator="\n")
        self._text.writerow(schema.names)

    def add(self, one: MeasuredTrees, trees: Trees) -> None:
        """Add the rows of some sentences."""
        rows, columns = self._make(one, trees)
        where = (one.file, one.line, one.sentence, one.status)
        columns = [*([of[row] for row in rows.tolist()] for of in where), *columns]
        arrays = list(map(pa.array, columns, self._schema.types))
        table = pa.Table.from_arrays(arrays, schema=self._schema)
        self._parquet.write_table(table)
        self.rows += table.num_rows
        cells = (map(_cell, column.to_pylist()) for column in arrays)
        self._text.writerows(zip(*cells, strict=True))


def _cell(value: Any) -> Any:
    """Return a value for tab-separated text; quotes are left to the writer."""
    if isinstance(value, str):
        return value.translate(_ESCAPES)
    return f"{value:.6g}" if isinstance(value, float) else value


def check_output(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that holds measures or anything of others, before anything is measured."""
    names = [f"{name}{suffix}" for name in TABLES for suffix in FORMATS]
    signs = [name for name in names if name.endswith(".parquet") and _is_ours(folder / name)]
    check_folder(folder, names, signs, names[0], what="a table of measures", overwrite=overwrite)


def _is_ours(path: Path) -> bool:
    """Tell by its columns whether attree made a table."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        return bool(pq.read_schema(path).equals(TABLES[path.stem][0]))
    except (OSError, pa.ArrowException):
        return False


def write_measures(
    measured: Iterable[MeasuredTrees], folder: Path, *, plain: bool = False
) -> dict[str, int]:
    """Measure sentences and write the tables ``words``, ``sentences`` and ``phrases``.

    Args:
        measured: some sentences at a time.
        folder: for the tables.
        plain: one-word phrases, and all of a unary chain but one, do not count.

    Returns:
        table → its rows.
    """
    with ExitStack() as stack:
        tables = {name: _Table(folder, name, *how, stack) for name, how in TABLES.items()}
        for one in measured:
            trees = distinct(one.trees) if plain else one.trees
            for table in tables.values():
                table.add(one, trees)
    return {name: table.rows for name, table in tables.items()}
