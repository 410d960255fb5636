"""Write and read the output of bulk parsing: Parquet shards with statistics, and brackets.

``words`` is one string with single spaces between words, and a span is a start and a length. Both
compress better than lists of words and ends; trees then add less than half the size of the
compressed words. :func:`read_trees` returns lists of words and half-open spans.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.base.files import make_folder, whole_file, write_text
from attree.base.schemas import has_trees
from attree.bulk.manifest import whole_shards
from attree.bulk.options import BRACKETS, RowSettings
from attree.trees import OK
from attree.trees.parses import named_arrays, trees_of
from attree.trees.trees import Trees

_METADATA_KEY = b"attree"


#: The most malformed lines whose reasons are kept.
REASONS = 5
#: Columns with a dictionary; it would only enlarge the others, which zstd compresses.
_DICTIONARY = ["file", "status", "labels.list.element", "tags.list.element"]
#: Levels of zstd. A high level makes small shards, as a CPU writes them, a tenth smaller for 0.2 ms
#: a sentence; shards of a GPU are large, and it would have to wait.
_LARGE, _LEVEL, _LEVEL_OF_LARGE = 5000, 15, 5


def _list(item: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", item, nullable=False))


#: A row for each sentence, in input order, and one for a line without sentences. ``line`` is
#: 1-based; ``sentence`` counts from 0 within a line. ``words`` has single spaces between words. The
#: spans of two words and more, in pre-order, begin at ``starts`` and are ``lengths`` words long.
#: A parser with labels adds one-word phrases and a column ``labels`` of the spans, and one that
#: tags words a column ``tags``. Words and spans are empty unless ``status`` is ``ok``, or
#: ``too_long`` with a right-branching tree. ``score`` is the mean split score of the tree, null if
#: there is nothing to split. ``id`` is the id of a line of JSON, or null.
TREES = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("sentence", pa.int32(), nullable=False),
        pa.field("words", pa.string(), nullable=False),
        pa.field("starts", _list(pa.int16()), nullable=False),
        pa.field("lengths", _list(pa.int16()), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("score", pa.float16(), nullable=True),
        pa.field("id", pa.string(), nullable=True),
    ]
)
#: The columns that say where a row is from, and what became of it.
_PLACE = ("file", "line", "sentence", "status", "id")
_LABELS = pa.field("labels", _list(pa.string()), nullable=False)
_TAGS = pa.field("tags", _list(pa.string()), nullable=False)
#: On request: the probability of each span under the parser's distribution over trees; null for a
#: tree that the parser did not make.
_MARGINALS = pa.field("marginals", _list(pa.float32()), nullable=True)


@dataclass(slots=True)
class Rows:
    """Sentences and their trees: of a shard, or some of a treebank.

    Attributes:
        file, line, sentence, status: of each row; ``sentence`` counts within a line of bulk output,
            else from the beginning of the input.
        words: words of each row.
        trees: tree of each row, with the scores of its spans.
        id: id of each row's line, if lines have ids.
    """

    file: list[str]
    line: list[int]
    sentence: list[int]
    status: list[str]
    words: list[list[str]]
    trees: Trees
    id: list[str | None] = field(default_factory=list)

    def table(self, *, marginals: bool = False) -> pa.Table:
        """Return the rows as an Arrow table, with a column of marginals if asked for."""
        trees, scores = self.trees, self.trees.mean_scores()
        columns = [
            pa.array(self.file),
            pa.array(self.line, pa.int64()),
            pa.array(self.sentence, pa.int32()),
            pa.array([" ".join(words) for words in self.words]),
            self._span_lists(trees.starts, pa.int16()),
            self._span_lists(trees.ends - trees.starts, pa.int16()),
            pa.array(self.status),
            pa.array(scores.astype(np.float16), mask=np.isnan(scores)),
            pa.array(self.id or [None] * len(self.line), pa.string()),
        ]
        table, (labels, tags) = pa.Table.from_arrays(columns, schema=TREES), named_arrays(trees)
        if labels is not None:
            table = table.append_column(_LABELS, self._span_lists(labels, pa.string()))
        if tags is not None:
            words = pa.array(trees.word_offsets, pa.int32())
            of_words = pa.ListArray.from_arrays(words, tags, type=_TAGS.type)
            table = table.append_column(_TAGS, of_words)
        if marginals:
            shares = self._span_lists(trees.marginals, pa.float32(), of_parser=True)
            table = table.append_column(_MARGINALS, shares)
        return table

    def _span_lists(self, values: Any, kind: pa.DataType, *, of_parser: bool = False) -> pa.Array:
        """Return a list for each row; with ``of_parser``, null for fallback and empty trees."""
        offsets = pa.array(self.trees.offsets.astype(np.int32))
        mask = pa.array([status != OK for status in self.status]) if of_parser else None
        return pa.ListArray.from_arrays(offsets, pa.array(values, kind), _list(kind), mask=mask)


@dataclass(slots=True)
class Statistics:
    """Counts of a shard, which can be added; they depend only on the input.

    Attributes:
        malformed: reasons of the first malformed lines.
    """

    lines: int = 0
    sentences: int = 0
    words: int = 0
    pieces: int = 0
    unknown_words: int = 0
    status: Counter[str] = field(default_factory=Counter)
    malformed: list[str] = field(default_factory=list)

    def __add__(self, other: Statistics) -> Statistics:
        """Return the sums."""
        names = [f.name for f in fields(self)]
        total = Statistics(*(getattr(self, name) + getattr(other, name) for name in names))
        del total.malformed[REASONS:]
        return total

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers under their names, ``status`` as a plain mapping."""
        numbers = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**numbers, "status": dict(sorted(self.status.items()))}

    @classmethod
    def of(cls, numbers: dict[str, Any]) -> Statistics:
        """Build statistics from the result of :meth:`as_dict`."""
        return cls(**{**numbers, "status": Counter(numbers["status"])})


def shard_path(folder: Path, number: int) -> Path:
    """Return the path of a shard's trees; the file exists only if the shard is complete."""
    return folder / "trees" / f"shard-{number:05d}.parquet"


def _brackets_path(folder: Path, number: int) -> Path:
    return folder / BRACKETS / f"shard-{number:05d}.txt"


def make_folders(folder: Path, settings: RowSettings) -> None:
    """Make the folders of the shards."""
    make_folder(shard_path(folder, 0).parent)
    if BRACKETS in settings.formats:
        make_folder(_brackets_path(folder, 0).parent)


def write_shard(
    folder: Path, number: int, rows: Rows, statistics: Statistics, settings: RowSettings
) -> None:
    """Write a shard in every format; the Parquet file is last and marks the shard as complete.

    Raises:
        FileNotFoundError: the folders of :func:`make_folders` do not exist.
    """
    if BRACKETS in settings.formats:
        text = "".join(f"{line}\n" for line in rows.trees.bracketed(rows.words))
        write_text(_brackets_path(folder, number), text, make=False)
    metadata = {_METADATA_KEY: json.dumps(statistics.as_dict(), sort_keys=True)}
    table = rows.table(marginals=settings.marginals).replace_schema_metadata(metadata)
    with whole_file(shard_path(folder, number), make=False) as part:
        pq.write_table(
            table,
            part,
            compression="zstd",
            compression_level=_LEVEL if len(table) < _LARGE else _LEVEL_OF_LARGE,
            use_dictionary=_DICTIONARY,
            write_statistics=["line"],
            write_page_checksum=True,
        )


def remove_shard(folder: Path, number: int) -> None:
    """Remove the files of a shard, first the one that marks it as complete."""
    shard_path(folder, number).unlink(missing_ok=True)
    _brackets_path(folder, number).unlink(missing_ok=True)


def shard_statistics(path: Path) -> Statistics:
    """Read the statistics of a complete shard."""
    try:
        return Statistics.of(json.loads((pq.read_schema(path).metadata or {})[_METADATA_KEY]))
    except (pa.ArrowException, ValueError, TypeError, KeyError, OSError) as error:
        raise _damage_error(path, error) from None


def _table(path: Path) -> pa.Table:
    try:
        table = pq.read_table(path.absolute(), page_checksum_verification=True)
        # pages have checksums; column names have none
        types = {one.name: one.type for one in (*TREES, _LABELS, _TAGS, _MARGINALS)}
        if not set(TREES.names) <= set(table.schema.names) <= types.keys():
            raise ValueError(f"its columns are {', '.join(sorted(table.schema.names))}")
        table.validate(full=True)
        if wrong := [one.name for one in table.schema if one.type != types[one.name]]:
            raise ValueError(f"its column {wrong[0]} is no {types[wrong[0]]}")
        n_words = pa.array(_n_words(table))
        if not has_trees(table.drop_columns(["words"]).append_column("n_words", n_words)):
            raise ValueError("a row is no tree: its spans or tags do not fit its words")
        return table
    except (ValueError, pa.ArrowException, OSError) as error:
        raise _damage_error(path, error) from None


def _n_words(table: pa.Table) -> NDArray[np.int64]:
    """Return the number of words of each row, int64 (rows,)."""
    words: NDArray[np.int64] = pc.count_substring(table["words"], " ").to_numpy() + np.int64(1)
    return np.where(pc.equal(table["words"], "").to_numpy(), 0, words)


def _damage_error(path: Path, error: Exception) -> AttreeError:
    reason = str(error).splitlines()[0]
    fix = "parse into a new output folder"
    return AttreeError("damaged-shard", f"this shard is damaged ({reason})", file=path, fix=fix)


def read_trees(folder: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of an output folder in input order, with lists of words and of spans.

    Each row has ``file``, ``line``, ``sentence``, ``status``, ``score``, ``id``, ``words`` and
    ``spans``, a list of half-open word intervals ``(start, end)``; ``labels`` and ``tags`` if the
    parser has them; and ``marginals`` if they were asked for.
    """
    for path in _shards(Path(folder)):
        for row in _table(path).to_pylist():
            lengths = row.pop("lengths")
            row["spans"] = [(s, s + n) for s, n in zip(row.pop("starts"), lengths, strict=True)]
            row["words"] = row["words"].split(" ") if row["words"] else []
            yield row


def read_shards(folder: Path) -> Iterator[Rows]:
    """Yield the rows of each shard of an output folder.

    Raises:
        AttreeError: a damaged shard.
    """
    for path in _shards(folder):
        table = _table(path)
        columns = {name: table[name].to_pylist() for name in _PLACE}
        words = [text.split(" ") if text else [] for text in table["words"].to_pylist()]
        yield Rows(**columns, words=words, trees=trees_of(table, _n_words(table)))


def is_output(folder: Path) -> bool:
    """Tell whether a folder holds shards of trees: an output folder, or ``trees`` in it."""
    return folder.is_dir() and bool(_shards(folder))


def _shards(folder: Path) -> list[Path]:
    return [*(whole_shards(folder / "trees") or whole_shards(folder)).values()]
