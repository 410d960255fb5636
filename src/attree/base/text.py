"""Text of users: unescaped; on its way to a terminal, a table or a page shown, never obeyed."""

from __future__ import annotations

import json
import os
import re
import sys
import unicodedata
from typing import Any

#: C0, DEL and C1 controls, and the marks that turn the direction of what follows.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

#: Of these what JSON leaves as it is, and surrogates, which have no encoding.
_UNPRINTED = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

#: PTB's escapes in words.
_ESCAPED = re.compile(r"\\([/*])|-([LR][RSC]B)-")
_BRACKET = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]", "LCB": "{", "RCB": "}"}


def safe(text: str) -> str:
    """Return text for a terminal: a control character is shown as ``\\x1b``, never sent."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shown(text: str) -> str:
    """Return lines for a terminal, each as :func:`safe` returns it."""
    return "\n".join(map(safe, text.split("\n")))


def in_json(value: Any, *, indent: int | None = None) -> str:
    """Return JSON for a terminal: letters as they are, control characters escaped."""
    text = json.dumps(value, indent=indent, sort_keys=indent is not None, ensure_ascii=False)
    return _UNPRINTED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def say(line: str) -> None:
    """Print a line to stderr, as :func:`safe` returns it."""
    print(safe(line), file=sys.stderr, flush=True)


def unread(unknown: int, words: int) -> str | None:
    """Return what to say of words with pieces that the encoder does not know, if they are many.

    Args:
        unknown: how many words have one.
        words: how many there are.
    """
    if unknown * 5 < words or not unknown:
        return None
    return (
        f"attree: {unknown:,} of {words:,} words ({unknown / words:.0%}) have word pieces "
        "unknown to the encoder: it has hardly read this script"
    )


def unescape(word: str) -> str:
    r"""Undo PTB's escapes: ``\/``, ``\*``, and brackets such as ``-LRB-``."""
    return _ESCAPED.sub(lambda found: found[1] or _BRACKET[found[2]], word)


def encodable(text: str) -> str:
    """Return text that has an encoding: a lone surrogate (a byte that was no UTF-8) is U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def name_of(path: str | os.PathLike[str]) -> str:
    r"""Return the name of a file for a table: of one that is not UTF-8, the bytes as ``\xff``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def markdown(text: str) -> str:
    """Return text for Markdown, a table's cell too: no column ends in it, no markup begins."""
    return re.sub(r"([\\|`*\[])", r"\\\1", safe(text)).replace("<", "&lt;")


def width(text: str) -> int:
    """Return the columns that text takes on a terminal: two of a Chinese or Korean character."""
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )
