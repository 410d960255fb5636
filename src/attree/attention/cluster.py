"""Shards on Dask workers: processes of this machine, or those of any scheduler.

Every worker loads the encoder once, through a plugin, so that a worker that is started again after
a crash has one too.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import dask
from distributed import Client, LocalCluster, WorkerPlugin, as_completed, get_worker

from attree.attention.compute import LOCAL, ShardTask, StageSettings, run_task
from attree.encoder.source import ResolvedEncoder
from attree.errors import AttreeError

if TYPE_CHECKING:
    from distributed import Worker

    from attree.encoder.load import Encoder

#: Times that a shard is tried on another worker after the one that had it has died.
_RETRIES = 2

_SECONDS_TO_CONNECT = 30

#: Dask's nanny sets it, and with it every large tensor is fresh memory: a third slower.
KEEP_MEMORY = {"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None}

_PLUGIN = "attree-encoder"


class EncoderPlugin(WorkerPlugin):
    """Loads the encoder into a worker."""

    name = _PLUGIN

    def __init__(self, encoder: ResolvedEncoder, settings: StageSettings) -> None:
        self.encoder, self.settings = encoder, settings
        self.loaded: Encoder | None = None

    def setup(self, worker: Worker) -> None:
        """Load; called by Dask when a worker starts."""
        from attree.encoder.load import load_encoder

        self.loaded = load_encoder(
            self.encoder, device=self._device(worker), threads=self.settings.threads
        )

    def _device(self, worker: Worker) -> str | None:
        """Return this worker's device: GPUs are dealt out to the workers in turn."""
        import torch

        if self.settings.device is not None or torch.cuda.device_count() < 2:
            return self.settings.device
        number = int(worker.name) if str(worker.name).isdigit() else 0
        return f"cuda:{number % torch.cuda.device_count()}"


def run_on_workers(
    tasks: Sequence[ShardTask], encoder: ResolvedEncoder, settings: StageSettings
) -> Iterator[ShardTask]:
    """Compute shards on workers and yield each task once it is done, in any order."""
    with _client(settings, len(tasks)) as client:
        client.register_plugin(EncoderPlugin(encoder, settings))
        futures = client.map(_run, tasks, pure=False, retries=_RETRIES)
        for future in as_completed(futures):
            yield future.result()
            future.release()


def _run(task: ShardTask) -> ShardTask:
    plugin = get_worker().plugins[_PLUGIN]
    assert isinstance(plugin, EncoderPlugin) and plugin.loaded is not None
    return run_task(task, plugin.loaded)


@contextlib.contextmanager
def _client(settings: StageSettings, n_tasks: int) -> Iterator[Client]:
    """Connect to the scheduler asked for, or start local workers that listen on loopback only."""
    logging.getLogger("distributed").setLevel(logging.ERROR)
    if settings.scheduler != LOCAL:
        try:
            client = Client(settings.scheduler, timeout=_SECONDS_TO_CONNECT)
        except (OSError, ValueError) as error:
            raise AttreeError(
                f"the Dask scheduler {settings.scheduler} cannot be reached ({error})",
                fix="check that it runs, or leave --scheduler out",
            ) from None
        with client:
            yield client
        return
    with (
        dask.config.set(KEEP_MEMORY),
        LocalCluster(
            n_workers=min(settings.workers, n_tasks),
            processes=True,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            # without a dashboard there is still a small server of metrics, on 0.0.0.0:8787
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
