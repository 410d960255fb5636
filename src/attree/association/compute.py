"""Compute a shard of the attention stage, in this process or on a worker.

Only code that loads the encoder imports torch: the process that hands out shards runs without it.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
from cyclopts import Parameter
from numpy.typing import NDArray

from attree.association.columns import Column
from attree.association.shards import open_shard
from attree.association.sources import load_source
from attree.base import options
from attree.base.errors import AttreeError
from attree.base.schemas import SENTENCES_SCHEMA, read_table
from attree.trees import OK, TOO_LONG

if TYPE_CHECKING:
    import torch

    from attree.encoder.load import Encoder
    from attree.encoder.pieces import Pieces

#: Cells of one batch's matrices (a float32 gigabyte would be 268 million).
_CELLS_PER_BATCH = 64_000_000


@dataclass(frozen=True, slots=True)
class StageSettings:
    """Settings of the attention stage.

    Attributes:
        partition_size: Sentences in one shard.
        tokens_per_batch: word pieces in a batch of the encoder; None to choose by device.
        too_long: one of :data:`attree.trees.parses.POLICIES`.
        workers: number of local worker processes.
        threads: threads of each worker; None for torch's choice.
        scheduler: the address of a Dask scheduler that shares the file system, in place of them.
        device: as for :func:`attree.encoder.load.load_encoder`.
    """

    partition_size: Annotated[int, Parameter(validator=options.between(1))] = 2000
    tokens_per_batch: options.TokensPerBatch | None = None
    too_long: options.TooLong = "right_branching"
    workers: Annotated[options.Workers, Parameter(validator=options.between(1))] = 1
    threads: options.Threads | None = None
    scheduler: options.Scheduler | None = None
    device: options.Device | None = None


@dataclass(frozen=True, slots=True)
class ShardTask:
    """One shard to compute.

    Args:
        sentences: path of the sentence table.
        start, stop: rows of the table in the shard.
        shard: path of the shard.
        columns: name → column.
        settings: settings of the stage.
        metadata: metadata of the shard.
        content: hash of these rows, see :func:`content_of`.
    """

    sentences: str
    start: int
    stop: int
    shard: str
    columns: Mapping[str, Column]
    settings: StageSettings
    metadata: Mapping[str, Any]
    content: str


@functools.lru_cache(maxsize=1)
def _table(path: str, written: int) -> pa.Table:  # of that time, as a worker outlives a run
    return read_table(path, schema=SENTENCES_SCHEMA)[0]


def content_of(rows: pa.Table) -> str:
    """Hash what the encoder reads; other columns may change without a new run of the encoder."""
    whole = hashlib.sha256(rows["sentence"].to_numpy().astype(np.int64).tobytes())
    for words in rows["words"].to_pylist():
        whole.update("\x1f".join([*words, "\x1e"]).encode())
    return whole.hexdigest()


def run_task(task: ShardTask, encoder: Encoder) -> ShardTask:
    """Compute the associations of a shard's sentences and write it, whole or not at all.

    Returns:
        ``task``.

    Raises:
        AttreeError: the sentences have changed; or one is too long and the settings refuse that;
            the message names it.
    """
    from attree.encoder.pieces import batches

    table = _table(task.sentences, Path(task.sentences).stat().st_mtime_ns)
    sentences = table.slice(task.start, task.stop - task.start)
    if content_of(sentences) != task.content:  # the shard's name tells what it was to be made from
        problem = "these sentences changed while they were read"
        raise AttreeError("input-changed", problem, file=task.sentences, fix="run again")
    pieces = encoder.tokenise(sentences["words"].to_pylist())
    numbers = sentences["sentence"].to_numpy().astype(np.int32)
    n_words = np.array([sentence.n_words for sentence in pieces], np.int32)
    n_unknown = np.array([sentence.n_unknown for sentence in pieces], np.int32)
    too_long = np.array([sentence.too_long for sentence in pieces], bool)
    short, long = np.flatnonzero(~too_long), np.flatnonzero(too_long)
    if long.size and task.settings.too_long == "error":
        first, most = int(long[0]), encoder.max_pieces
        problem = f"{len(pieces[first].ids)} word pieces are too many: {encoder.slug} takes {most}"
        where = {name: sentences[name][first].as_py() for name in ("file", "line")}
        fix = "set the policy for too long sentences to right_branching or skip"
        raise AttreeError("too-many-pieces", problem, **where, fix=fix)
    unknown = int(n_unknown.sum())
    counts = {"sentences": len(pieces), "too_long": len(long), "unknown_words": unknown}
    matrices = {(column.source, unit) for column in task.columns.values() for unit in column.units}
    groups = batches(
        [len(pieces[row].ids) for row in short],
        tokens_per_batch=task.settings.tokens_per_batch or encoder.tokens_per_batch,
        cells_per_batch=_CELLS_PER_BATCH // max(1, len(matrices)),
    )
    metadata = {**task.metadata, "counts": counts}
    with open_shard(Path(task.shard), task.columns, metadata=metadata) as shard:
        for rows in (short[group] for group in groups):
            values = _values(encoder, [pieces[row] for row in rows], task.columns)
            shard.add(numbers[rows], n_words[rows], n_unknown[rows], status=OK, values=values)
        if long.size:
            none = dict.fromkeys(task.columns, np.empty(0, np.float32))
            shard.add(numbers[long], n_words[long], n_unknown[long], status=TOO_LONG, values=none)
    return task


def _values(
    encoder: Encoder, batch: Sequence[Pieces], columns: Mapping[str, Column]
) -> dict[str, NDArray[Any]]:
    """Run a batch once for each source; return column → its flattened matrices."""
    n_words = [sentence.n_words for sentence in batch]
    values = {}
    for source in dict.fromkeys(column.source for column in columns.values()):
        of_source = {name: col for name, col in columns.items() if col.source == source}
        units = sorted({unit for column in of_source.values() for unit in column.units})
        matrices = load_source(source).matrices(encoder, batch, units)
        for name, column in of_source.items():
            chosen = matrices
            if list(column.units) != units:
                chosen = matrices[:, [units.index(unit) for unit in column.units]]
            if column.mean:
                chosen = chosen.mean(dim=1, keepdim=True)
            values[name] = flatten(chosen, n_words)
    return values


def flatten(matrices: torch.Tensor, n_words: Sequence[int]) -> NDArray[Any]:
    """Flatten (batch, units, words, words) without padding, sentence after sentence."""
    padded = matrices.cpu().numpy()
    units = padded.shape[1]
    flat = np.empty(units * sum(n * n for n in n_words), dtype=padded.dtype)
    start = 0
    for sentence, n in zip(padded, n_words, strict=True):
        end = start + units * n * n
        flat[start:end].reshape(units, n, n)[...] = sentence[:, :n, :n]
        start = end
    return flat
