"""Word-level associations on disk: a manifest, and Parquet shards of matrices beside it.

A manifest lists its shards and describes their columns. A shard has one row per sentence, in any
order: ``sentence``, ``n_words``, ``status`` (``ok``, or ``too_long``: no association),
``n_unknown`` (words with an unknown piece), then one column per association with its ``(matrices,
n, n)`` values, row-major. The column ``all`` has every head of the encoder, by layer, then head; a
column such as ``1.7+2.8`` has the mean of these heads. Columns of other sources have the source as
a prefix: ``states:all``, ``states:4.0``.

Values are float32. float16 would halve the size, change about one tree in 900, and sentence F1 of
300 sentences by less than 0.1; that of a head with nearly all attention on one neighbour, whose
split scores differ only in the last bits, by half a point.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.base.files import whole_file
from attree.base.reading import described, read_json
from attree.base.schemas import INT, TEXT, pack, schema_of, unpack
from attree.trees import OK

if TYPE_CHECKING:
    from attree.encoder.source import Head

#: Values in a row group, 16 or 32 MB, so that readers need little memory.
_VALUES_AT_A_TIME = 8_000_000

_FIXED = schema_of(sentence=INT, n_words=INT, status=TEXT, n_unknown=INT)

_AGAIN = "run `attree attention` again"


class _Column(msgspec.Struct):
    units: list[tuple[int, int]]
    matrices: int


class _Shard(msgspec.Struct):
    file: str


class _Manifest(msgspec.Struct):
    """The fields of a manifest that readers need."""

    columns: dict[str, _Column]
    shards: list[_Shard]
    encoder: dict[str, Any] = {}
    provenance: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class AssociationBatch:
    """Associations of some sentences, in flat arrays.

    Args:
        sentence: int32 (sentences,), numbers of the sentences, in any order.
        n_words: int32 (sentences,), words.
        status: str (sentences,), ``ok``, or ``too_long`` for sentences without values.
        values: float32, all matrices one after the other, row-major.
        matrices_each: number of matrices of each sentence.
    """

    sentence: NDArray[np.int32]
    n_words: NDArray[np.int32]
    status: NDArray[np.str_]
    values: NDArray[Any]
    matrices_each: int

    @property
    def n_associated(self) -> NDArray[np.int32]:
        """int32 (sentences,): ``n_words``, or 0 for a sentence without an association."""
        return np.where(self.status == OK, self.n_words, 0).astype(np.int32)

    def each(self) -> Iterator[NDArray[Any]]:
        """Yield the matrices of each sentence: (matrices, words, words)."""
        begin, count = 0, self.matrices_each
        for n in self.n_associated.tolist():
            end = begin + count * n * n
            yield self.values[begin:end].reshape(count, n, n)
            begin = end

    def averaged(self, units: NDArray[np.intp]) -> NDArray[np.float32]:
        """Return the mean of some of each sentence's matrices, laid out as ``values`` are."""
        means = (matrices[units].mean(0, dtype=np.float32).ravel() for matrices in self.each())
        return np.concatenate([np.empty(0, np.float32), *means])

    def take(self, rows: NDArray[np.intp]) -> AssociationBatch:
        """Return the sentences at ``rows``, in that order."""
        each = list(self.each())
        values = np.concatenate([self.values[:0], *(each[row].ravel() for row in rows)])
        columns = (self.sentence[rows], self.n_words[rows], self.status[rows])
        return AssociationBatch(*columns, values, self.matrices_each)


class ShardWriter:
    """Writes one shard; made by :func:`open_shard`."""

    def __init__(self, writer: pq.ParquetWriter, schema: pa.Schema) -> None:
        self._writer, self._schema = writer, schema
        self._waiting: list[pa.RecordBatch] = []
        self._n_waiting = 0

    def add(
        self,
        sentence: NDArray[np.int32],
        n_words: NDArray[np.int32],
        n_unknown: NDArray[np.int32],
        *,
        status: str,
        values: Mapping[str, NDArray[Any]],
    ) -> None:
        """Add sentences.

        Args:
            sentence, n_words, n_unknown: int32 (sentences,).
            status: status of all of them; sentences that are ``too_long`` have no values.
            values: column → the matrices of all sentences, one after the other.
        """
        cells = n_words.astype(np.int64) ** 2 if status == OK else np.zeros(len(n_words), np.int64)
        fixed = (sentence, n_words, [status] * len(sentence), n_unknown)
        arrays = [pa.array(*pair) for pair in zip(fixed, _FIXED.types, strict=True)]
        for column in list(self._schema)[len(arrays) :]:
            flat = values[column.name]
            matrices = len(flat) // max(1, int(cells.sum()))
            offsets = np.concatenate(([0], np.cumsum(cells * matrices))).astype(np.int32)
            arrays.append(pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat), column.type))
            self._n_waiting += len(flat)
        self._waiting.append(pa.record_batch(arrays, schema=self._schema))
        if self._n_waiting >= _VALUES_AT_A_TIME:
            self.flush()

    def flush(self) -> None:
        """Write the waiting sentences as one row group."""
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, schema=self._schema)
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._waiting, self._n_waiting = [], 0


@contextlib.contextmanager
def open_shard(
    path: Path, columns: Iterable[str], *, metadata: Mapping[str, Any]
) -> Iterator[ShardWriter]:
    """Open a shard for writing; it appears at ``path`` only if the block ends without an error."""
    lists = pa.list_(pa.field("element", pa.float32(), nullable=False))
    values = schema_of(**dict.fromkeys(columns, lists))
    schema = pa.schema([*_FIXED, *values], metadata=pack(metadata))
    # Attention hardly compresses, and its dictionaries and statistics are of no use.
    options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    with (
        whole_file(path) as part,
        pq.ParquetWriter(part, schema, write_page_checksum=True, **options) as parquet,
    ):
        writer = ShardWriter(parquet, schema)
        yield writer
        writer.flush()


def shard_metadata(path: Path) -> dict[str, Any] | None:
    """Return the metadata of the shard at ``path``; None if it is missing or incomplete."""
    try:
        return unpack(pq.read_schema(path.absolute()))
    except (FileNotFoundError, ValueError):
        return None


def read_manifest(path: str | Path) -> dict[str, Any]:
    """Read a manifest.

    Raises:
        AttreeError: the file is missing, damaged, or no manifest.
    """
    name = "manifest of attention shards"
    manifest = read_json(path, what=name)
    if not isinstance(manifest, dict) or not {"columns", "shards"} <= manifest.keys():
        raise AttreeError("not-a-manifest", f"this is not a {name}", file=path, fix=_AGAIN)
    described(manifest, _Manifest, file=path, what=name, fix=_AGAIN)
    return manifest


def column_units(manifest: Mapping[str, Any], column: str, path: str | Path) -> list[Head]:
    """Return the units of a column.

    Raises:
        AttreeError: the manifest at ``path`` has no such column; the message lists its columns.
    """
    columns = manifest["columns"]
    if column not in columns:
        problem = f"there is no association {column} here, only {', '.join(columns)}"
        fix = "run `attree attention` with this source and this selection of heads"
        raise AttreeError("unknown-association", problem, file=path, fix=fix)
    return [(layer, head) for layer, head in columns[column]["units"]]


def read(path: str | Path, column: str) -> Iterator[AssociationBatch]:
    """Yield the associations of one column, a row group (16 or 32 MB) at a time.

    Args:
        path: path of a manifest.
        column: ``all``, or the name of a set of heads (``columns.heads_key``).

    Raises:
        AttreeError: there is no such column, or a shard is missing or damaged.
    """
    path = Path(path)
    manifest = read_manifest(path)
    column_units(manifest, column, path)
    matrices = manifest["columns"][column]["matrices"]
    for shard in manifest["shards"]:
        yield from _read_shard(path.parent / shard["file"], column, matrices)


def _read_shard(path: Path, column: str, matrices: int) -> Iterator[AssociationBatch]:
    try:
        with pq.ParquetFile(path.absolute(), page_checksum_verification=True) as shard:
            for group in range(shard.num_row_groups):
                rows = shard.read_row_group(group, [*_FIXED.names, column])
                lists = rows[column].combine_chunks()
                is_list = rows.schema.types[:-1] == _FIXED.types and pa.types.is_list(lists.type)
                if not (is_list and pa.types.is_floating(lists.type.value_type)):
                    raise ValueError("columns of other types")
                if any(part.null_count for part in rows.columns):
                    raise ValueError("empty cells")
                batch = AssociationBatch(
                    sentence=rows["sentence"].to_numpy(),
                    n_words=rows["n_words"].to_numpy(),
                    status=np.array(rows["status"].to_pylist(), np.str_),
                    values=lists.flatten().to_numpy(zero_copy_only=False),
                    matrices_each=matrices,
                )
                cells = batch.n_associated.astype(np.int64) ** 2
                if not np.array_equal(np.diff(lists.offsets), cells * matrices):
                    raise ValueError("too few values")
                yield batch
    except FileNotFoundError:
        raise AttreeError("missing-shard", "a shard is missing", file=path, fix=_AGAIN) from None
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        # pages have checksums; a damaged footer raises various errors
        problem = f"a shard is damaged ({(str(error) or type(error).__name__).splitlines()[0]})"
        raise AttreeError("damaged-shard", problem, file=path, fix=_AGAIN) from None
