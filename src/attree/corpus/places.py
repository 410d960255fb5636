"""Where shards are parsed: what is asked for, and the pipeline in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attree.corpus.driver import Workers
from attree.corpus.parsers import ParserSource
from attree.corpus.words import tokeniser
from attree.corpus.work import IN_HAND, Done, Settings, Work

if TYPE_CHECKING:
    from attree.corpus.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Job:
    """All that a worker needs besides the shards."""

    parser: ParserSource
    tokeniser: str
    split: bool
    settings: Settings
    folder: str
    device: str | None
    threads: int | None

    def pipeline(self) -> Pipeline:
        """Load the parser and start a pipeline."""
        from attree.corpus.pipeline import Pipeline

        make_words = tokeniser(self.tokeniser, split=self.split)
        loaded = self.parser.load(device=self.device, threads=self.threads)
        return Pipeline(loaded, make_words, self.settings, Path(self.folder))


@dataclass(frozen=True, slots=True)
class Place:
    """Where the work is done.

    Attributes:
        workers: how many; 0 for one a GPU, or one where there is none.
        scheduler: address of a Dask scheduler, if that is to be used.
        slurm: options of ``dask_jobqueue.SLURMCluster`` (queue, account, cores, memory, walltime,
            job_extra_directives…), if Slurm is to be used.
        dashboard: address that Dask's dashboard listens on, or None for no dashboard.
    """

    workers: int = 0
    scheduler: str | None = None
    slurm: dict[str, Any] | None = None
    dashboard: str | None = None


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


def gpus(device: str | None) -> int:
    """Return the number of GPUs that workers may be given."""
    if device is not None and not device.startswith("cuda"):
        return 0
    import torch

    return torch.cuda.device_count() if device in (None, "cuda") else 1


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
