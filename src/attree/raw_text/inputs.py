"""Read corpora by shards: text, JSON Lines, Parquet or partly bracketed trees, also compressed.

In every format, a shard's *payload* is bytes with a line for each input line: the line itself, or
for Parquet the column's value as JSON. A shard can be read again from its offset. No pickles.
"""

from __future__ import annotations

import io
import json
import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.patterns import distinct, files_below
from attree.base.reading import COMPRESSIONS, DAMAGE, check_regular, is_cut_short, open_compressed
from attree.base.text import name_of

#: Longest line in bytes; of a longer line only the beginning is read.
LINE_BYTES = 1 << 20

_BLOCK = LINE_BYTES

#: suffix → how lines hold text (see `attree.raw_text.lines.PARSERS`)
KINDS = {
    **dict.fromkeys((".txt", ".text", ".tok"), "text"),
    **dict.fromkeys((".jsonl", ".ndjson"), "json"),
    ".parquet": "parquet",
    ".half": "half",
}


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file of the corpus.

    Attributes:
        path: absolute.
        name: in outputs: the path below the folder that all inputs share.
        kind: ``text``, ``json``, ``parquet`` or ``half``.
        size, changed: bytes, and time of the last change in nanoseconds, when shards were cut.
    """

    path: str
    name: str
    kind: str
    size: int
    changed: int


def natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key under which ``part-10`` comes after ``part-9``."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def find_inputs(
    paths: Iterable[Path], *, without: Path | None = None
) -> tuple[list[InputFile], list[Path]]:
    """List the files of a corpus, each once; those of a folder in natural order.

    Args:
        paths: files and folders.
        without: the output folder, whose files are no input.

    Returns:
        the files, and the files in folders that were left out because of their suffix.

    Raises:
        AttreeError: an input is absent, cannot be read or is in the output, or there is no file.
    """
    listed: dict[Path, str] = {}
    left_out: list[Path] = []
    path: Path | None = None
    output = None if without is None else without.resolve()
    for path in paths:
        if not path.exists():
            raise AttreeError("missing-file", "this input does not exist", file=path)
        real = path.resolve()
        if output is not None and real.is_relative_to(output):
            problem = "this input is in the output folder"
            raise AttreeError("input-in-output", problem, file=path, fix="name another")
        if path.is_file():
            files = [path]
        else:
            if not path.is_dir():
                check_regular(path, what="input")
            below = {file: real / file.relative_to(path) for file in files_below(path)}
            files = [f for f in below if output is None or not below[f].is_relative_to(output)]
        for file in sorted(files, key=lambda p: natural(str(p))):
            plain = file.with_suffix("") if file.suffix in COMPRESSIONS else file
            if kind := KINDS.get(plain.suffix, "text" if file == path else ""):
                listed[file] = kind
            else:
                left_out.append(file)
    if not listed:
        fix = f"attree reads {', '.join(KINDS)}, also compressed"
        raise AttreeError("no-inputs", "no input files", file=path, fix=fix)
    shared = os.path.commonpath([file.absolute().parent for file in listed])
    return [_describe(file, listed[file], Path(shared)) for file in distinct(listed)], left_out


def _describe(path: Path, kind: str, shared: Path) -> InputFile:
    path = path.absolute()
    try:
        with path.open("rb") as handle:
            handle.read(1)
        status = path.stat()
    except OSError as error:
        raise _unreadable(f"cannot be read ({error.strerror})", path) from None
    name = name_of(path.relative_to(shared))
    return InputFile(str(path), name, kind, status.st_size, status.st_mtime_ns)


def _unreadable(problem: str, file: str | Path) -> AttreeError:
    fix = "repair it or leave it out"
    return AttreeError("unreadable", f"this input {problem}", file=file, fix=fix)


@contextmanager
def open_input(file: InputFile, *, column: str) -> Iterator[Reader]:
    """Open a file for reading, and turn its faults into errors for the user.

    Raises:
        AttreeError: the file is absent, cut short or damaged, or has no such column.
    """
    reader: Reader | None = None
    try:
        if file.kind == "parquet":
            reader = _ParquetReader(file.path, column)
        else:
            reader = Reader(open_compressed(file.path))
        yield reader
    except (*DAMAGE, OSError, ValueError) as error:
        where = "" if reader is None else f" at {reader.offset:,} bytes unpacked"
        problem = "is cut short" if is_cut_short(error) else f"cannot be read ({error})"
        raise _unreadable(f"{problem}{where}", file.path) from None
    finally:
        if reader is not None:
            reader.close()


class Reader:
    """Read a file line by line from its beginning, or from an earlier offset.

    Only the beginning of lines longer than `LINE_BYTES` is kept.

    Attributes:
        offset: where the next line begins.
    """

    offset = 0

    def __init__(self, stream: Any) -> None:
        self._stream: Any = io.BufferedReader(stream, _BLOCK)

    def seek(self, offset: int) -> None:
        """Move to an offset, only forward."""
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
        """Return the next line, ``b""`` at the end; move the offset past it."""
        line = rest = self._stream.readline(LINE_BYTES + 1)
        self.offset += len(line)
        while len(line) > LINE_BYTES and rest and not rest.endswith(b"\n"):
            rest = self._stream.readline(_BLOCK)
            self.offset += len(rest)
        return line if rest is line else line + rest[-1:]

    def take(self, lines: int, size: int | None = None) -> tuple[bytes, int]:
        """Return the next lines and their number; stop after ``size`` bytes."""
        payload: list[bytes] = []
        n_bytes = 0
        while len(payload) < lines and (size is None or n_bytes < size) and (line := self.line()):
            payload.append(line)
            n_bytes += len(line)
        return b"".join(payload), len(payload)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


class _ParquetReader(Reader):
    """Read one column, a line for each row; the offset counts rows."""

    def __init__(self, path: str, column: str) -> None:
        import pyarrow.parquet as pq

        self._stream = pq.ParquetFile(path)
        names = self._stream.schema_arrow.names
        if column not in names:
            problem = f"no column {column!r} in this input"
            fix = f"name one with --column: {', '.join(names)}"
            raise AttreeError("no-column", problem, file=path, fix=fix)
        self._column = column
        groups = range(self._stream.num_row_groups)
        sizes = [self._stream.metadata.row_group(group).num_rows for group in groups]
        #: The first row, and the row after the last, of each row group.
        self._bounds = [0, *accumulate(sizes)]
        self._rows = self._lines_from(0)

    def seek(self, offset: int) -> None:
        ahead = offset - self.offset
        if ahead >= 0 and self._group_of(offset) == self._group_of(self.offset):
            next(islice(self._rows, ahead, ahead), None)  # do not decode the row group again
        else:
            self._rows = self._lines_from(offset)
        self.offset = offset

    def _group_of(self, row: int) -> int:
        return bisect_right(self._bounds, row) - 1

    def _lines_from(self, row: int) -> Iterator[bytes]:
        """Yield the lines from a row on, without reading the row groups before it."""
        for group in range(self._group_of(row), self._stream.num_row_groups):
            skipped = max(row - self._bounds[group], 0)
            batches = self._stream.iter_batches(8192, row_groups=[group], columns=[self._column])
            yield from islice((x for b in batches for x in _json_lines(b[0])), skipped, None)

    def line(self) -> bytes:
        line = next(self._rows, b"")
        self.offset += bool(line)
        return line


def _json_lines(column: Any) -> Iterator[bytes]:
    """Yield each value of an Arrow column as a line of JSON; undecodable bytes as surrogates.

    Some programs write text as bytes, also in lists.
    """
    try:
        values = column.to_pylist()
    except UnicodeDecodeError:
        values = [_value(column[row]) for row in range(len(column))]
    yield from (json.dumps(value, default=_text).encode() + b"\n" for value in values)


def _text(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _value(scalar: Any) -> Any:
    with suppress(UnicodeDecodeError):
        return scalar.as_py()
    return b"\xff"  # becomes a lone surrogate, so that the line is refused as undecodable
