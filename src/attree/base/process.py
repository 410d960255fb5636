"""Start and end processes fast, and end them with the program that started them."""

import contextlib
import ctypes
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

#: Environment variable in which the workflow puts the id of the process to follow.
FOLLOWED = "ATTREE_FOLLOW_PID"


def yield_cores() -> None:
    """Let idle OpenMP threads sleep soon; call this before torch is imported.

    By default they spin while they wait for work. Small batches are thousands of small pieces of
    work: on a busy machine, spinning threads keep working threads from running. Training on ten
    trees then takes 60 s instead of 10, and parsing a sentence up to a second instead of 20 ms.
    GNU's threads still spin a few microseconds: without that, waking them costs a quarter of the
    speed on an idle machine. A user's own ``OMP_WAIT_POLICY`` stays.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


#: The most threads of one process: no processor has more, and tens of thousands crash it.
MOST_THREADS = 1024


def use_threads(threads: Any) -> None:
    """Set the number of CPU threads that torch computes with; None leaves it to torch.

    Raises:
        AttreeError: it is no whole number, or out of bounds.
    """
    if threads is None:
        return
    if type(threads) is not int or not 1 <= threads <= MOST_THREADS:
        problem = f"threads: {str(threads)[:40]!r} is not a whole number from 1 to {MOST_THREADS}"
        fix = "give the number of cores to use, or None: then torch chooses"
        raise AttreeError("bad-threads", problem, fix=fix)
    import torch

    torch.set_num_threads(threads)


def _one_thread() -> None:
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


# A forked child waits for ever for the threads that torch had in its parent, unless it needs none.
os.register_at_fork(after_in_child=_one_thread)


def follow() -> None:
    """End this process when the one that ``ATTREE_FOLLOW_PID`` names has died, however it died.

    A killed Snakemake leaves its commands and their shells running; they would write the same
    outputs as the commands of its next run. Without the variable nothing happens, so that a command
    started by hand may outlive its terminal. This works on Linux; elsewhere nothing happens.
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
    except OSError:  # not allowed here: nothing can be done
        return
    else:
        threading.Thread(target=wait, args=(followed,), daemon=True).start()


@contextlib.contextmanager
def without_collecting() -> Iterator[None]:
    """Switch the garbage collector off while objects are made that live as long as the process.

    Importing torch and transformers makes millions of them: the collector would scan them again
    and again, and free nothing.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collecting:
            gc.enable()


def give_memory_back() -> None:
    """Return freed memory to the system; call it after each block of long work.

    glibc keeps what was freed for later requests, and fragments of it between objects in use: half
    a gigabyte after thousands of batches of different sizes. Other libraries have no such call.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


#: Files and folders to remove even when the process ends at once.
_TEMPORARY: set[Path] = set()
#: How long a process may take to close its files after SIGTERM.
_SECONDS_TO_END = 10.0


@contextlib.contextmanager
def temporary(path: Path) -> Iterator[None]:
    """Remove a file or folder, if it exists, when the block ends or :func:`end` is called."""
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


def open_streams() -> None:
    """Open standard streams that are closed: messages would go among the trees or into a file."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115


def heed_termination() -> None:
    """Let SIGTERM, or the end of its terminal, end this process as an error does.

    It says one line and leaves no temporary files. After a second signal, or ten seconds, it ends
    at once. With ``nohup`` it outlives its terminal.
    """

    def handle(number: int, frame: Any) -> None:
        for heeded in numbers:
            signal.signal(heeded, lambda number, frame: end(128 + number))
        end_after(_SECONDS_TO_END, 128 + number)
        with contextlib.suppress(OSError):  # the terminal is gone
            # the signal may have interrupted a print
            os.write(2, f"attree: stopped by {signal.Signals(number).name}\n".encode())
        sys.exit(128 + number)

    numbers = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]
    for number in numbers:
        signal.signal(number, handle)


#: Python's tracker warns of the semaphores of killed processes, which it then removes.
_LEFT = "ignore:resource_tracker:UserWarning"


def track_quietly() -> None:
    """Start Python's resource tracker without its warnings about killed workers."""
    from multiprocessing import resource_tracker

    sys.warnoptions.append(_LEFT)  # it inherits this interpreter's options
    resource_tracker.ensure_running()
    sys.warnoptions.remove(_LEFT)


def end(status: int) -> NoReturn:
    """End this process and its workers now, and remove temporary files."""
    with contextlib.suppress(ValueError):  # in a thread, which no Ctrl-C reaches
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        sys.stdout.flush()
        # a worker that Dask starts anew meanwhile would say that this process has left it
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    if "psutil" in sys.modules:  # Dask, which starts workers, imports it
        from multiprocessing import resource_tracker

        import psutil

        # Python's tracker ends by itself, after it has removed the remaining semaphores
        tracker = getattr(resource_tracker._resource_tracker, "_pid", None)
        with contextlib.suppress(psutil.Error, OSError):  # processes end while they are listed
            children = [child for child in psutil.Process().children(True) if child.pid != tracker]
            for child in children:
                with contextlib.suppress(psutil.Error):
                    child.kill()
            psutil.wait_procs(children, timeout=2)
    for path in list(_TEMPORARY):
        with contextlib.suppress(OSError):
            _remove(path)
    os._exit(status)


def end_after(seconds: float, status: int) -> None:
    """End as :func:`end` does if this process is still there by then."""
    late = threading.Timer(seconds, end, (status,))
    late.daemon = True
    late.start()


def leave() -> None:
    """End a command that succeeded; at once if torch is loaded, whose shutdown takes 0.4 s.

    No exit handler is needed: files are whole or absent, and workers are stopped.
    """
    if "torch" in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
