"""Unescape text of treebanks, and make text safe for terminals, tables and pages."""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterable
from typing import Any

#: C0, DEL and C1 controls, and the marks that change the direction of text.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

#: Those of them that JSON does not escape, and surrogates, which have no encoding.
_UNPRINTED = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

#: PTB's escapes in words.
_ESCAPED = re.compile(r"\\([/*])|-([LR][RSC]B)-")
_BRACKET = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]", "LCB": "{", "RCB": "}"}


def safe(text: str) -> str:
    """Return text for a terminal: a control character is shown as ``\\x1b``, never sent."""
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def safe_lines(text: str) -> str:
    """Return lines for a terminal, each made :func:`safe`."""
    return "\n".join(map(safe, text.split("\n")))


def in_json(value: Any, *, indent: int | None = None) -> str:
    """Return JSON for a terminal: letters as they are, control characters escaped."""
    text = json.dumps(value, indent=indent, sort_keys=indent is not None, ensure_ascii=False)
    return _UNPRINTED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def say(line: str) -> None:
    """Print a line to stderr, made :func:`safe`."""
    print(safe(line), file=sys.stderr, flush=True)


def unread(unknown: int, words: int) -> str | None:
    """Return a warning if the encoder does not know pieces of many words, else None.

    Args:
        unknown: how many words have an unknown piece.
        words: how many words there are.
    """
    if unknown * 5 < words or not unknown:
        return None
    return (
        f"attree: {unknown:,} of {words:,} words ({unknown / words:.0%}) have word pieces "
        "unknown to the encoder: it has hardly read this script"
    )


def unescape(word: str) -> str:
    r"""Undo PTB's escapes: ``\/``, ``\*``, and brackets such as ``-LRB-``."""
    return _ESCAPED.sub(lambda match: match[1] or _BRACKET[match[2]], word)


def encodable(text: str) -> str:
    """Replace lone surrogates (bytes that were not UTF-8) by U+FFFD, to make text encodable."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def name_of(path: str | os.PathLike[str]) -> str:
    r"""Return a file's name for a table; bytes that are not UTF-8 are written ``\xff``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def markdown(text: str) -> str:
    """Escape text for Markdown and the cells of its tables."""
    return re.sub(r"([\\|`*\[])", r"\\\1", safe(text)).replace("<", "&lt;")


def width(text: str) -> int:
    """Return the width of text on a terminal: Chinese characters and emoji take two columns."""
    from rich.cells import cell_len

    return cell_len(text)


def right_to_left(words: Iterable[str]) -> bool:
    """Tell whether most letters are of a script that is written from right to left."""
    kinds = [unicodedata.bidirectional(letter) for word in words for letter in word]
    return sum(kind in ("R", "AL") for kind in kinds) > kinds.count("L")
