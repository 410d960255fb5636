"""The words that a grammar knows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from attree.encoder.pieces import Pieces
from attree.provenance import digest

#: What stands for every word that is not known; no word of a text is empty.
UNKNOWN = ""
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")

#: Longest sentence that is parsed, in words: time grows with its cube.
LONGEST = 250


def normalised(word: str) -> str:
    """Return a word as the vocabulary has it: lower case, each number as ``0``."""
    return _DIGITS.sub("0", word.lower())


@dataclass(frozen=True)
class Vocabulary:
    """The words that a grammar knows; in the place of an encoder it numbers a parser's words.

    Attributes:
        words: the first is :data:`UNKNOWN`.
    """

    words: tuple[str, ...]
    slug: str = field(default="grammar", repr=False)
    max_pieces: int = LONGEST
    tokens_per_batch: int = 1024

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]], *, least: int) -> Vocabulary:
        """Take the words that occur at least ``least`` times, the most frequent first."""
        counts = Counter(normalised(word) for words in sentences for word in words)
        known = sorted((-count, word) for word, count in counts.items() if count >= least)
        return cls((UNKNOWN, *(word for _, word in known if word != UNKNOWN)))

    def __post_init__(self) -> None:
        """Number the words."""
        object.__setattr__(self, "_number", {word: n for n, word in enumerate(self.words)})

    @property
    def fingerprint(self) -> str:
        """A hash of the words."""
        return digest(self.words)

    def numbers(self, words: Iterable[str]) -> np.ndarray:
        """Return int64 (words,), 0 for those that are not known."""
        known: dict[str, int] = self._number  # type: ignore[attr-defined]
        return np.array([known.get(normalised(word), 0) for word in words], np.int64)

    def tokenise(self, sentences: Sequence[Sequence[str]]) -> list[Pieces]:
        """Number the words of sentences, a piece each."""
        found = []
        for words in sentences:
            ids, n = self.numbers(words).astype(np.int32), len(words)
            places = np.arange(n, dtype=np.int32)
            found.append(Pieces(ids, places, n, int((ids == 0).sum()), n > LONGEST))
        return found
