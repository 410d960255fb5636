"""Clusters that attree starts: nobody else runs code on them."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import python
from tests.refusals import refused

pytest.importorskip("distributed")

from distributed import WorkerPlugin

from attree.base import cluster
from attree.base.cluster import Local, Slurm, Wanted, connected, register

#: What another user tries: no certificate, or one of his own.
ATTACK = """
import os, sys
from distributed import Client
from distributed.security import Security
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))  # only now: another user may not be able to read this interpreter
port = sys.argv[1]
tries = [("tcp", None), ("tls", Security.temporary()), ("tls", Security(require_encryption=True))]
for protocol, security in tries:
    try:
        client = Client(f"{protocol}://127.0.0.1:{port}", security=security, timeout=3)
        client.run_on_scheduler(lambda: open("CANARY", "w"))
        print("ran")
    except Exception as error:
        print("refused", type(error).__name__)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_runs_nothing_and_scratch_is_private(tmp_path: Path) -> None:
    before = list(sys.path)
    with connected("local", Wanted(count=1)) as (client, _, running):
        address = running.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        place = client.run(lambda dask_worker: dask_worker.local_directory)
        paths = client.run(lambda: __import__("sys").path)
        for address_of_worker, scratch in place.items():
            private = Path(scratch)
            while not private.name.startswith(".attree-"):
                private = private.parent
            assert private.stat().st_mode & 0o777 == 0o700
            assert address_of_worker.startswith("tls://")
            assert not any(path.startswith(str(private)) for path in paths[address_of_worker])
        assert sys.path == before
        canary = tmp_path / "canary"
        tmp_path.chmod(0o777)
        port = address.rsplit(":")[-1]
        done = python(ATTACK.replace("CANARY", str(canary)), port, 65534)
    assert not private.exists()
    assert done.stdout.split()[::2] == ["refused"] * 3, done.stdout + done.stderr[-2000:]
    assert not canary.exists()


class Deadly(WorkerPlugin):
    """Kills the worker that it is given to, so many times."""

    name = "deadly"

    def __init__(self, folder: Path, deaths: int) -> None:
        self.folder, self.deaths = folder, deaths

    def setup(self, worker: object) -> None:
        died = len(list(self.folder.iterdir()))
        if died < self.deaths:
            (self.folder / str(died)).touch()
            os.kill(os.getpid(), signal.SIGKILL)


def test_a_worker_that_dies_while_the_crew_starts_is_started_anew(tmp_path: Path) -> None:
    with connected("local", Wanted(count=1)) as (client, _, _):
        register(client, Deadly(tmp_path, 1))
        client.wait_for_workers(1)
        assert client.submit(len, "abc").result(60) == 3
    assert len(list(tmp_path.iterdir())) == 1


def test_workers_that_never_start_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def fail(**_: object) -> None:
        tried.append(1)
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(cluster, "SpecCluster", fail)
    monkeypatch.setattr(cluster.time, "sleep", lambda _: None)
    with refused("no-workers"), connected("local", Wanted(count=1)):
        pass
    assert len(tried) == 3


@pytest.mark.parametrize(
    ("chosen", "gpus", "given"),
    [
        ("4,5", 2, ["4", "5", "4"]),
        ("GPU-1a", 1, ["GPU-1a"] * 3),
        (None, 2, ["0", "1", "0"]),
        ("4,5", 0, [None] * 3),  # as it is
    ],
)
def test_workers_share_the_gpus_that_the_user_chose(
    chosen: str | None,
    gpus: int,
    given: list[str | None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)

    def start(workers: dict[int, Any], **_: object) -> Any:
        return nullcontext([one["options"]["env"] for one in workers.values()])

    monkeypatch.setattr(cluster, "SpecCluster", start)
    with Local(Wanted(count=3, gpus=gpus)).running(tmp_path) as environments:
        assert [one.get("CUDA_VISIBLE_DEVICES") for one in environments] == given


@pytest.fixture
def with_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")


@pytest.mark.usefixtures("with_slurm")
@pytest.mark.parametrize("option", ["queue", "foo=bar", "queue=", "=x", "cores=many", "cores=0"])
def test_a_wrong_option_of_slurm_is_one_line(option: str) -> None:
    with refused("not-a-number" if option.startswith("cores=") else "bad-cluster-setting"):
        Slurm.parse([option])


def test_slurm_without_sbatch_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with refused("no-slurm"):
        Slurm.parse(["queue=main"])


@pytest.mark.usefixtures("with_slurm")
def test_options_of_slurm_reach_the_cluster() -> None:
    found = Slurm.parse(["queue=a", "cores=2", "extra=--x=1", "extra=--y"])
    assert found == {"queue": "a", "job_cpu": 2, "job_extra_directives": ["--x=1", "--y"]}


def test_a_job_that_slurm_refuses_is_one_line_and_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sbatch = tmp_path / "bin/sbatch"
    sbatch.parent.mkdir()
    sbatch.write_text(
        "#!/bin/sh\n"
        "grep -q -- '-p nowhere' || exit 0\n"
        "echo 'sbatch: error: invalid partition specified: nowhere' >&2\n"
        "exit 1\n"
    )
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", str(sbatch.parent), prepend=":")
    wanted = Wanted(count=1, folder=tmp_path, options=Slurm.parse(["queue=nowhere"]))
    with refused("slurm-refused"), connected("slurm", wanted):
        pass
