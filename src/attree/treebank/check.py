"""Report what a treebank holds and what looks wrong: ``attree treebank --check``.

`refuse` stops a split that loses many of its sentences or words, since its settings are then
probably wrong; `warnings` names what looks wrong, with the setting that mends it.
"""

import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from attree.base.errors import AttreeError
from attree.treebank.cleaning import NEARLY_ALL, CleaningCounts, common_policy, penn_share, prepare
from attree.treebank.formats import sniff
from attree.treebank.sentence import PENN_TRACE, Rejected, Sentence, SplitSettings

#: The largest shares of sentences and words that may be lost, unless ``accept_loss`` is larger.
MOST_SENTENCES, MOST_WORDS = 0.1, 0.3
_WIDTH = 80
_SHOWN = 30  # labels, tags
_REJECTED = 20  # sentences
_FEW = 0.005  # share of odd words above which they are no accident

_TRACE = re.compile(rf"\A(?:{PENN_TRACE})\Z")
_WORD = re.compile(r"[0*]")  # as a trace, but a word in many treebanks
_LEMMA = re.compile(r"\A[^-]+-[^-]+\Z")
#: Settings that are told where they are not the usual ones.
_CHOSEN = ("dependencies", "labels", "final_punctuation", "functions", "nonprojective", "escapes")
#: UTF-8 read as Latin-1, and the replacement for undecodable bytes.
_MOJIBAKE = re.compile("[\u00c3\u00c2\u00c5\u00c4\u00d7\u00d0][\u0080-\u00bf]|\ufffd")
_MARKS = "labels: ? is not known, ! no phrase, = all inside is given"
_MARKUP = ("ID", "CODE", "META", "COMMENT", "lemma", "LEMMA")

#: Prefixes of the reasons of filters that the user set.
_FILTERED = ("after the first", "in another part")


@dataclass
class Inspector:
    """Gather the facts for the report and the warnings, sentence by sentence.

    Attributes:
        files, settings: the files, and how they are read (resolved).
        counts: the counts of cleaning.
    """

    files: Sequence[Path]
    settings: SplitSettings
    counts: CleaningCounts = field(default_factory=CleaningCounts)
    labels: Counter[str] = field(default_factory=Counter)
    tags: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    rejected: list[Rejected] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    longest: Sentence | None = None
    one_word: int = 0
    repeated: int = 0
    partial: int = 0
    _seen: set[int] = field(default_factory=set)

    def watch(self, items: Iterable[Sentence | Rejected]) -> Iterator[Sentence | Rejected]:
        """Clean, count and yield the items of a reader."""
        for item in prepare(items, self.settings, self.counts):
            if isinstance(item, Rejected):
                self._reject(item)
            else:
                self._add(item)
            yield item
        if self.settings.format == "parquet" and self.counts.punctuation == "keep":
            from attree.base.schemas import read_metadata

            # words were removed when the tables were made
            policies = [read_metadata(file).get("punctuation") for file in self.files]
            self.counts.punctuation = common_policy(policies, self.files[0])

    def _add(self, item: Sentence) -> None:
        self.labels.update(label for _, _, label in item.spans)
        self.tags.update(item.tags)
        self.words.update(item.words)
        self.one_word += len(item.words) == 1
        self.partial += item.partial
        if self.longest is None or len(item.words) > len(self.longest.words):
            self.longest = item
        key = hash(item.words)
        self.repeated += key in self._seen
        self._seen.add(key)

    def _reject(self, item: Rejected) -> None:
        """Keep a rejected sentence; only count those that a filter of the user left out."""
        _, longer, limit = item.reason.partition("more than max_words")
        if item.status == "skipped" and (longer or item.reason.startswith(_FILTERED)):
            self.skipped[f"max_words{limit}" if longer else item.reason] += 1
        else:
            self.rejected.append(item)

    @cached_property
    def other_format(self) -> str:
        """The format that the first file looks like, if it was read in another; else empty."""
        return sniff(self.files[0], self.settings)


def _most_common(names: Iterable[str]) -> str:
    """Return the most frequent name; empty if there is none."""
    return max(Counter(filter(None, names)).items(), key=lambda item: item[1], default=("", 0))[0]


def refuse(seen: Inspector) -> None:
    """Refuse a split that lost too much; ``accept_loss`` raises both limits.

    Raises:
        AttreeError: no sentence was read, more than `MOST_SENTENCES` of the sentences failed or
            were emptied, or more than `MOST_WORDS` of the words were removed.
    """
    counts, settings, file = seen.counts, seen.settings, seen.files[0]
    lost = [item for item in seen.rejected if item.status != "skipped"] or seen.rejected
    first = "".join(f" (line {item.line}: {_problem(item)})" for item in lost[:1])
    setting = _most_common(item.setting for item in lost)
    if seen.other_format:
        setting = f"format: {seen.other_format}"
    if counts.read == 0:
        problem = f"no sentence could be read ({totals(counts)}){first}"
        fix = f"set {setting}" if setting else "check format, encoding and punctuation"
        where, line = next(((item.file, item.line) for item in lost), (str(file), None))
        raise AttreeError("no-sentences", problem, file=where, line=line, fix=fix)
    if counts.lost > max(MOST_SENTENCES, settings.accept_loss):
        failed = counts.failed + counts.emptied
        problem = f"{failed:,} of {counts.total:,} sentences were lost{first}"
        usual = f"format: (now {settings.format}) or encoding: (now {settings.encoding})"
        share, setting = counts.lost, setting or usual
    elif counts.removed > max(MOST_WORDS, settings.accept_loss):
        by = f"by punctuation policy {counts.punctuation}"
        problem = f"{counts.removed:.0%} of the words were removed {by}"
        share, setting = counts.removed, "punctuation: keep"
    else:
        return
    accept = f"accept_loss: {math.ceil(100 * share) / 100:g}"
    fix = f"set {setting} in language.yaml, or {accept} if this is right"
    raise AttreeError("many-removed", problem, file=file, fix=fix)


def _problem(item: Rejected) -> str:
    return item.reason.split(" — ")[0]


def warnings(seen: Inspector) -> Iterator[str]:
    """Yield a line for each thing that looks wrong, with the setting that mends it."""
    counts = seen.counts
    if seen.other_format:
        yield f"the file looks like another format (format: {seen.other_format})"
    if counts.note:
        unread = [item for item in seen.rejected if item.status != "skipped" or item.setting]
        setting = _most_common(item.setting for item in unread)
        reason = _most_common(map(_problem, unread))
        yield f"{counts.note}; mostly: {reason}" + (f" ({setting})" if setting else "")
    if counts.removed > MOST_WORDS:
        yield (
            f"punctuation policy {counts.punctuation} removed {counts.removed:.0%} of the words: "
            "is it meant for these tags? (punctuation: keep)"
        )
    yield from _check_tags(seen)
    yield from _check_words(seen)


def _check_tags(seen: Inspector) -> Iterator[str]:
    """Warn of mark-up read as words, of tags unknown to the policy, and of missing tags."""
    counts, sentences = seen.counts, max(seen.counts.read, 1)
    markup = [name for name in _MARKUP if seen.tags[name] + seen.labels[name] > 0.1 * sentences]
    if markup:
        every = "every tree" if seen.tags["ID"] >= 0.9 * sentences else "many trees"
        dropped = ", ".join([*(seen.settings.drop_labels or ()), *markup])
        yield f"{', '.join(markup)} in {every}, read as words (drop_labels: [{dropped}])"
    if counts.punctuation == "ptb" and not counts.reason and counts.removed > 0.2:
        yield (
            f"{counts.removed:.0%} of the tags are none of the Penn Treebank's tags of words "
            "(punctuation: auto)"
        )
    if (untagged := seen.tags[""] + seen.tags["_"]) > 0.1 * max(counts.words, 1):
        yield f"{untagged:,} words have no tag (punctuation: unicode tells it by the words)"


def _check_words(seen: Inspector) -> Iterator[str]:
    """Warn of traces, lemmas and wrong encodings among the words."""
    encoding = "the file's own" if seen.settings.encoding == "utf-8" else "utf-8"
    traced = any(_TRACE.search(word) and not _WORD.fullmatch(word) for word in seen.words)
    for pattern, least, like, setting in (
        (_TRACE, 0 if traced else _FEW, "like traces", r"traces: '0|\*.*'"),
        (_LEMMA, 0.5, "like word-lemma", "format: icepahc"),
        (_MOJIBAKE, _FEW, "wrongly decoded", f"encoding: {encoding}"),
    ):
        odd = Counter({word: n for word, n in seen.words.items() if pattern.search(word)})
        if (share := odd.total() / max(seen.words.total(), 1)) > least:
            examples = ", ".join(word for word, _ in odd.most_common(3))
            percent = f"{share:.0%}" if pattern is _LEMMA else f"{share:.1%}"
            many = f"{percent} of the words" if share >= 0.001 else f"{odd.total():,} words"
            yield f"{many} look {like}: {examples} ({setting})"


def report(seen: Inspector, title: str, warned: Iterable[str] = ()) -> str:
    """Return the report, at most 80 columns wide unless a word is longer; problems come first."""
    lines = [title]
    for name, text in _entries(seen, warned):
        lines += textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=f"  {name:<11}",
            subsequent_indent=" " * 13,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines).replace("\xa0", " ")


def _entries(seen: Inspector, warned: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each entry; one without a name goes on with the last."""
    counts, settings, longest = seen.counts, seen.settings, seen.longest
    encoding = settings.encoding or "each file's encoding"
    how = f"format {settings.format}, {encoding}, punctuation {counts.punctuation}"
    usual = SplitSettings()
    for name in _CHOSEN:
        if (value := getattr(settings, name)) != getattr(usual, name):
            how += f", {name} {value}"
    yield "settings", how
    if counts.crossing:
        yield "crossing", f"{counts.crossing:,} sentences with crossing branches made continuous"
    if counts.reason:
        yield "", f"punctuation {counts.punctuation} was chosen: {counts.reason}"
    elif counts.punctuation == "keep" and penn_share(seen.tags) >= NEARLY_ALL:
        penn = "the tags are the Penn Treebank's, whose scores usually leave punctuation out"
        yield "", f"{penn} (punctuation: ptb)"
    yield "files", f"{len(seen.files):,}"
    yield "sentences", totals(counts)
    yield from (("", f"{count:,} skipped: {why}") for why, count in seen.skipped.items())
    yield from (("warning", line) for line in warned)
    worst = sorted(seen.rejected, key=lambda item: item.status == "skipped")
    for item in worst[:_REJECTED]:
        yield item.status, str(item)
    if len(worst) > _REJECTED:
        yield "", f"… {len(worst) - _REJECTED:,} more (--rejected FILE writes them all)"
    if longest is None:
        return
    yield "words", f"{counts.words:,}, {counts.words / counts.read:.1f} a sentence"
    if counts.words_removed:
        yield "", f"{counts.words_removed:,} more removed as punctuation"
    yield "longest", f"{len(longest.words):,} words, {longest.file}:{longest.line}"
    yield "one word", f"{seen.one_word:,} sentences"
    yield "repeated", f"{seen.repeated:,} sentences"
    if seen.partial:
        yield "partial", f"{seen.partial:,} trees; {_MARKS}"
    for name, counter in (("labels", seen.labels), ("tags", seen.tags)):
        shown = [f"{key or '(none)'}\xa0{count:,}" for key, count in counter.most_common(_SHOWN)]
        more = [f"… {len(counter) - _SHOWN:,}\xa0more"] if len(counter) > _SHOWN else []
        yield name, "  ".join(shown + more)


def totals(counts: CleaningCounts) -> str:
    """Write out the counts of sentences."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.as_dict().items())
