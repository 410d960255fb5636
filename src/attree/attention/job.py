"""One shard of the attention stage: what it is made of, and its making, here or on a worker."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from attree.attention.columns import Column
from attree.schemas import SENTENCES, read_table

if TYPE_CHECKING:
    from attree.attention.compute import Sentences
    from attree.encoder.load import Encoder

#: Where there is no other scheduler: processes of this machine.
LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Settings:
    """How the stage runs.

    Args:
        partition_size: sentences in one shard.
        tokens_per_batch: word pieces that go through the encoder at once; ``None`` for what suits
            the device.
        too_long: one of :data:`attree.parses.POLICIES`.
        workers: local worker processes.
        threads: threads of each worker; ``None`` for torch's own choice.
        scheduler: ``local``, or the address of a Dask scheduler that shares the file system.
        device: as for :func:`attree.encoder.load.load_encoder`.
    """

    partition_size: int = 2000
    tokens_per_batch: int | None = None
    too_long: str = "right_branching"
    workers: int = 1
    threads: int | None = None
    scheduler: str = LOCAL
    device: str | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One shard to compute: rows ``start`` to ``stop`` of the table at ``sentences``."""

    sentences: str
    start: int
    stop: int
    shard: str
    columns: Mapping[str, Column]
    settings: Settings
    metadata: Mapping[str, Any]


def run_job(job: Job, encoder: Encoder) -> Job:
    """Compute one shard; return ``job``."""
    from attree.attention.compute import Task, write_shard

    sentences = _sentences(job.sentences).slice(job.start, job.stop - job.start)
    task = Task(
        columns=job.columns,
        tokens_per_batch=job.settings.tokens_per_batch or encoder.tokens_per_batch,
        refuse_too_long=job.settings.too_long == "error",
    )
    write_shard(encoder, _as_lists(sentences), task, Path(job.shard), job.metadata)
    return job


@functools.lru_cache(maxsize=1)
def _sentences(path: str) -> pa.Table:
    return read_table(path, schema=SENTENCES, what="sentence table")[0]


def _as_lists(table: pa.Table) -> Sentences:
    from attree.attention.compute import Sentences

    return Sentences(
        number=table["sentence"].to_numpy().astype(np.int32),
        words=table["words"].to_pylist(),
        origin=list(zip(table["file"].to_pylist(), table["line"].to_pylist(), strict=True)),
    )
