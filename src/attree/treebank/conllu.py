"""CoNLL-U (Universal Dependencies): each word with its projective subtree is a span.

Spans of two words and more are labelled by the head word's relation, the root's covers the
sentence. They are *dependency-derived* brackets, and marked so wherever they are shown. A leaf of
the dependency tree gives no span, as a preterminal gives none.

With ``dependencies: half`` only those subtrees are read that a constituency tree would have as
phrases, as half-known trees (see :mod:`attree.treebank.ud_phrases`), whether the whole is
projective or not.

The lines are split here rather than by the ``conllu`` package, which gives no line numbers, stops
at the first bad sentence of a file, and builds a dictionary for each word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attree.treebank.labels import OTHER, UNIVERSAL, Labelling
from attree.treebank.sentence import (
    Format,
    Rejected,
    Sentence,
    Span,
    SplitSettings,
    Status,
    has_line,
)
from attree.treebank.sources import undecoded
from attree.treebank.ud_phrases import (
    Phrase,
    Words,
    extents,
    labels,
    no_phrases,
    phrases,
    top_down,
)
from attree.trees.constraints import NO_PHRASE, UNKNOWN

_COLUMNS = 10
_MOST_LIFTED = 200  # of a sentence; each takes time by the square of its words
_NUMBER = re.compile(r"[0-9]{1,9}")
_NOT_A_WORD = re.compile(r"\d+[-.]\d+")  # a multi-word token's line, an empty node's


class _BadSentenceError(Exception):
    """What is wrong with a sentence, on which line, and what setting may help."""

    def __init__(
        self, line: int, problem: str, status: Status = "failed", setting: str = ""
    ) -> None:
        super().__init__(problem)
        self.line, self.problem, self.status, self.setting = line, problem, status, setting


def read(text: str, file: str, settings: SplitSettings) -> Iterator[Sentence | Rejected]:
    """Yield every sentence of ``text`` in order, each as a `Sentence` or as `Rejected`.

    Args:
        text: the whole file, as `sources.read_text` gives it.
        file: its name, for the sentences' origin.
        settings: ``nonprojective`` (skip or lift), ``dependencies``, ``labels`` and, for messages,
            ``encoding`` are used.
    """
    half, labelled = settings.dependencies != "whole", Labelling.of(settings.labels)
    for first, lines in _blocks(text):
        try:
            words = _words(lines, first, settings.encoding or "utf-8")
            if words is None:
                continue
            _check(words, first)
            if half:
                spans = _phrases(words, labelled, inner=settings.dependencies == "inner")
            else:
                spans = _spans(words, first, labelled, lift=settings.nonprojective == "lift")
        except _BadSentenceError as bad:
            yield Rejected(file, bad.line, bad.problem, bad.status, bad.setting)
        else:
            yield Sentence(tuple(words.forms), tuple(words.tags), spans, file, first, half=half)


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line of each sentence, and its lines."""
    block: list[str] = []
    first = number = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            first = first if block else number
            block.append(line)
        elif block:
            yield first, block
            block = []
    if block:
        yield first, block


def _words(lines: list[str], first: int, encoding: str) -> Words | None:
    """Read the columns of one sentence; None where the block has comments only."""
    found = Words()
    for number, line in enumerate(lines, start=first):
        if line.startswith("#"):
            continue
        if problem := undecoded(line, 0, len(line), encoding):
            raise _BadSentenceError(number, problem[0], setting=problem[1])
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            raise _BadSentenceError(
                number, f"expected {_COLUMNS} tab-separated columns, found {len(columns)}"
            )
        place, form, tag, head, relation = (columns[i] for i in (0, 1, 3, 6, 7))
        if _NOT_A_WORD.fullmatch(place):
            continue
        if place != str(len(found.forms) + 1):
            raise _BadSentenceError(
                number, f"expected word number {len(found.forms) + 1}, found {place[:20]!r}"
            )
        if not form:
            raise _BadSentenceError(number, "a word without a form")
        if not _NUMBER.fullmatch(head):
            raise _BadSentenceError(number, f"the head {head[:20]!r} is not a word's number")
        found.forms.append(form)
        found.tags.append(tag)
        found.heads.append(int(head) - 1)
        found.relations.append(relation)
        found.features.append(columns[5])
    if not found.forms and all(line.startswith("#") for line in lines):
        return None
    if not found.forms:
        raise _BadSentenceError(first, "a sentence without words")
    return found


def _check(words: Words, line: int) -> None:
    """Refuse heads that are no tree."""
    n = len(words.heads)
    if any(head >= n for head in words.heads):
        raise _BadSentenceError(line, f"a head is past the last word ({n})")
    if len(top_down(words.heads)) < n:
        raise _BadSentenceError(line, "the heads form a cycle — correct this tree")


def _phrases(words: Words, labelled: Labelling, *, inner: bool) -> tuple[Span, ...]:
    """Return the phrases that are told, and the spans that are none, in pre-order."""
    found = phrases(words, inner=inner)
    names = _labels(words, found, labelled)
    spans = [(one.start, one.end, name) for one, name in zip(found, names, strict=True)]
    given = {(one.start, one.end) for one in found}
    spans += [(*span, NO_PHRASE) for span in no_phrases(words) - given]
    return tuple(sorted(spans, key=lambda span: (span[0], -span[1])))


def _labels(words: Words, found: list[Phrase], labelled: Labelling) -> list[str]:
    """Return the labels of phrases."""
    if labelled.kind == UNIVERSAL:
        return [label or UNKNOWN for label in labels(words, found)]
    return [UNKNOWN if one.label else words.relations[one.head] for one in found]


def _spans(words: Words, line: int, labelled: Labelling, *, lift: bool) -> tuple[Span, ...]:
    """Return the spans of all subtrees of two words and more, in pre-order."""
    heads, n = list(words.heads), len(words.heads)
    starts, ends, sizes = extents(heads)
    lifted = 0
    while any(ends[word] - starts[word] > sizes[word] for word in range(n)):
        lifted += 1
        if lifted > _MOST_LIFTED:
            problem = f"not projective: more than {_MOST_LIFTED} arcs would have to be lifted"
            raise _BadSentenceError(line, problem, "skipped")
        if not lift:
            raise _BadSentenceError(line, "not projective", "skipped", "nonprojective: lift")
        _lift(heads)
        starts, ends, sizes = extents(heads)
    every = [Phrase(starts[word], ends[word], word) for word in range(n) if sizes[word] > 1]
    names = (OTHER if one == UNKNOWN else one for one in _labels(words, every, labelled))
    found = [(one.start, one.end, name) for one, name in zip(every, names, strict=True)]
    return tuple(sorted(found, key=lambda span: (span[0], -span[1])))


def _lift(heads: list[int]) -> None:
    """Hang the dependent of the shortest crossing arc on its head's head (Nivre & Nilsson 2005).

    An arc is crossing if a word between its two is not below its head.
    """
    above: list[set[int]] = [set() for _ in heads]
    for word in top_down(heads):
        above[word] = {word} if heads[word] < 0 else above[heads[word]] | {word}
    arcs = sorted((abs(word - head), word) for word, head in enumerate(heads) if head >= 0)
    for _, word in arcs:
        head = heads[word]
        between = range(min(word, head) + 1, max(word, head))
        if any(head not in above[other] for other in between):
            heads[word] = heads[head]
            return
    raise AssertionError("a discontinuous subtree without a crossing arc")


FORMAT = Format(
    read,
    (".conllu", ".conll"),
    derived="dependency",
    certain=has_line(r"1(?:\t[^\t\n]+){9}$"),
    labels=UNIVERSAL,
    family="conllu",
)
