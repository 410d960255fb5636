"""Say something in a terminal: no control character of a text reaches it."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from typing import Any

from attree.base.text import safe

#: Those of them that JSON does not escape, and surrogates, which have no encoding.
_UNPRINTED = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


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


def width(text: str) -> int:
    """Return the width of text on a terminal: Chinese and Korean characters take two columns."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
