"""From files to text, whatever bytes they hold; from a faulty sentence to what is told of it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from attree.base.errors import AttreeError
from attree.base.files import opened
from attree.treebank.sentence import Rejected, Status

_Read = TypeVar("_Read")

#: A byte that the encoding does not know stands in the text as one of these.
UNDECODED = re.compile("[\udc80-\udcff]")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF8 = ("utf-8", "utf8")


def read_text(path: str | Path, encoding: str) -> str:
    r"""Read a whole file, with ``\n`` as its line end and no byte-order mark.

    Undecodable bytes become lone surrogates (``surrogateescape``), so that they cost only the
    sentences they stand in; find them with `undecoded`.

    Raises:
        AttreeError: the file is absent or a folder, is UTF-16 when UTF-8 was said, or the encoding
            is unknown or none of text.
    """
    with opened(path, what="treebank file") as handle:
        data = handle.read()
    if encoding.lower() in _UTF8 and data.startswith(_UTF16):
        raise AttreeError("encoding", "this file is UTF-16", file=path, fix="set encoding: utf-16")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode(encoding, errors="surrogateescape")
    except UnicodeDecodeError as error:  # a codec that cannot carry bad bytes along
        line, fix = data.count(b"\n", 0, error.start) + 1, "set another encoding"
        problem = f"this file is not {encoding}"
        raise AttreeError("encoding", problem, file=path, line=line, fix=fix) from None
    except (LookupError, ValueError):
        # "idna" and "undefined" are codecs, and what follows a NUL is no name
        problem = f"{encoding!r} is no encoding of text"
        fix = "use a name such as utf-8 or latin-1"
        raise AttreeError("unknown-encoding", problem, file=path, fix=fix) from None
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def undecoded(text: str, begin: int, end: int, encoding: str) -> tuple[str, str] | None:
    """Return what is wrong with the bytes of a stretch of text, and a setting that may help."""
    match = UNDECODED.search(text, begin, end)
    if match is None:
        return None
    setting = f"encoding: {'latin-1' if encoding.lower() in _UTF8 else 'utf-8'}"
    byte = ord(match[0]) - 0xDC00
    return f"byte 0x{byte:02X} is not {encoding} — set {setting}, or the file's own", setting


class BadSentenceError(Exception):
    """What is wrong with a sentence: on which line, by default its first, and what may help.

    Args:
        problem: what is wrong.
        line: the line at fault.
        status: what becomes of the sentence.
        setting: the setting that may help.
    """

    def __init__(
        self, problem: str, line: int | None = None, status: Status = "failed", setting: str = ""
    ) -> None:
        super().__init__(problem)
        self.line, self.status, self.setting = line, status, setting


def check_decoded(text: str, encoding: str | None, line: int | None = None) -> None:
    """Refuse a sentence, or a line of it, with bytes that the encoding does not know.

    Raises:
        BadSentenceError: there is one.
    """
    if problem := undecoded(text, 0, len(text), encoding or "utf-8"):
        raise BadSentenceError(problem[0], line, setting=problem[1])


def attempt(read: Callable[[], _Read], file: str, first: int) -> _Read | Rejected:
    """Return what ``read`` does of the sentence that begins on line ``first``, or why it cannot."""
    try:
        return read()
    except BadSentenceError as bad:
        return Rejected(file, bad.line or first, str(bad), bad.status, bad.setting)
