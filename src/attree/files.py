"""Writing files whole or not at all, one writer at a time, and reading compressed ones."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gzip
import json
import lzma
import os
import socket
import uuid
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from attree.errors import AttreeError


@contextlib.contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; rename it to ``path`` when the block ends well.

    The temporary name is unique to host, process and call, because after a kill two writers of the
    same output can be alive. If the block raises, the temporary file is removed and ``path`` is
    left as it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(
        f".{path.name}.{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.part"
    )
    try:
        yield part
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write ``text`` (UTF-8) to ``path``, whole or not at all."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write ``value`` as JSON with sorted keys, so that equal values give equal bytes."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: str | Path, *, what: str = "JSON file") -> Any:
    """Read JSON; an absent or damaged file is one clear line."""
    path = Path(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise AttreeError(f"this {what} does not exist", file=path) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        line = getattr(error, "lineno", None)
        raise AttreeError(
            f"this {what} is not valid JSON", file=path, line=line, fix="delete it and run again"
        ) from None


def _not_through_a_link(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise AttreeError(
            "this lock file is a link", file=path, fix="name another output"
        ) from None


@contextlib.contextmanager
def lock(path: str | Path, *, what: str) -> Iterator[None]:
    """Hold an exclusive lock file at ``path`` for the block; refuse at once if another holds it.

    The lock belongs to the open file, so the operating system lets go of it when the process dies,
    however it dies.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+", encoding="utf-8", opener=_not_through_a_link) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            holder = handle.read().strip() or "another process"
            raise AttreeError(
                f"{what} is being written by {holder}",
                file=path,
                fix="wait for it to end, or stop it, then run again",
            ) from None
        handle.truncate(0)
        handle.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        handle.flush()
        yield


def _plain(path: str | Path) -> BinaryIO:
    return Path(path).open("rb", buffering=0)


def _zstd(path: str | Path) -> BinaryIO:
    import pyarrow as pa

    # pyarrow is installed anyway, and reads one frame after the other
    return cast(BinaryIO, pa.input_stream(str(path), compression="zstd"))


#: suffix → how to open a file for reading bytes
COMPRESSIONS: dict[str, Callable[[str | Path], Any]] = {
    "": _plain,
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".zst": _zstd,
}
#: What reading a damaged compressed file raises, beside OSError.
DAMAGE = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)


def open_compressed(path: str | Path) -> Any:
    """Open a file for reading its bytes, uncompressed as its suffix tells."""
    return COMPRESSIONS.get(Path(path).suffix, _plain)(path)


def is_cut_short(error: BaseException) -> bool:
    """Tell whether an error while reading means that the file ends too early."""
    return isinstance(error, EOFError) or "runcated" in str(error)
