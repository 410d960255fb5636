"""Reading corpora: plain text, JSON Lines, Parquet, half-known trees, compressed or not, by shards.

Whatever the format, a shard's *payload* is bytes with one line an input line: the column's value as
JSON of Parquet, else the line itself. It can be read again from its offset. Nothing is unpickled.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from attree.base.errors import AttreeError
from attree.base.files import COMPRESSIONS, DAMAGE, check_regular, is_cut_short, open_compressed
from attree.base.text import name_of

#: Longest line in bytes: of a longer one the beginning is read, to tell that it is too long.
LINE_BYTES = 1 << 20

_BLOCK = LINE_BYTES
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: suffix → how lines hold text (see `attree.raw_text.lines.PARSERS`)
KINDS = {
    ".txt": "text",
    ".text": "text",
    ".tok": "text",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".half": "half",
}


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file of the corpus.

    Attributes:
        path: where it lies.
        name: what output calls it: its path below the folder that all inputs share.
        kind: ``text``, ``json``, ``parquet`` or ``half``.
        compression: ``""``, ``.gz``, ``.xz`` or ``.zst``.
        size, changed: bytes, and time of the last change in nanoseconds, when it was cut.
    """

    path: str
    name: str
    kind: str
    compression: str
    size: int
    changed: int


class Reader(Protocol):
    """Reads one file from the front, or from an offset that it gave before."""

    offset: int

    def seek(self, offset: int) -> None:
        """Go to an offset, forward only."""

    def take(self, lines: int, size: int | None = None) -> tuple[bytes, int]:
        """Return the next lines and their number, fewer once there are ``size`` bytes.

        Lines of text are taken by the block, so that may be a block more; ``b""`` at the end.
        """

    def close(self) -> None:
        """Let go of the file."""


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key under which ``part-10`` comes after ``part-9``."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def find_inputs(
    paths: Iterable[Path], *, without: Path | None = None
) -> tuple[list[InputFile], list[Path]]:
    """List the files of a corpus, the files of a folder in natural order.

    Args:
        paths: files and folders.
        without: the output folder; what lies in it is not input.

    Returns:
        the files, and those of the folders that were left out because of their suffix.

    Raises:
        AttreeError: an input is absent, cannot be read or is output, or there is none.
    """
    found: list[tuple[Path, str, str]] = []
    left_out: list[Path] = []
    for path in paths:
        if not path.exists():
            raise AttreeError("missing-file", "this input does not exist", file=path)
        if without is not None and path.resolve().is_relative_to(without.resolve()):
            raise AttreeError(
                "input-in-output",
                "this input is in the output folder",
                file=path,
                fix="name another",
            )
        if path.is_file():
            kind, compression = _kind(path)
            found.append((path, kind or "text", compression))
            continue
        if not path.is_dir():
            check_regular(path, what="input")
        below = (p for p in path.rglob("*") if p.is_file() and not _hidden(p.relative_to(path)))
        outside = (p for p in below if without is None or not p.is_relative_to(without))
        for file in sorted(outside, key=lambda p: natural(str(p))):
            kind, compression = _kind(file)
            if kind:
                found.append((file, kind, compression))
            else:
                left_out.append(file)
    if not found:
        raise AttreeError(
            "no-inputs",
            "no input files",
            file=path,
            fix=f"attree reads {', '.join(KINDS)}, also compressed",
        )
    return [
        _described(file, kind, zipped, _shared(found)) for file, kind, zipped in found
    ], left_out


def _kind(path: Path) -> tuple[str | None, str]:
    suffixes = path.suffixes
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    return KINDS.get(suffixes[-1]) if suffixes else None, compression


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _shared(found: list[tuple[Path, str, str]]) -> Path:
    parents = [path.absolute().parent for path, _, _ in found]
    shared = parents[0]
    while not all(parent.is_relative_to(shared) for parent in parents):
        shared = shared.parent
    return shared


def _described(path: Path, kind: str, compression: str, shared: Path) -> InputFile:
    path = path.absolute()
    try:
        with path.open("rb") as handle:
            handle.read(1)
        about = path.stat()
    except OSError as error:
        raise AttreeError(
            "unreadable",
            f"this input cannot be read ({error.strerror})",
            file=path,
            fix="repair it or leave it out",
        ) from None
    name = name_of(path.relative_to(shared))
    return InputFile(str(path), name, kind, compression, about.st_size, about.st_mtime_ns)


@contextmanager
def open_input(file: InputFile, *, column: str) -> Iterator[Reader]:
    """Open a file for reading; damage in it is one clear line.

    Raises:
        AttreeError: the file is gone, cut short or damaged, or has no such column.
    """
    reader: Reader | None = None
    try:
        if file.kind == "parquet":
            reader = _ParquetReader(file.path, column)
        else:
            reader = _LineReader(open_compressed(file.path))
        yield reader
    except (*DAMAGE, OSError, ValueError) as error:
        where = "" if reader is None else f" at {reader.offset:,} bytes unpacked"
        problem = "is cut short" if is_cut_short(error) else f"cannot be read ({error})"
        raise AttreeError(
            "unreadable",
            f"this input {problem}{where}",
            file=file.path,
            fix="repair it or leave it out",
        ) from None
    finally:
        if reader is not None:
            reader.close()


class _LineReader:
    """Reads lines in blocks; of lines beyond `LINE_BYTES` only the beginning is kept."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._block = b""
        self._at = 0
        self.offset = 0

    def seek(self, offset: int) -> None:
        if offset == self.offset:
            return
        if offset < self.offset:
            raise ValueError("readers only go forward")
        inside = self._at + offset - self.offset
        if inside <= len(self._block):
            self._at = inside
        else:
            self._skip(offset - self.offset - (len(self._block) - self._at))
            self._block, self._at = b"", 0
        self.offset = offset

    def _skip(self, size: int) -> None:
        if self._stream.seekable():
            self._stream.seek(size, 1)
            return
        while size > 0:
            block = self._stream.read(min(size, _BLOCK))
            if not block:
                raise EOFError
            size -= len(block)

    def take(self, lines: int, size: int | None = None) -> tuple[bytes, int]:
        parts: list[bytes] = []
        held = taken = 0
        unfinished = 0  # bytes kept of a line that began in an earlier block
        while taken < lines and (size is None or held < size or unfinished):
            if self._at == len(self._block):
                self._block, self._at = self._stream.read(_BLOCK), 0
                if not self._block:
                    taken += bool(unfinished)
                    break
            end, here = self._end_of(lines - taken, stop=size is not None and held >= size)
            piece = self._block[self._at : end]
            self.offset += end - self._at
            self._at = end
            taken += here
            kept, unfinished = _shortened(piece, unfinished)
            parts.append(kept)
            held += len(kept)
        return b"".join(parts), taken

    def _end_of(self, lines: int, *, stop: bool) -> tuple[int, int]:
        """Return where the ``lines``-th line of the block ends, and how many lines end there."""
        there = self._block.count(b"\n", self._at)
        wanted = min(1 if stop else lines, there)
        if (wanted < lines and not stop) or there == 0:
            return len(self._block), there
        end = self._at
        if wanted > 64:
            import numpy as np

            block = np.frombuffer(self._block, np.uint8, offset=self._at)
            end = self._at + int(np.flatnonzero(block == 10)[wanted - 1]) + 1
        else:
            for _ in range(wanted):
                end = self._block.index(b"\n", end) + 1
        return end, wanted

    def close(self) -> None:
        self._stream.close()


def _shortened(piece: bytes, unfinished: int) -> tuple[bytes, int]:
    """Cut lines of a block to `LINE_BYTES` and one; say how much of a last, open line is kept.

    A block is no longer than that, so only its first line, which may have begun before, can be.
    """
    first = piece.find(b"\n")
    if first < 0:
        kept = piece[: max(0, LINE_BYTES + 1 - unfinished)]
        return kept, unfinished + len(kept)
    if unfinished + first > LINE_BYTES:
        piece = piece[: max(0, LINE_BYTES + 1 - unfinished)] + piece[first:]
    return piece, len(piece) - 1 - piece.rfind(b"\n")


class _ParquetReader:
    """Reads one column; the offset counts rows."""

    def __init__(self, path: str, column: str) -> None:
        import pyarrow.parquet as pq

        self._file = pq.ParquetFile(path)
        names = self._file.schema_arrow.names
        if column not in names:
            raise AttreeError(
                "no-column",
                f"no column {column!r} in this input",
                file=path,
                fix=f"name one with --column: {', '.join(names)}",
            )
        self._column = column
        groups = range(self._file.num_row_groups)
        sizes = [self._file.metadata.row_group(group).num_rows for group in groups]
        #: The first row, and the row after the last, of each row group.
        self._bounds = [0, *accumulate(sizes)]
        self._rows = self._lines_from(0)
        self.offset = 0

    def seek(self, offset: int) -> None:
        ahead = offset - self.offset
        if ahead >= 0 and self._group_of(offset) == self._group_of(self.offset):
            next(islice(self._rows, ahead, ahead), None)  # what is decoded is not decoded again
        else:
            self._rows = self._lines_from(offset)
        self.offset = offset

    def _group_of(self, row: int) -> int:
        return bisect_right(self._bounds, row) - 1

    def _lines_from(self, row: int) -> Iterator[bytes]:
        """Yield the lines from a row on; row groups before it are not read."""
        for group in range(self._group_of(row), self._file.num_row_groups):
            skipped = max(row - self._bounds[group], 0)
            batches = self._file.iter_batches(8192, row_groups=[group], columns=[self._column])
            yield from islice((x for one in batches for x in _json_lines(one[0])), skipped, None)

    def take(self, lines: int, size: int | None = None) -> tuple[bytes, int]:
        parts: list[bytes] = []
        held = 0
        while len(parts) < lines and (size is None or held < size):
            line = next(self._rows, None)
            if line is None:
                break
            parts.append(line)
            held += len(line)
        self.offset += len(parts)
        return b"".join(parts), len(parts)

    def close(self) -> None:
        self._file.close()


def _json_lines(column: Any) -> Iterator[bytes]:
    """Yield the values of an Arrow column, each as a line of JSON, undecodable ones as they are."""
    try:
        values = column.to_pylist()
    except UnicodeDecodeError:
        values = [_value(column[row]) for row in range(len(column))]
    for value in values:
        line = json.dumps(
            value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value,
            default=str,
        )
        yield line.encode() + b"\n"


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return b"\xff"  # becomes a lone surrogate, which no reader of the line takes for text
