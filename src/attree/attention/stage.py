"""The attention stage: partitions of a sentence table → shards → a manifest, on Dask workers."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from attree.attention.columns import (
    ALL,
    PRECISIONS,
    Column,
    Head,
    checked,
    mean_column,
    read_selection,
)
from attree.attention.job import LOCAL, Job, Settings, run_job
from attree.attention.shards import shard_metadata
from attree.encoder.source import ResolvedEncoder
from attree.errors import AttreeError
from attree.files import lock, write_json
from attree.parses import POLICIES
from attree.progress import progress
from attree.provenance import code_hash, digest, provenance
from attree.schemas import SENTENCES, read_table

#: What decides what stands in a shard.
CODE = ("attree.attention.job", "attree.encoder.load")


def columns_for(
    encoder: ResolvedEncoder,
    *,
    every: bool = False,
    sets: Iterable[Sequence[Head]] = (),
    selections: Iterable[str | Path] = (),
    precision: str = PRECISIONS[0],
) -> dict[str, Column]:
    """Return the columns of a manifest: every head by itself, or the mean of each distinct set.

    Args:
        encoder: whose heads they are.
        every: the column ``all``.
        sets: heads to average.
        selections: files that ``attree heads`` wrote; each names heads to average.
        precision: the type that values are kept in, one of ``shards.PRECISIONS``.

    Raises:
        AttreeError: nothing to compute, a head that does not exist, or a selection made with
            another encoder.
    """
    if precision not in PRECISIONS:
        raise AttreeError(
            f"unknown precision {precision}", fix="choose one of " + ", ".join(PRECISIONS)
        )
    found = {}
    if every:
        heads = [(la, he) for la in range(encoder.n_layers) for he in range(encoder.n_heads)]
        found[ALL] = Column(tuple(heads), mean=False, dtype=precision)
    wanted = [checked(heads, encoder.n_layers, encoder.n_heads) for heads in sets]
    for path in selections:
        selection = read_selection(path)
        if selection.get("encoder", encoder.fingerprint) != encoder.fingerprint:
            raise AttreeError(
                f"these heads were selected with another encoder than {encoder.slug}",
                file=path,
                fix="rank the heads of this encoder with `attree heads`",
            )
        wanted.append(checked(selection["heads"], encoder.n_layers, encoder.n_heads))
    found |= dict(mean_column(heads, precision) for heads in wanted)
    if not found:
        raise AttreeError("no heads are asked for", fix="give --heads or --selections")
    return found


def compute_attention(
    sentences: Path,
    encoder: ResolvedEncoder,
    columns: Mapping[str, Column],
    output: Path,
    settings: Settings,
) -> dict[str, Any]:
    """Compute the associations of a sentence table and write a manifest of shards.

    A whole shard of the same key (code, encoder, heads, dtype, policy, and the words themselves) is
    not computed again; shards of other keys are removed at the end.

    Returns:
        the manifest.

    Raises:
        AttreeError: bad input, or another process is writing the same output.
    """
    if settings.too_long not in POLICIES:
        raise AttreeError(
            f"unknown policy for too long sentences: {settings.too_long}",
            fix="choose one of " + ", ".join(POLICIES),
        )
    table, about = read_table(sentences, schema=SENTENCES, what="sentence table")
    with lock(output.with_name(f".{output.name}.lock"), what="this attention"):
        jobs = _jobs(sentences, table, encoder, columns, output, settings)
        todo = [job for job in jobs if not _is_whole(job)]
        _compute(todo, table.num_rows, encoder, settings)
        manifest = _manifest(about, encoder, columns, jobs, settings)
        write_json(output, manifest)
        _remove_stale(output, jobs)
    return manifest


def _compute(
    todo: Sequence[Job], n_sentences: int, encoder: ResolvedEncoder, settings: Settings
) -> None:
    missing = sum(job.stop - job.start for job in todo)
    if missing < n_sentences:
        there = f"{n_sentences - missing:,} of {n_sentences:,} sentences are there already"
        print(f"attention: {there}", file=sys.stderr, flush=True)
    if todo:
        with progress("attention", total=missing) as advance:
            for job in _computed(todo, encoder, settings):
                advance(job.stop - job.start)


def _jobs(
    sentences: Path,
    table: pa.Table,
    encoder: ResolvedEncoder,
    columns: Mapping[str, Column],
    output: Path,
    settings: Settings,
) -> list[Job]:
    common = {
        "code": code_hash(*CODE),
        "encoder": encoder.fingerprint,
        "dtype": encoder.dtype,
        "columns": {name: asdict(column) for name, column in columns.items()},
        "too_long": settings.too_long,
    }
    jobs = []
    for index, start in enumerate(range(0, table.num_rows, settings.partition_size)):
        stop = min(start + settings.partition_size, table.num_rows)
        key = digest({**common, "content": _content(table.slice(start, stop - start))})
        shard = _folder(output) / f"{key}-{index:05d}.parquet"
        metadata = {"key": key, **common}
        jobs.append(Job(str(sentences), start, stop, str(shard), columns, settings, metadata))
    return jobs


def _content(rows: pa.Table) -> str:
    """Hash what the encoder is given: other columns may change without a new run of it."""
    whole = hashlib.sha256(rows["sentence"].to_numpy().astype(np.int64).tobytes())
    for words in rows["words"].to_pylist():
        whole.update("\x1f".join([*words, "\x1e"]).encode())
    return whole.hexdigest()


def _is_whole(job: Job) -> bool:
    found = shard_metadata(Path(job.shard))
    return found is not None and found.get("key") == job.metadata["key"]


def _computed(todo: Sequence[Job], encoder: ResolvedEncoder, settings: Settings) -> Iterator[Job]:
    """Compute what is to be done, here or on workers, and yield each job once it is done."""
    if settings.scheduler != LOCAL or (settings.workers > 1 and len(todo) > 1):
        from attree.attention.cluster import run_on_workers

        yield from run_on_workers(todo, encoder, settings)
    else:  # a worker process of its own would cost a second encoder's start
        from attree.encoder.load import load_encoder

        loaded = load_encoder(encoder, device=settings.device, threads=settings.threads)
        for job in todo:
            yield run_job(job, loaded)


def _manifest(
    about: Mapping[str, Any],
    encoder: ResolvedEncoder,
    columns: Mapping[str, Column],
    jobs: Sequence[Job],
    settings: Settings,
) -> dict[str, Any]:
    counts: Counter[str] = Counter(sentences=0, too_long=0, unknown_words=0)
    shards = []
    for job in jobs:
        path = Path(job.shard)
        found = shard_metadata(path) or {}
        counts.update(found.get("counts", {}))
        shards.append({"file": f"{path.parent.name}/{path.name}", **found.get("counts", {})})
    described = {"slug": encoder.slug, "fingerprint": encoder.fingerprint}
    return {
        "columns": {
            name: {**asdict(column), "matrices": column.matrices}
            for name, column in columns.items()
        },
        "shards": shards,
        "counts": dict(counts),
        "too_long": settings.too_long,
        "encoder": described,
        "language": about.get("language"),
        "split": about.get("split"),
        "provenance": provenance(
            code=CODE,
            settings={"too_long": settings.too_long, "columns": sorted(columns)},
            encoder={**described, "revision": encoder.revision, "dtype": encoder.dtype},
            versions=encoder.versions,
        ),
    }


def _folder(output: Path) -> Path:
    return output.with_name(f"{output.stem}.shards")


def _remove_stale(output: Path, jobs: Iterable[Job]) -> None:
    """Remove shards of other keys, and what killed writers left of them."""
    current = {Path(job.shard) for job in jobs}
    folder = _folder(output)
    if not folder.is_dir():
        return
    for file in folder.iterdir():
        if file not in current and (file.suffix == ".parquet" or file.name.endswith(".part")):
            file.unlink(missing_ok=True)
