"""What is in a treebank, for people: ``attree treebank --check``."""

from __future__ import annotations

import collections
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

from attree.treebank.cleaning import Counts
from attree.treebank.sentence import Rejected, Sentence, Settings

_WIDTH = 80


@dataclass(slots=True)
class Inspector:
    """Gathers what `report` tells, sentence by sentence."""

    labels: collections.Counter[str] = field(default_factory=collections.Counter)
    tags: collections.Counter[str] = field(default_factory=collections.Counter)
    rejected: list[Rejected] = field(default_factory=list)
    skipped: collections.Counter[str] = field(default_factory=collections.Counter)
    longest: Sentence | None = None
    one_word: int = 0
    repeated: int = 0
    _seen: set[int] = field(default_factory=set)

    def add(self, item: Sentence | Rejected) -> None:
        """Count one sentence in."""
        if isinstance(item, Rejected):
            self._reject(item)
            return
        self.labels.update(label for _, _, label in item.spans)
        self.tags.update(item.tags)
        self.one_word += len(item.words) == 1
        if self.longest is None or len(item.words) > len(self.longest.words):
            self.longest = item
        key = hash(item.words)
        self.repeated += key in self._seen
        self._seen.add(key)

    def _reject(self, item: Rejected) -> None:
        """Keep a rejected sentence; those left out by a filter that was asked for are counted."""
        _, found, filter_ = item.reason.rpartition("more than ")
        if item.status == "skipped" and (found or item.reason.startswith("after the first")):
            self.skipped[filter_ if found else item.reason] += 1
        else:
            self.rejected.append(item)

    def report(self, title: str, settings: Settings, counts: Counts, n_files: int) -> str:
        """Return the report, at most 80 columns wide where words allow."""
        return "\n".join(self._lines(title, settings, counts, n_files))

    def _lines(self, title: str, settings: Settings, counts: Counts, n_files: int) -> Iterator[str]:
        yield title
        yield from _entry(
            "settings",
            f"format {settings.format}, {settings.encoding}, punctuation {settings.punctuation}",
        )
        yield from _entry("files", f"{n_files:,}")
        yield from _entry("sentences", totals(counts))
        for reason, count in self.skipped.items():
            yield from _entry("", f"{count:,} skipped: {reason}")
        if self.longest is not None:
            longest = self.longest
            mean = counts.words / counts.read
            yield from _entry("words", f"{counts.words:,}, {mean:.1f} a sentence")
            if counts.words_removed:
                yield from _entry("", f"{counts.words_removed:,} more removed as punctuation")
            yield from _entry(
                "longest", f"{len(longest.words):,} words, {longest.file}:{longest.line}"
            )
            yield from _entry("one word", f"{self.one_word:,} sentences")
            yield from _entry("repeated", f"{self.repeated:,} sentences")
            yield from _entry("labels", _counted(self.labels))
            yield from _entry("tags", _counted(self.tags))
        for item in self.rejected:
            where = f"{item.file}:{item.line}"
            yield from _entry(item.status, f"{where}: {item.reason}")


def totals(counts: Counts) -> str:
    """Return the counts of sentences in words."""
    parts = [f"{count:,} {name}" for name, count in counts.as_dict().items()]
    return ", ".join(parts)


def _counted(counter: collections.Counter[str]) -> str:
    return "  ".join(f"{name or '(none)'}\xa0{count:,}" for name, count in counter.most_common())


def _entry(name: str, text: str) -> list[str]:
    lines = textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"  {name:<11}",
        subsequent_indent=" " * 13,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\xa0", " ") for line in lines]
