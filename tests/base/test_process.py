"""A command ends with the process that asked for it, and ends fast."""

from __future__ import annotations

import os
import platform
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attree.base.process import FOLLOWED, MOST_THREADS, use_threads
from tests.command_line import python
from tests.refusals import refused

FOLLOWER = (
    "import time; from attree.base.process import follow; follow();"
    "print('up', flush=True); time.sleep(60)"
)


def follower(pid: str) -> subprocess.Popen[str]:
    command, environment = [sys.executable, "-c", FOLLOWER], {**os.environ, FOLLOWED: pid}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment, text=True, **pipes)


def test_it_ends_when_the_one_it_follows_is_killed() -> None:
    asked = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    started = follower(str(asked.pid))
    assert started.stdout is not None and started.stdout.readline() == "up\n"
    time.sleep(0.2)
    assert started.poll() is None
    asked.kill()
    asked.wait()
    _, said = started.communicate(timeout=20)
    assert started.returncode == -signal.SIGTERM
    assert f"process {asked.pid}, which started this, has died" in said


def test_it_ends_at_once_when_the_one_it_follows_is_gone() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert follower(str(gone.pid)).wait(timeout=20) == -signal.SIGTERM


@pytest.mark.parametrize("pid", ["", "none"])
def test_without_one_to_follow_nothing_happens(pid: str) -> None:
    started = follower(pid)
    assert started.stdout is not None and started.stdout.readline() == "up\n"
    started.kill()
    assert started.wait(timeout=20) == -signal.SIGKILL


@pytest.mark.parametrize(("before", "said"), [("sys.modules['torch'] = sys", "a"), ("0", "ab")])
def test_leaving_keeps_what_was_printed(before: str, said: str) -> None:
    code = f"import sys; from attree.base.process import leave; {before}"
    code += "; print('a', end=''); leave(); print('b', end='')"
    assert python(code).stdout == said


@pytest.mark.parametrize(
    "code",
    [
        "import attree.encoder.load",
        "import sys; sys.argv = ['attree', 'apply', '--help']; import attree.cli.main\n"
        "try: attree.cli.main.console()\nfinally: import torch",
    ],
    ids=["library", "command"],
)
@pytest.mark.parametrize(("asked", "kept"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_idle_threads_sleep_soon(
    code: str, asked: str | None, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the OpenMP library itself reports that it was told; a user's own choice is kept."""
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    done = python(code, OMP_DISPLAY_ENV="VERBOSE", **({"OMP_WAIT_POLICY": asked} if asked else {}))
    if "GOMP_SPINCOUNT" not in done.stderr:
        pytest.skip(f"torch's OpenMP is not GNU's here: {done.stderr[:80]!r}")
    assert f"OMP_WAIT_POLICY = '{kept}'" in done.stderr
    assert ("GOMP_SPINCOUNT = '1000'" in done.stderr) == (asked is None)


@pytest.mark.parametrize("threads", [0, -1, MOST_THREADS + 1, 10**9, True, "4", 1.5])
def test_threads_have_one_bound(threads: object) -> None:
    with refused("bad-threads", "1", "1024"):
        use_threads(threads)


def test_as_many_threads_as_allowed_compute() -> None:
    code = (
        "import torch; from attree.base.process import *; use_threads(MOST_THREADS);"
        "print(int((torch.ones(2000, 2000) + 1).sum()), torch.get_num_threads())"
    )
    done = python(code)
    assert done.stdout == f"8000000 {MOST_THREADS}\n", done.stderr


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_freed_memory_goes_back_to_the_system() -> None:
    """Of 200 MB in pieces all but the last one is freed, which keeps the heap's end in use."""
    code = (
        "import re; from pathlib import Path; from attree.base.process import give_memory_back\n"
        "def used(): return int(re.search(r'RssAnon:\\s+(\\d+)',"
        " Path('/proc/self/status').read_text())[1]) // 1024\n"
        "pieces = [bytearray(b'x' * 100_000) for _ in range(2000)]\n"
        "del pieces[:-1]; before = used(); give_memory_back(); print(before - used() > 150)"
    )
    done = python(code)
    assert done.stdout == "True\n", done.stderr


def test_a_reader_that_has_enough_is_no_error() -> None:
    program = f"{shlex.quote(sys.executable)} -m attree.cli.main annotate --help"
    for reader in ("head -1", "true"):
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {program} | {reader}"], capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_stream_is_an_empty_one(tmp_path: Path) -> None:
    """Python gives what is meant for a closed stderr to stdout."""
    (tmp_path / "a.mrg").write_text("(S (NP (DT The) (NN cat)) (VP (VBD slept)))\n")
    program = f"{shlex.quote(sys.executable)} -m attree.cli.main search NP a.mrg"
    for closing in ("", "2>&-", "<&-", ">&-"):
        done = subprocess.run(
            ["bash", "-c", f"{program} {closing}"], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == (closing != ">&-"), done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_ends_with_its_terminal_leaves_no_temporary_file(
    number: signal.Signals, tmp_path: Path
) -> None:
    code = (
        "import os, sys\n"
        "from attree.base.files import whole_file\n"
        "from attree.base.process import heed_termination\n"
        "heed_termination()\n"
        "with whole_file(sys.argv[1]): os.kill(os.getpid(), int(sys.argv[2]))\n"
    )
    done = python(code, tmp_path / "a", int(number))
    assert done.returncode == 128 + number and number.name in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_further_ctrl_c_does_not_disturb_the_end() -> None:
    code = (
        "import os, signal, psutil\n"
        "from attree.base import process\n"
        "psutil.wait_procs = lambda *_, **__: os.kill(os.getpid(), signal.SIGINT)\n"
        "process.end(130)\n"
    )
    done = python(code)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize("signals", [1, 2])
def test_a_ctrl_c_ends_a_command_though_it_is_ending_already(signals: int) -> None:
    """The second one comes after the command has ended, before further ones are ignored."""
    code = (
        "import os, signal, sys\n"
        "from attree.base import process\n"
        "from attree.cli import main\n"
        "end = process.end\n"
        "def late(status):\n"
        "    process.end = end\n"
        f"    os.kill(os.getpid(), signal.SIGINT) if {signals} == 2 else end(status)\n"
        "process.end = late\n"
        "main.main = lambda: sys.exit(130)\n"
        "main.console()\n"
    )
    done = python(code)
    assert (done.returncode, done.stderr) == (130, "")


def test_a_worker_that_is_started_during_the_end_says_nothing() -> None:
    """Dask starts a killed worker anew, which writes a traceback when it finds its parent gone."""
    code = (
        "import psutil, subprocess, sys\n"
        "from attree.base import process\n"
        "late = [sys.executable, '-c', 'import sys; print(1, file=sys.stderr)']\n"
        "psutil.wait_procs = lambda *_, **__: subprocess.run(late, check=True)\n"
        "process.end(130)\n"
    )
    done = python(code)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize("quiet", [True, False])
def test_semaphores_that_are_left_are_removed_without_a_word(quiet: bool) -> None:
    code = (
        "import multiprocessing, os, sys\n"
        "from attree.base import process\n"
        f"{'process.track_quietly()' if quiet else ''}\n"
        "left = multiprocessing.get_context('spawn').Semaphore()\n"
        "print(left._semlock.name, flush=True)\n"
        "os._exit(3)\n"
    )
    done = python(code)
    assert done.returncode == 3
    assert ("leaked semaphore" in done.stderr) is not quiet
    assert not quiet or done.stderr == ""
    if sys.platform == "linux":
        assert not Path("/dev/shm", f"sem.{done.stdout.strip().lstrip('/')}").exists()
