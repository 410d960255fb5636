"""Dask workers: processes of this machine, Slurm jobs, or those of any scheduler.

Each worker holds one :class:`~attree.corpus.pipeline.Pipeline` and takes several shards in hand,
so that its encoder never waits. Everything listens on loopback unless another address is asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import importlib.util
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import dask
from distributed import Client, Nanny, Scheduler, SpecCluster, WorkerPlugin, get_worker

from attree.attention.cluster import KEEP_MEMORY
from attree.corpus.folder import SECONDS_BETWEEN_SIGNS, Writer
from attree.corpus.pipeline import Pipeline
from attree.corpus.places import Job, Place, gpus
from attree.corpus.work import IN_HAND, Done, Work
from attree.errors import AttreeError

_PLUGIN = "attree-corpus"
_LOOPBACK = "127.0.0.1"
_SECONDS_TO_CONNECT = 30
#: After that a Slurm job whose worker has gone, or that no queue knows, is given up for another.
_SECONDS_TO_COME_BACK = 20.0
#: After that a run whose workers have all gone ends; a Slurm queue may take any time.
_SECONDS_WITHOUT_WORKERS = 120.0
#: The client hears of new workers late: so long a lack of them is not worth a word.
_SECONDS_UNSAID = 5.0

_CONFIG = {
    # the driver counts failures itself and tries again, in the end each shard by itself
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.worker-saturation": 1.0,
    # a worker is as large as its encoder: to stop it there would stop it for ever
    "distributed.worker.memory.terminate": False,
    "distributed.worker.memory.pause": False,
    "distributed.admin.large-graph-warning-threshold": "1GB",
    **KEEP_MEMORY,
}
#: What glibc comes to by itself where nothing is set; a Slurm job does not hear of `_CONFIG`.
_MALLOC = ("MALLOC_TRIM_THRESHOLD_=67108864", "MALLOC_MMAP_THRESHOLD_=33554432")


class WorkerSide(WorkerPlugin):
    """Loads the parser when a worker starts, also when it starts anew."""

    name = _PLUGIN

    def __init__(self, job: Job) -> None:
        self.job = job
        self.pipeline: Pipeline | None = None
        self._writer: Writer | None = None

    async def setup(self, worker: Any) -> None:
        """Load in a thread, so that the worker stays in touch with its scheduler meanwhile."""
        with contextlib.suppress(ValueError):
            # Ctrl-C in a terminal reaches every process of it; the driver decides what it means
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._writer = Writer(Path(self.job.folder))
        threading.Thread(target=_sign, args=(self._writer,), daemon=True).start()
        self.pipeline = await asyncio.to_thread(self.job.pipeline)

    def teardown(self, worker: Any) -> None:
        """Take the writer's mark away."""
        if self._writer is not None:
            self._writer.close()


def _sign(writer: Writer) -> None:
    while True:
        time.sleep(SECONDS_BETWEEN_SIGNS)
        writer.sign()


def _parse(work: Work) -> Done:
    plugin: Any = get_worker().plugins[_PLUGIN]
    done: Done = plugin.pipeline.submit(work).result()
    return done


class DaskWorkers:
    """Shards on Dask workers (a :class:`attree.corpus.driver.Workers`)."""

    def __init__(self, client: Client, cluster: Any, wanted: int) -> None:
        self._client, self._cluster, self._wanted = client, cluster, wanted
        # its futures have their results with them: that of a worker which dies before it is read
        # is made again meanwhile, and does not hold up what looks after the workers
        self._executor = client.get_executor(pure=False)
        self._seen: set[Any] = set()
        self._away: dict[Any, float] = {}  # since when
        self._alone_since: float | None = None
        self._said_alone = False
        self._checked = 0.0
        self._names: set[Any] = set()
        self._look()

    @property
    def slots(self) -> int:
        """Shards in hand: so many a worker, one more so that none waits for its next."""
        return max(1, len(self._names)) * IN_HAND + 1

    def submit(self, work: Work) -> Any:
        """Start a shard on some worker."""
        return self._executor.submit(_parse, work)

    def lost(self, error: BaseException) -> str | None:
        """Say whether the scheduler has gone."""
        if isinstance(error, CancelledError) or self._client.status != "running":
            return "the Dask scheduler was lost"
        return None

    def check(self) -> None:
        """Notice workers that have gone, and ask for others where they are ours to ask for."""
        now = time.monotonic()
        if now - self._checked < 1.0:
            return
        self._checked = now
        if self._client.status != "running":
            raise AttreeError(
                "the Dask scheduler was lost",
                fix="what is written stays: run the same command again to go on",
            )
        self._look()
        if self._names:
            self._alone_since, self._said_alone = None, False
        elif self._alone_since is None:
            self._alone_since = now
        elif not self._said_alone and now - self._alone_since > _SECONDS_UNSAID:
            self._said_alone = True
            print("attree: waiting for workers", file=sys.stderr, flush=True)
        elif now - self._alone_since > _SECONDS_WITHOUT_WORKERS and not self._replaces:
            raise AttreeError(
                "no Dask worker is left", fix="start some, then run the same command again"
            )
        if self._replaces:
            self._replace(now)

    @property
    def _replaces(self) -> bool:
        return self._cluster is not None and hasattr(self._cluster, "job_cls")

    def _look(self) -> None:
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        self._names = {worker["name"] for worker in workers}
        self._seen |= self._names

    def _replace(self, now: float) -> None:
        """Slurm does not start a cancelled job again, and ``scale`` alone takes it to be there."""
        away = set(self._cluster.worker_spec) - self._names
        self._away = {name: self._away.get(name, now) for name in away}
        late = {n for n, since in self._away.items() if now - since > _SECONDS_TO_COME_BACK}
        waiting = _queued(self._cluster, late - self._seen)
        self._away |= dict.fromkeys(waiting, now)
        if given_up := late - waiting:
            self._cluster.sync(self._cluster.scale_down, given_up)
            self._cluster.scale(self._wanted)


def _queued(cluster: Any, names: set[Any]) -> set[Any]:
    """Return those of the workers whose jobs wait or start in Slurm; all if it does not answer."""
    if not names:
        return names
    command = ["squeue", "--noheader", "--format=%i", f"--user={getpass.getuser()}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return names
    jobs = set(done.stdout.split())
    return {
        name for name in names if name in cluster.workers and cluster.workers[name].job_id in jobs
    }


@contextlib.contextmanager
def dask_workers(place: Place, job: Job, count: int) -> Iterator[DaskWorkers]:
    """Start or reach Dask workers and load the parser into them."""
    for name in ("batched", "client", "comm.tcp", "core", "nanny", "scheduler", "utils", "worker"):
        # what matters of it is said by the driver, in one line
        logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL + 1)
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(_CONFIG))
        cluster: Any = None
        if place.scheduler is None:
            start = _slurm if place.slurm is not None else _local
            with warnings.catch_warnings():
                # a port that is taken: another is, and its address is said
                warnings.simplefilter("ignore", UserWarning)
                cluster = stack.enter_context(start(place, job, count))
            if _has_dashboard(place):
                print(f"attree: dashboard: {cluster.dashboard_link}", file=sys.stderr, flush=True)
        client = stack.enter_context(_connected(place.scheduler or cluster))
        client.register_plugin(WorkerSide(job))
        if place.scheduler is None and place.slurm is None:
            client.wait_for_workers(count)
        try:
            yield DaskWorkers(client, cluster, count)
        finally:
            if client.status == "running" and place.scheduler is not None:
                client.unregister_worker_plugin(_PLUGIN)


def _connected(target: Any) -> Client:
    try:
        return Client(target, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise AttreeError(
            f"the Dask scheduler {target} cannot be reached ({error})",
            fix="check the address, and that it runs",
        ) from None


def _scheduler(place: Place) -> dict[str, Any]:
    return {
        "host": _LOOPBACK,
        "dashboard": _has_dashboard(place),
        # without a dashboard there is still a small server of metrics: it shall not be seen either
        "dashboard_address": place.dashboard or f"{_LOOPBACK}:0",
    }


def _has_dashboard(place: Place) -> bool:
    return place.dashboard is not None and importlib.util.find_spec("bokeh") is not None


def _local(place: Place, job: Job, count: int) -> SpecCluster:
    """Start worker processes of this machine, each with a GPU of its own where there are some."""
    found = gpus(job.device)
    threads = job.threads or max(1, (os.cpu_count() or 1) // count)
    workers = {}
    for number in range(count):
        environment = {"OMP_NUM_THREADS": str(threads)}
        if found:
            environment["CUDA_VISIBLE_DEVICES"] = str(number % found)
        options = {
            "host": _LOOPBACK,
            "nthreads": IN_HAND,
            "memory_limit": 0,
            "dashboard": False,
            "silence_logs": logging.CRITICAL,
            "env": environment,
        }
        workers[number] = {"cls": Nanny, "options": options}
    scheduler = {"cls": Scheduler, "options": _scheduler(place)}
    return SpecCluster(workers=workers, scheduler=scheduler, silence_logs=logging.CRITICAL)


def _slurm(place: Place, job: Job, count: int) -> Any:
    """Ask Slurm for one job a worker."""
    from dask_jobqueue import SLURMCluster

    options = dict(place.slurm or {})
    extra = options.pop("extra", [])
    scheduler = _scheduler(place)
    if "interface" in options:
        del scheduler["host"]
    options.setdefault("interface", "lo")
    logs = Path(job.folder) / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    cluster = SLURMCluster(
        job_cpu=int(options.pop("cores", job.threads or 1)),
        memory=options.pop("memory", "4GB"),
        cores=IN_HAND,
        processes=1,
        python=sys.executable,
        job_extra_directives=extra,
        job_script_prologue=[f"export {setting}" for setting in _MALLOC],
        log_directory=str(logs),
        scheduler_options=scheduler,
        worker_extra_args=["--no-dashboard"],
        silence_logs="error",
        **options,
    )
    cluster.scale(count)
    return cluster
