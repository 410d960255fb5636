"""What EVALB's parameter files set: labels and words that count as equal, or not at all."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a parameter file (``.prm``) sets; without one EVALB deletes nothing.

    Attributes:
        labelled: whether labels must be the same.
        cutoff: the summary is given again for sentences of at most this many words.
        max_errors: more errors than these end the run.
        delete: labels of brackets, and tags of words, that do not count.
        delete_for_length: tags of words that do not count as words of the sentence.
        quotes: tags that one tree may give a quotation mark that is deleted from the other.
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

    def same_label(self, one: str, other: str) -> bool:
        """Tell whether two labels or tags count as equal."""
        return one == other or (one, other) in self.same_labels or (other, one) in self.same_labels

    def same_word(self, one: str, other: str) -> bool:
        """Tell whether two words count as equal."""
        return one == other or (one, other) in self.same_words or (other, one) in self.same_words

    def deletes(self, label: str) -> bool:
        """Tell whether brackets with this label do not count."""
        return any(self.same_label(label, one) for one in self.delete)


#: What is customary for the Penn Treebank, on trees whose words are already chosen.
COLLINS = Parameters(
    delete=frozenset({"TOP", "S1", "ROOT", "VROOT", "-NONE-", ",", ":", "``", "''", "."}),
    delete_for_length=frozenset({"-NONE-"}),
    same_labels=frozenset({("ADVP", "PRT")}),
)


def cut(label: str) -> str:
    """Cut off the functions of a label."""
    return re.split("[-=]", label, maxsplit=1)[0]
