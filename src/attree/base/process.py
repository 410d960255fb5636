"""Starting fast, ending fast, and not outliving the program that asked for the work."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from attree.base.errors import AttreeError

#: Set by the workflow to the process that asked for the work.
FOLLOWED = "ATTREE_FOLLOW_PID"


def yield_cores() -> None:
    """Let idle OpenMP threads sleep soon; to be called before torch is imported.

    By default they spin, waiting for the next piece of work. Small batches are thousands of small
    pieces: beside other work on the machine, threads that spin keep the ones that work from
    running; ten trees are trained on in 60 s instead of 10, and a sentence is parsed in up to a
    second instead of 20 ms. GNU's spin a few microseconds: without it, waking them costs a quarter
    of the speed on a machine that has nothing else to do. A user's own ``OMP_WAIT_POLICY`` stays.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


#: Threads of one process: no processor has more, and tens of thousands end the process.
MOST_THREADS = 1024


def use_threads(threads: Any) -> None:
    """Let torch compute with that many threads of the CPU; None leaves their number to torch.

    Raises:
        AttreeError: no whole number, or out of bounds.
    """
    if threads is None:
        return
    if type(threads) is not int or not 1 <= threads <= MOST_THREADS:
        problem = f"threads: {str(threads)[:40]!r} is no whole number from 1 to {MOST_THREADS}"
        fix = "give as many as cores may be used, or none: then torch chooses"
        raise AttreeError("bad-threads", problem, fix=fix)
    import torch

    torch.set_num_threads(threads)


def follow() -> None:
    """End this process when the one that ``ATTREE_FOLLOW_PID`` names has died, however it died.

    A killed Snakemake leaves the commands it started running, and the shells between; they would
    write the same outputs as its next run's. Without the variable nothing happens, so that a
    command started by hand may outlive its terminal. Linux only; elsewhere nothing happens.
    """
    pid = os.environ.get(FOLLOWED, "")
    if not pid.isdigit() or not hasattr(os, "pidfd_open"):
        return

    def stop() -> None:
        message = f"attree: process {pid}, which started this, has died: stopping"
        print(message, file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGTERM)

    def wait(followed: int) -> None:
        select.select([followed], [], [])
        stop()

    try:
        followed = os.pidfd_open(int(pid))
    except ProcessLookupError:
        stop()
    except OSError:  # not allowed here: then there is nothing to be done
        return
    else:
        threading.Thread(target=wait, args=(followed,), daemon=True).start()


@contextlib.contextmanager
def without_collecting() -> Iterator[None]:
    """Make objects that live as long as the process without the garbage collector's help.

    Importing torch and transformers makes millions of them: the collector would walk over them
    again and again, and find nothing.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collecting:
            gc.enable()


#: What is removed even when the process ends at once.
_TEMPORARY: set[Path] = set()
#: After SIGTERM, to close what is open.
_SECONDS_TO_END = 10.0
#: Exit statuses of what a signal ended.
STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM)


@contextlib.contextmanager
def temporary(path: Path) -> Iterator[None]:
    """Remove a file or folder, if it is there, when the block ends or :func:`end` is called."""
    _TEMPORARY.add(path)
    try:
        yield
    finally:
        _remove(path)
        if not os.path.lexists(path):  # a worker that starts late may still write there
            _TEMPORARY.discard(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def heed_termination() -> None:
    """Let SIGTERM end this process as an error does: with one line, and nothing temporary left.

    A second one, or ten seconds, end it at once.
    """

    def handle(number: int, frame: Any) -> None:
        signal.signal(signal.SIGTERM, lambda number, frame: end(128 + signal.SIGTERM))
        late = threading.Timer(_SECONDS_TO_END, end, (128 + signal.SIGTERM,))
        late.daemon = True
        late.start()
        os.write(2, b"attree: stopped by SIGTERM\n")  # print may be at work below
        sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, handle)


#: What Python's tracker says of semaphores that killed processes leave, which it removes.
_LEFT = "ignore:resource_tracker:UserWarning"


def track_quietly() -> None:
    """Start the tracker that removes what killed workers leave, without a word about it."""
    from multiprocessing import resource_tracker

    sys.warnoptions.append(_LEFT)  # it takes the options of this interpreter
    resource_tracker.ensure_running()
    sys.warnoptions.remove(_LEFT)


def end(status: int) -> NoReturn:
    """End this process and its workers now, and remove what is temporary."""
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        sys.stdout.flush()
    if "psutil" in sys.modules:  # it is there with Dask, which starts workers
        from multiprocessing import resource_tracker

        import psutil

        # Python's tracker of semaphores ends by itself, when it has removed those that are left
        tracker = getattr(resource_tracker._resource_tracker, "_pid", None)
        children = [child for child in psutil.Process().children(True) if child.pid != tracker]
        for child in children:
            with contextlib.suppress(psutil.Error):
                child.kill()
        psutil.wait_procs(children, timeout=2)
    for path in list(_TEMPORARY):
        with contextlib.suppress(OSError):
            _remove(path)
    os._exit(status)


def leave() -> None:
    """End a command that went well, at once if torch is loaded: taking it apart takes 0.4 s.

    Nothing of ours is left to an exit handler: files are whole or absent, workers are stopped.
    """
    if "torch" in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
