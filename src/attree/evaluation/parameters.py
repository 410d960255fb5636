"""The settings of EVALB's parameter files: labels and words to equate or to leave out."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameters:
    """The settings of a parameter file (``.prm``); without one EVALB deletes nothing.

    Attributes:
        labelled: whether labels must be the same.
        cutoff: a second summary covers sentences of at most this many words.
        max_errors: more errors than this end the run.
        delete: labels of brackets, and tags of words, that do not count.
        delete_for_length: tags of words that do not count in the sentence's length.
        quotes: tags of quotation marks that may be deleted from one tree only.
        same_labels, same_words: pairs that count as equal.
    """

    labelled: bool = True
    cutoff: int = 40
    max_errors: int = 10
    delete: frozenset[str] = frozenset()
    delete_for_length: frozenset[str] = frozenset()
    quotes: frozenset[str] = frozenset()
    same_labels: frozenset[tuple[str, str]] = frozenset()
    same_words: frozenset[tuple[str, str]] = frozenset()

    def same_label(self, tag: str, other: str) -> bool:
        """Tell whether two labels or tags count as equal."""
        return tag == other or (tag, other) in self.same_labels or (other, tag) in self.same_labels

    def same_word(self, word: str, other: str) -> bool:
        """Tell whether two words count as equal."""
        return word == other or (word, other) in self.same_words or (other, word) in self.same_words

    def deletes(self, label: str) -> bool:
        """Tell whether brackets with this label do not count."""
        return any(self.same_label(label, deleted) for deleted in self.delete)


#: The usual parameters for the Penn Treebank, for trees whose punctuation is removed already.
COLLINS = Parameters(
    delete=frozenset({"TOP", "S1", "ROOT", "VROOT", "-NONE-", ",", ":", "``", "''", "."}),
    delete_for_length=frozenset({"-NONE-"}),
    same_labels=frozenset({("ADVP", "PRT")}),
)


def cut(label: str) -> str:
    """Cut off the functions of a label."""
    return re.split("[-=]", label, maxsplit=1)[0]
