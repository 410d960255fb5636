"""Words and names as text: undo a treebank's escapes, write those of tables and pages."""

import os
import re
import unicodedata
from collections.abc import Iterable, Sequence

from attree.base.terminal import safe

#: PTB's escapes in words.
_ESCAPED = re.compile(r"\\([/*])|-([LR][RSC]B)-")
_BRACKET = {"LRB": "(", "RRB": ")", "LSB": "[", "RSB": "]", "LCB": "{", "RCB": "}"}


def unescape(word: str) -> str:
    r"""Undo PTB's escapes: ``\/``, ``\*``, and brackets such as ``-LRB-``."""
    return _ESCAPED.sub(lambda match: match[1] or _BRACKET[match[2]], word)


def bracket_form(word: str) -> str:
    """Return a word as it is read back from brackets: without PTB's escapes and white space."""
    return re.sub(r"\s", "_", unescape(word))


def encodable(text: str) -> str:
    """Replace lone surrogates (bytes that were not UTF-8) by U+FFFD, to make text encodable."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def listed(items: Sequence[object], most: int) -> str:
    """Name the first ``most`` items, and count the others."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(map(str, items[:most])) + more


def name_of(path: str | os.PathLike[str]) -> str:
    r"""Return a file's name for a table; bytes that are not UTF-8 are written ``\xff``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def markdown(text: str) -> str:
    """Escape text for Markdown and the cells of its tables."""
    return re.sub(r"([\\|`*\[])", r"\\\1", safe(text)).replace("<", "&lt;")


def right_to_left(words: Iterable[str]) -> bool:
    """Tell whether most letters are of a script that is written from right to left."""
    kinds = [unicodedata.bidirectional(letter) for word in words for letter in word]
    return sum(kind in ("R", "AL") for kind in kinds) > kinds.count("L")
