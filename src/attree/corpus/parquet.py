"""Reading one column of a Parquet file as lines of JSON: a reader of `attree.corpus.inputs`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq

from attree.errors import AttreeError


class ParquetReader:
    """Reads one column; the offset counts rows."""

    def __init__(self, path: str, column: str) -> None:
        self._file = pq.ParquetFile(path)
        names = self._file.schema_arrow.names
        if column not in names:
            raise AttreeError(
                f"no column {column!r} in this input",
                file=path,
                fix=f"name one with --column: {', '.join(names)}",
            )
        self._column = column
        self._group = 0
        self._rows: Iterator[bytes] = iter(())
        self._left_in_group = 0
        self.offset = 0

    def seek(self, offset: int) -> None:
        """Go forward to a row."""
        while self.offset < offset and self._next_group():
            skipped = min(offset - self.offset, self._left_in_group)
            if skipped < self._left_in_group:
                for _ in range(skipped):
                    next(self._rows)
            self.offset += skipped
            self._left_in_group -= skipped

    def _next_group(self) -> bool:
        while not self._left_in_group:
            if self._group == self._file.num_row_groups:
                return False
            self._left_in_group = self._file.metadata.row_group(self._group).num_rows
            self._rows = self._lines_of(self._group)
            self._group += 1
        return True

    def _lines_of(self, group: int) -> Iterator[bytes]:
        for batch in self._file.iter_batches(8192, row_groups=[group], columns=[self._column]):
            yield from _json_lines(batch.column(0))

    def take(self, lines: int, size: int | None = None) -> tuple[bytes, int]:
        """Return the next rows as lines, and their number."""
        parts: list[bytes] = []
        held = 0
        while len(parts) < lines and (size is None or held < size) and self._next_group():
            line = next(self._rows)
            parts.append(line)
            held += len(line)
            self._left_in_group -= 1
            self.offset += 1
        return b"".join(parts), len(parts)

    def close(self) -> None:
        """Let go of the file."""
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
