"""Punctuation policies, and which sentences are kept."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from attree.base.errors import AttreeError
from attree.treebank.sentence import Rejected, Sentence, Span, SplitSettings
from attree.trees.constraints import MARKS, NO_PHRASE, UNKNOWN

#: From this share of sentences lost on, a table marks the row.
NOTED = 0.01

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

#: Further tags of the Penn Treebank, and of later treebanks in its manner.
# fmt: off
_PTB_OTHERS = frozenset((
    "#", "$", ".", ",", ":", "''", "``", "-LRB-", "-RRB-", "-LSB-", "-RSB-", "-LCB-", "-RCB-",
    "-NONE-", "ADD", "AFX", "GW", "HYPH", "NFP", "XX",
))
# fmt: on
#: The share of the Penn Treebank's tags from which on tags are taken for it.
NEARLY_ALL = 0.95
_SAMPLE = 1000  # sentences that a policy is chosen by


#: Punctuation policy → what stands after its name and a colon (see `policy`).
POLICIES = {"auto": "", "keep": "", "ptb": "", "unicode": "", "drop": "TAG TAG"}


def policies() -> str:
    """Return how the policies are written, for help and messages."""
    *others, last = [f"{name}:{takes}" if takes else name for name, takes in POLICIES.items()]
    return f"{', '.join(others)} or {last}"


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
    if kind not in POLICIES or bool(argument.strip()) != bool(POLICIES[kind]):
        problem = f"unknown punctuation policy {name!r}"
        raise AttreeError("unknown-policy", problem, fix=f"choose {policies()}")
    dropped = frozenset(argument.split())
    return {
        "ptb": lambda sentence: [tag in PTB_TAGS for tag in sentence.tags],
        "unicode": lambda sentence: [not is_punctuation(word) for word in sentence.words],
        "drop": lambda sentence: [tag not in dropped for tag in sentence.tags],
    }.get(kind)


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
    kept = [span for span in sentence.spans if new[span[0]] < new[span[1]]]
    if sentence.half:
        # without a word at its edge, what was no phrase may be one
        kept = [(i, j, x) for i, j, x in kept if x != NO_PHRASE or (stays[i] and stays[j - 1])]
    spans = [(new[i], new[j], label) for i, j, label in kept]
    return dataclasses.replace(
        sentence,
        words=tuple(itertools.compress(sentence.words, stays)),
        tags=tuple(itertools.compress(sentence.tags, stays)),
        spans=tuple(_consistent(spans, new[-1]) if sentence.half else spans),
    )


def _consistent(spans: list[Span], n_words: int) -> list[Span]:
    """Leave out marks of spans that have become those of a phrase, or the whole sentence."""
    named = {(start, end) for start, end, label in spans if label not in MARKS}
    phrases = named | {(start, end) for start, end, label in spans if label == UNKNOWN}
    without = {UNKNOWN: named, NO_PHRASE: phrases | {(0, n_words)}}
    return [span for span in spans if span[:2] not in without.get(span[2], set())]


@dataclass(slots=True)
class CleaningCounts:
    """What became of the sentences, and how many words cleaning took out.

    Args:
        read, skipped, failed, emptied: sentences, by `Status`.
        words: those of the sentences read, after cleaning.
        dealt: those that were dealt to parts, see ``SplitSettings.part``.
        words_seen, words_removed: of all sentences that were whole, those skipped among them.
        left_out: of those skipped, those that another setting would have kept.
        crossing: sentences read whose crossing branches were made continuous.
        punctuation: the policy applied.
        reason: why it was chosen, where it was.
    """

    read: int = 0
    skipped: int = 0
    failed: int = 0
    emptied: int = 0
    words: int = 0
    dealt: int = 0
    words_seen: int = 0
    words_removed: int = 0
    left_out: int = 0
    crossing: int = 0
    punctuation: str = "keep"
    reason: str = ""

    @property
    def total(self) -> int:
        """The number of sentences in the files."""
        return self.read + self.skipped + self.failed + self.emptied

    @property
    def lost(self) -> float:
        """The share of the sentences that failed or were emptied."""
        return (self.failed + self.emptied) / max(self.total, 1)

    @property
    def removed(self) -> float:
        """The share of the words that cleaning took out."""
        return self.words_removed / max(self.words_seen, 1)

    @property
    def note(self) -> str:
        """What a table says beside a figure from these sentences; empty if hardly any is lost."""
        unread = self.failed + self.emptied + self.left_out
        few = not unread or unread < NOTED * self.total
        return "" if few else f"{self.total - unread:,} of {self.total:,} sentences read"

    def as_dict(self) -> dict[str, int]:
        """Return the counts of sentences for the table's metadata."""
        return {name: getattr(self, name) for name in ("read", "skipped", "failed", "emptied")}


def choose(sentences: Iterable[Sentence]) -> tuple[str, str]:
    """Return the punctuation policy that suits the tags of ``sentences``, and why.

    ``ptb`` tells words by the Penn Treebank's tags, so it is chosen only where nearly all tags are
    known to be that treebank's.
    """
    share = penn_share(collections.Counter(tag for one in sentences for tag in one.tags))
    reason = f"{share:.0%} of the tags are the Penn Treebank's"
    return ("ptb" if share >= NEARLY_ALL else "keep"), reason


def penn_share(tags: collections.Counter[str]) -> float:
    """Return the share of tags that are the Penn Treebank's, or of later ones in its manner."""
    known = sum(count for tag, count in tags.items() if tag in PTB_TAGS or tag in _PTB_OTHERS)
    return known / max(tags.total(), 1)


#: ``2/5`` or ``2-5/5``: which parts, and of how many.
PARTS = r"([1-9][0-9]{0,5})(?:-([1-9][0-9]{0,5}))?/([1-9][0-9]{0,5})"


def parts(text: str) -> tuple[range, int]:
    """Read which parts (from 0), and of how many.

    Raises:
        AttreeError: it is not written so, or there are not so many.
    """
    if found := re.fullmatch(PARTS, text):
        first, last, of = (int(one) for one in found.groups(default=found[1]))
        if first <= last <= of:
            return range(first - 1, last), of
    raise AttreeError("bad-part", f"{text!r} is no part", fix="write 1/5, or 2-5/5")


def prepare(
    items: Iterable[Sentence | Rejected], settings: SplitSettings, counts: CleaningCounts
) -> Iterator[Sentence | Rejected]:
    """Clean sentences and keep those wanted: punctuation, ``max_words``, ``part``, then ``first``.

    Args:
        items: as a reader yields them; what is rejected passes through.
        settings: resolved.
        counts: counted up on the way.
    """
    items, counts.punctuation = iter(items), settings.punctuation or "keep"
    if counts.punctuation == "auto":
        sample = list(itertools.islice(items, _SAMPLE))
        read = [item for item in sample if isinstance(item, Sentence)]
        counts.punctuation, counts.reason = choose(read)
        items = itertools.chain(sample, items)
    keep = policy(counts.punctuation)
    for item in items:
        done = item if isinstance(item, Rejected) else _wanted(item, keep, settings, counts)
        if isinstance(done, Rejected):
            setattr(counts, done.status, getattr(counts, done.status) + 1)
            counts.left_out += done.status == "skipped" and bool(done.setting)
        else:
            counts.read += 1
            counts.words += len(done.words)
            counts.crossing += done.crossing
        yield done


def _wanted(
    sentence: Sentence, keep: Keep | None, settings: SplitSettings, counts: CleaningCounts
) -> Sentence | Rejected:
    rejected = functools.partial(Rejected, sentence.file, sentence.line)
    if settings.traces:
        trace = re.compile(settings.traces).fullmatch
        untraced = clean(sentence, lambda one: [trace(word) is None for word in one.words])
        if untraced is None:
            return rejected("no word is left: every word is a trace", "emptied")
        sentence = untraced
    cleaned = clean(sentence, keep)
    counts.words_seen += len(sentence.words)
    counts.words_removed += len(sentence.words) - (len(cleaned.words) if cleaned else 0)
    if cleaned is None:
        reason = f"no word is left by punctuation policy {counts.punctuation}"
        return rejected(reason, "emptied", "punctuation: keep")
    n, most = len(cleaned.words), settings.max_words
    if most is not None and n > most:
        return rejected(f"{n} words, more than max_words: {most}", "skipped")
    if settings.part is not None:
        which, of = parts(settings.part)
        counts.dealt += 1
        if (counts.dealt - 1) % of not in which:
            return rejected(f"in another part than {settings.part}", "skipped")
    if settings.first is not None and counts.read >= settings.first:
        return rejected(f"after the first: {settings.first}", "skipped")
    return _with_final_punctuation(cleaned) if settings.final_punctuation == "inside" else cleaned


def _with_final_punctuation(one: Sentence) -> Sentence:
    """Widen phrases that are the whole sentence but for punctuation at its end to all of it.

    In a half-known tree such a span is marked as no phrase.
    """
    n = end = len(one.words)
    while end and is_punctuation(one.words[end - 1]):
        end -= 1
    if end in (n, 0):
        return one
    spans: dict[Span, None] = {}
    for start, stop, label in one.spans:
        wide = start == 0 and end <= stop and label not in MARKS
        spans[start, n if wide else stop, label] = None
    if one.half and end > 1:
        given = {(start, stop) for start, stop, _ in spans}
        spans |= {(0, stop, NO_PHRASE): None for stop in range(end, n) if (0, stop) not in given}
    order = sorted(spans, key=lambda span: (span[0], -span[1]))
    return dataclasses.replace(one, spans=tuple(order))
