"""Lines of a payload → text, or the reason why there is none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from attree.constraints import Constraints
from attree.corpus.inputs import LINE_BYTES, InputFile, open_input
from attree.errors import AttreeError
from attree.files import DAMAGE, open_compressed
from attree.schemas import FAILED, OK, TOO_LONG
from attree.treebank import half
from attree.words import Line, Tokeniser

#: What can become of an input line. Only ``ok`` rows have words and spans.
EMPTY = "empty"
UNDECODABLE = "undecodable"
CONTROL = "control"
MALFORMED = "malformed"
CONTRADICTORY = "contradictory"
STATUSES = (OK, EMPTY, TOO_LONG, FAILED, UNDECODABLE, CONTROL, MALFORMED, CONTRADICTORY)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINES_AT_A_TIME = 64
#: C0 and C1 but for tab; a carriage return at the end of a line is cut off before.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f]")
_CONTROL_OR_END = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def text_lines(payload: bytes, *, column: str) -> tuple[list[Line], list[str]]:
    """Return the text of each line of plain text and its status (``ok``, or why it is empty)."""
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        text = None
    # the usual case at once: nothing in it that could be wrong with any line
    if text is not None and not _CONTROL_OR_END.search(text):
        lines = _split(text, "\n")
        longest = max(map(len, lines), default=0)
        if longest * 4 <= LINE_BYTES:
            return list(lines), [OK] * len(lines)
    return _each(_split(payload, b"\n"), _text_line)


def json_lines(payload: bytes, *, column: str) -> tuple[list[Line], list[str]]:
    """Return the text or words that each JSON line holds under ``column``, and its status."""
    return _each(_split(payload, b"\n"), lambda raw: _json_line(raw, column))


def value_lines(payload: bytes, *, column: str) -> tuple[list[Line], list[str]]:
    """Return the text or words of each line that is a JSON value (of Parquet), and its status."""
    return _each(_split(payload, b"\n"), lambda raw: _json_line(raw, None))


def half_lines(payload: bytes, *, column: str) -> tuple[list[Line], list[str]]:
    """Return the words of each line that is a half-known tree, and its status."""
    return _each(_split(payload, b"\n"), _half_line)


#: kind of input → how its payloads are read
PARSERS: dict[str, Callable[..., tuple[list[Line], list[str]]]] = {
    "text": text_lines,
    "json": json_lines,
    "parquet": value_lines,
    "half": half_lines,
}


def reasons(
    payload: bytes, statuses: Sequence[str], *, kind: str, column: str, first: int, most: int = 5
) -> list[str]:
    """Say why lines are malformed or contradictory, for the first of them.

    Such as ``line 3: no field 'text'``.

    Args:
        payload, statuses: as :func:`parse_lines` takes and gives them.
        kind, column: likewise.
        first: 1-based number of the payload's first line.
        most: how many are told.
    """
    wrong = (MALFORMED, CONTRADICTORY)
    places = [place for place, status in enumerate(statuses) if status in wrong][:most]
    lines = _split(payload.removeprefix(_BYTE_ORDER_MARK), b"\n") if places else []
    if kind == "half":
        return [f"line {first + place}: {_why_half(lines[place])}" for place in places]
    field_name = column if kind == "json" else None
    return [f"line {first + place}: {_why(lines[place], field_name)}" for place in places]


def _why_half(raw: bytes) -> str:
    try:
        half.known(half.read_line(_text_line(raw)[0]))
    except AttreeError as error:
        return str(error)
    return "no tree"


def _why(raw: bytes, column: str | None) -> str:
    try:
        value = json.loads(raw)
    except ValueError as error:
        return f"not JSON ({getattr(error, 'msg', 'a number of too many digits')})"
    except RecursionError:
        return "JSON nested too deeply"
    if column is not None:
        if not isinstance(value, dict):
            return "not a JSON object"
        if column not in value:
            return f"no field {column!r}"
        value = value[column]
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return "a word with a space in it"
    return f"{column or 'the value'} is neither a text nor a list of words"


def line_ids(payload: bytes, statuses: Sequence[str], field_name: str) -> list[str | None]:
    """Return what each JSON line has under ``field_name``: a text or whole number, else None."""
    return [
        None if status == MALFORMED else _id(raw, field_name)
        for raw, status in zip(_split(payload, b"\n"), statuses, strict=True)
    ]


def _id(raw: bytes, field_name: str) -> str | None:
    try:
        found = json.loads(raw)[field_name]
        found = str(found) if isinstance(found, str | int) else None
        return None if found is None or _CONTROL.search(found) else found.encode().decode()
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None


def line_constraints(
    payload: bytes, statuses: Sequence[str], *, kind: str
) -> list[Constraints | None]:
    """Return what each line says of its tree, None where it says nothing or is not ``ok``."""
    if kind != "half":
        return [None] * len(statuses)
    lines = _split(payload.removeprefix(_BYTE_ORDER_MARK), b"\n")
    return [
        half.known(half.read_line(_text_line(raw)[0])) if status == OK else None
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
        first: whether it is the beginning of the file, where a byte-order mark may stand.

    Returns:
        one text (or list of words) and one status a line; the text is empty unless ``ok``.
    """
    if first and payload.startswith(_BYTE_ORDER_MARK):
        payload = payload[len(_BYTE_ORDER_MARK) :]
    return PARSERS[kind](payload, column=column)


def read_lines(
    files: Iterable[InputFile], column: str
) -> Iterator[tuple[InputFile, int, list[Line], list[str]]]:
    """Yield some lines at a time: their file, the first one's number, texts and statuses."""
    for file in files:
        with open_input(file, column=column) as reader:
            first = 1
            while (taken := reader.take(_LINES_AT_A_TIME))[1]:
                begins = first == 1
                texts = parse_lines(taken[0], kind=file.kind, column=column, first=begins)
                yield file, first, *texts
                first += taken[1]


def read_sentences(
    files: Iterable[InputFile], column: str, split: Tokeniser
) -> Iterator[tuple[InputFile, int, str, list[list[str]]]]:
    """Yield the file, number, status and sentences of each line.

    The status is ``too_long`` also of lines that the tokeniser does not take.
    """
    for file, first, texts, statuses in read_lines(files, column):
        for number, (status, found) in enumerate(zip(statuses, split(texts), strict=True), first):
            if status != OK or found is None:
                yield file, number, TOO_LONG if status == OK else status, []
            else:
                yield file, number, OK, found


def _split(payload: Any, end: Any) -> Any:
    lines = payload.split(end)
    if not lines[-1]:
        lines.pop()
    return lines


def _each(
    lines: list[bytes], read: Callable[[bytes], tuple[Line, str]]
) -> tuple[list[Line], list[str]]:
    texts: list[Line] = []
    statuses: list[str] = []
    for line in lines:
        try:
            text, status = read(line) if len(line) <= LINE_BYTES else ("", TOO_LONG)
        except Exception:
            # whatever a line holds, it must not cost the others of its shard
            text, status = "", MALFORMED
        texts.append(text if status == OK else "")
        statuses.append(status)
    return texts, statuses


def _text_line(raw: bytes) -> tuple[str, str]:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return "", UNDECODABLE
    text = text.removesuffix("\r")
    return (text, OK) if not _CONTROL.search(text) else ("", CONTROL)


def _half_line(raw: bytes) -> tuple[Line, str]:
    text, status = _text_line(raw)
    if status != OK:
        return "", status
    try:
        one = half.read_line(text)
    except AttreeError:
        return "", MALFORMED
    try:
        half.known(one)
    except AttreeError:
        return "", CONTRADICTORY
    return list(one.words), OK


def _json_line(raw: bytes, column: str | None) -> tuple[Line, str]:
    try:
        value = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return "", UNDECODABLE
    except (ValueError, RecursionError):  # not JSON; or a number of too many digits, too deep
        return "", MALFORMED if raw.strip() else EMPTY
    if column is not None:
        if not isinstance(value, dict) or column not in value:
            return "", MALFORMED
        value = value[column]
    if value is None:
        return "", EMPTY
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return "", MALFORMED
    if words is value and any(len(word.split()) > 1 for word in words):
        return "", MALFORMED  # a word with a space in it could not be told from two
    return _checked(value, words)


def _checked(value: Line, words: list[str]) -> tuple[Line, str]:
    """Give escapes of JSON the same care as bytes: lone surrogates, control characters."""
    text = " ".join(words)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "", UNDECODABLE
    # several lines in one value are one text: JSON keeps documents that way
    if _CONTROL.search(text.replace("\n", " ").replace("\r", " ")):
        return "", CONTROL
    return value, OK


#: Format → how a file of it begins. Such a file is a treebank or markup, not raw text.
_NO_TEXT = {
    "XML": re.compile(r"\s*<(\?xml\b|!DOCTYPE|[A-Za-z][\w:-]*(\s[^<>]*)?>\s*<)"),
    "CoNLL-U": re.compile(r"(#[^\n]*\n|\s*\n)*1(-\d+)?\t[^\t\n]*\t([^\t\n]*\t){5,7}[^\t\n]*\n"),
    "trees in brackets": re.compile(
        r"\s*\(\s*(\(|[^\s()]+\s*\()([^()]*[()]){0,20}?\s*\([^\s()]+\s+[^\s()]+\s*\)"
    ),
    "half-known trees": re.compile(
        r"(#[^\n]*\n|\s*\n)*\(([?!=]|\s*\([A-Z?!=][^\s()a-z]*)\s[^\n]*\)[ \t]*\n"
    ),
}
_HEAD = 1 << 13
_FIX = (
    "`attree treebank FILE --output words.parquet` reads a treebank; give words.parquet, with "
    "--column words"
)
_FIXES = {"half-known trees": "let its name end in .half"}


def refuse_treebanks(files: Iterable[InputFile]) -> None:
    """Refuse files given as text whose beginning is mark-up of trees or of something else.

    Raises:
        AttreeError: one is; it names the file and what to do.
    """
    for file in files:
        if file.kind != "text":
            continue
        try:
            with open_compressed(file.path) as handle:
                head = handle.read(_HEAD).decode("utf-8", "replace").lstrip("\ufeff")
        except (*DAMAGE, OSError, ValueError):
            continue  # told when it is read
        for what, pattern in _NO_TEXT.items():
            if pattern.match(head.replace("\r\n", "\n")):
                fix = _FIXES.get(what, _FIX)
                raise AttreeError(f"this is {what}, not text", file=file.path, fix=fix)
