"""A Dask cluster for the length of a block: started, connected to, and ended.

A Dask scheduler runs any code that whoever connects sends it. So clusters that are started here
talk TLS under a certificate made for the run, which nobody else has: its key stays in memory, or in
files that only the user can read. Scratch files lie in a folder that only the user can enter.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dask
from distributed import Client, WorkerPlugin
from distributed.security import Security
from tornado.web import ErrorHandler

from attree.cluster_kinds import CLUSTERS, Cluster, Wanted
from attree.errors import AttreeError
from attree.process import temporary

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
def _private_folder(parent: Path | None) -> Iterator[Path]:
    """Yield a new folder of a name that nobody can guess and only this user can enter (0700)."""
    made = Path(tempfile.mkdtemp(prefix=".attree-", dir=parent))
    scratch = made / "dask-scratch-space"  # Dask adds this part to any other name
    with temporary(made):
        scratch.mkdir(mode=0o700)
        yield scratch


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
        private = stack.enter_context(_private_folder(cluster.folder()))
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
        client = stack.enter_context(_client(running, cluster.security))
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
    found, refused = application.find_handler, application.get_handler_delegate

    def find_handler(request: Any, **more: Any) -> Any:
        if urlsplit(f"//{request.host}").hostname in named:
            return found(request, **more)
        return refused(request, ErrorHandler, {"status_code": 421})

    application.find_handler = find_handler


def _client(target: Any, security: Security) -> Client:
    try:
        return Client(target, timeout=_SECONDS_TO_CONNECT, set_as_default=False, security=security)
    except (OSError, ValueError, TimeoutError) as error:
        raise AttreeError(
            f"the Dask scheduler {target} cannot be reached ({error})",
            fix="check the address, that it runs, and your TLS certificates for it",
        ) from None
