"""What is in a treebank and what looks wrong about it: ``attree treebank --check``.

A split that loses much of what its files hold was not read as its owner expects, so `refuse` stops
it; `warnings` names what looks wrong, each with the setting that mends it.
"""

from __future__ import annotations

import collections
import math
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from attree.base.errors import AttreeError
from attree.treebank.cleaning import NEARLY_ALL, PTB_TAGS, CleaningCounts, penn_share
from attree.treebank.sentence import Rejected, Sentence, SplitSettings

#: The shares of the sentences and of the words that may be lost unless ``accept_loss`` says more.
MOST_SENTENCES, MOST_WORDS = 0.1, 0.3
_WIDTH = 80
_SHOWN = 30  # labels, tags
_REJECTED = 20  # sentences
_FEW = 0.005  # share of the words from which on an odd one is no accident

_TRACE = re.compile(r"0|\*(?:[A-Za-z?]{1,5}\*)?(?:-\d+)?")
_LEMMA = re.compile(r"[^-]+-[^-]+")
#: What UTF-8 looks like when it is read as Latin-1, and what replaces what was undecodable.
_MOJIBAKE = re.compile("[\u00c3\u00c2\u00c5\u00c4\u00d7\u00d0][\u0080-\u00bf]|\ufffd")
_MARKS = "labels: ? is not known, ! no phrase, = all inside is given"
_MARKUP = ("ID", "CODE", "META", "COMMENT", "lemma", "LEMMA")
_ALPHABETS = {"CJK": "HAN", "HIRAGANA": "HAN", "KATAKANA": "HAN", "FULLWIDTH": "LATIN"}

#: How the reasons of filters begin that were asked for.
_FILTERED = ("after the first", "in another part")


@dataclass(slots=True)
class Inspector:
    """Gathers what the report and the warnings tell, sentence by sentence."""

    labels: collections.Counter[str] = field(default_factory=collections.Counter)
    tags: collections.Counter[str] = field(default_factory=collections.Counter)
    words: collections.Counter[str] = field(default_factory=collections.Counter)
    rejected: list[Rejected] = field(default_factory=list)
    skipped: collections.Counter[str] = field(default_factory=collections.Counter)
    longest: Sentence | None = None
    one_word: int = 0
    repeated: int = 0
    half: int = 0
    _seen: set[int] = field(default_factory=set)

    def add(self, item: Sentence | Rejected) -> None:
        """Count one sentence in."""
        if isinstance(item, Rejected):
            self._reject(item)
            return
        self.labels.update(label for _, _, label in item.spans)
        self.tags.update(item.tags)
        self.words.update(item.words)
        self.one_word += len(item.words) == 1
        self.half += item.half
        if self.longest is None or len(item.words) > len(self.longest.words):
            self.longest = item
        key = hash(item.words)
        self.repeated += key in self._seen
        self._seen.add(key)

    def _reject(self, item: Rejected) -> None:
        """Keep a rejected sentence; those left out by a filter that was asked for are counted."""
        _, found, limit = item.reason.partition("more than max_words")
        if item.status == "skipped" and (found or item.reason.startswith(_FILTERED)):
            self.skipped[f"max_words{limit}" if found else item.reason] += 1
        else:
            self.rejected.append(item)

    @property
    def lost(self) -> list[Rejected]:
        """The sentences that failed or were emptied."""
        return [item for item in self.rejected if item.status != "skipped"]

    @property
    def unread(self) -> list[Rejected]:
        """The sentences that are lost, and those that another setting would have kept."""
        return [item for item in self.rejected if item.status != "skipped" or item.setting]

    def script(self) -> str:
        """Return the script of most letters, such as ``LATIN``; empty without letters."""
        found = self._scripts()
        return found.most_common(1)[0][0] if found else ""

    def _scripts(self) -> collections.Counter[str]:
        found: collections.Counter[str] = collections.Counter()
        for word, count in self.words.items():
            if word[0].isalpha():
                name = unicodedata.name(word[0], "OTHER").split()[0].split("-")[0]
                found[_ALPHABETS.get(name, name)] += count
        return found


def _setting(items: Iterable[Rejected]) -> str:
    """Return the setting that most of these sentences point to; empty if none does."""
    found = collections.Counter(item.setting for item in items if item.setting)
    return found.most_common(1)[0][0] if found else ""


def refuse(
    seen: Inspector, settings: SplitSettings, counts: CleaningCounts, file: str, sniffed: str
) -> None:
    """Stop where more was lost than can be right.

    Args:
        seen, counts: of the whole split.
        settings: ``accept_loss`` raises both limits.
        file: the split's first file.
        sniffed: the format that the file's content looks like, if it is not the one it was read in.

    Raises:
        AttreeError: nothing was read, more than `MOST_SENTENCES` of the sentences failed or were
            emptied, or more than `MOST_WORDS` of the words were removed.
    """
    accepted = settings.accept_loss
    failed = counts.failed + counts.emptied
    setting = f"format: {sniffed}" if sniffed else _setting(seen.lost or seen.unread)
    if counts.read == 0:
        raise AttreeError(
            "no-sentences",
            f"no sentence could be read ({totals(counts)})" + _first(seen),
            file=file,
            fix=f"set {setting}" if setting else "check format, encoding and punctuation",
        )
    if counts.lost > max(MOST_SENTENCES, accepted):
        problem = f"{failed:,} of {counts.total:,} sentences were lost{_first(seen)}"
        usual = f"format: (now {settings.format}) or encoding: (now {settings.encoding})"
        share, setting = counts.lost, setting or usual
    elif counts.removed > max(MOST_WORDS, accepted):
        problem = (
            f"{counts.removed:.0%} of the words were removed by punctuation policy "
            f"{counts.punctuation}"
        )
        share, setting = counts.removed, "punctuation: keep"
    else:
        return
    accept = f"accept_loss: {math.ceil(100 * share) / 100:g}"
    raise AttreeError(
        "many-removed",
        problem,
        file=file,
        fix=f"set {setting} in language.yaml, or {accept} if this is right",
    )


def _first(seen: Inspector) -> str:
    """Return the first reason for a loss, in brackets."""
    for item in (seen.lost or seen.rejected)[:1]:
        return f" (line {item.line}: {_problem(item)})"
    return ""


def _problem(item: Rejected) -> str:
    return item.reason.split(" — ")[0]


def warnings(
    seen: Inspector, settings: SplitSettings, counts: CleaningCounts, sniffed: str = ""
) -> Iterator[str]:
    """Yield what looks wrong about a split, a line each, with the setting that mends it."""
    if sniffed:
        yield f"the file looks like another format (format: {sniffed})"
    if counts.note:
        reason = collections.Counter(map(_problem, seen.unread)).most_common(1)[0][0]
        setting = _setting(seen.unread)
        yield f"{counts.note}; mostly: {reason}" + (f" ({setting})" if setting else "")
    if counts.removed > MOST_WORDS:
        yield (
            f"punctuation policy {counts.punctuation} removed {counts.removed:.0%} of the words: "
            "is it meant for these tags? (punctuation: keep)"
        )
    yield from _odd_tags(seen, settings, counts)
    yield from _odd_words(seen, settings)


def _odd_tags(seen: Inspector, settings: SplitSettings, counts: CleaningCounts) -> Iterator[str]:
    """Yield what the tags tell: mark-up taken for words, tags that the policy does not know."""
    sentences = max(counts.read, 1)
    markup = [one for one in _MARKUP if seen.tags[one] + seen.labels[one] > 0.1 * sentences]
    if markup:
        every = "every tree" if seen.tags["ID"] >= 0.9 * sentences else "many trees"
        yield (
            f"{', '.join(markup)} in {every}, read as words "
            f"(drop_labels: [{', '.join([*(settings.drop_labels or ()), *markup])}])"
        )
    if counts.punctuation == "ptb" and not counts.reason and counts.removed > 0.2:
        yield (
            f"{counts.removed:.0%} of the tags are none of the Penn Treebank's {len(PTB_TAGS)} "
            "tags of words (punctuation: auto)"
        )
    untagged = seen.tags[""] + seen.tags["_"]
    if untagged > 0.1 * max(counts.words, 1):
        yield f"{untagged:,} words have no tag (punctuation: unicode tells it by the words)"


def _odd_words(seen: Inspector, settings: SplitSettings) -> Iterator[str]:
    """Yield what the words tell: traces, lemmas, encodings, scripts."""
    total = max(seen.words.total(), 1)

    def share(pattern: re.Pattern[str], whole: bool = True) -> tuple[float, str]:
        match = pattern.fullmatch if whole else pattern.search
        found = {word: count for word, count in seen.words.items() if match(word)}
        shown = ", ".join(sorted(found, key=lambda word: -found[word])[:3])
        return sum(found.values()) / total, shown

    traces, shown = share(_TRACE)
    if traces > _FEW:
        yield rf"{traces:.1%} of the words look like traces: {shown} (traces: '0|\*.*')"
    lemmas, shown = share(_LEMMA)
    if lemmas > 0.5:
        yield f"{lemmas:.0%} of the words look like word-lemma: {shown} (format: icepahc)"
    broken, shown = share(_MOJIBAKE, whole=False)
    if broken > _FEW:
        other = "the file's own" if settings.encoding == "utf-8" else "utf-8"
        yield f"{broken:.1%} of the words look wrongly decoded: {shown} (encoding: {other})"
    scripts = seen._scripts().most_common(2)
    if len(scripts) == 2 and scripts[1][1] > 0.2 * total:
        both = " and ".join(f"{count / total:.0%} {name.title()}" for name, count in scripts)
        yield f"the words are in two scripts: {both} (splits: names the files of each)"


def other_scripts(scripts: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each split whose script is not the first split's: split → its script."""
    first = next(iter(scripts), "")
    for name, script in scripts.items():
        if script and script != scripts[first]:
            yield (
                f"{name} is written in {script.title()}, {first} in {scripts[first].title()} "
                "(splits: names the files of each)"
            )


def report(
    seen: Inspector,
    title: str,
    settings: SplitSettings,
    counts: CleaningCounts,
    n_files: int,
    warned: Iterable[str] = (),
) -> str:
    """Return the report, at most 80 columns wide where words allow: what went wrong comes first."""
    return "\n".join(
        [
            title,
            *_lines(_settings(seen, settings, counts)),
            *_lines([("files", f"{n_files:,}"), ("sentences", totals(counts))]),
            *_lines(("", f"{count:,} skipped: {why}") for why, count in seen.skipped.items()),
            *_lines(("warning", line) for line in warned),
            *_lines(_failures(seen.rejected)),
            *_lines(_contents(seen, counts)),
        ]
    )


def _settings(
    seen: Inspector, settings: SplitSettings, counts: CleaningCounts
) -> Iterator[tuple[str, str]]:
    yield (
        "settings",
        f"format {settings.format}, {settings.encoding}, punctuation {counts.punctuation}",
    )
    if counts.crossing:
        yield "crossing", f"{counts.crossing:,} sentences with crossing branches made continuous"
    if counts.reason:
        yield "", f"punctuation {counts.punctuation} was chosen: {counts.reason}"
    elif counts.punctuation == "keep" and penn_share(seen.tags) >= NEARLY_ALL:
        yield (
            "",
            (
                "the tags are the Penn Treebank's, whose scores usually leave punctuation out "
                "(punctuation: ptb)"
            ),
        )


def _failures(rejected: list[Rejected]) -> Iterator[tuple[str, str]]:
    worst = sorted(rejected, key=lambda item: item.status == "skipped")
    for item in worst[:_REJECTED]:
        yield item.status, str(item)
    if len(worst) > _REJECTED:
        yield "", f"… {len(worst) - _REJECTED:,} more (--rejected FILE writes them all)"


def _contents(seen: Inspector, counts: CleaningCounts) -> Iterator[tuple[str, str]]:
    longest = seen.longest
    if longest is None:
        return
    yield "words", f"{counts.words:,}, {counts.words / counts.read:.1f} a sentence"
    if counts.words_removed:
        yield "", f"{counts.words_removed:,} more removed as punctuation"
    yield "longest", f"{len(longest.words):,} words, {longest.file}:{longest.line}"
    yield "one word", f"{seen.one_word:,} sentences"
    yield "repeated", f"{seen.repeated:,} sentences"
    if seen.half:
        yield "half-known", f"{seen.half:,} trees; {_MARKS}"
    yield "labels", _counted(seen.labels)
    yield "tags", _counted(seen.tags)


def totals(counts: CleaningCounts) -> str:
    """Return the counts of sentences in words."""
    parts = [f"{count:,} {name}" for name, count in counts.as_dict().items()]
    return ", ".join(parts)


def _counted(counter: collections.Counter[str]) -> str:
    shown = [f"{name or '(none)'}\xa0{count:,}" for name, count in counter.most_common(_SHOWN)]
    more = [f"… {len(counter) - _SHOWN:,}\xa0more"] if len(counter) > _SHOWN else []
    return "  ".join(shown + more)


def _lines(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in entries:
        wrapped = textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=f"  {name:<11}",
            subsequent_indent=" " * 13,
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield from (line.replace("\xa0", " ") for line in wrapped)
