"""Parse shards on Dask workers of any kind of cluster (:mod:`attree.base.cluster`).

Each worker has one :class:`~attree.bulk.pipeline.Pipeline` and several shards in flight, so that
its encoder never waits.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

from distributed import Client, WorkerPlugin, get_worker

from attree.base.cluster import CLUSTERS, Cluster, Wanted, connected, register
from attree.base.errors import AttreeError
from attree.base.terminal import say
from attree.bulk.driver import RUN_AGAIN, gpus
from attree.bulk.folder import Writer
from attree.bulk.manifest import LinesOfFile
from attree.bulk.options import Place
from attree.bulk.pipeline import IN_FLIGHT, Done, Pipeline, WorkerSetup

_PLUGIN = "attree-corpus"
#: Time after which a batch job is replaced whose worker is gone, or which no queue knows.
_SECONDS_TO_COME_BACK = 20.0
#: Time after which a run without workers ends; a queue of batch jobs may take any time.
_SECONDS_WITHOUT_WORKERS = 120.0
#: Time without workers that is not reported, since the client hears of new workers late.
_SECONDS_UNREPORTED = 5.0


class WorkerSide(WorkerPlugin):
    """Loads the parser when a worker starts or restarts."""

    name = _PLUGIN

    def __init__(self, setup: WorkerSetup) -> None:
        self.worker_setup = setup
        self.pipeline: Pipeline | None = None
        self._writer: Writer | None = None

    async def setup(self, worker: Any) -> None:
        """Load the parser in a thread, so that the worker still answers its scheduler."""
        with contextlib.suppress(ValueError):
            # Ctrl-C in a terminal reaches every process; only the driver handles it
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._writer = Writer(Path(self.worker_setup.folder))
        self.pipeline = await asyncio.to_thread(self.worker_setup.pipeline)

    def teardown(self, worker: Any) -> None:
        """Remove the mark of the writer."""
        if self._writer is not None:
            self._writer.close()


def _parse(number: int, sources: Sequence[LinesOfFile]) -> Done:
    plugin: Any = get_worker().plugins[_PLUGIN]
    done: Done = plugin.pipeline.submit(number, sources).result()
    return done


class DaskWorkers:
    """Parses shards on Dask workers (a :class:`attree.bulk.driver.Workers`)."""

    def __init__(self, client: Client, cluster: Cluster, running: Any) -> None:
        self._client, self._cluster, self._running = client, cluster, running
        # its futures carry their results: if a worker dies before its result is read, the result is
        # computed again without blocking the checks on the workers
        self._executor = client.get_executor(pure=False)
        self._seen: set[Any] = set()
        self._away: dict[Any, float] = {}  # worker → when it was missed
        self._alone_since: float | None = None
        self._reported_alone = False
        self._checked = 0.0
        self._names: set[Any] = set()
        self._look()

    @property
    def slots(self) -> int:
        """The number of shards in flight: a few for each worker, and one more in reserve."""
        return max(1, len(self._names)) * IN_FLIGHT + 1

    def submit(self, number: int, sources: Sequence[LinesOfFile]) -> Any:
        """Start a shard on some worker."""
        return self._executor.submit(_parse, number, sources)

    def check(self, error: BaseException | None = None) -> None:
        """Notice lost workers, and replace them if the cluster lets this run do so."""
        if isinstance(error, CancelledError) or self._client.status != "running":
            raise AttreeError("scheduler-lost", "the Dask scheduler was lost", fix=RUN_AGAIN)
        now = time.monotonic()
        if now - self._checked < 1.0:
            return
        self._checked = now
        self._look()
        self._check_alone(now)
        if self._cluster.replaces:
            self._replace(now)

    def _check_alone(self, now: float) -> None:
        if self._names:
            self._alone_since, self._reported_alone = None, False
        elif self._alone_since is None:
            self._alone_since = now  # checks may have been far apart
        elif not self._reported_alone and now - self._alone_since > _SECONDS_UNREPORTED:
            self._reported_alone = True
            say("attree: waiting for workers")
        elif now - self._alone_since > _SECONDS_WITHOUT_WORKERS and not self._cluster.replaces:
            fix = "start workers, then run the same command again"
            raise AttreeError("no-workers", "no Dask worker is left", fix=fix)

    def _look(self) -> None:
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        self._names = {worker["name"] for worker in workers}
        self._seen |= self._names

    def _replace(self, now: float) -> None:
        """Ask again for lost jobs: a queue does not replace them, and ``scale`` counts them."""
        away = set(self._running.worker_spec) - self._names
        self._away = {name: self._away.get(name, now) for name in away}
        late = {n for n, since in self._away.items() if now - since > _SECONDS_TO_COME_BACK}
        waiting = self._cluster.queued(late - self._seen)
        self._away |= dict.fromkeys(waiting, now)
        if given_up := late - waiting:
            self._running.sync(self._running.scale_down, given_up)
            self._running.scale(self._cluster.wanted.count)


@contextlib.contextmanager
def dask_workers(place: Place, setup: WorkerSetup, count: int) -> Iterator[DaskWorkers]:
    """Start or reach Dask workers and load the parser into them."""
    kind, asked = place.cluster or ("local", ())
    wanted = Wanted(
        count=count,
        slots=IN_FLIGHT,
        threads=setup.threads,
        gpus=gpus(setup.device) if setup.device in (None, "cuda") else 0,
        folder=Path(setup.folder),
        options=CLUSTERS[kind].parse(asked),
        allowed_failures=0,  # the driver counts failures, and makes the last try alone
    )
    with connected(kind, wanted) as (client, cluster, running):
        register(client, WorkerSide(setup))
        if cluster.ours and not cluster.replaces:
            client.wait_for_workers(count)
        try:
            yield DaskWorkers(client, cluster, running)
        finally:
            if client.status == "running" and not cluster.ours:
                client.unregister_worker_plugin(_PLUGIN)
