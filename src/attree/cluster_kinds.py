"""Kinds of Dask clusters: processes of this machine, Slurm jobs, or any scheduler by its address.

Another kind is one class here and its line in :data:`CLUSTERS`. What runs on workers is the
business of the stage that starts them; :mod:`attree.cluster` starts a cluster and connects to it.
"""

from __future__ import annotations

import contextlib
import getpass
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from distributed import Nanny, Scheduler, SpecCluster
from distributed.security import Security

from attree.errors import AttreeError

LOOPBACK = "127.0.0.1"
_SECONDS_FOR_QUEUE = 30

#: What glibc arrives at by itself where nothing is set; a batch job does not see `_CONFIG`.
_MALLOC = ("MALLOC_TRIM_THRESHOLD_=67108864", "MALLOC_MMAP_THRESHOLD_=33554432")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The workers that a stage wants.

    Attributes:
        count: how many.
        slots: tasks that each has at once.
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
    """

    ours: ClassVar[bool] = True
    replaces: ClassVar[bool] = False
    #: option of the command line → argument of the cluster
    options: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def parse(cls, given: Iterable[str]) -> dict[str, Any]:
        """Read options ``KEY=VALUE``; return the cluster's arguments.

        Raises:
            AttreeError: an unknown option, or a cluster that this machine cannot start.
        """
        found: dict[str, Any] = {}
        for option in given:
            key, equals, value = option.partition("=")
            if not equals or not value or key not in cls.options:
                kind = cls.__name__.lower()
                raise AttreeError(
                    f"--{kind} {option} is not a setting",
                    fix=f"write --{kind} KEY=VALUE; keys: {', '.join(cls.options)}",
                )
            found[cls.options[key]] = value
        return found

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.security = self.secured()

    def secured(self) -> Security:
        """Return who may connect: by default only those who have this run's certificate."""
        return Security.temporary()

    def folder(self) -> Path | None:
        """Return where the private folder of the run lies, None for the system's choice."""
        return None

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
        with SpecCluster(workers=workers, scheduler=scheduler, **how) as found:
            yield found


class Address(Cluster):
    """Any Dask scheduler that a user runs."""

    ours = False

    def secured(self) -> Security:
        """Return the certificates that the user named, else those of Dask's configuration."""
        given = {key: value for key, value in self.wanted.options.items() if key != "address"}
        for path in given.values():
            if not Path(path).is_file():
                raise AttreeError("this certificate or key does not exist", file=path)
        return Security(**given, **({"require_encryption": True} if given else {}))

    @contextlib.contextmanager
    def running(self, private: Path) -> Iterator[Any]:
        """Yield its address."""
        yield self.wanted.options["address"]


class Slurm(Cluster):
    """One Slurm job a worker."""

    replaces = True

    options: ClassVar[Mapping[str, str]] = {
        **{name: name for name in ("queue", "account", "memory", "walltime", "interface")},
        **{"cores": "job_cpu", "extra": "job_extra_directives"},
    }

    @classmethod
    def parse(cls, given: Iterable[str]) -> dict[str, Any]:
        """Read the options; ``extra`` may be repeated, ``cores`` is a number."""
        given = list(given)
        extra = [one.partition("=")[2] for one in given if one.startswith("extra=")]
        found = {**super().parse(given), "job_extra_directives": extra}
        cores = found.get("job_cpu", "1")
        if not cores.isascii() or not cores.isdigit() or not 0 < int(cores[:6]) < 10_000:
            raise AttreeError(f"--slurm cores={cores} is not a number", fix="write --slurm cores=4")
        if shutil.which("sbatch") is None:
            raise AttreeError(
                "--slurm needs Slurm's command sbatch, which is not on this machine",
                fix="run on a login node of the cluster, or use --workers",
            )
        return found | ({"job_cpu": int(cores)} if "job_cpu" in found else {})

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted)
        self._cluster: Any = None

    def folder(self) -> Path | None:
        """Return the output folder, which the jobs share with this process."""
        return self.wanted.folder

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
        command = ["squeue", "--noheader", "--format=%i", f"--user={getpass.getuser()}"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS_FOR_QUEUE, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return names
        jobs, workers = set(done.stdout.split()), self._cluster.workers
        return {name for name in names if name in workers and workers[name].job_id in jobs}


def _check_job(script: str) -> None:
    """Ask Slurm whether it takes a worker's job: one that it refuses would be waited for in vain.

    Raises:
        AttreeError: it does not, with its reason.
    """
    command = ["sbatch", "--test-only"]
    try:
        done = subprocess.run(
            command, input=script, capture_output=True, text=True, timeout=_SECONDS_FOR_QUEUE
        )
    except (OSError, subprocess.SubprocessError):
        return  # a busy controller: the jobs are submitted, and waited for
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason is given"])[0]
        raise AttreeError(
            f"Slurm refuses a worker's job ({reason.removeprefix('sbatch: error: ')})",
            fix="check each --slurm KEY=VALUE, and that the cluster is up",
        )


#: Name → kind of cluster. ``--NAME KEY=VALUE`` chooses one that has options.
CLUSTERS: dict[str, type[Cluster]] = {"local": Local, "address": Address, "slurm": Slurm}
