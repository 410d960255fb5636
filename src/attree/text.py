"""Text of users on its way to a terminal, a Markdown table or a page: shown, never obeyed."""

from __future__ import annotations

import re
import unicodedata

#: C0, DEL and C1 controls, and the marks that turn the direction of what follows.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def safe(text: str) -> str:
    """Return text for a terminal: a control character is shown as ``\\x1b``, never sent."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def markdown(text: str) -> str:
    """Return text for a cell of a Markdown table: no column ends in it, no markup begins in it."""
    return re.sub(r"([\\|`*_<>\[\]#])", r"\\\1", safe(text))


def width(text: str) -> int:
    """Return the columns that text takes on a terminal: two of a Chinese or Korean character."""
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )
