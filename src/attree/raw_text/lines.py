"""Read the text of a payload's lines, or the reason why a line has none; read text to train on."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(slots=True)
class InputLine:
    """What is read of a line.

    Attributes:
        text: or its words if they are given; empty unless the line is ``ok``.
        status: one of :data:`STATUSES`.
        reason: why it is malformed or contradictory; else empty.
        id: the line's own, of JSON: a text, or a whole number as text.
        constraints: on the tree of a partly bracketed line.
    """

    text: Line = ""
    status: str = OK
    reason: str = ""
    id: str | None = None
    constraints: Constraints | None = None


def _text_line(raw: bytes, column: str, id_field: str) -> InputLine:
    try:
        text = raw.decode("utf-8").removesuffix("\r")
    except UnicodeDecodeError:
        return InputLine(status=UNDECODABLE)
    return InputLine(status=CONTROL) if _CONTROL.search(text) else InputLine(text)


def _half_line(raw: bytes, column: str, id_field: str) -> InputLine:
    line, status = _text_line(raw, column, id_field), MALFORMED
    if line.status != OK:
        return line
    try:
        sentence = half.read_line(str(line.text))
        status = CONTRADICTORY
        return InputLine(list(sentence.words), constraints=half.constraints_of(sentence))
    except AttreeError as error:
        return InputLine(status=status, reason=str(error))


def _json_line(raw: bytes, column: str, id_field: str) -> InputLine:
    """Read an object of JSON Lines, or if there is no ``column`` a value."""
    try:
        value = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return InputLine(status=UNDECODABLE)
    except ValueError as error:
        if not raw.strip():
            return InputLine(status=EMPTY)
        why = f"not JSON ({getattr(error, 'msg', 'a number of too many digits')})"
        return InputLine(status=MALFORMED, reason=why)
    except RecursionError:
        return InputLine(status=MALFORMED, reason="JSON nested too deeply")
    if not column:
        return _of_value(value, "the value")
    if not isinstance(value, dict):
        return InputLine(status=MALFORMED, reason="not a JSON object")
    if column not in value:
        return InputLine(status=MALFORMED, reason=f"no field {column!r}")
    line = _of_value(value[column], column)
    name = value.get(id_field)
    if line.status != MALFORMED and isinstance(name, str | int) and not _is_bad(str(name)):
        line.id = str(name)
    return line


def _of_value(value: Any, name: str) -> InputLine:
    """Return the line of a text or its words; refuse escapes of JSON as strictly as bytes."""
    if value is None:
        return InputLine(status=EMPTY)
    is_text = isinstance(value, str)
    given = [value] if is_text else value
    if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
        return InputLine(status=MALFORMED, reason=f"{name} is neither a text nor a list of words")
    # rows have their words in one text: a space in a word would make two words of it
    words = [word.strip() for word in given]
    if not is_text and any(len(word.split()) > 1 for word in words):
        return InputLine(status=MALFORMED, reason="a word with a space in it")
    text = value if is_text else " ".join(words)
    # a value of several lines is one text, as JSON keeps documents
    if status := _is_bad(text.replace("\n", " ").replace("\r", " ")):
        return InputLine(status=status)
    return InputLine(text if is_text else words)


def _is_bad(text: str) -> str:
    """Return the status of a text that cannot be encoded or has control characters, else ``""``."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return UNDECODABLE
    return CONTROL if _CONTROL.search(text) else ""


#: Kind of input → function that reads a line of its payload.
PARSERS: dict[str, Callable[[bytes, str, str], InputLine]] = {
    "text": _text_line,
    "json": _json_line,
    "parquet": lambda raw, column, id_field: _json_line(raw, "", id_field),
    "half": _half_line,
}


def _read(raw: bytes, kind: str, column: str, id_field: str) -> InputLine:
    if len(raw) > LINE_BYTES:
        return InputLine(status=TOO_LONG)
    try:
        return PARSERS[kind](raw, column, id_field)
    except Exception:
        # no line may stop the other lines of its shard
        return InputLine(status=MALFORMED, reason="it cannot be read")


def parse_lines(
    payload: bytes, *, kind: str, column: str, first: bool, id_field: str = "id"
) -> list[InputLine]:
    """Read the lines of a payload.

    Args:
        payload: of one file.
        kind: a key of :data:`PARSERS`.
        column: the field of JSON Lines that is read.
        first: whether the payload begins the file, where a byte-order mark may stand.
        id_field: the field of JSON Lines that holds a line's id.
    """
    if first:
        payload = payload.removeprefix(_BYTE_ORDER_MARK)
    if kind == "text" and (texts := _split_plain(payload)) is not None:
        return list(map(InputLine, texts))
    return [_read(raw, kind, column, id_field) for raw in _split(payload, b"\n")]


def _split_plain(payload: bytes) -> list[str] | None:
    """Return the lines of a text if all are ``ok``, which is usual and fast; else None."""
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if _CONTROL_OR_END.search(text):
        return None
    lines: list[str] = _split(text, "\n")
    return lines if max(map(len, lines), default=0) * 4 <= LINE_BYTES else None


def _split(payload: Any, end: Any) -> Any:
    lines = payload.split(end)
    if not lines[-1]:
        lines.pop()
    return lines


def read_lines(
    files: Iterable[InputFile], column: str
) -> Iterator[tuple[InputFile, int, list[InputLine]]]:
    """Yield file, number of the first line, and some lines at a time."""
    for file in files:
        with open_input(file, column=column) as reader:
            first = 1
            while (block := reader.take(_LINES_AT_A_TIME))[1]:
                payload, count = block
                lines = parse_lines(payload, kind=file.kind, column=column, first=first == 1)
                yield file, first, lines
                first += count


def read_sentences(
    files: Iterable[InputFile], column: str, split: Tokeniser
) -> Iterator[tuple[InputFile, int, str, list[list[str]]]]:
    """Yield the file, number, status and sentences of each line.

    Lines that the tokeniser refuses have the status ``too_long`` too.
    """
    for file, first, lines in read_lines(files, column):
        sentences = split([line.text for line in lines])
        for number, (line, parts) in enumerate(zip(lines, sentences, strict=True), first):
            if line.status != OK or parts is None:
                yield file, number, TOO_LONG if line.status == OK else line.status, []
            else:
                yield file, number, OK, parts


#: Comments and blank lines. Were there two ways to match them, 2 ** n would be tried on n lines.
_LEFT_OUT = r"(\s*\n)?(#[^\n]*\n(\s*\n)?)*"
#: Format → pattern of its beginning. Such a file is a treebank or mark-up, not raw text.
_NO_TEXT = {
    "JSON": re.compile(r'\s*(\[\s*)?\{\s*"[^"\n]*"\s*:'),
    "XML": re.compile(r"\s*<(\?xml\b|!DOCTYPE|[A-Za-z][\w:-]*(\s[^<>]*)?>\s*<)"),
    "CoNLL-U": re.compile(_LEFT_OUT + r"1(-\d+)?\t[^\t\n]*\t([^\t\n]*\t){5,7}[^\t\n]*\n"),
    "trees in brackets": re.compile(
        r"\s*\(\s*(\(|[^\s()]+\s*\()([^()]*[()]){0,20}?[^()]*\([^\s()]+\s+[^\s()]+\s*\)"
    ),
    "partly bracketed trees": re.compile(
        _LEFT_OUT + r"\(([?!=]|\s*\([A-Z?!=][^\s()a-z]*)\s[^\n]*\)[ \t]*\n"
    ),
}
_HEAD = 1 << 13
_FIX = "give what `attree treebank FILE --output words.parquet` writes, with --column words"
_FIXES = {"JSON": "give JSON Lines, .jsonl", "partly bracketed trees": "let its name end in .half"}


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
        AttreeError: a path does not exist, or there is no text, or something else.
    """
    named = {str(path.absolute()) for path in paths}
    found, _ = find_inputs(paths)
    files = [f for f in found if f.path in named or not Path(f.path).name.startswith(_NO_CORPUS)]
    refuse_treebanks(files)
    return files


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
        for _, first, lines in read_lines([file], "text"):
            for number, line in enumerate(lines, first):
                if line.status == UNDECODABLE:
                    problem, fix = "this text is not UTF-8", "convert it with `iconv`"
                    raise AttreeError("encoding", problem, file=file.path, line=number, fix=fix)
                if line.status not in (OK, EMPTY) and passed is not None:
                    passed[line.status] += 1
                words = line.text if isinstance(line.text, str) else " ".join(line.text)
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
