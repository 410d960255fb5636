"""What crosses every boundary of this package: a sentence read, or a sentence that was not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: One phrase node: half-open word interval and label.
Span = tuple[int, int, str]

#: ``failed``: could not be read; ``emptied``: no word was left; ``skipped``: left out on purpose
#: (not projective, longer than ``max_words``, after the first ``first``).
Status = Literal["failed", "emptied", "skipped"]


@dataclass(slots=True)
class Sentence:
    """One sentence of a treebank: its words, their tags, and its phrases.

    Args:
        words: the leaves, unescaped, in order; at least one.
        tags: one part-of-speech tag a word, cut at its first ``-`` or ``=``.
        spans: the phrase nodes in pre-order; one-word phrases and unary chains are kept, the dummy
            root, traces and preterminals are not in it.
        file: the file it came from, as it was named.
        line: the 1-based line its tree starts on.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    spans: tuple[Span, ...]
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """One sentence that is not in the table, with where it stands and why."""

    file: str
    line: int
    reason: str
    status: Status
