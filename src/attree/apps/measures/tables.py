"""Write tables of measures of trees, as Parquet and as tab-separated text."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from attree.apps.measures.counts import (
    OfTrees,
    OfWords,
    distinct,
    of_trees,
    of_words,
    phrase_types,
)
from attree.apps.reading import SentenceTrees
from attree.base.files import check_folder, whole_file

_INT, _FLOAT, _TEXT = pa.int32(), pa.float64(), pa.string()
_PLACE = {"file": _TEXT, "line": pa.int64(), "sentence": _INT, "status": _TEXT}
_WHERE = pa.schema([pa.field(name, kind, nullable=False) for name, kind in _PLACE.items()])


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([*_WHERE, *(pa.field(name, kind) for name, kind in columns.items())])


#: One row per word, in order; ``word`` counts from 0. See
#: :class:`attree.apps.measures.counts.OfWords`.
WORDS = _schema(word=_INT, text=_TEXT, **dict.fromkeys(OfWords._fields, _INT))
#: One row per sentence, with or without a tree. See :class:`attree.apps.measures.counts.OfTrees`.
SENTENCES = _schema(
    **dict.fromkeys(("words", *OfTrees._fields[:2]), _INT),
    **dict.fromkeys(OfTrees._fields[2:], _FLOAT),
)
#: One row per sentence and label, for trees with labels.
PHRASES = _schema(label=_TEXT, count=_INT, mean_length=_FLOAT)

FORMATS = (".parquet", ".tsv")
#: The position of each row's sentence, and the further columns.
Rows = tuple[NDArray[np.int64], list[Any]]

#: Characters that would end a cell or a row of tab-separated text.
_ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _words(some: SentenceTrees) -> Rows:
    n_words = some.trees.n_words
    position = np.arange(n_words.sum()) - np.repeat(np.cumsum(n_words) - n_words, n_words)
    texts = list(chain.from_iterable(some.words))
    return np.repeat(np.arange(n_words.size), n_words), [position, texts, *of_words(some.trees)]


def _sentences(some: SentenceTrees) -> Rows:
    nodes, depth, *shares = of_trees(some.trees)
    means = (pa.array(share, from_pandas=True) for share in shares)  # NaN is no value
    return np.arange(len(some.trees)), [some.trees.n_words, nodes, depth, *means]


def _phrases(some: SentenceTrees) -> Rows:
    tree, *columns = phrase_types(some.trees)
    return tree, columns


#: table → its columns, and the function that makes its rows
TABLES: dict[str, tuple[pa.Schema, Callable[[SentenceTrees], Rows]]] = {
    "words": (WORDS, _words),
    "sentences": (SENTENCES, _sentences),
    "phrases": (PHRASES, _phrases),
}


@contextmanager
def _table(folder: Path, name: str) -> Iterator[Callable[[SentenceTrees], int]]:
    """Open a table's two files, written whole or not at all; yield a function that adds rows."""
    schema, make = TABLES[name]
    with (
        whole_file(folder / f"{name}.parquet") as binary,
        whole_file(folder / f"{name}.tsv") as tabbed,
        pq.ParquetWriter(binary, schema, compression="zstd") as parquet,
        tabbed.open("w", encoding="utf-8", newline="") as handle,
    ):
        text = csv.writer(handle, delimiter="\t", lineterminator="\n")
        text.writerow(schema.names)

        def add(some: SentenceTrees) -> int:
            rows, columns = make(some)
            where = (some.file, some.line, some.sentence, some.status)
            columns = [*([of[row] for row in rows.tolist()] for of in where), *columns]
            arrays = list(map(pa.array, columns, schema.types))
            parquet.write_table(pa.Table.from_arrays(arrays, schema=schema))
            cells = (map(_cell, column.to_pylist()) for column in arrays)
            text.writerows(zip(*cells, strict=True))
            return rows.size

        yield add


def _cell(value: Any) -> Any:
    """Return a value for tab-separated text; the writer adds quotes."""
    if isinstance(value, str):
        return value.translate(_ESCAPES)
    return f"{value:.6g}" if isinstance(value, float) else value


def check_output(folder: Path, *, overwrite: bool) -> None:
    """Check before measuring that a folder holds no measures and no other files."""
    names = [f"{name}{suffix}" for name in TABLES for suffix in FORMATS]
    signs = [name for name in names if name.endswith(".parquet") and _is_ours(folder / name)]
    check_folder(folder, names, signs, names[0], what="a table of measures", overwrite=overwrite)


def _is_ours(path: Path) -> bool:
    """Tell whether attree wrote a table, by its columns."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        return bool(pq.read_schema(path).equals(TABLES[path.stem][0]))
    except (OSError, pa.ArrowException):
        return False


def write_measures(
    measured: Iterable[SentenceTrees], folder: Path, *, plain: bool = False
) -> dict[str, int]:
    """Measure sentences and write the tables ``words``, ``sentences`` and ``phrases``.

    Args:
        measured: sentences and trees, some at a time.
        folder: folder for the tables.
        plain: leave out one-word phrases, and all nodes of a unary chain but one.

    Returns:
        table → number of rows.
    """
    rows = dict.fromkeys(TABLES, 0)
    with ExitStack() as stack:
        tables = {name: stack.enter_context(_table(folder, name)) for name in TABLES}
        for some in measured:
            counted = replace(some, trees=distinct(some.trees)) if plain else some
            for name, add in tables.items():
                rows[name] += add(counted)
    return rows
