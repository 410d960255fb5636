"""Node counts of words, shapes of trees and counts of phrase types, and tables of them.

A *node* is a span of a tree, a phrase. Tags over words (preterminals) are not nodes. Each of three
parsing strategies counts a node at one word: the word at which that parser, reading from left to
right, builds the node.

============  ==========================================================  ========================
strategy      a node is made                                              nodes counted at word i
============  ==========================================================  ========================
top-down      when it is predicted, before its first word                 ``start = i``
bottom-up     when it is reduced, after its last word                     ``end = i + 1``
left-corner   when its first child is complete, by projection from it     first child ends ``i + 1``
============  ==========================================================  ========================

So each of the three counts sums to the number of nodes. They are the steps of J. Hale, *Automaton
Theories of Human Sentence Comprehension* (2014), chapter 3, as M. Nelson et al. (2017,
*Neurophysiological dynamics of phrase-structure building during sentence processing*, PNAS 114)
correlate them with brain signals. Their counts that include preterminals are larger by one at
every word.
"""

import csv
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from attree.base.files import check_folder, whole_file
from attree.base.schemas import FLOAT, INT, TEXT, schema_of
from attree.bulk.output import Rows
from attree.trees.trees import Trees

_Integers = NDArray[np.int64]
#: The position of the tree of each row of a table, and the further columns.
Counted = tuple[_Integers, list[Any]]


class OfWords(NamedTuple):
    """Counts for all words of some trees, tree after tree; each int64 (words,).

    Attributes:
        top_down, bottom_up, left_corner: nodes counted at the word.
        depth: nodes above the word.
    """

    top_down: _Integers
    bottom_up: _Integers
    left_corner: _Integers
    depth: _Integers


class OfTrees(NamedTuple):
    """Measures of trees, each (trees,); shares and means are NaN where there is nothing to count.

    Attributes:
        nodes: how many.
        depth: nodes above the deepest word.
        mean_phrase_length: mean number of words of a node.
        right_branching, left_branching: shares of the phrases of two or more words inside another
            phrase that end where it ends, and that begin where it begins; the rest lies in the
            middle. A unary chain counts as one phrase; the whole sentence contains all others.
    """

    nodes: _Integers
    depth: _Integers
    mean_phrase_length: NDArray[np.float64]
    right_branching: NDArray[np.float64]
    left_branching: NDArray[np.float64]


def distinct(trees: Trees) -> Trees:
    """Return trees without one-word phrases, and with only the top node of each unary chain."""
    repeated = _same_start(trees)  # equal to the last span: below it in a unary chain
    repeated[1:] &= trees.ends[1:] == trees.ends[:-1]
    return trees.keep((trees.ends - trees.starts > 1) & ~repeated)


def of_words(trees: Trees) -> OfWords:
    """Count the nodes of every word."""
    total = int(trees.n_words.sum())
    first = trees.word_offsets[trees.tree_of]
    begins, ends = first + trees.starts, first + trees.ends
    corner = begins + 1  # where a first child ends: the next span if it is one, else a word
    children = np.flatnonzero(_same_start(trees))
    corner[children - 1] = ends[children]

    def count(positions: _Integers) -> _Integers:
        return np.bincount(positions, minlength=total + 1)

    depth = np.cumsum(count(begins) - count(ends))
    columns = (count(begins), count(ends - 1), count(corner - 1), depth)
    return OfWords(*(counts[:total] for counts in columns))


def of_trees(trees: Trees) -> OfTrees:
    """Measure every tree."""
    depth = np.zeros(len(trees), np.int64)
    some = np.flatnonzero(trees.n_words)
    depth[some] = np.maximum.reduceat(of_words(trees).depth, trees.word_offsets[some])
    lengths = _sum(trees, trees.ends - trees.starts)
    phrases = distinct(trees)
    inner, left, right = _sides(phrases)
    total = _sum(phrases, inner)
    shares = (_divide(_sum(phrases, side), total) for side in (right, left))
    return OfTrees(trees.n_spans, depth, _divide(lengths, trees.n_spans), *shares)


def phrase_types(trees: Trees) -> Counted:
    """Count the nodes of each label; the result is empty for trees without labels.

    Returns:
        the tree of each pair of tree and label, ordered by tree, then label; and the columns of
        their label, their number of nodes, and the mean number of words of these.
    """
    if trees.labels is None or not trees.labels.size:
        return np.zeros(0, np.int64), [[], [], []]
    rank = np.argsort(np.argsort(trees.label_names))  # so that labels come in their order
    keys = trees.tree_of * len(trees.label_names) + rank[trees.labels]
    unique, groups, count = np.unique(keys, return_inverse=True, return_counts=True)
    lengths = np.bincount(groups, weights=trees.ends - trees.starts)
    names = sorted(trees.label_names)
    tree, label = np.divmod(unique, len(names))
    return tree, [[names[code] for code in label.tolist()], count, lengths / count]


def _sum(trees: Trees, values: NDArray[Any]) -> _Integers:
    """Sum the values of the spans of each tree."""
    return np.bincount(trees.tree_of, weights=values, minlength=len(trees)).astype(np.int64)


def _divide(above: _Integers, below: _Integers) -> NDArray[np.float64]:
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)


def _follows(trees: Trees) -> NDArray[np.bool_]:
    """Return bool (spans,): whether a span is not the first of its tree."""
    follows = np.ones(trees.starts.size, np.bool_)
    follows[trees.offsets[:-1][trees.n_spans > 0]] = False
    return follows


def _same_start(trees: Trees) -> NDArray[np.bool_]:
    """Return bool (spans,): whether a span is a first child, beginning where the last one began."""
    same = _follows(trees)
    same[1:] &= trees.starts[1:] == trees.starts[:-1]
    return same


def _sides(trees: Trees) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return bool (spans,) each: whether a span is inside another, on its left, on its right.

    In pre-order, the span before a first child is its parent. Sorted by falling end, then rising
    start, the span before a last child is its parent.
    """
    whole = (trees.starts == 0) & (trees.ends == trees.n_words[trees.tree_of])
    left = _same_start(trees) | ~_follows(trees) & (trees.starts == 0)
    order = np.lexsort((trees.starts, -trees.ends, trees.tree_of))
    ends, tree = trees.ends[order], trees.tree_of[order]
    mirrored = ends == trees.n_words[tree]  # a child of the sentence ends with it
    mirrored[1:] |= (ends[1:] == ends[:-1]) & (tree[1:] == tree[:-1])
    right = np.empty_like(mirrored)
    right[order] = mirrored
    return ~whole, left & ~whole, right & ~whole


_WHERE = schema_of(file=TEXT, line=pa.int64(), sentence=INT, status=TEXT)


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([*_WHERE, *schema_of(*columns, **columns)])


#: One row per word, in order; ``word`` counts from 0. See
#: :class:`attree.apps.measures.OfWords`.
WORDS = _schema(word=INT, text=TEXT, **dict.fromkeys(OfWords._fields, INT))
#: One row per sentence, with or without a tree. See :class:`attree.apps.measures.OfTrees`.
SENTENCES = _schema(
    **dict.fromkeys(("words", *OfTrees._fields[:2]), INT),
    **dict.fromkeys(OfTrees._fields[2:], FLOAT),
)
#: One row per sentence and label, for trees with labels.
PHRASES = _schema(label=TEXT, count=INT, mean_length=FLOAT)

#: Characters that would end a cell or a row of tab-separated text.
_ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _words(some: Rows) -> Counted:
    n_words = some.trees.n_words
    position = np.arange(n_words.sum()) - np.repeat(np.cumsum(n_words) - n_words, n_words)
    texts = list(chain.from_iterable(some.words))
    return np.repeat(np.arange(n_words.size), n_words), [position, texts, *of_words(some.trees)]


def _sentences(some: Rows) -> Counted:
    nodes, depth, *shares = of_trees(some.trees)
    means = (pa.array(share, from_pandas=True) for share in shares)  # NaN is no value
    return np.arange(len(some.trees)), [some.trees.n_words, nodes, depth, *means]


#: table → its columns, and the function that makes its rows
TABLES: dict[str, tuple[pa.Schema, Callable[[Rows], Counted]]] = {
    "words": (WORDS, _words),
    "sentences": (SENTENCES, _sentences),
    "phrases": (PHRASES, lambda some: phrase_types(some.trees)),
}


@contextmanager
def _table(folder: Path, name: str) -> Iterator[Callable[[Rows], int]]:
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

        def add(some: Rows) -> int:
            rows, columns = make(some)
            where = (some.file, some.line, some.sentence, some.status)
            columns = [*([of[row] for row in rows.tolist()] for of in where), *columns]
            arrays = list(map(pa.array, columns, schema.types))
            parquet.write_table(pa.Table.from_arrays(arrays, schema=schema))
            text.writerows(zip(*(map(_cell, column.to_pylist()) for column in arrays), strict=True))
            return rows.size

        yield add


def _cell(value: Any) -> Any:
    """Return a value for tab-separated text; the writer adds quotes."""
    if isinstance(value, str):
        return value.translate(_ESCAPES)
    return f"{value:.6g}" if isinstance(value, float) else value


def check_output(folder: Path, *, overwrite: bool) -> None:
    """Check before measuring that a folder holds no measures and no other files."""
    tables = [f"{name}.parquet" for name in TABLES]
    names = [*tables, *(f"{name}.tsv" for name in TABLES)]
    signs = [name for name in tables if _is_ours(folder / name)]
    check_folder(folder, names, signs, names[0], what="a table of measures", overwrite=overwrite)


def _is_ours(path: Path) -> bool:
    """Tell whether attree wrote a table, by its columns."""
    if path.is_symlink() or not path.is_file():
        return False
    with suppress(OSError, ValueError, pa.ArrowException):
        return bool(pq.read_schema(path.absolute()).equals(TABLES[path.stem][0]))
    return False


def write_measures(
    measured: Iterable[Rows], folder: Path, *, plain: bool = False
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
