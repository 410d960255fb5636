"""Read files within bounds, decompress them, and validate descriptions."""

import contextlib
import gzip
import json
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from attree.base.errors import AttreeError

_Described = TypeVar("_Described")

#: Largest description that is read, in bytes; real ones are far smaller.
LARGEST_DESCRIPTION = 64 * 2**20

#: Beginnings of compressed files.
COMPRESSED = (b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"PK\3\4", b"\x28\xb5\x2f\xfd")
#: Prefixes of the pipes that a process was started with.
_STARTED_WITH = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")

_FIX_JSON = "correct it, or replace it by a whole copy"


def reason_of(error: OSError) -> str:
    """Say why the system refuses something."""
    return os.strerror(error.errno or 0).lower()


def kind_of(mode: int) -> str:
    """Name the kind of a path that is no regular file."""
    return "a folder" if stat.S_ISDIR(mode) else "a device or pipe"


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
        problem = f"this {what} is {kind_of(status.st_mode)}"
        raise AttreeError("not-regular", problem, file=path, fix="give a regular file")
    size = status.st_size
    if largest is not None and size > largest:
        problem = f"this {what} is too large: {size:,} bytes, at most {largest:,} are read"
        raise AttreeError("too-large", problem, file=path, fix="check that it is the right file")
    return size


def _unreadable(error: OSError, path: str | Path, what: str) -> AttreeError:
    return AttreeError("unreadable", f"this {what} cannot be read ({reason_of(error)})", file=path)


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
    path: str | Path, kind: type[_Described], *, what: str, fix: str | None = None
) -> _Described:
    """Read JSON that must have the form of ``kind``.

    Args:
        path: a regular file of at most :data:`LARGEST_DESCRIPTION` bytes.
        kind: a dataclass or ``msgspec.Struct`` whose annotations give types and ranges
            (``Annotated[int, msgspec.Meta(ge=1)]``), or any type that msgspec decodes.
        what: the file's kind, for messages.
        fix: what the user can do about a wrong one.

    Raises:
        AttreeError: it is absent, damaged, nested too deeply, or of another form (names the key).
    """
    import msgspec

    text = read_bytes(path, what=what)
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise _malformed(str(error), path, what, fix) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
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
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError) as error:
        raise _malformed(str(error), file, what, fix) from None


def _malformed(message: str, path: str | Path | None, what: str, fix: str | None) -> AttreeError:
    """Turn msgspec's "Expected `int`, got `str` - at `$.a.b`" into an error that names a.b."""
    problem, _, position = message.partition(" - at ")
    key = position.strip("`").removeprefix("$").removeprefix(".")
    problem = problem[:1].lower() + problem[1:].replace("`", "")
    problem = re.sub(" matching regex .*", " of another form", problem, flags=re.DOTALL)
    problem = f"this {what} is not valid: " + (f"{key}: " if key else "") + problem
    return AttreeError("bad-form", problem, file=path, fix=fix)


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
