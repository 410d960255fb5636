"""Read raw text for training line by line, from text files of any kind and sentence tables."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.schemas import read_table
from attree.base.terminal import say
from attree.raw_text.inputs import InputFile, find_inputs
from attree.raw_text.lines import EMPTY, UNDECODABLE, read_lines
from attree.trees import OK

#: Prefixes of files that lie beside corpora and are no text.
_NO_CORPUS = ("README", "LICENSE")


def text_files(paths: Sequence[Path]) -> list[InputFile]:
    """List files, and the text files and tables in folders, in natural order.

    Raises:
        AttreeError: a path does not exist, or there is no text.
    """
    named = {str(path.absolute()) for path in paths}
    files, _ = find_inputs(paths)
    return [f for f in files if f.path in named or not Path(f.path).name.startswith(_NO_CORPUS)]


def read_texts(files: Iterable[InputFile], passed: Counter[str] | None = None) -> Iterator[str]:
    """Yield the lines that are not blank; for a sentence table, its words joined by spaces.

    Args:
        files: of :func:`text_files`.
        passed: counts the lines without text, which are skipped, by their status.

    Raises:
        AttreeError: a file is cut short, not UTF-8, or a table without words.
    """
    for file in files:
        if file.kind == "parquet":
            yield from filter(None, map(" ".join, table_words(file.path)[0]))
            continue
        for _, first, texts, statuses in read_lines([file], "text"):
            for line, (text, status) in enumerate(zip(texts, statuses, strict=True), first):
                if status == UNDECODABLE:
                    fix = "convert it with `iconv`"
                    raise AttreeError(
                        "encoding", "this text is not UTF-8", file=file.path, line=line, fix=fix
                    )
                if status not in (OK, EMPTY) and passed is not None:
                    passed[status] += 1
                words = text if isinstance(text, str) else " ".join(text)
                if stripped := words.strip():
                    yield stripped


def table_words(path: str | Path) -> tuple[list[list[str]], dict[str, Any]]:
    """Return the sentences of a table, and its metadata.

    Raises:
        AttreeError: it is no table, or has no column of words.
    """
    table, metadata = read_table(path)
    if "words" not in table.schema.names:
        fix = "write it with `attree treebank`"
        raise AttreeError("no-column", "this table has no column `words`", file=path, fix=fix)
    return table["words"].to_pylist(), metadata


def measure(files: Sequence[InputFile]) -> dict[str, Any]:
    """Count the lines and characters of a text, and hash its lines.

    Lines without text are reported on stderr.

    Raises:
        AttreeError: there is no text, or as for :func:`read_texts`.
    """
    whole, lines, characters, passed = hashlib.sha256(), 0, 0, Counter[str]()
    for line in read_texts(files, passed):
        whole.update(line.encode() + b"\n")
        lines, characters = lines + 1, characters + len(line)
    for status, count in passed.items():
        say(f"attree: {count:,} lines of the text are passed over: {status}")
    if not lines:
        raise AttreeError("no-text", "this file has no text", file=files[0].path if files else None)
    return {"hash": whole.hexdigest()[:32], "lines": lines, "characters": characters}
