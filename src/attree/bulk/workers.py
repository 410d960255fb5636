"""Where shards are parsed: the pipeline in this process, or Dask workers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future

from attree.bulk.driver import Workers, gpus
from attree.bulk.options import Place
from attree.bulk.pipeline import IN_FLIGHT, Done, Work, WorkerSetup


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
    from attree.bulk.dask_workers import dask_workers

    with dask_workers(place, setup, count) as found:
        yield found
