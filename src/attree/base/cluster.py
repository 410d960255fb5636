"""Start a Dask cluster, or connect to one, for the length of a block.

A cluster is processes of this machine, Slurm jobs, or any scheduler by its address. To add a kind,
write a class here and a line in :data:`CLUSTERS`. A stage decides what its workers run.

A Dask scheduler runs any code that a client sends. So clusters that are started here use TLS with a
certificate made for the run: its key stays in memory, or in files that only the user can read.
Scratch files lie in a folder that only the user can enter.
"""

import contextlib
import functools
import getpass
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import dask
from distributed import Client, Nanny, Scheduler, SpecCluster, WorkerPlugin
from distributed.security import Security

from attree.base.errors import AttreeError
from attree.base.process import temporary, track_quietly

LOOPBACK = "127.0.0.1"
_SECONDS_FOR_QUEUE = 30

#: glibc's own thresholds, set in the script of a batch job, which does not see `_CONFIG`.
_MALLOC = ("MALLOC_TRIM_THRESHOLD_=67108864", "MALLOC_MMAP_THRESHOLD_=33554432")

_SECONDS_TO_CONNECT = 30
#: How often workers are started that die while they start.
_TRIES = 3

_Started = TypeVar("_Started")

_CONFIG = {
    "distributed.scheduler.worker-saturation": 1.0,
    # a worker is as large as its encoder: paused or ended for its size, it would never continue
    "distributed.worker.memory.terminate": False,
    "distributed.worker.memory.pause": False,
    "distributed.admin.large-graph-warning-threshold": "1GB",
    # Dask's nanny sets it, and every large tensor is then fresh memory: a third slower
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
    # no HTTP request is answered, whatever its host
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The workers that a stage wants.

    Attributes:
        count: how many.
        slots: how many tasks each worker runs at once.
        threads: of each worker's encoder; by default its share of the machine.
        gpus: of this machine, assigned to its workers in turn.
        folder: where batch jobs write their logs.
        options: of this kind of cluster.
        allowed_failures: how many worker deaths a task survives.
    """

    count: int
    slots: int = 1
    threads: int | None = None
    gpus: int = 0
    folder: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    allowed_failures: int = 2


def _on_loopback(security: Security) -> dict[str, Any]:
    """Return the arguments of a scheduler or a worker that listens on loopback."""
    return {
        "host": LOOPBACK,
        "protocol": "tls://",
        "security": security,
        "dashboard": False,
        "dashboard_address": f"{LOOPBACK}:0",
    }


class Cluster(ABC):
    """A running cluster of one kind.

    Attributes:
        ours: whether attree started it, so that it can wait for its workers.
        replaces: whether workers that end are replaced.
        scattered: whether its workers run on other machines, which share the output's folder.
    """

    ours: ClassVar[bool] = True
    replaces: ClassVar[bool] = False
    scattered: ClassVar[bool] = False

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        # a certificate made for this run, or those of Dask's configuration
        self.security = Security.temporary() if self.ours else Security()

    @staticmethod
    def parse(asked: Any) -> dict[str, Any]:
        """Return the options of the cluster, given what the command line asks for."""
        return {}

    @abstractmethod
    def running(self, private: Path) -> AbstractContextManager[Any]:
        """Run the cluster with its scratch in ``private``; yield what a client connects to."""

    def queued(self, names: set[Any]) -> set[Any]:
        """Return the workers still queued or running; all of them if the queue does not answer."""
        return names


class Local(Cluster):
    """Processes of this machine, which share its GPUs in turn."""

    @contextlib.contextmanager
    def running(self, private: Path) -> Iterator[Any]:
        """Start the processes."""
        track_quietly()
        wanted = self.wanted
        threads = wanted.threads or max(1, (os.cpu_count() or 1) // wanted.count)
        # of all GPUs, a user may have chosen some
        chosen = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(wanted.gpus)))
        workers = {}
        for number in range(wanted.count):
            environment = {"OMP_NUM_THREADS": str(threads)}
            if wanted.gpus:
                environment["CUDA_VISIBLE_DEVICES"] = chosen.split(",")[number % wanted.gpus]
            options = {
                **_on_loopback(self.security),
                "local_directory": str(private),
                "nthreads": wanted.slots,
                "memory_limit": 0,
                "silence_logs": logging.CRITICAL,
                "env": environment,
            }
            workers[number] = {"cls": Nanny, "options": options}
        scheduler = {"cls": Scheduler, "options": _on_loopback(self.security)}
        how: dict[str, Any] = {"security": self.security, "silence_logs": logging.CRITICAL}
        start = functools.partial(SpecCluster, workers=workers, scheduler=scheduler, **how)
        with _in_spite_of_deaths(start) as running:
            yield running


def _in_spite_of_deaths(start: Callable[[], _Started]) -> _Started:
    """Do what fails where a worker dies meanwhile; do it again, for workers are started anew.

    Raises:
        AttreeError: it fails again and again.
    """
    for attempt in range(1, _TRIES + 1):
        try:
            return start()
        except (RuntimeError, OSError) as error:  # a closed connection among them
            if attempt == _TRIES:
                why = (str(error).strip().splitlines() or [type(error).__name__])[0]
                problem = f"workers die while they start ({why[:200]})"
                fix = "see that there is memory for them, or ask for fewer"
                raise AttreeError("no-workers", problem, fix=fix) from error
            time.sleep(2.0 * attempt)  # until the dead are known to be dead
    raise AssertionError


def register(client: Client, plugin: WorkerPlugin) -> None:
    """Give a plugin to every worker, those that are started later among them.

    Raises:
        AttreeError: workers die again and again.
    """
    _in_spite_of_deaths(lambda: client.register_plugin(plugin))


class Address(Cluster):
    """Any Dask scheduler that a user runs."""

    ours = False

    @staticmethod
    def parse(asked: str) -> dict[str, Any]:
        """Return the address as an option."""
        return {"address": asked}

    @contextlib.contextmanager
    def running(self, private: Path) -> Iterator[Any]:
        """Yield the scheduler's address."""
        yield self.wanted.options["address"]


class Slurm(Cluster):
    """A Slurm job for each worker."""

    replaces = scattered = True

    @staticmethod
    def parse(asked: Iterable[str]) -> dict[str, Any]:
        """Read options ``KEY=VALUE``, of which ``extra`` may be repeated; return Dask's arguments.

        Raises:
            AttreeError: an unknown option, or there is no Slurm on this machine.
        """
        keys = ("queue", "account", "memory", "walltime", "interface", "cores", "extra")
        settings: dict[str, Any] = {"job_extra_directives": []}
        for option in asked:
            key, _, value = option.partition("=")
            if not value or key not in keys:
                problem = f"--slurm {option} is not a setting"
                fix = f"write --slurm KEY=VALUE; keys: {', '.join(keys)}"
                raise AttreeError("bad-cluster-setting", problem, fix=fix)
            if key == "extra":
                settings["job_extra_directives"].append(value)
            elif key != "cores":
                settings[key] = value
            elif re.fullmatch("0*[1-9][0-9]{0,3}", value):
                settings["job_cpu"] = int(value)
            else:
                problem = f"--slurm cores={value} is not a number"
                raise AttreeError("not-a-number", problem, fix="write --slurm cores=4")
        if shutil.which("sbatch") is None:
            problem = "--slurm needs Slurm's command sbatch, which is not on this machine"
            fix = "run on a login node of the cluster, or use --workers"
            raise AttreeError("no-slurm", problem, fix=fix)
        return settings

    @contextlib.contextmanager
    def running(self, private: Path) -> Iterator[Any]:
        """Submit the jobs."""
        from dask_jobqueue import SLURMCluster
        from dask_jobqueue.slurm import SLURMJob

        options = self.wanted.options
        scheduler = _on_loopback(self.security)
        if "interface" in options:
            del scheduler["host"]
        logs = (self.wanted.folder or Path()) / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        usual = {"memory": "4GB", "interface": "lo", "job_cpu": self.wanted.threads or 1}
        job = {"cores": self.wanted.slots, "processes": 1, **usual, **options}
        _check_job(SLURMJob("tls://", "check", **job).job_script())
        with SLURMCluster(
            python=sys.executable,
            job_script_prologue=[f"export {setting}" for setting in _MALLOC],
            log_directory=str(logs),
            scheduler_options=scheduler,
            security=self.security,
            protocol="tls://",
            shared_temp_directory=str(private),
            local_directory=str(private),
            worker_extra_args=["--no-dashboard"],
            silence_logs="error",
            **job,
        ) as self._cluster:
            self._cluster.scale(self.wanted.count)
            yield self._cluster

    def queued(self, names: set[Any]) -> set[Any]:
        """Ask ``squeue`` which workers' jobs are in the queue."""
        if not names:
            return names
        result = _run("squeue", "--noheader", "--format=%i", f"--user={getpass.getuser()}")
        if result is None or result.returncode:
            return names
        jobs, workers = set(result.stdout.split()), self._cluster.workers
        return {name for name in names if name in workers and workers[name].job_id in jobs}


def _run(*command: str, input: str | None = None) -> subprocess.CompletedProcess[str] | None:
    """Run a command of Slurm; return None where it does not answer in time."""
    try:
        return subprocess.run(
            command, input=input, capture_output=True, text=True, timeout=_SECONDS_FOR_QUEUE
        )
    except (OSError, subprocess.SubprocessError):
        return None


def _check_job(script: str) -> None:
    """Ask Slurm whether it accepts a worker's job, since a refused job never starts.

    Raises:
        AttreeError: Slurm refuses it; the message has its reason.
    """
    result = _run("sbatch", "--test-only", input=script)
    # no answer: the controller is busy, so submit the jobs and wait
    if result is not None and result.returncode:
        reason = (result.stderr.strip().splitlines() or ["no reason is given"])[0]
        problem = f"Slurm refuses a worker's job ({reason.removeprefix('sbatch: error: ')})"
        fix = "check each --slurm KEY=VALUE, and that the cluster is up"
        raise AttreeError("slurm-refused", problem, fix=fix)


#: Name → kind of cluster.
CLUSTERS: dict[str, type[Cluster]] = {"local": Local, "address": Address, "slurm": Slurm}


def _drop_from_path(folder: Path) -> None:
    """Remove a worker's scratch folder from its path, so that nothing is imported from it."""
    sys.path[:] = [entry for entry in sys.path if not Path(entry).is_relative_to(folder)]


@contextlib.contextmanager
def connected(kind: str, wanted: Wanted) -> Iterator[tuple[Client, Cluster, Any]]:
    """Start or reach a cluster and connect to it.

    Yields:
        the client, the kind of cluster, and the running cluster (an address if it is not ours).

    Raises:
        AttreeError: the scheduler cannot be reached.
    """
    parts = ("batched", "client", "comm.tcp", "core", "nanny", "scheduler", "utils", "worker")
    # stages report the important errors in one line
    for name in ("asyncio", "tornado.application", *(f"distributed.{part}" for part in parts)):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    cluster = CLUSTERS[kind](wanted)
    with contextlib.ExitStack() as stack:
        # nobody can guess its name, and only this user can enter it (0700)
        parent = wanted.folder if cluster.scattered else None
        made = Path(tempfile.mkdtemp(prefix=".attree-", dir=parent))
        stack.enter_context(temporary(made))
        private = made / "dask-scratch-space"  # Dask adds this part to any other name
        private.mkdir(mode=0o700)
        scratch = {"temporary-directory": str(private)}
        failures = {"distributed.scheduler.allowed-failures": wanted.allowed_failures}
        stack.enter_context(dask.config.set(_CONFIG | failures | scratch))
        running = stack.enter_context(cluster.running(private))
        _drop_from_path(private)
        how: dict[str, Any] = {"set_as_default": False, "security": cluster.security}
        try:
            client = Client(running, timeout=_SECONDS_TO_CONNECT, **how)
        except (OSError, ValueError, TimeoutError) as error:
            problem = f"the Dask scheduler {running} cannot be reached ({error})"
            fix = "check the address, that it runs, and your TLS certificates for it"
            raise AttreeError("no-scheduler", problem, fix=fix) from None
        stack.enter_context(client)
        if cluster.ours:
            setup = functools.partial(_drop_from_path, private)
            _in_spite_of_deaths(lambda: client.register_worker_callbacks(setup))
        yield client, cluster, running
