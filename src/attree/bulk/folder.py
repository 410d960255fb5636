"""Lock the output folder of a corpus, check its content, and report the progress of its run."""

import contextlib
import fcntl
import os
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.files import lock, write_json
from attree.base.reading import read_json
from attree.base.terminal import say
from attree.bulk.manifest import Manifest, whole_shards

MANIFEST = "manifest.json"
SUMMARY = "summary.json"
PROGRESS = "progress.json"
FAILED_SHARDS = "failed.json"

_FIX = "name a new folder with --output"
_WRITERS = ".writers"
#: Files that a run makes before its manifest, and that a killed run may leave.
_OURS_BEFORE = re.compile(r"\.lock|\.writers|logs|\.attree-\w+|\..*\.part")
#: The name of a file that a run is writing (:func:`attree.base.files.whole_file`).
_OUR_PART = re.compile(
    r"\.(shard-\d+\.\w+|(manifest|summary|progress|failed)\.json)\..+-\d+-[0-9a-z]+\.part"
)
#: Time after which a writer on another machine counts as dead, if its lock is free.
_SECONDS_WITHOUT_HEARTBEAT = 60.0
#: Time between heartbeats of a writer.
_SECONDS_BETWEEN_HEARTBEATS = 15.0


@contextlib.contextmanager
def only_run(folder: Path, *, unlock: bool, wait: float = 90.0) -> Iterator[None]:
    """Hold ``folder`` for this run alone, once the writers of a killed run have ended.

    Args:
        folder: the output folder.
        unlock: whether not to wait, since the user is sure that nothing writes any more.
        wait: seconds to wait for these writers.

    Raises:
        AttreeError: another run or one of its writers is still at work; the message names it.
    """
    check_output(folder)
    with lock(folder / ".lock", what=f"the corpus in {folder}"):
        until = time.monotonic() + wait
        announced = False
        while left := [] if unlock else _left_writers(folder):
            if time.monotonic() > until:
                problem = f"{_name_writers(left)} of an earlier run may still be writing"
                fix = "end it and run again, or pass --unlock if you are sure that run is dead"
                raise AttreeError("still-writing", problem, file=folder, fix=fix)
            if not announced:
                say(f"attree: waiting for {_name_writers(left)} of an earlier run to end")
                announced = True
            time.sleep(0.2)
        _clear(folder, sparing=())
        try:
            yield
        finally:
            _clear(folder, sparing=_left_writers(folder))


def check_output(folder: Path) -> None:
    """Refuse a folder that is neither absent, nor empty, nor begun by a run.

    Raises:
        AttreeError: it is a file or a dangling link, has links where attree writes, or holds files
            but no manifest of a corpus.
    """
    if (folder.exists() or folder.is_symlink()) and not folder.is_dir():
        raise AttreeError("not-a-folder", "the output is not a folder", file=folder, fix=_FIX)
    entries = [*folder.iterdir()] if folder.is_dir() else []
    entries = [entry for entry in entries if not _OURS_BEFORE.fullmatch(entry.name)]
    if entries and not (folder / MANIFEST).is_file():
        problem = f"this folder holds other files (such as {entries[0].name})"
        raise AttreeError("foreign-folder", problem, file=folder, fix=_FIX)
    for entry in entries:
        if entry.is_symlink() and (entry.is_dir() or entry.name.endswith(".json")):
            problem = f"{entry.name} in the output folder is a link"
            raise AttreeError("link", problem, file=folder, fix=_FIX)


def _clear(folder: Path, *, sparing: Sequence[str]) -> None:
    """Remove the marks and incomplete files of killed writers."""
    for mark in (folder / _WRITERS).glob("*"):
        if mark.stem not in sparing:
            mark.unlink(missing_ok=True)
    for part in [*folder.glob(".*.part"), *folder.glob("*/.*.part")]:
        match = _OUR_PART.fullmatch(part.name)
        if match and not any(f".{writer}-" in part.name for writer in sparing):
            part.unlink(missing_ok=True)


def _name_writers(writers: Sequence[str]) -> str:
    names = (writer.rpartition("-") for writer in writers)
    return " and ".join(f"process {number} on {host}" for host, _, number in names)


def _left_writers(folder: Path) -> list[str]:
    """Return the ``host-process`` of every writer that may still be at work."""
    left = []
    for mark in sorted((folder / _WRITERS).glob("*.lock")):
        try:
            with mark.open("r+b") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_local = mark.name.rsplit("-", 1)[0] == socket.gethostname()
            if is_local or _age(mark) > _SECONDS_WITHOUT_HEARTBEAT:
                continue
        except BlockingIOError:
            pass
        except FileNotFoundError:
            continue
        left.append(mark.stem)
    return left


def _age(mark: Path) -> float:
    """Return the seconds since the mark was touched, by the clock of its disk."""
    now = mark.with_name(f".now-{os.getpid()}")
    now.touch()
    try:
        return now.stat().st_mtime - mark.stat().st_mtime
    finally:
        now.unlink(missing_ok=True)


class Writer:
    """Marks this process as a writer of ``folder`` until it ends, even if it is killed.

    The operating system releases the lock of the mark; a heartbeat is for other machines, which may
    not see locks.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _WRITERS / f"{socket.gethostname()}-{os.getpid()}.lock"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = self._path.open("a")
        fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        while True:
            time.sleep(_SECONDS_BETWEEN_HEARTBEATS)
            with contextlib.suppress(OSError, ValueError):  # removed, or closed
                os.utime(self._handle.fileno())

    def close(self) -> None:
        """Remove the mark."""
        self._path.unlink(missing_ok=True)
        self._handle.close()


def status(folder: Path) -> dict[str, Any]:
    """Describe a run that is running, stopped or complete.

    Returns:
        ``state``, the numbers of shards and lines, complete and in total, the failed shards, and
        the last progress and summary that the run wrote.

    Raises:
        AttreeError: the folder has no manifest, or a damaged one.
    """
    if not (folder / MANIFEST).is_file():
        problem = "this folder holds no run of `attree parse`"
        raise AttreeError("no-run", problem, file=folder, fix="name another folder")
    manifest = Manifest.read(folder / MANIFEST)
    whole = whole_shards(folder / "trees")
    ended = "complete" if len(whole) == len(manifest.shards) else "stopped"
    return {
        "folder": str(folder),
        "state": "running" if _is_running(folder) else ended,
        "shards": len(manifest.shards),
        "shards_whole": len(whole),
        "lines": manifest.lines,
        "lines_whole": sum(s.lines for s in manifest.shards if s.number in whole),
        "failed": _read_optional(folder / FAILED_SHARDS) or {},
        "progress": _read_optional(folder / PROGRESS),
        "summary": _read_optional(folder / SUMMARY),
    }


def _is_running(folder: Path) -> bool:
    try:
        with (folder / ".lock").open("r+b") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


def _read_optional(path: Path) -> Any:
    return read_json(path) if path.is_file() else None


def note(folder: Path, name: str, value: Any) -> None:
    """Write a small JSON file of the run, such as its progress.

    Raises:
        AttreeError: the folder was removed during the run.
    """
    check_there(folder)
    write_json(folder / name, value)


def check_there(folder: Path) -> None:
    """Refuse to go on in a removed folder: a new one would hold only some of the trees.

    Raises:
        AttreeError: the manifest of the run is gone.
    """
    if not (folder / MANIFEST).is_file():
        problem = "this folder was removed while a run wrote to it"
        fix = "run the same command again to begin anew"
        raise AttreeError("folder-removed", problem, file=folder, fix=fix)
