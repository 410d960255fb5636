"""A sentence's spans written as a bracketed tree."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attree.errors import AttreeError
from attree.treebank.sentence import Span

_UNSAFE = re.compile(r"[() \t\n\r\f\v]")
_ESCAPES = {"(": "-LRB-", ")": "-RRB-"}


def bracketed(words: Sequence[str], tags: Sequence[str], spans: Sequence[Span]) -> str:
    """Write a tree on one line: ``(S (NP (DT the) (NN dog)) (VP (VBZ barks)))``.

    Brackets in words are escaped (``-LRB-``) and white space becomes ``_``, so that any reader
    tells the tokens apart. Several top nodes are put under one without a label.

    Args:
        words, tags: one tag a word; an empty one is written ``X``.
        spans: half-open word intervals with labels, in pre-order.

    Raises:
        AttreeError: the spans cross or are not in pre-order.
    """
    n = len(words)
    parts: list[str] = []
    ends: list[int] = []  # of the open nodes
    left = list(spans)[::-1]
    if n > 1 and (not left or left[-1][:2] != (0, n)):
        left.append((0, n, ""))
    for place, (word, tag) in enumerate(zip(words, tags, strict=True)):
        while left and left[-1][0] == place:
            _, end, label = left.pop()
            if not place < end <= (ends[-1] if ends else n):
                raise AttreeError(f"the span {(place, end)} crosses another or is out of order")
            ends.append(end)
            parts.append(f" ({_safe(label)}")
        parts.append(f" ({_safe(tag) or 'X'} {_safe(word)})")
        while ends and ends[-1] == place + 1:
            ends.pop()
            parts.append(")")
    if left:
        raise AttreeError(f"the span {left[-1][:2]} is out of order")
    return "".join(parts).strip()


def _safe(text: str) -> str:
    return _UNSAFE.sub(lambda found: _ESCAPES.get(found[0], "_"), text)
