"""What is asked for: where shards are parsed, and what a worker needs for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attree.corpus.work import Settings
from attree.parser_source import ParserSource
from attree.words import tokeniser

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
        from attree.parser import Parser

        make_words = tokeniser(self.tokeniser, split=self.split)
        loaded = Parser.of(
            self.parser,
            device=self.device,
            threads=self.threads,
            max_words=self.settings.max_words,
            tokens_per_batch=self.settings.tokens_per_batch,
        )
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


def gpus(device: str | None) -> int:
    """Return the number of GPUs that workers may be given."""
    if device is not None and not device.startswith("cuda"):
        return 0
    import torch

    return torch.cuda.device_count() if device in (None, "cuda") else 1
