"""Remove punctuation by a policy, and choose which sentences are kept."""

import collections
import dataclasses
import functools
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from attree.base.errors import AttreeError
from attree.treebank.crossing import Graph, without
from attree.treebank.sentence import Rejected, Sentence, Span, SplitSettings
from attree.trees.constraints import COMPLETE, MARKS, NO_PHRASE, UNKNOWN

#: A table marks a row if at least this share of its sentences is lost.
NOTED = 0.01

_Tree = TypeVar("_Tree", Sentence, Graph)

#: A function from a sentence to a bool for each word: whether it stays.
Keep = Callable[[Sentence], list[bool]]

#: The tags of words in the Penn Treebank, and of later treebanks in its manner; every other tag is
#: punctuation, a symbol of currency, or a trace.
# fmt: off
PTB_TAGS = frozenset((
    "CC", "CD", "DT", "EX", "FW", "IN", "JJ", "JJR", "JJS", "LS", "MD", "NN", "NNS", "NNP", "NNPS",
    "PDT", "POS", "PRP", "PRP$", "RB", "RBR", "RBS", "RP", "SYM", "TO", "UH", "VB", "VBD", "VBG",
    "VBN", "VBP", "VBZ", "WDT", "WP", "WP$", "WRB", "ADD", "AFX", "GW", "XX",
))
# fmt: on

#: Further tags of these treebanks.
# fmt: off
_PTB_OTHERS = frozenset((
    "#", "$", ".", ",", ":", "''", "``", "-LRB-", "-RRB-", "-LSB-", "-RSB-", "-LCB-", "-RCB-",
    "-NONE-", "HYPH", "NFP",
))
# fmt: on
#: From this share of Penn Treebank tags on, a treebank counts as tagged in its manner.
NEARLY_ALL = 0.95
_SAMPLE = 1000  # sentences by which a policy is chosen


#: Punctuation policy → its argument after a colon (see `policy`).
POLICIES = {"auto": "", "keep": "", "ptb": "", "unicode": "", "drop": "TAG TAG"}


def policies() -> str:
    """List the policies as users write them, for help and messages."""
    *others, last = [f"{name}:{takes}" if takes else name for name, takes in POLICIES.items()]
    return f"{', '.join(others)} or {last}"


@functools.lru_cache(maxsize=1 << 16)
def is_punctuation(word: str) -> bool:
    """Tell whether every character of a word is punctuation by its Unicode category."""
    return all(unicodedata.category(character)[0] == "P" for character in word)


def policy(name: str) -> Keep | None:
    """Return the function of a policy such as ``ptb`` or ``drop:PUNCT SYM``; None keeps all words.

    Raises:
        AttreeError: there is no such policy, or ``drop`` has no tags.
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


def common_policy(policies: Iterable[str | None], first: str | Path) -> str:
    """Return the punctuation policy of treebanks; refuse several."""
    different = list(dict.fromkeys(policy or "keep" for policy in policies))
    if len(different) > 1:
        problem = f"these treebanks have several punctuation policies: {', '.join(different)}"
        fix = "give tables of `attree treebank`, made with one --punctuation"
        raise AttreeError("mixed-punctuation", problem, file=first, fix=fix)
    return different[0]


def clean(sentence: Sentence, keep: Keep | None) -> Sentence | None:
    """Remove words from a sentence, and the phrases that this leaves empty.

    Returns:
        the same sentence if every word stays, None if no word does.
    """
    stays = keep(sentence) if keep is not None else None
    if stays is None or all(stays):
        return sentence
    new = list(itertools.accumulate(stays, initial=0))  # new[i]: words kept before word i
    if new[-1] == 0:
        return None
    kept = [span for span in sentence.spans if new[span[0]] < new[span[1]]]
    if sentence.partial:
        # a span that was no phrase may be one without a word at its edge
        kept = [(i, j, x) for i, j, x in kept if x != NO_PHRASE or (stays[i] and stays[j - 1])]
    spans = [(new[i], new[j], label) for i, j, label in kept]
    heads = tuple(itertools.compress(sentence.heads, stays))
    known = all(head < 0 or stays[head] for head in heads)
    return dataclasses.replace(
        sentence,
        words=tuple(itertools.compress(sentence.words, stays)),
        tags=tuple(itertools.compress(sentence.tags, stays)),
        spans=tuple(_drop_marks(spans, new[-1]) if sentence.partial else spans),
        heads=tuple(new[head] if head >= 0 else head for head in heads) if known else (),
    )


def _drop_marks(spans: list[Span], n_words: int) -> list[Span]:
    """Drop marks on spans that now equal a phrase or the whole sentence."""
    named = {(start, end) for start, end, label in spans if label not in MARKS}
    phrases = named | {(start, end) for start, end, label in spans if label == UNKNOWN}
    without = {UNKNOWN: named, NO_PHRASE: phrases | {(0, n_words)}}
    return [span for span in spans if span[:2] not in without.get(span[2], set())]


@dataclass(slots=True)
class CleaningCounts:
    """Counts of sentences by their status, and of the words that cleaning removed.

    Args:
        read, skipped, failed, emptied: numbers of sentences, by `Status`.
        words: number of words in the sentences read, after cleaning.
        dealt, place: number of sentences dealt to parts, see ``SplitSettings.part``; file and line
            of the last one.
        words_seen, words_removed: numbers of words in all whole sentences, also skipped ones.
        left_out: number of skipped sentences that another setting would have kept.
        crossing: number of sentences whose crossing branches were made continuous.
        punctuation: the policy applied.
        reason: why the policy was chosen, if attree chose it.
    """

    read: int = 0
    skipped: int = 0
    failed: int = 0
    emptied: int = 0
    words: int = 0
    dealt: int = 0
    place: tuple[str, int] = ("", 0)
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
        """The share of the words that cleaning removed."""
        return self.words_removed / max(self.words_seen, 1)

    @property
    def note(self) -> str:
        """The note beside a figure on these sentences; empty if hardly any is lost."""
        unread = self.failed + self.emptied + self.left_out
        few = not unread or unread < NOTED * self.total
        return "" if few else f"{self.total - unread:,} of {self.total:,} sentences read"

    def as_dict(self) -> dict[str, int]:
        """Return the counts of sentences for the table's metadata."""
        return {name: getattr(self, name) for name in ("read", "skipped", "failed", "emptied")}


def choose(sentences: Iterable[Sentence]) -> tuple[str, str]:
    """Choose a punctuation policy by the tags of ``sentences``; return it and the reason.

    ``ptb`` tells words by the Penn Treebank's tags, so it is chosen only where nearly all tags are
    that treebank's.
    """
    share = penn_share(collections.Counter(tag for sentence in sentences for tag in sentence.tags))
    reason = f"{share:.0%} of the tags are the Penn Treebank's"
    return ("ptb" if share >= NEARLY_ALL else "keep"), reason


def penn_share(tags: collections.Counter[str]) -> float:
    """Return the share of tags of the Penn Treebank, or of later treebanks in its manner."""
    penn = sum(count for tag, count in tags.items() if tag in PTB_TAGS or tag in _PTB_OTHERS)
    return penn / max(tags.total(), 1)


#: ``2/5`` or ``2-5/5``: some parts of five.
PARTS = r"([1-9][0-9]{0,5})(?:-([1-9][0-9]{0,5}))?/([1-9][0-9]{0,5})"


def parts(text: str) -> tuple[range, int]:
    """Read ``2-5/5``; return the numbers of the parts, from 0, and how many parts there are.

    Raises:
        AttreeError: it is not written so, or a part is past the last.
    """
    if match := re.fullmatch(PARTS, text):
        first, last, total = (int(number) for number in match.groups(default=match[1]))
        if first <= last <= total:
            return range(first - 1, last), total
    raise AttreeError("bad-part", f"{text!r} is not a part of a split", fix="write 1/5, or 2-5/5")


def prepare(
    items: Iterable[Sentence | Rejected], settings: SplitSettings, counts: CleaningCounts
) -> Iterator[Sentence | Rejected]:
    """Clean sentences, then filter them by ``max_words``, ``part`` and ``first``.

    Args:
        items: of a reader; rejected ones are passed on.
        settings: resolved.
        counts: updated.
    """
    items, counts.punctuation = iter(items), settings.punctuation or "keep"
    if counts.punctuation == "auto":
        sample = list(itertools.islice(items, _SAMPLE))
        read = [item for item in sample if isinstance(item, Sentence)]
        counts.punctuation, counts.reason = choose(read)
        items = itertools.chain(sample, items)
    keep = policy(counts.punctuation)
    for item in items:
        done = item if isinstance(item, Rejected) else untraced(item, settings)
        if isinstance(done, Sentence):
            done = _filter(done, keep, settings, counts)
        if isinstance(done, Rejected):
            setattr(counts, done.status, getattr(counts, done.status) + 1)
            counts.left_out += done.status == "skipped" and bool(done.setting)
        else:
            counts.read += 1
            counts.words += len(done.words)
            counts.crossing += done.crossing
        yield done


def untraced(tree: _Tree, settings: SplitSettings) -> _Tree | Rejected:
    """Return a tree without the words that ``traces`` fits, but with its numerals.

    It is rejected if no word is left.
    """
    if settings.traces is None:
        return tree
    trace = re.compile(settings.traces).fullmatch
    tagged = zip(tree.words, tree.tags, strict=True)
    stays = [trace(word) is None or tag.startswith(("CD", "NUM")) for word, tag in tagged]
    if not any(stays):
        return Rejected(tree.file, tree.line, "no word is left: every word is a trace", "emptied")
    if isinstance(tree, Graph):
        return without(tree, {word for word, kept in enumerate(stays) if not kept})
    return clean(tree, lambda _: stays) or tree


def _filter(
    sentence: Sentence, keep: Keep | None, settings: SplitSettings, counts: CleaningCounts
) -> Sentence | Rejected:
    rejected = functools.partial(Rejected, sentence.file, sentence.line)
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
        kept, total = parts(settings.part)
        place = (sentence.file, sentence.line)
        # a sentence cut short is in the part of the whole one
        counts.dealt += not (settings.short and place == counts.place)
        counts.place = place
        if (counts.dealt - 1) % total not in kept:
            return rejected(f"in another part than {settings.part}", "skipped")
    if settings.first is not None and counts.read >= settings.first:
        return rejected(f"after the first: {settings.first}", "skipped")
    final = settings.final_punctuation
    return cleaned if final == "as_is" else _with_final(cleaned, inside=final == "inside")


def _with_final(sentence: Sentence, *, inside: bool) -> Sentence:
    """Widen phrases of the sentence to its final punctuation, or narrow them to end before it.

    In a partly bracketed tree with it inside, the spans without it are marked as no phrases.
    """
    n = len(sentence.words)
    end = n - len(list(itertools.takewhile(is_punctuation, reversed(sentence.words))))
    if not inside:  # a phrase that ends with a closing mark keeps it
        end = max([end, *(stop for i, stop, label in sentence.spans if i and label != NO_PHRASE)])
    if end in (n, 0):
        return sentence
    spans: dict[Span, None] = {}
    for start, stop, label in sentence.spans:
        wide = start == 0 and end <= stop and label not in (NO_PHRASE, COMPLETE)
        spans[start, (n if inside else end) if wide else stop, label] = None
    if sentence.partial and inside and end > 1:
        spans |= {(0, stop, NO_PHRASE): None for stop in range(end, n)}
    kept = _drop_marks(list(spans), n) if sentence.partial else spans
    order = sorted(kept, key=lambda span: (span[0], -span[1]))
    return dataclasses.replace(sentence, spans=tuple(order))
