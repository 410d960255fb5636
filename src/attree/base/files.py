"""Write files whole or not at all, one writer at a time, in folders that are fit for it."""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import pwd
import shutil
import socket
import stat
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.process import temporary
from attree.base.reading import kind_of, reason_of

#: First bytes of a lock file.
_HOLDER = b"process "


@contextlib.contextmanager
def whole_file(path: str | Path, *, make: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` when the block ends well.

    The temporary name is unique to host, process and call, because two writers of the same output
    can be alive after a kill. If the block raises, the temporary file is removed and ``path`` is
    left as it was. A link at ``path`` is replaced and what it points to is left as it is.

    Args:
        path: of the file.
        make: whether its folder is made where there is none.

    Raises:
        AttreeError: ``path`` is a folder, a device or a pipe, or its folder cannot be made.
    """
    path = Path(path)
    if make:
        make_folder(path.parent)
    if os.path.lexists(path) and not (path.is_symlink() or path.is_file()):
        problem = f"this is {kind_of(path.stat().st_mode)}"
        raise AttreeError("not-regular", problem, file=path, fix="name a file to write")
    # absolute, as pyarrow takes a:b/c for the address of a server
    part = path.absolute().with_name(_temporary_name(path))
    with temporary(part):
        try:
            part.touch()
        except FileNotFoundError:  # such as in /proc
            problem = "no file can be created here"
            raise AttreeError("cannot-make", problem, file=path, fix="name another") from None
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.replace(path)


def make_folder(path: Path) -> None:
    """Make ``path`` and the folders above it, where they do not exist.

    Raises:
        AttreeError: a file or a broken link is in the way, or no folder can be made there.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise
        clash = isinstance(error, FileExistsError | NotADirectoryError)
        why = f"a folder cannot be made ({reason_of(error)})"
        problem = "this is not a folder" if clash else why
        fix = "choose another output"
        raise AttreeError("cannot-make", problem, file=error.filename, fix=fix) from None


def check_apart(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Refuse an output that is an input or another output, by whatever name or link.

    Raises:
        AttreeError: two of them are one file or folder.
    """
    seen: set[Any] = set().union(*map(_identities, inputs))
    for output in outputs:
        if seen & (names := _identities(output)):
            problem, fix = "this output is also an input or another output", "name another file"
            raise AttreeError("output-is-input", problem, file=output, fix=fix)
        seen |= names


def _identities(path: Path) -> set[Path | tuple[int, int]]:
    """Return what identifies a file: paths, inode. Two names of one file share at least one."""
    try:
        status = path.stat()
    except OSError:
        return {path.absolute()}
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return set()  # such as /dev/null
    return {path.absolute(), path.resolve(), (status.st_dev, status.st_ino)}


def check_new(outputs: Iterable[Path | None], *, overwrite: bool) -> None:
    """Refuse output files that exist already, before anything is computed.

    Commands call this or :func:`check_folder`; stages of the workflow replace their outputs.

    Raises:
        AttreeError: one of them exists and ``overwrite`` is false.
    """
    for path in filter(None, () if overwrite else outputs):
        # a device such as /dev/null keeps nothing
        if os.path.lexists(path) and not path.is_dir() and (path.is_symlink() or path.is_file()):
            fix = "name another, or add --overwrite to replace it"
            raise AttreeError("file-exists", "this file exists already", file=path, fix=fix)


def check_folder(
    folder: Path,
    files: Iterable[str],
    signs: Iterable[str],
    last: str,
    *,
    what: str,
    overwrite: bool,
) -> None:
    """Refuse an output folder that holds an earlier result or other files.

    Args:
        folder: of the output.
        files: names of a result's files.
        signs: those names that only a result has; without one, no file counts as a result's.
        last: the file that is written last: with it, a result is whole.
        what: what a result is, for the message.
        overwrite: whether an earlier result is replaced; an unfinished one always is.

    Raises:
        AttreeError: as above, a file of a result is a link, or a file is in the folder's place.
    """
    fix = "choose another --output"
    above = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if not above.is_dir():
        problem = "this is a file; the output needs a folder"
        raise AttreeError("not-a-folder", problem, file=above, fix=fix)
    entries = {path.name: path for path in folder.iterdir()} if above == folder else {}
    ours = {name for name in entries if name[0] == "." and name.endswith(".part")}
    ours |= set(files) if entries.keys() & set(signs) else set()
    if foreign := [name for name in entries if name not in ours or entries[name].is_symlink()]:
        problem = f"this folder holds other files ({min(foreign)})"
        raise AttreeError("foreign-folder", problem, file=folder, fix=fix)
    if last in entries and not overwrite:
        fix += ", or add --overwrite to replace it"
        raise AttreeError("folder-exists", f"{what} exists here already", file=folder, fix=fix)


def write_text(path: str | Path, text: str, *, make: bool = True) -> None:
    """Write ``text`` (UTF-8) to ``path``, whole or not at all, as :func:`whole_file` does."""
    with whole_file(path, make=make) as part:
        # the name of a file that is not UTF-8 has lone surrogates; JSON reads their escapes back
        part.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: str | Path, value: Any) -> None:
    """Write ``value`` as JSON with sorted keys, so that equal values give equal bytes."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


@contextlib.contextmanager
def whole_folder(output: Path, *, over: str | None = None) -> Iterator[Path]:
    """Yield a temporary folder beside ``output``; rename it when the block ends well.

    A folder at ``output`` is replaced if it is empty or holds the file ``over``; on Linux there is
    a whole folder of that name at every moment.
    """
    part = output.with_name(_temporary_name(output))
    old = part.with_suffix(".old")
    with temporary(part):
        make_folder(part)
        yield part
        mode = stat.S_IMODE(part.stat().st_mode) & 0o666
        for file in part.iterdir():
            file.chmod(mode)  # safetensors makes files that only the owner can read
            with file.open("rb") as written:
                os.fsync(written.fileno())
        if over is None or not (output / over).is_file():
            part.replace(output)
        elif not _exchange(part, output):  # now `part` is the old folder, which is removed
            output.replace(old)
            part.replace(output)
    shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two paths in one step; tell whether the system can do so."""
    try:
        exchange = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError):
        return False
    here, flag = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(exchange(here, os.fsencode(one), here, os.fsencode(other), flag) == 0)


def _temporary_name(path: Path) -> str:
    """Return a temporary name for ``path``, unique to host, process and call."""
    # cut, since a long name leaves no room for a suffix
    return f".{path.name[:40]}.{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.part"


def private_cache(name: str) -> Path:
    """Make and return a folder in attree's cache that only the user can write, mode 0700.

    Args:
        name: of the folder, in ``attree`` under ``XDG_CACHE_HOME``, by default ``~/.cache``.

    Raises:
        OSError: it cannot be made, its name is not in UTF-8, or others can write in it.
        RuntimeError: there is no home.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not home.is_absolute():  # the standard has such a value ignored
        try:
            own = os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            raise RuntimeError("there is no home") from None
        home = Path(own) / ".cache"
    return made_private(home / "attree" / name)


def made_private(folder: Path) -> Path:
    """Make a folder that only the user can write, mode 0700; refuse one that others can write.

    Raises:
        OSError, RuntimeError: as :func:`private_cache`.
    """
    folder = folder.expanduser().absolute()
    if any("\ud800" <= sign <= "\udfff" for sign in str(folder)):  # bytes that are not UTF-8
        raise OSError(errno.EILSEQ, "its name is not UTF-8", str(folder))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_private(folder):
        raise PermissionError(errno.EACCES, "others can write here", str(folder))
    return folder


def is_private(folder: Path) -> bool:
    """Tell whether a folder is the user's own and nobody else can write in it."""
    status = folder.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@contextlib.contextmanager
def lock(path: str | Path, *, what: str, wait: bool = False) -> Iterator[None]:
    """Hold an exclusive lock file at ``path`` for the block.

    If another process holds it, wait for that process to end, or else refuse at once.

    The lock belongs to the open file, so the operating system releases it when the process dies,
    however it dies. Only a regular file is opened, and no link is followed.
    """
    path = Path(path)
    make_folder(path.parent)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, 0o666)
    except OSError as error:
        if not path.is_symlink() and not path.is_dir():
            raise
        kind = "a link" if path.is_symlink() else "a folder"
        raise _not_a_lock(path, f"this is {kind} where a lock file should be") from error
    with os.fdopen(handle, "r+b", buffering=0):
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _not_a_lock(path, "this is a device or pipe, not a lock file")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            holder = os.pread(handle, 200, 0).decode("utf-8", "replace").strip()
            problem = f"{what} is being written by {holder or 'another process'}"
            fix = "wait for it to end, or stop it, then run again"
            raise AttreeError("locked", problem, file=path, fix=fix) from None
        if os.pread(handle, len(_HOLDER), 0) not in (b"", _HOLDER):
            raise _not_a_lock(path, "this file is not a lock of attree")
        os.ftruncate(handle, 0)
        os.pwrite(handle, _HOLDER + f"{os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield


def _not_a_lock(path: Path, problem: str) -> AttreeError:
    return AttreeError("not-a-lock", problem, file=path, fix="choose another output")
