"""Compute shards on Dask workers, of this machine or of any scheduler.

Every worker loads the encoder once, by a plugin, so that a worker that restarts after a crash has
it too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from distributed import Worker, WorkerPlugin, as_completed, get_worker

from attree.association.compute import ShardTask, StageSettings, run_task
from attree.base.cluster import Wanted, connected, register
from attree.encoder.source import ResolvedEncoder

if TYPE_CHECKING:
    from attree.encoder.load import Encoder

#: How often a shard is tried on another worker after its worker died.
_RETRIES = 2

_PLUGIN = "attree-encoder"


class EncoderPlugin(WorkerPlugin):
    """Loads the encoder into a worker."""

    name = _PLUGIN

    def __init__(self, encoder: ResolvedEncoder, settings: StageSettings) -> None:
        self.encoder, self.settings = encoder, settings
        self.loaded: Encoder | None = None

    def setup(self, worker: Worker) -> None:
        """Load the encoder; Dask calls this when a worker starts."""
        from attree.encoder.load import load_encoder

        device, threads = self._device(worker), self.settings.threads
        self.loaded = load_encoder(self.encoder, device=device, threads=threads)

    def _device(self, worker: Worker) -> str | None:
        """Return this worker's device; workers take the GPUs in turn."""
        import torch

        if self.settings.device is not None or torch.cuda.device_count() < 2:
            return self.settings.device
        number = int(worker.name) if str(worker.name).isdigit() else 0
        return f"cuda:{number % torch.cuda.device_count()}"


def run_on_workers(
    tasks: Sequence[ShardTask], encoder: ResolvedEncoder, settings: StageSettings
) -> Iterator[ShardTask]:
    """Compute shards on workers and yield each task when it is done, in any order."""
    kind, options = "local", {}
    if settings.scheduler:
        kind, options = "address", {"address": settings.scheduler}
    count = min(settings.workers, len(tasks))
    wanted = Wanted(count=count, threads=settings.threads, options=options)
    with connected(kind, wanted) as (client, _, _):
        register(client, EncoderPlugin(encoder, settings))
        futures = client.map(_run, tasks, pure=False, retries=_RETRIES)
        for future in as_completed(futures, loop=client.loop):
            yield future.result()
            future.release()


def _run(task: ShardTask) -> ShardTask:
    plugin = get_worker().plugins[_PLUGIN]
    assert isinstance(plugin, EncoderPlugin) and plugin.loaded is not None
    return run_task(task, plugin.loaded)
