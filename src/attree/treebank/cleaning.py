"""Punctuation policies, and which sentences are kept."""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from attree.errors import AttreeError
from attree.treebank.sentence import Rejected, Sentence, Settings

#: Tells which words of a sentence stay.
Keep = Callable[[Sentence], list[bool]]

#: The tags of words in the Penn Treebank; every other tag is punctuation, a symbol of currency, or
#: a trace.
# fmt: off
PTB_TAGS = frozenset((
    "CC", "CD", "DT", "EX", "FW", "IN", "JJ", "JJR", "JJS", "LS", "MD", "NN", "NNS", "NNP", "NNPS",
    "PDT", "POS", "PRP", "PRP$", "RB", "RBR", "RBS", "RP", "SYM", "TO", "UH", "VB", "VBD", "VBG",
    "VBN", "VBP", "VBZ", "WDT", "WP", "WP$", "WRB",
))
# fmt: on


def _keep(argument: str) -> Keep | None:
    return None


def _ptb(argument: str) -> Keep:
    return lambda sentence: [tag in PTB_TAGS for tag in sentence.tags]


def _drop(argument: str) -> Keep:
    """Drop the words with one of the tags of ``argument``, separated by spaces."""
    dropped = frozenset(argument.split())
    return lambda sentence: [tag not in dropped for tag in sentence.tags]


def _unicode(argument: str) -> Keep:
    return lambda sentence: [not is_punctuation(word) for word in sentence.words]


@dataclass(frozen=True, slots=True)
class Policy:
    """A punctuation policy: what makes its `Keep`, and what stands after its name and a colon."""

    make: Callable[[str], Keep | None]
    takes: str = ""


POLICIES = {
    "keep": Policy(_keep),
    "ptb": Policy(_ptb),
    "unicode": Policy(_unicode),
    "drop": Policy(_drop, takes="TAG TAG"),
}


def policies() -> str:
    """Return how the policies are written, for help and messages."""
    written = [f"{name}:{one.takes}" if one.takes else name for name, one in POLICIES.items()]
    return f"{', '.join(written[:-1])} or {written[-1]}"


@functools.lru_cache(maxsize=1 << 16)
def is_punctuation(word: str) -> bool:
    """Tell whether every character of a word is punctuation by its Unicode category."""
    return all(unicodedata.category(character)[0] == "P" for character in word)


def policy(name: str) -> Keep | None:
    """Return what a policy such as ``ptb`` or ``drop:PUNCT SYM`` keeps; None means every word.

    Raises:
        AttreeError: no such policy, or ``drop`` without tags.
    """
    kind, _, argument = name.partition(":")
    found = POLICIES.get(kind)
    if found is None or bool(argument.strip()) != bool(found.takes):
        raise AttreeError(f"unknown punctuation policy {name!r}", fix=f"choose {policies()}")
    return found.make(argument)


def clean(sentence: Sentence, keep: Keep | None) -> Sentence | None:
    """Take words out of a sentence, and the phrases that this leaves empty.

    Returns:
        The same sentence if every word stays, None if none does.
    """
    stays = keep(sentence) if keep is not None else None
    if stays is None or all(stays):
        return sentence
    new = list(itertools.accumulate(stays, initial=0))  # new[i]: words kept before word i
    if new[-1] == 0:
        return None
    return Sentence(
        tuple(itertools.compress(sentence.words, stays)),
        tuple(itertools.compress(sentence.tags, stays)),
        tuple((new[i], new[j], label) for i, j, label in sentence.spans if new[i] < new[j]),
        sentence.file,
        sentence.line,
    )


@dataclass(slots=True)
class Counts:
    """What became of the sentences, and how many words cleaning took out."""

    read: int = 0
    skipped: int = 0
    failed: int = 0
    emptied: int = 0
    words: int = 0
    words_removed: int = 0

    @property
    def total(self) -> int:
        """The number of sentences in the files."""
        return self.read + self.skipped + self.failed + self.emptied

    def as_dict(self) -> dict[str, int]:
        """Return the counts of sentences for the table's metadata."""
        return {name: getattr(self, name) for name in ("read", "skipped", "failed", "emptied")}


def prepare(
    items: Iterable[Sentence | Rejected], settings: Settings, counts: Counts
) -> Iterator[Sentence | Rejected]:
    """Clean sentences and keep those wanted: punctuation, then ``max_words``, then ``first``.

    Args:
        items: as a reader yields them; what is rejected passes through.
        settings: resolved.
        counts: counted up on the way.
    """
    keep = policy(settings.punctuation or "keep")
    for item in items:
        done = item if isinstance(item, Rejected) else _wanted(item, keep, settings, counts)
        if isinstance(done, Rejected):
            setattr(counts, done.status, getattr(counts, done.status) + 1)
        else:
            counts.read += 1
            counts.words += len(done.words)
        yield done


def _wanted(
    sentence: Sentence, keep: Keep | None, settings: Settings, counts: Counts
) -> Sentence | Rejected:
    file, line = sentence.file, sentence.line
    cleaned = clean(sentence, keep)
    counts.words_removed += len(sentence.words) - (len(cleaned.words) if cleaned else 0)
    if cleaned is None:
        reason = f"no word is left by punctuation policy {settings.punctuation}"
        return Rejected(file, line, reason, "emptied")
    n, most = len(cleaned.words), settings.max_words
    if most is not None and n > most:
        return Rejected(file, line, f"{n} words, more than max_words: {most}", "skipped")
    if settings.first is not None and counts.read >= settings.first:
        return Rejected(file, line, f"after the first: {settings.first}", "skipped")
    return cleaned
