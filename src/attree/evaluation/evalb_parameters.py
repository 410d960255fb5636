"""Parameter files of EVALB: what does not count, and what counts as equal."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attree.errors import AttreeError
from attree.files import opened


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

#: keyword → the attribute of :class:`Parameters` that it sets
_NUMBERS = {"LABELED": "labelled", "CUTOFF_LEN": "cutoff", "MAX_ERROR": "max_errors"}
_SETS = {
    "DELETE_LABEL": "delete",
    "DELETE_LABEL_FOR_LENGTH": "delete_for_length",
    "QUOTE_LABEL": "quotes",
}
_PAIRS = {"EQ_LABEL": "same_labels", "EQ_WORD": "same_words"}


def read_parameters(path: str | Path) -> Parameters:
    """Read a parameter file; ``collins`` stands for :data:`COLLINS` where no file has that name.

    Raises:
        AttreeError: an unknown keyword, or a keyword without its values; ``DEBUG`` is ignored.
    """
    if str(path).lower() == "collins" and not Path(path).exists():
        return COLLINS
    found: dict[str, Any] = {}
    for line, text in enumerate(lines(path, "parameter file"), 1):
        keyword, *values = text.split()[:3] or [""]
        if text.startswith("#") or len(text.strip()) < 3 or keyword == "DEBUG":
            continue
        wanted = 2 if keyword in _PAIRS else 1
        if len(values) < wanted:
            raise AttreeError(f"{keyword} needs {wanted} values", file=path, line=line)
        if keyword in _NUMBERS:
            number = values[0]
            if not re.fullmatch(r"\d{1,9}", number):
                problem = f"{keyword} {number[:20]} is not a number of at most nine digits"
                raise AttreeError(problem, file=path, line=line)
            found[_NUMBERS[keyword]] = bool(int(number)) if keyword == "LABELED" else int(number)
        elif keyword in _SETS:
            found.setdefault(_SETS[keyword], set()).add(values[0])
        elif keyword in _PAIRS:
            found.setdefault(_PAIRS[keyword], set()).add((values[0], values[1]))
        else:
            known = ", ".join([*_NUMBERS, *_SETS, *_PAIRS])
            fix = f"the keywords are {known}"
            raise AttreeError(f"unknown keyword {keyword}", file=path, line=line, fix=fix)
    for name, value in found.items():
        found[name] = frozenset(value) if isinstance(value, set) else value
    return Parameters(**found)


def lines(path: str | Path, what: str) -> Iterator[str]:
    """Yield the lines of a text file or stream; bytes that are not UTF-8 pass through."""
    with (
        opened(path, what=what, stream=True) as handle,
        io.TextIOWrapper(handle, "utf-8", "surrogateescape", newline="\n") as file,
    ):
        yield from file
