"""Where shards are parsed: the pipeline in this process, or Dask workers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from attree.corpus.pipeline import IN_FLIGHT, Done, Work, WorkerSetup


@dataclass(frozen=True, slots=True)
class Place:
    """Where the work is done.

    Attributes:
        workers: how many; 0 for one a GPU, or one where there is none.
        cluster: a key of :data:`attree.cluster.CLUSTERS`, or None for what one machine needs.
        options: of that cluster, such as Slurm's queue, or the address of a scheduler.
        dashboard: address that Dask's dashboard listens on, or None for no dashboard.
    """

    workers: int = 0
    cluster: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    dashboard: str | None = None


class Workers(Protocol):
    """Where shards are parsed: this process, or Dask workers."""

    @property
    def slots(self) -> int:
        """Shards that can be in flight at once."""

    def submit(self, work: Work) -> Any:
        """Start a shard; return a future with ``result()`` and ``add_done_callback()``."""

    def lost(self, error: BaseException) -> str | None:
        """Return why no worker can go on, if ``error`` means that."""

    def check(self) -> None:
        """Look after the workers; called every second or so."""


class InProcess:
    """The pipeline in this process."""

    slots = IN_FLIGHT

    def __init__(self, setup: WorkerSetup) -> None:
        self._pipeline = setup.pipeline()

    def submit(self, work: Work) -> Future[Done]:
        """Start a shard."""
        return self._pipeline.submit(work)

    def lost(self, error: BaseException) -> str | None:
        """Return None: nothing here is lost without this process."""
        return None

    def check(self) -> None:
        """Nothing to look after."""


@contextlib.contextmanager
def workers(place: Place, setup: WorkerSetup) -> Iterator[Workers]:
    """Start or reach the workers that ``place`` asks for, and release them at the end."""
    count = place.workers or (1 if place.cluster else max(1, gpus(setup.device)))
    if place.cluster is None and count == 1:
        yield InProcess(setup)
        return
    from attree.corpus.dask_workers import dask_workers

    with dask_workers(place, setup, count) as found:
        yield found


def gpus(device: str | None) -> int:
    """Return the number of GPUs that workers may be given."""
    if device is not None and not device.startswith("cuda"):
        return 0
    import torch

    return torch.cuda.device_count() if device in (None, "cuda") else 1
