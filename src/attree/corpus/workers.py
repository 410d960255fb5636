"""The workers of a run: the pipeline in this process, or Dask's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future

from attree.corpus.driver import Workers
from attree.corpus.places import Job, Place, gpus
from attree.corpus.work import IN_HAND, Done, Work


@contextlib.contextmanager
def workers(place: Place, job: Job) -> Iterator[Workers]:
    """Start or reach the workers that ``place`` asks for, and let go of them at the end."""
    if place.scheduler is None and place.slurm is None:
        count = place.workers or max(1, gpus(job.device))
        if count == 1:
            yield Here(job)
            return
    else:
        count = place.workers or 1
    from attree.corpus.cluster import dask_workers

    with dask_workers(place, job, count) as found:
        yield found


class Here:
    """The pipeline in this process."""

    slots = IN_HAND

    def __init__(self, job: Job) -> None:
        self._pipeline = job.pipeline()

    def submit(self, work: Work) -> Future[Done]:
        """Start a shard."""
        return self._pipeline.submit(work)

    def lost(self, error: BaseException) -> str | None:
        """Nothing here is lost without this process."""
        return None

    def check(self) -> None:
        """Nothing to look after."""
