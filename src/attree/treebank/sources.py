"""Decode files of any bytes, and turn faults in sentences into rejected sentences."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from attree.base.errors import AttreeError
from attree.base.reading import opened
from attree.treebank.sentence import Rejected, Status

_Read = TypeVar("_Read")

#: Undecodable bytes in a text.
UNDECODED = re.compile("[\udc80-\udcff]")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF8 = ("utf-8", "utf8")


def read_text(path: str | Path, encoding: str) -> str:
    r"""Read a whole file, with ``\n`` as its line end and no byte-order mark.

    Undecodable bytes become lone surrogates (``surrogateescape``), so that only their sentences are
    lost; find them with `undecoded`.

    Raises:
        AttreeError: the file is absent or a folder, is UTF-16 although UTF-8 was set, or the
            encoding is unknown or no encoding of text.
    """
    with opened(path, what="treebank file") as handle:
        data = handle.read()
    if encoding.lower() in _UTF8 and data.startswith(_UTF16):
        raise AttreeError("encoding", "this file is UTF-16", file=path, fix="set encoding: utf-16")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode(encoding, errors="surrogateescape")
    except UnicodeDecodeError as error:  # a codec without surrogateescape
        line, fix = data.count(b"\n", 0, error.start) + 1, "set another encoding"
        problem = f"this file is not {encoding}"
        raise AttreeError("encoding", problem, file=path, line=line, fix=fix) from None
    except (LookupError, ValueError):
        # such as the codecs "idna" and "undefined", or a name with a NUL
        problem = f"{encoding!r} is not a text encoding"
        fix = "use a name such as utf-8 or latin-1"
        raise AttreeError("unknown-encoding", problem, file=path, fix=fix) from None
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def undecoded(text: str, begin: int, end: int, encoding: str) -> tuple[str, str] | None:
    """Describe an undecodable byte in a stretch of text, with a setting that may help; or None."""
    match = UNDECODED.search(text, begin, end)
    if match is None:
        return None
    setting = f"encoding: {'latin-1' if encoding.lower() in _UTF8 else 'utf-8'}"
    byte = ord(match[0]) - 0xDC00
    return f"byte 0x{byte:02X} is not {encoding} — set {setting}, or the file's own", setting


class BadSentenceError(Exception):
    """A fault in a sentence, for which it is rejected.

    Args:
        problem: what is wrong.
        line: the line at fault; None means the sentence's first line.
        status: of the rejected sentence.
        setting: a setting that may help.
    """

    def __init__(
        self, problem: str, line: int | None = None, status: Status = "failed", setting: str = ""
    ) -> None:
        super().__init__(problem)
        self.line, self.status, self.setting = line, status, setting


def check_decoded(text: str, encoding: str | None, line: int | None = None) -> None:
    """Refuse undecodable bytes in a sentence, or in a line of it.

    Raises:
        BadSentenceError: there is such a byte.
    """
    if problem := undecoded(text, 0, len(text), encoding or "utf-8"):
        raise BadSentenceError(problem[0], line, setting=problem[1])


def attempt(read: Callable[[], _Read], file: str, first: int) -> _Read | Rejected:
    """Read a sentence that begins on line ``first``, or return it as rejected."""
    try:
        return read()
    except BadSentenceError as bad:
        return Rejected(file, bad.line or first, str(bad), bad.status, bad.setting)
