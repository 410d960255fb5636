"""A Dask cluster for the length of a block: its kinds, started, connected to, and ended.

A kind is processes of this machine, Slurm jobs, or any scheduler by its address; another one is a
class here and its line in :data:`CLUSTERS`. What runs on workers is the business of the stage that
starts them.

A Dask scheduler runs any code that whoever connects sends it. So clusters that are started here
talk TLS under a certificate made for the run, which nobody else has: its key stays in memory, or in
files that only the user can read. Scratch files lie in a folder that only the user can enter.
"""

from __future__ import annotations

import contextlib
import getpass
import importlib.util
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import dask
from distributed import Client, Nanny, Scheduler, SpecCluster, WorkerPlugin
from distributed.security import Security
from tornado.web import ErrorHandler

from attree.base.errors import AttreeError
from attree.base.files import check_regular
from attree.base.process import temporary, track_quietly

LOOPBACK = "127.0.0.1"
_SECONDS_FOR_QUEUE = 30

#: What glibc arrives at by itself where nothing is set; a batch job does not see `_CONFIG`.
_MALLOC = ("MALLOC_TRIM_THRESHOLD_=67108864", "MALLOC_MMAP_THRESHOLD_=33554432")

_SECONDS_TO_CONNECT = 30

#: Without a dashboard nothing is told to those who ask by HTTP, whatever host they say they ask.
_UNTOLD: dict[str, list[str]] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
_CONFIG = {
    "distributed.scheduler.worker-saturation": 1.0,
    # a worker is as large as its encoder: paused or ended for that, it would never go on
    "distributed.worker.memory.terminate": False,
    "distributed.worker.memory.pause": False,
    "distributed.admin.large-graph-warning-threshold": "1GB",
    # Dask's nanny sets it, and with it every large tensor is fresh memory: a third slower
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The workers that a stage wants.

    Attributes:
        count: how many.
        slots: tasks that each worker runs at once.
        threads: of each worker's encoder; by default its share of the machine.
        gpus: of this machine, dealt out to its workers in turn.
        folder: for the logs of batch jobs.
        dashboard: address of Dask's dashboard, or None for none.
        options: of the kind of cluster.
        allowed_failures: worker deaths that a task survives.
    """

    count: int
    slots: int = 1
    threads: int | None = None
    gpus: int = 0
    folder: Path | None = None
    dashboard: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    allowed_failures: int = 2

    @property
    def has_dashboard(self) -> bool:
        """Whether there is a dashboard to show."""
        return self.dashboard is not None and importlib.util.find_spec("bokeh") is not None

    def scheduler(self, security: Security) -> dict[str, Any]:
        """Return the arguments of a scheduler that listens on loopback."""
        return {
            "host": LOOPBACK,
            "protocol": "tls://",
            "security": security,
            "dashboard": self.has_dashboard,
            # without a dashboard there is still a small server of metrics, which also stays private
            "dashboard_address": self.dashboard or f"{LOOPBACK}:0",
        }


class Cluster(ABC):
    """A running cluster of one kind.

    Attributes:
        ours: whether attree started it, so that it can wait for its workers.
        replaces: whether workers that have gone are asked for again.
        scattered: whether its workers run on other machines, which share the output's folder.
    """

    ours: ClassVar[bool] = True
    replaces: ClassVar[bool] = False
    scattered: ClassVar[bool] = False

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.security = self.secured()

    def secured(self) -> Security:
        """Return who may connect: by default only those who have this run's certificate."""
        return Security.temporary()

    @abstractmethod
    def running(self, private: Path) -> AbstractContextManager[Any]:
        """Start it for the block, its scratch in ``private``; yield what a client connects to."""

    def queued(self, names: set[Any]) -> set[Any]:
        """Return the workers that a queue will start or has started; all if it does not answer."""
        return names


class Local(Cluster):
    """Processes of this machine, each with a GPU of its own where there are some."""

    @contextlib.contextmanager
    def running(self, private: Path) -> Iterator[Any]:
        """Start the processes."""
        track_quietly()
        wanted = self.wanted
        threads = wanted.threads or max(1, (os.cpu_count() or 1) // wanted.count)
        workers = {}
        for number in range(wanted.count):
            environment = {"OMP_NUM_THREADS": str(threads)}
            if wanted.gpus:
                environment["CUDA_VISIBLE_DEVICES"] = str(number % wanted.gpus)
            options = {
                "host": LOOPBACK,
                "protocol": "tls://",
                "security": self.security,
                "local_directory": str(private),
                "nthreads": wanted.slots,
                "memory_limit": 0,
                "dashboard": False,
                "silence_logs": logging.CRITICAL,
                "env": environment,
            }
            workers[number] = {"cls": Nanny, "options": options}
        scheduler = {"cls": Scheduler, "options": wanted.scheduler(self.security)}
        how: dict[str, Any] = {"security": self.security, "silence_logs": logging.CRITICAL}
        with SpecCluster(workers=workers, scheduler=scheduler, **how) as running:
            yield running


class Address(Cluster):
    """Any Dask scheduler that a user runs."""

    ours = False

    def secured(self) -> Security:
        """Return the certificates that the user named, else those of Dask's configuration."""
        files = {key: value for key, value in self.wanted.options.items() if key != "address"}
        for path in files.values():
            check_regular(path, what="certificate or key")
        return Security(**files, **({"require_encryption": True} if files else {}))

    @contextlib.contextmanager
    def running(self, private: Path) -> Iterator[Any]:
        """Yield its address."""
        yield self.wanted.options["address"]


class Slurm(Cluster):
    """One Slurm job a worker."""

    replaces = scattered = True

    @staticmethod
    def parse(options: Iterable[str]) -> dict[str, Any]:
        """Read options ``KEY=VALUE``, of which ``extra`` may be repeated; return Dask's arguments.

        Raises:
            AttreeError: an unknown option, or there is no Slurm on this machine.
        """
        keys = ("queue", "account", "memory", "walltime", "interface", "cores", "extra")
        settings: dict[str, Any] = {"job_extra_directives": []}
        for option in options:
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
        """Ask for the jobs."""
        from dask_jobqueue import SLURMCluster
        from dask_jobqueue.slurm import SLURMJob

        given = self.wanted.options
        scheduler = self.wanted.scheduler(self.security)
        if "interface" in given:
            del scheduler["host"]
        logs = (self.wanted.folder or Path()) / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        usual = {"memory": "4GB", "interface": "lo", "job_cpu": self.wanted.threads or 1}
        job = {"cores": self.wanted.slots, "processes": 1, **usual, **given}
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
        """Ask ``squeue``."""
        if not names:
            return names
        told = _asked("squeue", "--noheader", "--format=%i", f"--user={getpass.getuser()}")
        if told is None or told.returncode:
            return names
        jobs, workers = set(told.stdout.split()), self._cluster.workers
        return {name for name in names if name in workers and workers[name].job_id in jobs}


def _asked(*command: str, input: str | None = None) -> subprocess.CompletedProcess[str] | None:
    """Return what a command of Slurm's says; None where it does not answer in time."""
    try:
        return subprocess.run(
            command, input=input, capture_output=True, text=True, timeout=_SECONDS_FOR_QUEUE
        )
    except (OSError, subprocess.SubprocessError):
        return None


def _check_job(script: str) -> None:
    """Ask Slurm whether it takes a worker's job: one that it refuses would be waited for in vain.

    Raises:
        AttreeError: it does not, with its reason.
    """
    told = _asked("sbatch", "--test-only", input=script)
    # where the controller is busy the jobs are submitted, and waited for
    if told is not None and told.returncode:
        reason = (told.stderr.strip().splitlines() or ["no reason is given"])[0]
        problem = f"Slurm refuses a worker's job ({reason.removeprefix('sbatch: error: ')})"
        fix = "check each --slurm KEY=VALUE, and that the cluster is up"
        raise AttreeError("slurm-refused", problem, fix=fix)


#: Name → kind of cluster.
CLUSTERS: dict[str, type[Cluster]] = {"local": Local, "address": Address, "slurm": Slurm}


class _NoScratchOnPath(WorkerPlugin):
    """Takes a worker's scratch folder off its path: nothing is imported from there."""

    name = "attree-path"

    def __init__(self, private: Path) -> None:
        self.private = private

    def setup(self, worker: Any) -> None:
        """Forget the folder; called by Dask when a worker starts."""
        _forget(self.private)


def _forget(folder: Path) -> None:
    sys.path[:] = [entry for entry in sys.path if not Path(entry).is_relative_to(folder)]


@contextlib.contextmanager
def connected(kind: str, wanted: Wanted) -> Iterator[tuple[Client, Cluster, Any]]:
    """Start or reach a cluster and connect to it.

    Yields:
        the client, the kind of cluster, and the running cluster (an address if it is not ours).

    Raises:
        AttreeError: the scheduler cannot be reached.
    """
    for name in ("batched", "client", "comm.tcp", "core", "nanny", "scheduler", "utils", "worker"):
        # the stages report what matters of it, in one line
        logging.getLogger(f"distributed.{name}").setLevel(logging.CRITICAL + 1)
    for name in ("asyncio", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    cluster = CLUSTERS[kind](wanted)
    with contextlib.ExitStack() as stack:
        # of a name that nobody can guess, and only this user can enter it (0700)
        parent = wanted.folder if cluster.scattered else None
        made = Path(tempfile.mkdtemp(prefix=".attree-", dir=parent))
        stack.enter_context(temporary(made))
        private = made / "dask-scratch-space"  # Dask adds this part to any other name
        private.mkdir(mode=0o700)
        scratch = {"temporary-directory": str(private)}
        failures = {"distributed.scheduler.allowed-failures": wanted.allowed_failures}
        told = {} if wanted.has_dashboard else _UNTOLD
        stack.enter_context(dask.config.set(_CONFIG | failures | scratch | told))
        with warnings.catch_warnings():
            # a taken port: another one is used, and its address is printed
            warnings.simplefilter("ignore", UserWarning)
            running = stack.enter_context(cluster.running(private))
        _forget(private)
        if cluster.ours and wanted.has_dashboard:
            _check_hosts(running.scheduler, running.dashboard_link)
            print(f"attree: dashboard: {running.dashboard_link}", file=sys.stderr, flush=True)
        how: dict[str, Any] = {"set_as_default": False, "security": cluster.security}
        try:
            client = Client(running, timeout=_SECONDS_TO_CONNECT, **how)
        except (OSError, ValueError, TimeoutError) as error:
            problem = f"the Dask scheduler {running} cannot be reached ({error})"
            fix = "check the address, that it runs, and your TLS certificates for it"
            raise AttreeError("no-scheduler", problem, fix=fix) from None
        stack.enter_context(client)
        if cluster.ours:
            client.register_plugin(_NoScratchOnPath(private))
        yield client, cluster, running


def _check_hosts(scheduler: Any, link: str) -> None:
    """Let a dashboard answer only those who ask for a name of this machine.

    Another name may have been made to lead here by a web page that the same browser shows.
    """
    named = {urlsplit(link).hostname, "localhost", "127.0.0.1", "::1"}
    named |= {name.lower() for name in (socket.gethostname(), socket.getfqdn())}
    application = scheduler.http_application
    find, delegate = application.find_handler, application.get_handler_delegate

    def find_handler(request: Any, **more: Any) -> Any:
        if urlsplit(f"//{request.host}").hostname in named:
            return find(request, **more)
        return delegate(request, ErrorHandler, {"status_code": 421})

    application.find_handler = find_handler
