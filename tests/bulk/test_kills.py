"""Whatever is killed, whenever: the next run leaves what an undisturbed one does, byte for byte."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.bulk.conftest import OPTIONS, Parse, Undisturbed, tree_bytes, wait_until

SEEDS = [pytest.param(s, marks=[pytest.mark.full] if s >= 1 else []) for s in range(20)]


def _moment(seed: int, out: Path, undisturbed: Undisturbed) -> Callable[[], None]:
    """Return a wait for a moment in the shard after the first, second or third.

    The seed says which, and how far in it.
    """
    shards = sum(name.startswith("trees/") for name in undisturbed.content)
    share = random.Random(seed).random() / shards

    def wait() -> None:
        wait_until(lambda: _written(out) > seed % 3, 120)
        time.sleep(share * undisturbed.seconds)

    return wait


def _written(out: Path) -> int:
    return len(list((out / "trees").glob("shard-*.parquet")))


@pytest.mark.parametrize("seed", SEEDS)
def test_kill_of_the_main_process(
    seed: int, parse: Parse, corpus: Path, tmp_path: Path, undisturbed: Undisturbed
) -> None:
    out = tmp_path / "out"
    workers = ("--workers", "2") if seed % 3 == 2 else ()
    with parse.running(corpus, out, *OPTIONS, *workers) as process:
        _moment(seed, out, undisturbed)()
        process.send_signal(signal.SIGKILL)  # the main process alone: its workers are orphans
        process.wait()
        assert _written(out) > seed % 3
        parse.ok(corpus, out, *OPTIONS)
    assert tree_bytes(out) == undisturbed.content


@pytest.mark.parametrize("seed", SEEDS)
def test_kill_of_a_worker(
    seed: int, parse: Parse, corpus: Path, tmp_path: Path, undisturbed: Undisturbed
) -> None:
    out = tmp_path / "out"
    with parse.running(corpus, out, *OPTIONS, "--workers", "2") as process:
        _moment(seed, out, undisturbed)()
        writers = _writers(out)
        if writers:  # none if the moment was after the end
            os.kill(random.Random(seed).choice(writers), signal.SIGKILL)
        _, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    assert tree_bytes(out) == undisturbed.content


def _writers(out: Path) -> list[int]:
    marks = (path.stem.rsplit("-", 1) for path in (out / ".writers").glob("*.lock"))
    return sorted(int(number) for _, number in marks if psutil.pid_exists(int(number)))


class Dask:
    """A scheduler and two workers of its own, as an administrator runs them."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start all of them."""
        port = self.address.rsplit(":", 1)[1]
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", port)
        wait_until(lambda: _listens(int(port)))
        for _ in range(2):
            self._start(
                "worker", self.address, "--host", "127.0.0.1", "--nthreads", "3", "--nanny",
                "--death-timeout", "60",
            )  # fmt: skip

    def _start(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "distributed.cli.dask_" + what,
                "--dashboard-address",
                "127.0.0.1:0",
                *options,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def stop(self) -> None:
        """Kill all of them."""
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def dask() -> Iterator[Dask]:
    """A separate Dask."""
    found = Dask()
    try:
        yield found
    finally:
        found.stop()


@pytest.mark.full
@pytest.mark.parametrize("seed", SEEDS)
def test_kill_of_a_separate_scheduler(
    seed: int, parse: Parse, corpus: Path, tmp_path: Path, undisturbed: Undisturbed, dask: Dask
) -> None:
    out = tmp_path / "out"
    options = (*OPTIONS, "--scheduler", dask.address)
    dask.start()
    with parse.running(corpus, out, *options) as process:
        _moment(seed, out, undisturbed)()
        dask.scheduler.kill()
        _, error = process.communicate(timeout=120)
    if process.returncode != 0:  # it was not done yet
        assert process.returncode == 1
        assert re.search(r"the Dask scheduler was lost — .*run the same command", error), error
        assert "Traceback" not in error
    dask.stop()
    dask.start()
    parse.ok(corpus, out, *options)
    assert tree_bytes(out) == undisturbed.content


@pytest.mark.full
def test_a_shard_that_kills_its_worker_counts_as_failed_and_the_rest_completes(
    parse: Parse, corpus: Path, tmp_path: Path, undisturbed: Undisturbed
) -> None:
    """Line 777 ends every worker that reads it."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import os, sys, threading\n"
        "def watch():\n"
        "    import time\n"
        "    while True:\n"
        "        module = sys.modules.get('attree.bulk.pipeline')\n"
        "        if module and hasattr(module, 'Pipeline'):\n"
        "            real = module.Pipeline._add\n"
        "            def add(self, rows, constraints, source, lines):\n"
        "                if source.first <= 777 < source.first + len(lines):\n"
        "                    os._exit(9)\n"
        "                real(self, rows, constraints, source, lines)\n"
        "            module.Pipeline._add = add\n"
        "            return\n"
        "        time.sleep(0.01)\n"
        "threading.Thread(target=watch, daemon=True).start()\n"
    )
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    out = tmp_path / "out"
    process = parse.start(corpus, out, *OPTIONS, "--workers", "2", PYTHONPATH=path)
    said, error = process.communicate(timeout=240)
    assert process.returncode == 1
    assert "failed shard: lines.txt, line 751 and 49 more" in said
    assert "its worker died, perhaps for want of memory" in error
    missing = {"trees/shard-00015.parquet", "brackets/shard-00015.txt"}
    assert set(undisturbed.content) - set(tree_bytes(out)) == missing
    parse.ok(corpus, out, *OPTIONS)
    assert tree_bytes(out) == undisturbed.content


@pytest.mark.parametrize(
    ("stage", "signals"),
    [
        ("starting", [signal.SIGINT, signal.SIGINT]),
        ("parsing", [signal.SIGTERM]),
        pytest.param("starting", [signal.SIGTERM], marks=pytest.mark.full),
        pytest.param("parsing", [signal.SIGINT, signal.SIGINT], marks=pytest.mark.full),
    ],
)
def test_what_is_stopped_with_workers_leaves_nothing(
    signals: list[int], stage: str, parse: Parse, corpus: Path, tmp_path: Path
) -> None:
    """No folder of the cluster, no worker, no traceback."""
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    scratch.mkdir()
    options = ("--shard-lines", "20", "--tokens-per-batch", "32", "--workers", "2")
    with parse.running(corpus, out, *options, TMPDIR=str(scratch)) as process:
        folder = out / "trees" if stage == "parsing" else scratch
        wait_until(lambda: any(folder.glob("shard-*.parquet")) or any(folder.glob(".attree-*")))
        started = psutil.Process(process.pid).children(recursive=True)
        for number in signals:
            process.send_signal(number)
            time.sleep(0.3)
        _, error = process.communicate(timeout=120)
    assert process.returncode == 128 + signals[0], error
    said = ["attree: stopped by SIGTERM", "attree: finishing the shards in flight", "corpus: "]
    lines = [line for line in error.splitlines() if line.strip()]
    assert all(line.startswith(tuple(said)) for line in lines), error
    assert not list(scratch.glob(".attree-*"))
    assert not [one for one in psutil.wait_procs(started, timeout=10)[1] if one.is_running()]


def test_a_signal_leaves_no_half_written_file(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "from attree.base import process\n"
        "from attree.base.files import whole_file\n"
        "process.heed_termination()\n"
        "with whole_file(sys.argv[1]) as part:\n"
        "    part.write_text('half'); print('up', flush=True); time.sleep(60)\n"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "x")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert started.stdout is not None and started.stdout.readline() == "up\n"
    started.terminate()
    _, error = started.communicate(timeout=30)
    assert (started.returncode, error) == (143, "attree: stopped by SIGTERM\n")
    assert not list(tmp_path.iterdir())
