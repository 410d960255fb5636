"""Compute the associations of a sentence table in shards, on Dask workers, with a manifest."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from attree.association.columns import (
    Column,
    all_of,
    check_selected_with,
    mean_column,
    read_selection,
)
from attree.association.compute import ShardTask, StageSettings, content_of, run_task
from attree.association.shards import shard_metadata
from attree.association.sources import HEADS, check_heads, not_run_by, units
from attree.base.errors import AttreeError
from attree.base.files import lock, write_json
from attree.base.provenance import code_hash, digest, provenance
from attree.base.schemas import SENTENCES_SCHEMA, origin, read_table
from attree.base.terminal import progress, say
from attree.encoder.source import Head, ResolvedEncoder

#: The modules that decide the content of a shard.
CODE = ("attree.association.compute", "attree.encoder.load")


def columns_for(
    encoder: ResolvedEncoder,
    *,
    every: bool = False,
    sets: Iterable[Sequence[Head]] = (),
    selections: Iterable[str | Path] = (),
    sources: Sequence[str] = (HEADS,),
) -> dict[str, Column]:
    """Return the columns of a manifest: every head separately, or the mean of each distinct set.

    Args:
        encoder: the encoder of the heads.
        every: whether each source has a column of all its units (``all`` for heads).
        sets: sets of units to average, for each source.
        selections: files that ``attree heads`` wrote; each names a source and units to average.
        sources: names of :data:`attree.association.sources.SOURCES`.

    Raises:
        AttreeError: nothing to compute, an unknown head, or a selection made with another encoder.
    """
    size = encoder.n_layers, encoder.n_heads
    columns = {}
    for source in sources if every else ():
        heads = tuple(units(source, *size))
        columns[all_of(source)] = Column(heads, mean=False, source=source)
    wanted = [(source, heads) for source in sources for heads in sets]
    for path in selections:
        selection = read_selection(path)
        fix = "rank the heads of this encoder with `attree heads`"
        check_selected_with(selection, encoder.slug, encoder.fingerprint, file=Path(path), fix=fix)
        wanted.append((selection["source"], selection["heads"]))
    columns |= dict(mean_column(check_heads(x, heads, *size), source=x) for x, heads in wanted)
    if not columns:
        raise AttreeError("no-heads", "no heads are named", fix="give --heads or --selection")
    return columns


def compute_attention(
    sentences: Path,
    encoder: ResolvedEncoder,
    columns: Mapping[str, Column],
    output: Path,
    settings: StageSettings,
) -> dict[str, Any]:
    """Compute the associations of a sentence table and write a manifest of shards.

    A complete shard of the same key (code, encoder, source, heads, dtype, policy and words) is not
    computed again; shards of other keys are removed at the end.

    Returns:
        the manifest.

    Raises:
        AttreeError: bad input, or another process is writing the same output.
    """
    if encoder.dtype == "auto":
        from attree.encoder.device import settle_dtype

        encoder = settle_dtype(encoder, settings.device, elsewhere=settings.scheduler is not None)
    table, metadata = read_table(sentences, schema=SENTENCES_SCHEMA)
    with lock(output.with_name(f".{output.name}.lock"), what="this attention"):
        tasks = list(_tasks(sentences, table, encoder, columns, output, settings))
        keys = [(shard_metadata(Path(task.shard)) or {}).get("key") for task in tasks]
        todo = [x for x, key in zip(tasks, keys, strict=True) if key != x.metadata["key"]]
        missing = sum(task.stop - task.start for task in todo)
        if done := table.num_rows - missing:
            say(f"attention: {done:,} of {table.num_rows:,} sentences are computed already")
        if todo:
            with progress("attention", total=missing) as advance:
                for task in _compute_shards(todo, encoder, settings):
                    advance(task.stop - task.start)
        manifest = _manifest(metadata, encoder, columns, tasks, settings)
        write_json(output, manifest)
        _remove_stale(output, tasks)
    return manifest


def _tasks(
    sentences: Path,
    table: pa.Table,
    encoder: ResolvedEncoder,
    columns: Mapping[str, Column],
    output: Path,
    settings: StageSettings,
) -> Iterator[ShardTask]:
    common = {
        "code": code_hash(*CODE, not_run=not_run_by(column.source for column in columns.values())),
        "encoder": encoder.fingerprint,
        "dtype": encoder.dtype,
        "columns": {name: asdict(column) for name, column in columns.items()},
        "too_long": settings.too_long,
    }
    for index, start in enumerate(range(0, table.num_rows, settings.partition_size)):
        stop = min(start + settings.partition_size, table.num_rows)
        content = content_of(table.slice(start, stop - start))
        key = digest({**common, "content": content})
        shard = _folder(output) / f"{key}-{index:05d}.parquet"
        where = str(sentences), start, stop, str(shard)
        yield ShardTask(*where, columns, settings, {"key": key, **common}, content)


def _compute_shards(
    todo: Sequence[ShardTask], encoder: ResolvedEncoder, settings: StageSettings
) -> Iterator[ShardTask]:
    """Compute shards in this process or on workers, and yield each task when it is done."""
    if settings.scheduler or (settings.workers > 1 and len(todo) > 1):
        from attree.stages.workers import run_on_workers

        yield from run_on_workers(todo, encoder, settings)
    else:  # a worker process would load a second encoder
        from attree.encoder.load import load_encoder

        loaded = load_encoder(encoder, device=settings.device, threads=settings.threads)
        for task in todo:
            yield run_task(task, loaded)


def _manifest(
    metadata: Mapping[str, Any],
    encoder: ResolvedEncoder,
    columns: Mapping[str, Column],
    tasks: Sequence[ShardTask],
    settings: StageSettings,
) -> dict[str, Any]:
    counts: Counter[str] = Counter(sentences=0, too_long=0, unknown_words=0)
    shards = []
    for task in tasks:
        path = Path(task.shard)
        counted = (shard_metadata(path) or {}).get("counts", {})
        counts.update(counted)
        shards.append({"file": f"{path.parent.name}/{path.name}", **counted})
    described = {"slug": encoder.slug, "fingerprint": encoder.fingerprint}
    return {
        "columns": {k: {**asdict(x), "matrices": x.matrices} for k, x in columns.items()},
        "shards": shards,
        "counts": dict(counts),
        "too_long": settings.too_long,
        "encoder": described,
        **origin(metadata),
        "provenance": provenance(
            code=CODE,
            settings={"too_long": settings.too_long, "columns": sorted(columns)},
            encoder={**described, "revision": encoder.revision, "dtype": encoder.dtype},
            versions=encoder.versions,
        ),
    }


def _folder(output: Path) -> Path:
    return output.with_name(f"{output.stem}.shards")


def _remove_stale(output: Path, tasks: Iterable[ShardTask]) -> None:
    """Remove shards of other keys, and partial files of killed writers."""
    current, folder = {Path(task.shard) for task in tasks}, _folder(output)
    for file in folder.glob("*"):
        if file not in current and (file.suffix == ".parquet" or file.name.endswith(".part")):
            file.unlink(missing_ok=True)
