"""Raw text, a line after the other: sentence tables, text files (plain, .xz, .gz), folders."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.files import COMPRESSIONS, DAMAGE, check_regular, open_compressed

#: Files that lie beside corpora and are none.
_NO_TEXT = ("README", "LICENSE", ".")
_SUFFIXES = (".txt", *filter(None, COMPRESSIONS))
_TABLE = ".parquet"


def text_files(paths: Iterable[Path]) -> list[Path]:
    """List files, and the text files and tables below folders, by name.

    Raises:
        AttreeError: a path does not exist, or a folder has no text.
    """
    return [file for path in paths for file in _below(path)]


def read_lines(files: Iterable[Path]) -> Iterator[str]:
    """Yield the lines that are not blank; of a sentence table its words, joined by spaces.

    Raises:
        AttreeError: a file is cut short, or not UTF-8.
    """
    for file in files:
        lines = _table_lines(file) if file.suffix == _TABLE else _file_lines(file)
        yield from filter(None, map(str.strip, lines))


def measure(files: Sequence[Path]) -> dict[str, Any]:
    """Count the lines and characters of a text, and hash them, wherever they lie.

    Raises:
        AttreeError: there is none, or as :func:`read_lines`.
    """
    whole, lines, characters = hashlib.sha256(), 0, 0
    for line in read_lines(files):
        whole.update(line.encode() + b"\n")
        lines, characters = lines + 1, characters + len(line)
    if not lines:
        raise AttreeError("this file has no text", file=files[0])
    return {"hash": whole.hexdigest()[:32], "lines": lines, "characters": characters}


def _below(path: Path) -> list[Path]:
    if not path.is_dir():
        check_regular(path, what="text")
        return [path]
    found = sorted(
        file
        for file in path.rglob("*")
        if file.is_file()
        and file.suffix in (_TABLE, *_SUFFIXES)
        and not file.name.startswith(_NO_TEXT)
    )
    if not found:
        raise AttreeError(
            "no text in this folder",
            file=path,
            fix=f"text files end in {', '.join(_SUFFIXES)}, sentence tables in {_TABLE}",
        )
    return found


def _table_lines(path: Path) -> Iterable[str]:
    from attree.base.schemas import read_table

    table, _ = read_table(path)
    if "words" not in table.schema.names:
        raise AttreeError(
            "this table has no column `words`", file=path, fix="write it with `attree treebank`"
        )
    return (" ".join(words) for words in table["words"].to_pylist())


def _file_lines(path: Path) -> Iterator[str]:
    number = 0
    try:
        with io.BufferedReader(open_compressed(path), 1 << 20) as handle:
            for number, line in enumerate(handle, start=1):
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        raise AttreeError(
            "this text is not UTF-8", file=path, line=number, fix="convert it with `iconv`"
        ) from None
    except DAMAGE:
        raise AttreeError(
            "this file is damaged or cut short", file=path, line=number + 1, fix="copy it again"
        ) from None
