"""Write files whole or not at all, one writer at a time; read them within bounds, and validate."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import gzip
import json
import lzma
import os
import pwd
import re
import shutil
import socket
import stat
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from attree.base.errors import AttreeError
from attree.base.process import temporary

_Described = TypeVar("_Described")

#: Largest description that is read, in bytes; real ones are far smaller.
LARGEST_DESCRIPTION = 64 * 2**20

#: Prefixes of the pipes that a process was started with.
_STARTED_WITH = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")

#: First bytes of a lock file.
_HOLDER = b"process "

_FIX_JSON = "correct it, or replace it by a whole copy"


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
        problem = f"this is {_kind(path.stat().st_mode)}"
        raise AttreeError("not-regular", problem, file=path, fix="name a file to write")
    part = path.with_name(_temporary_name(path))
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
        problem = "this is not a folder" if clash else f"a folder cannot be made ({_why(error)})"
        fix = "choose another output"
        raise AttreeError("cannot-make", problem, file=error.filename, fix=fix) from None


def _why(error: OSError) -> str:
    return os.strerror(error.errno or 0).lower()


def _kind(mode: int) -> str:
    """Name the kind of a path that is no regular file."""
    return "a folder" if stat.S_ISDIR(mode) else "a device or pipe"


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
    """Return the paths and the inode of a file, of which two names of a file share one."""
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


def check_regular(
    path: str | Path, *, what: str, largest: int | None = None, stream: bool = False
) -> int:
    """Return the size in bytes of a regular file; links are followed, nothing is opened.

    Args:
        path: of the file.
        what: its kind, for messages.
        largest: the most bytes that are read.
        stream: whether a pipe is accepted that this process was started with.

    Raises:
        AttreeError: it is absent, a broken link, a folder, a device or pipe, or too large.
    """
    path = Path(path)
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        problem = f"this {what} does not exist"
        problem += ": the link is broken" if path.is_symlink() else ""
        raise AttreeError("missing-file", problem, file=path) from None
    except OSError as error:  # a loop of links, a name too long, no permission
        raise _unreadable(error, path, what) from None
    if stream and stat.S_ISFIFO(status.st_mode) and str(path).startswith(_STARTED_WITH):
        return 0
    if not stat.S_ISREG(status.st_mode):
        problem = f"this {what} is {_kind(status.st_mode)}"
        raise AttreeError("not-regular", problem, file=path, fix="give a regular file")
    size = status.st_size
    if largest is not None and size > largest:
        problem = f"this {what} is too large: {size:,} bytes, at most {largest:,} are read"
        raise AttreeError("too-large", problem, file=path, fix="check that it is the right file")
    return size


def _unreadable(error: OSError, path: str | Path, what: str) -> AttreeError:
    return AttreeError("unreadable", f"this {what} cannot be read ({_why(error)})", file=path)


@contextlib.contextmanager
def opened(
    path: str | Path, *, what: str, largest: int | None = None, stream: bool = False
) -> Iterator[BinaryIO]:
    """Open a file that a user names, and read its bytes.

    A named pipe may wait for a writer for ever, and a device such as ``/dev/zero`` never ends:
    neither is opened. With ``stream``, a pipe is accepted that the process was started with, as
    standard input (``/dev/stdin``) or the shell's ``<(command)``: for readers that read once from
    beginning to end. Treebanks are no streams: their beginning is read first, for format and
    encoding, and then the whole.

    Args:
        path: of the file.
        what, largest, stream: as of :func:`check_regular`.

    Raises:
        AttreeError: as for :func:`check_regular`, or it cannot be read.
    """
    check_regular(path, what=what, largest=largest, stream=stream)
    # do not wait if a pipe has replaced the file since the check
    flags = os.O_RDONLY | (0 if stream else os.O_NONBLOCK)
    try:
        with os.fdopen(os.open(path, flags), "rb") as handle:
            yield handle
    except OSError as error:
        raise _unreadable(error, path, what) from None


def read_bytes(path: str | Path, *, what: str, largest: int = LARGEST_DESCRIPTION) -> bytes:
    """Read a regular file of at most ``largest`` bytes; see :func:`opened`."""
    with opened(path, what=what, largest=largest) as handle:
        return handle.read(largest)


def read_text(path: str | Path, *, what: str) -> str:
    """Read UTF-8 as :func:`read_bytes` reads bytes; raise an AttreeError if it is another code."""
    try:
        return read_bytes(path, what=what).decode("utf-8")
    except UnicodeDecodeError:
        problem = f"this {what} is not in UTF-8"
        raise AttreeError("not-utf-8", problem, file=path, fix="write it anew in UTF-8") from None


def read_json(path: str | Path, *, what: str = "JSON file") -> Any:
    """Read JSON; raise an AttreeError if the file is absent, damaged or too large."""
    text = read_bytes(path, what=what)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _not_json(path, what, getattr(error, "lineno", None), _FIX_JSON) from None


def _not_json(path: str | Path, what: str, line: int | None, fix: str) -> AttreeError:
    return AttreeError("not-json", f"this {what} is not valid JSON", file=path, line=line, fix=fix)


def read_described(
    path: str | Path,
    kind: type[_Described],
    *,
    what: str,
    fix: str | None = None,
    largest: int = LARGEST_DESCRIPTION,
) -> _Described:
    """Read JSON that must have the form of ``kind``.

    Args:
        path: a regular file of at most ``largest`` bytes.
        kind: a dataclass or ``msgspec.Struct`` whose annotations give types and ranges
            (``Annotated[int, msgspec.Meta(ge=1)]``), or any type that msgspec decodes.
        what: the file's kind, for messages.
        fix: what the user can do about a wrong one.

    Raises:
        AttreeError: it is absent, damaged, nested too deeply, or of another form (names the key).
    """
    import msgspec

    text = read_bytes(path, what=what, largest=largest)
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise _not_of_the_form(str(error), path, what, fix) from None
    except msgspec.DecodeError as error:
        match = re.search(r"\(byte (\d+)\)", str(error))
        line = 1 + text.count(b"\n", 0, int(match[1])) if match else None
        raise _not_json(path, what, line, fix or _FIX_JSON) from None
    except RecursionError:
        problem = f"this {what} is nested too deeply"
        raise AttreeError("too-deep", problem, file=path, fix=fix or _FIX_JSON) from None


def described(
    value: Any,
    kind: type[_Described],
    *,
    what: str,
    file: str | Path | None = None,
    fix: str | None = None,
) -> _Described:
    """Convert a ``value`` from JSON or Parquet metadata to ``kind``, as :func:`read_described`.

    ``file`` is the file that held it, if one did.

    Raises:
        AttreeError: it has another form; the message names the key.
    """
    import msgspec

    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _not_of_the_form(str(error), file, what, fix) from None


def _not_of_the_form(
    message: str, path: str | Path | None, what: str, fix: str | None
) -> AttreeError:
    """Turn msgspec's "Expected `int`, got `str` - at `$.a.b`" into an error that names a.b."""
    problem, _, position = message.partition(" - at ")
    key = position.strip("`").removeprefix("$").removeprefix(".")
    problem = problem[:1].lower() + problem[1:].replace("`", "").partition(" matching regex ")[0]
    problem = f"this {what} is not valid: " + (f"{key}: " if key else "") + problem
    return AttreeError("bad-form", problem, file=path, fix=fix)


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
    others = stat.S_IWGRP | stat.S_IWOTH
    return status.st_uid == os.geteuid() and not status.st_mode & others


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


def _open_plain(path: str | Path) -> Any:
    return Path(path).open("rb", buffering=0)


def _open_zstd(path: str | Path) -> Any:
    import pyarrow as pa

    # pyarrow is installed anyway, and reads all frames of a file
    return pa.input_stream(str(path), compression="zstd")


#: suffix → how to open a file for reading bytes
COMPRESSIONS: dict[str, Callable[[str | Path], Any]] = {
    "": _open_plain,
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".zst": _open_zstd,
}
#: Exceptions of reading a damaged compressed file, beside OSError.
DAMAGE = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)


def open_compressed(path: str | Path) -> Any:
    """Open a regular file for reading, decompressed by its suffix."""
    check_regular(path, what="file")
    return COMPRESSIONS.get(Path(path).suffix, _open_plain)(path)


def is_cut_short(error: BaseException) -> bool:
    """Tell whether a reading error means that the file ends too early."""
    return isinstance(error, EOFError) or "runcated" in str(error)
