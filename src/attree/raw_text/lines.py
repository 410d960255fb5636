"""Read the text of a payload's lines, or the reason why a line has none; read text to train on."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.reading import DAMAGE, open_compressed
from attree.base.schemas import read_table
from attree.base.terminal import say
from attree.raw_text.inputs import LINE_BYTES, InputFile, find_inputs, open_input
from attree.raw_text.words import Line, Tokeniser
from attree.treebank import half
from attree.trees import FAILED, OK, TOO_LONG
from attree.trees.constraints import Constraints

#: Statuses of an input line. Only ``ok`` rows have words and spans.
EMPTY = "empty"
UNDECODABLE = "undecodable"
CONTROL = "control"
MALFORMED = "malformed"
CONTRADICTORY = "contradictory"
STATUSES = (OK, EMPTY, TOO_LONG, FAILED, UNDECODABLE, CONTROL, MALFORMED, CONTRADICTORY)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINES_AT_A_TIME = 64
#: C0 and C1 controls without tab; a carriage return that ends a line is removed before.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f]")
_CONTROL_OR_END = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class _RefusedError(Exception):
    """A line without text.

    Attributes:
        status: of the line.
        reason: why it is malformed or contradictory.
    """

    def __init__(self, status: str, reason: str = "") -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


def _text_line(raw: bytes, column: str = "") -> str:
    try:
        text = raw.decode("utf-8").removesuffix("\r")
    except UnicodeDecodeError:
        raise _RefusedError(UNDECODABLE) from None
    if _CONTROL.search(text):
        raise _RefusedError(CONTROL)
    return text


def _half_line(raw: bytes, column: str = "") -> Line:
    status, text = MALFORMED, _text_line(raw)
    try:
        sentence = half.read_line(text)
        status = CONTRADICTORY
        half.constraints_of(sentence)
    except AttreeError as error:
        raise _RefusedError(status, str(error)) from None
    return list(sentence.words)


def _json_line(raw: bytes, column: str) -> Line:
    value = _json(raw)
    if not isinstance(value, dict):
        raise _RefusedError(MALFORMED, "not a JSON object")
    if column not in value:
        raise _RefusedError(MALFORMED, f"no field {column!r}")
    return _check_value(value[column], column)


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise _RefusedError(UNDECODABLE) from None
    except ValueError as error:
        why = f"not JSON ({getattr(error, 'msg', 'a number of too many digits')})"
        raise _RefusedError(MALFORMED if raw.strip() else EMPTY, why) from None
    except RecursionError:
        raise _RefusedError(MALFORMED, "JSON nested too deeply") from None


def _check_value(value: Any, name: str) -> Line:
    """Return a text or its words; refuse escapes of JSON as strictly as bytes."""
    if value is None:
        raise _RefusedError(EMPTY)
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise _RefusedError(MALFORMED, f"{name} is neither a text nor a list of words")
    if words is value and any(len(word.split()) > 1 for word in words):
        # it would be read back as two words
        raise _RefusedError(MALFORMED, "a word with a space in it")
    text = " ".join(words)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _RefusedError(UNDECODABLE) from None
    # a value of several lines is one text, as JSON keeps documents
    if _CONTROL.search(text.replace("\n", " ").replace("\r", " ")):
        raise _RefusedError(CONTROL)
    return words if words is value else text


#: Kind of input → function that reads the text, or the words, of a line of its payload.
PARSERS: dict[str, Callable[[bytes, str], Line]] = {
    "text": _text_line,
    "json": _json_line,
    "parquet": lambda raw, column: _check_value(_json(raw), "the value"),
    "half": _half_line,
}


def _read(raw: bytes, kind: str, column: str) -> tuple[Line, str, str]:
    """Return a line's text, its status, and why it is malformed or contradictory."""
    if len(raw) > LINE_BYTES:
        return "", TOO_LONG, ""
    try:
        return PARSERS[kind](raw, column), OK, ""
    except _RefusedError as refused:
        return "", refused.status, refused.reason
    except Exception:
        # no line may stop the other lines of its shard
        return "", MALFORMED, "it cannot be read"


def reasons(
    payload: bytes, statuses: Sequence[str], *, kind: str, column: str, first: int, most: int = 5
) -> list[str]:
    """Say why the first malformed or contradictory lines are so: ``line 3: no field 'text'``.

    Args:
        payload, kind, column: arguments of :func:`parse_lines`.
        statuses: its result.
        first: 1-based number of the payload's first line.
        most: how many lines are described.
    """
    wrong = (MALFORMED, CONTRADICTORY)
    rows = [row for row, status in enumerate(statuses) if status in wrong][:most]
    lines = _split(payload.removeprefix(_BYTE_ORDER_MARK), b"\n") if rows else []
    return [f"line {first + row}: {_read(lines[row], kind, column)[2]}" for row in rows]


def line_ids(payload: bytes, statuses: Sequence[str], field_name: str) -> list[str | None]:
    """Return each JSON line's value of ``field_name``, a text or whole number, else None."""
    return [
        None if status == MALFORMED else _read_id(raw, field_name)
        for raw, status in zip(_split(payload, b"\n"), statuses, strict=True)
    ]


def _read_id(raw: bytes, field_name: str) -> str | None:
    try:
        value = json.loads(raw)[field_name]
        value = str(value) if isinstance(value, str | int) else None
        return None if value is None or _CONTROL.search(value) else value.encode().decode()
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None


def line_constraints(
    payload: bytes, statuses: Sequence[str], *, kind: str
) -> list[Constraints | None]:
    """Return the constraints of each line, None where it has none or is not ``ok``."""
    if kind != "half":
        return [None] * len(statuses)
    lines = _split(payload.removeprefix(_BYTE_ORDER_MARK), b"\n")
    return [
        half.constraints_of(half.read_line(_text_line(raw))) if status == OK else None
        for raw, status in zip(lines, statuses, strict=True)
    ]


def parse_lines(
    payload: bytes, *, kind: str, column: str, first: bool
) -> tuple[list[Line], list[str]]:
    """Read the lines of a payload.

    Args:
        payload: of one file.
        kind: a key of :data:`PARSERS`.
        column: the field of JSON Lines that is read.
        first: whether the payload begins the file, where a byte-order mark may stand.

    Returns:
        the text (or words) and the status of each line; the text is empty unless ``ok``.
    """
    if first:
        payload = payload.removeprefix(_BYTE_ORDER_MARK)
    if kind == "text" and (texts := _split_plain(payload)) is not None:
        return texts, [OK] * len(texts)
    read = [_read(raw, kind, column) for raw in _split(payload, b"\n")]
    return [text for text, _, _ in read], [status for _, status, _ in read]


def _split_plain(payload: bytes) -> list[Line] | None:
    """Return the lines of a text if all are ``ok``, which is usual and fast; else None."""
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if _CONTROL_OR_END.search(text):
        return None
    lines: list[Line] = _split(text, "\n")
    return lines if max(map(len, lines), default=0) * 4 <= LINE_BYTES else None


def read_lines(
    files: Iterable[InputFile], column: str
) -> Iterator[tuple[InputFile, int, list[Line], list[str]]]:
    """Yield file, first line number, texts and statuses of some lines at a time."""
    for file in files:
        with open_input(file, column=column) as reader:
            first = 1
            while (block := reader.take(_LINES_AT_A_TIME))[1]:
                begins = first == 1
                texts = parse_lines(block[0], kind=file.kind, column=column, first=begins)
                yield file, first, *texts
                first += block[1]


def read_sentences(
    files: Iterable[InputFile], column: str, split: Tokeniser
) -> Iterator[tuple[InputFile, int, str, list[list[str]]]]:
    """Yield the file, number, status and sentences of each line.

    Lines that the tokeniser refuses have the status ``too_long`` too.
    """
    for file, first, texts, statuses in read_lines(files, column):
        for number, (status, parts) in enumerate(zip(statuses, split(texts), strict=True), first):
            if status != OK or parts is None:
                yield file, number, TOO_LONG if status == OK else status, []
            else:
                yield file, number, OK, parts


def _split(payload: Any, end: Any) -> Any:
    lines = payload.split(end)
    if not lines[-1]:
        lines.pop()
    return lines


#: Format → pattern of its beginning. Such a file is a treebank or mark-up, not raw text.
_NO_TEXT = {
    "XML": re.compile(r"\s*<(\?xml\b|!DOCTYPE|[A-Za-z][\w:-]*(\s[^<>]*)?>\s*<)"),
    "CoNLL-U": re.compile(r"(#[^\n]*\n|\s*\n)*1(-\d+)?\t[^\t\n]*\t([^\t\n]*\t){5,7}[^\t\n]*\n"),
    "trees in brackets": re.compile(
        r"\s*\(\s*(\(|[^\s()]+\s*\()([^()]*[()]){0,20}?\s*\([^\s()]+\s+[^\s()]+\s*\)"
    ),
    "partly bracketed trees": re.compile(
        r"(#[^\n]*\n|\s*\n)*\(([?!=]|\s*\([A-Z?!=][^\s()a-z]*)\s[^\n]*\)[ \t]*\n"
    ),
}
_HEAD = 1 << 13
_FIX = (
    "`attree treebank FILE --output words.parquet` reads a treebank; give words.parquet, with "
    "--column words"
)
_FIXES = {"partly bracketed trees": "let its name end in .half"}


def refuse_treebanks(files: Iterable[InputFile]) -> None:
    """Refuse text files that begin as treebanks or XML.

    Raises:
        AttreeError: a file does; the message says what to do.
    """
    for file in files:
        if file.kind != "text":
            continue
        try:
            with open_compressed(file.path) as handle:
                head = handle.read(_HEAD).decode("utf-8", "replace").lstrip("\ufeff")
        except (*DAMAGE, OSError, ValueError):
            continue  # reported when it is read
        for kind, pattern in _NO_TEXT.items():
            if pattern.match(head.replace("\r\n", "\n")):
                fix = _FIXES.get(kind, _FIX)
                raise AttreeError("not-text", f"this is {kind}, not text", file=file.path, fix=fix)


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
