"""Reading corpora: plain text, JSON Lines, Parquet, half-known trees, compressed or not, by shards.

Whatever the format, a shard's *payload* is bytes with one line an input line: the column's value as
JSON of Parquet, else the line itself. It can be read again from its offset. Nothing is unpickled.
"""

from __future__ import annotations

import io
import json
import os
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.files import COMPRESSIONS, DAMAGE, check_regular, is_cut_short, open_compressed
from attree.base.text import name_of

#: Longest line in bytes: of a longer one the beginning is read, to tell that it is too long.
LINE_BYTES = 1 << 20

_BLOCK = LINE_BYTES

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


class Reader(ABC):
    """Reads one file line by line from the front, or from an offset that it gave before.

    Attributes:
        offset: where the next line begins.
    """

    offset = 0

    @abstractmethod
    def seek(self, offset: int) -> None:
        """Go to an offset, forward only."""

    @abstractmethod
    def line(self) -> bytes:
        """Return the next line, ``b""`` at the end, and move the offset past it."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""

    def take(self, lines: int, size: int | None = None) -> tuple[bytes, int]:
        """Return the next lines and their number, fewer once there are ``size`` bytes."""
        taken: list[bytes] = []
        held = 0
        while len(taken) < lines and (size is None or held < size) and (line := self.line()):
            taken.append(line)
            held += len(line)
        return b"".join(taken), len(taken)


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
    listed: list[tuple[Path, str, str]] = []
    left_out: list[Path] = []
    for path in paths:
        if not path.exists():
            raise AttreeError("missing-file", "this input does not exist", file=path)
        if without is not None and path.resolve().is_relative_to(without.resolve()):
            problem = "this input is in the output folder"
            raise AttreeError("input-in-output", problem, file=path, fix="name another")
        if path.is_file():
            files = [path]
        else:
            if not path.is_dir():
                check_regular(path, what="input")
            below = (p for p in path.rglob("*") if p.is_file())
            files = [
                file
                for file in below
                if not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
                and (without is None or not file.is_relative_to(without))
            ]
        for file in sorted(files, key=lambda p: natural(str(p))):
            suffixes = file.suffixes
            compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
            kind = KINDS.get(suffixes[-1] if suffixes else "", "text" if file == path else "")
            if kind:
                listed.append((file, kind, compression))
            else:
                left_out.append(file)
    if not listed:
        fix = f"attree reads {', '.join(KINDS)}, also compressed"
        raise AttreeError("no-inputs", "no input files", file=path, fix=fix)
    shared = os.path.commonpath([file.absolute().parent for file, _, _ in listed])
    return [_described(*file, Path(shared)) for file in listed], left_out


def _described(path: Path, kind: str, compression: str, shared: Path) -> InputFile:
    path = path.absolute()
    try:
        with path.open("rb") as handle:
            handle.read(1)
        status = path.stat()
    except OSError as error:
        raise _unreadable(f"cannot be read ({error.strerror})", path) from None
    name = name_of(path.relative_to(shared))
    return InputFile(str(path), name, kind, compression, status.st_size, status.st_mtime_ns)


def _unreadable(problem: str, file: str | Path) -> AttreeError:
    fix = "repair it or leave it out"
    return AttreeError("unreadable", f"this input {problem}", file=file, fix=fix)


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
        raise _unreadable(f"{problem}{where}", file.path) from None
    finally:
        if reader is not None:
            reader.close()


class _LineReader(Reader):
    """Reads lines; of those beyond `LINE_BYTES` only the beginning is kept."""

    def __init__(self, stream: Any) -> None:
        self._stream = io.BufferedReader(stream, _BLOCK)

    def seek(self, offset: int) -> None:
        if offset < self.offset:
            raise ValueError("readers only go forward")
        if self._stream.seekable():
            self.offset = self._stream.seek(offset)
        while self.offset < offset:
            block = self._stream.read(min(offset - self.offset, _BLOCK))
            if not block:
                raise EOFError
            self.offset += len(block)

    def line(self) -> bytes:
        line = rest = self._stream.readline(LINE_BYTES + 1)
        self.offset += len(line)
        while len(line) > LINE_BYTES and rest and not rest.endswith(b"\n"):
            rest = self._stream.readline(_BLOCK)
            self.offset += len(rest)
        return line if rest is line else line + rest[-1:]

    def close(self) -> None:
        self._stream.close()


class _ParquetReader(Reader):
    """Reads one column, a row a line; the offset counts rows."""

    def __init__(self, path: str, column: str) -> None:
        import pyarrow.parquet as pq

        self._file = pq.ParquetFile(path)
        names = self._file.schema_arrow.names
        if column not in names:
            problem = f"no column {column!r} in this input"
            fix = f"name one with --column: {', '.join(names)}"
            raise AttreeError("no-column", problem, file=path, fix=fix)
        self._column = column
        groups = range(self._file.num_row_groups)
        sizes = [self._file.metadata.row_group(group).num_rows for group in groups]
        #: The first row, and the row after the last, of each row group.
        self._bounds = [0, *accumulate(sizes)]
        self._rows = self._lines_from(0)

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

    def line(self) -> bytes:
        line = next(self._rows, b"")
        self.offset += bool(line)
        return line

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
