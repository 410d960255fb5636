"""The output folder of a corpus: who may write to it, what is in it, how far a run is."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.files import lock, read_json, write_json
from attree.base.text import say
from attree.bulk.manifest import Manifest

MANIFEST = "manifest.json"
SUMMARY = "summary.json"
PROGRESS = "progress.json"
FAILED_SHARDS = "failed.json"

_FIX = "name a new folder with --output"
_WRITERS = ".writers"
#: What a run makes before its manifest, and what one that was killed may have left then.
_OURS_BEFORE = re.compile(r"\.lock|\.writers|logs|\.attree-\w+|\..*\.part")
#: The name of a file of ours that is being written (:func:`attree.base.files.whole_file`).
_OUR_PART = re.compile(
    r"\.(shard-\d+\.\w+|(manifest|summary|progress|failed)\.json)\..+-\d+-[0-9a-z]+\.part"
)
#: After that a writer on another machine counts as dead, if its lock is free.
_SECONDS_WITHOUT_HEARTBEAT = 60.0
#: Between heartbeats of a writer.
SECONDS_BETWEEN_HEARTBEATS = 15.0


@contextlib.contextmanager
def only_run(folder: Path, *, wait: float, unlock: bool) -> Iterator[None]:
    """Be the only run on ``folder``, once the writers that a killed run left have ended.

    Args:
        folder: of the output.
        wait: seconds to wait for these writers.
        unlock: do not wait: the user is sure that nothing writes any more.

    Raises:
        AttreeError: another run, or a writer of one, is still at work; the message names it.
    """
    check_output(folder)
    with lock(folder / ".lock", what=f"the corpus in {folder}"):
        until = time.monotonic() + wait
        said = False
        while left := [] if unlock else _left_writers(folder):
            if time.monotonic() > until:
                problem = f"{_named(left)} of an earlier run may still be writing"
                fix = "end it and run again, or pass --unlock if you are sure that run is dead"
                raise AttreeError("still-writing", problem, file=folder, fix=fix)
            if not said:
                say(f"attree: waiting for {_named(left)} of an earlier run to end")
                said = True
            time.sleep(0.2)
        _clear(folder, sparing=())
        try:
            yield
        finally:
            _clear(folder, sparing=_left_writers(folder))


def check_output(folder: Path) -> None:
    """Refuse a folder that is not attree's: it must be absent, empty, or begun by a run.

    Raises:
        AttreeError: it is a file or a dangling link, has links in it where attree writes, or holds
            something and no manifest of a corpus.
    """
    if (folder.exists() or folder.is_symlink()) and not folder.is_dir():
        raise AttreeError("not-a-folder", "the output is not a folder", file=folder, fix=_FIX)
    entries = [*folder.iterdir()] if folder.is_dir() else []
    entries = [entry for entry in entries if not _OURS_BEFORE.fullmatch(entry.name)]
    if entries and not (folder / MANIFEST).is_file():
        problem = f"this folder holds something else (such as {entries[0].name})"
        raise AttreeError("foreign-folder", problem, file=folder, fix=_FIX)
    for entry in entries:
        if entry.is_symlink() and (entry.is_dir() or entry.name.endswith(".json")):
            problem = f"{entry.name} in the output folder is a link"
            raise AttreeError("link", problem, file=folder, fix=_FIX)


def _clear(folder: Path, *, sparing: Sequence[str]) -> None:
    """Remove what killed writers left: their marks, and files that are not whole."""
    for mark in (folder / _WRITERS).glob("*"):
        if mark.stem not in sparing:
            mark.unlink(missing_ok=True)
    parts = [*folder.glob(".*.part"), *folder.glob("*/.*.part")]
    for part in parts:
        ours = _OUR_PART.fullmatch(part.name)
        if ours and not any(f".{writer}-" in part.name for writer in sparing):
            part.unlink(missing_ok=True)


def _named(writers: Sequence[str]) -> str:
    each = (writer.rpartition("-") for writer in writers)
    return " and ".join(f"process {number} on {host}" for host, _, number in each)


def _left_writers(folder: Path) -> list[str]:
    """Return the ``host-process`` of every writer that may still be at work."""
    found = []
    for mark in sorted((folder / _WRITERS).glob("*.lock")):
        try:
            with mark.open("r+b") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            here = mark.name.rsplit("-", 1)[0] == socket.gethostname()
            if here or _age(mark) > _SECONDS_WITHOUT_HEARTBEAT:
                continue
        except BlockingIOError:
            pass
        except FileNotFoundError:
            continue
        found.append(mark.stem)
    return found


def _age(mark: Path) -> float:
    """Seconds since the mark was touched, by the clock of the disk that it lies on."""
    now = mark.with_name(f".now-{os.getpid()}")
    now.touch()
    try:
        return now.stat().st_mtime - mark.stat().st_mtime
    finally:
        now.unlink(missing_ok=True)


class Writer:
    """Marks this process as one that writes to ``folder``, until it ends, however it ends.

    The operating system releases the mark's lock; :meth:`beat` is for other machines, where
    locks may not reach.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _WRITERS / f"{socket.gethostname()}-{os.getpid()}.lock"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = self._path.open("a")
        fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def beat(self) -> None:
        """Give a heartbeat."""
        with contextlib.suppress(OSError, ValueError):  # gone, or closed
            os.utime(self._handle.fileno())

    def close(self) -> None:
        """Remove the mark."""
        self._path.unlink(missing_ok=True)
        self._handle.close()


def whole_shards(folder: Path) -> set[int]:
    """Return the numbers of the shards that are written."""
    names = (path.stem for path in (folder / "trees").glob("shard-*.parquet"))
    return {int(name.removeprefix("shard-")) for name in names}


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an output folder, or fail if it is none."""
    if not (folder / MANIFEST).is_file():
        problem = "this folder holds no run of `attree parse`"
        raise AttreeError("no-run", problem, file=folder, fix="name another folder")
    return Manifest.read(folder / MANIFEST)


def status(folder: Path) -> dict[str, Any]:
    """Describe a run that is going on, was interrupted, or has ended.

    Returns:
        ``state`` (running, stopped or complete), numbers of shards and lines, whole and in all, the
        failed shards, and the last progress that the run noted.
    """
    manifest = read_manifest(folder)
    whole = whole_shards(folder)
    ended = "complete" if len(whole) == len(manifest.shards) else "stopped"
    return {
        "folder": str(folder),
        "state": "running" if _is_running(folder) else ended,
        "shards": len(manifest.shards),
        "shards_whole": len(whole),
        "lines": manifest.lines,
        "lines_whole": sum(s.lines for s in manifest.shards if s.number in whole),
        "failed": _optional(folder / FAILED_SHARDS) or {},
        "progress": _optional(folder / PROGRESS),
        "summary": _optional(folder / SUMMARY),
    }


def _is_running(folder: Path) -> bool:
    try:
        with (folder / ".lock").open("r+b") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


def _optional(path: Path) -> Any:
    return read_json(path) if path.is_file() else None


def note(folder: Path, name: str, value: Any) -> None:
    """Write a small JSON file of the run, such as its progress.

    Raises:
        AttreeError: the folder was removed meanwhile.
    """
    check_there(folder)
    write_json(folder / name, value)


def check_there(folder: Path) -> None:
    """Refuse to go on in a folder that somebody removes: a new one would hold a part of the trees.

    Raises:
        AttreeError: the run's manifest is gone.
    """
    if not (folder / MANIFEST).is_file():
        problem = "this folder was removed while a run wrote to it"
        fix = "run the same command again to begin anew"
        raise AttreeError("folder-removed", problem, file=folder, fix=fix)
