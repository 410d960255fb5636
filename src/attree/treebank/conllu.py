"""Read CoNLL-U (Universal Dependencies): the projective subtree of each word is a span.

Spans of two words and more have the head word's relation as label; the root's span is the sentence.
These are *dependency-derived* brackets, and marked so wherever they are shown. A leaf of the
dependency tree gives no span, as a preterminal gives none.

With ``dependencies: half``, only those subtrees are read that are phrases of a constituency tree,
as partly bracketed trees (see :mod:`attree.treebank.ud_phrases`), also of nonprojective trees.

Lines are split here, not by the ``conllu`` package, which gives no line numbers, stops at the first
bad sentence of a file, and builds a dictionary for each word.
"""

import dataclasses
import itertools
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from attree.base.text import unescape
from attree.treebank import brackets, sentence
from attree.treebank.crossing import top_down
from attree.treebank.dialects import SPOKEN
from attree.treebank.labels import OTHER, UNIVERSAL, Labelling
from attree.treebank.sentence import BadSentenceError, Format, Rejected, Sentence, SplitSettings
from attree.treebank.ud_phrases import Phrase, Tree, Words, extents, shortened
from attree.trees.constraints import NO_PHRASE, UNKNOWN

_COLUMNS = 10
_MOST_LIFTED = 200  # arcs of a sentence; each takes time quadratic in its words
_NUMBER = re.compile(r"[0-9]{1,9}")
#: A sentence's constituency tree, as Stanza writes it: ``# constituency = (ROOT (S …))``.
_TREE = re.compile(r"#\s*constituency\s*=\s*(.*)")
#: Columns of CoNLL-2012, and the part of a tree in one; a no-break space is part of a word.
_COLUMN, _PART = re.compile(r"[^ \t\f\v]+"), re.compile(r"(?:\([^()*]*)*\*\)*")
_NOT_A_WORD = re.compile(r"\d+[-.]\d+")  # a multi-word token's line, an empty node's


def read(text: str, file: str, settings: SplitSettings) -> Iterator[Sentence | Rejected]:
    """Yield every sentence of ``text`` in order, each as a `Sentence` or as `Rejected`.

    Args:
        text: the whole file, as `sentence.read_text` gives it.
        file: its name, for the sentences' origin.
        settings: ``nonprojective`` (skip or lift), ``dependencies``, ``labels`` and, for messages,
            ``encoding`` are used.
    """
    for first, lines in _blocks(text):
        if not all(line.startswith("#") for line in lines):
            found = sentence.attempt(partial(_sentences, lines, first, file, settings), file, first)
            yield from [found] if isinstance(found, Rejected) else found


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each sentence's first line number and its lines."""
    numbered = enumerate(text.split("\n"), start=1)
    for filled, lines in itertools.groupby(numbered, key=lambda line: bool(line[1].strip())):
        if filled:
            numbers, block = zip(*lines, strict=True)
            yield numbers[0], list(block)


def _sentences(lines: list[str], first: int, file: str, settings: SplitSettings) -> list[Sentence]:
    """Read one sentence; with ``short``, also return it cut down, if it can be.

    Raises:
        BadSentenceError: it is no tree, or not projective.
    """
    words = _words(lines, first, settings.encoding)
    short = shortened(words) if settings.short else None
    return [_of_words(each, first, file, settings) for each in (words, short) if each is not None]


def _of_words(words: Words, first: int, file: str, settings: SplitSettings) -> Sentence:
    """Return the sentence of some words with heads, with the phrases that these show."""
    partial = settings.dependencies != "whole"
    tree = Tree(words, settings.dependencies.split("_"))
    lift = settings.nonprojective == "lift"
    phrases = tree.phrases() if partial else _subtrees(list(words.heads), lift=lift)
    not_phrases = tree.no_phrases() if partial else set()
    if Labelling.parse(settings.labels).kind == UNIVERSAL:
        labels = tree.labels(phrases)
    else:
        labels = [None if p.label else words.relations[p.head] for p in phrases]
    no_label = UNKNOWN if partial else OTHER
    spans = [
        (phrase.start, phrase.end, no_label if label in (None, UNKNOWN) else label)
        for phrase, label in zip(phrases, labels, strict=True)
    ]
    spans += [(*span, NO_PHRASE) for span in not_phrases - {span[:2] for span in spans}]
    in_order = tuple(sorted(spans, key=lambda span: (span[0], -span[1])))
    forms, tags, heads = tuple(words.forms), tuple(words.tags), tuple(words.heads)
    return Sentence(forms, tags, in_order, file, first, partial=partial, heads=heads)


def _words(lines: list[str], first: int, encoding: str | None) -> Words:
    """Read the columns of one sentence."""
    rows: list[tuple[Any, ...]] = []
    for number, line in enumerate(lines, start=first):
        if line.startswith("#"):
            continue
        sentence.check_decoded(line, encoding, number)
        columns = line.split("\t")
        if len(columns) != _COLUMNS:
            problem = f"expected {_COLUMNS} tab-separated columns, found {len(columns)}"
            raise BadSentenceError(problem, number)
        position, form, tag, head, relation = (columns[i] for i in (0, 1, 3, 6, 7))
        if _NOT_A_WORD.fullmatch(position):
            continue
        if position != str(len(rows) + 1):
            problem = f"expected word number {len(rows) + 1}, found {position[:20]!r}"
            raise BadSentenceError(problem, number)
        if not form:
            raise BadSentenceError("a word without a form", number)
        if not _NUMBER.fullmatch(head):
            raise BadSentenceError(f"the head {head[:20]!r} is not a word's number", number)
        rows.append((form, tag, int(head) - 1, relation, columns[5]))
    if not rows:
        raise BadSentenceError("a sentence without words")
    words = Words(*map(list, zip(*rows, strict=True)))
    if any(head >= len(words.heads) for head in words.heads):
        raise BadSentenceError(f"a head is past the last word ({len(words.heads)})")
    if len(top_down(words.heads)) < len(words.heads):
        raise BadSentenceError("the heads form a cycle — correct this tree")
    return words


def _subtrees(heads: list[int], *, lift: bool) -> list[Phrase]:
    """Return all subtrees of two words and more; ``lift`` makes ``heads`` projective first.

    Raises:
        BadSentenceError: they are not projective without ``lift``, or too many arcs cross.
    """
    for _ in range(_MOST_LIFTED + 1):
        starts, ends, sizes = extents(heads)
        if all(end - start == size for start, end, size in zip(starts, ends, sizes, strict=True)):
            return [Phrase(starts[n], ends[n], n) for n, size in enumerate(sizes) if size > 1]
        if not lift:
            raise BadSentenceError("not projective", None, "skipped", "nonprojective: lift")
        _lift(heads)
    problem = f"not projective: more than {_MOST_LIFTED} arcs would have to be lifted"
    raise BadSentenceError(problem, status="skipped")


def _lift(heads: list[int]) -> None:
    """Attach the dependent of the shortest crossing arc to its head's head (Nivre & Nilsson 2005).

    An arc crosses others if a word between its ends is not below its head.
    """
    above: list[set[int]] = [set() for _ in heads]
    for word in top_down(heads):
        above[word] = {word} if heads[word] < 0 else above[heads[word]] | {word}
    for _, word in sorted((abs(word - head), word) for word, head in enumerate(heads) if head >= 0):
        head = heads[word]
        if any(head not in above[other] for other in range(min(word, head) + 1, max(word, head))):
            heads[word] = heads[head]
            return
    raise AssertionError("a discontinuous subtree without a crossing arc")


_format = partial(Format, family="conllu")
#: Lines that show for certain that a file is CoNLL-U, and that it has constituency trees.
_LINES = (r"1(?:\t[^\t\n]+){9}$", r"# ?constituency ?= ?\(", r"#begin document ")
_ROW, _TREE_LINE, _DOCUMENT = map(sentence.has_line, _LINES)
FORMAT = _format(read, (".conllu", ".conll"), derived="dependency", certain=_ROW, labels=UNIVERSAL)


def read_stanza(text: str, file: str, settings: SplitSettings) -> Iterator[Sentence | Rejected]:
    """Yield the constituency tree of every sentence, with the words of its rows."""
    for first, lines in _blocks(text):
        numbered = enumerate(lines, start=first)
        trees = [(line, match[1]) for line, item in numbered if (match := _TREE.fullmatch(item))]
        rows = [item.split("\t") for item in lines if item[:1].isdigit()]
        words = [row[1] for row in rows if row[0].isdigit() and len(row) > 1]
        if len(trees) == 1:
            line, tree = trees[0]
            read_tree = partial(_stanza_tree, tree, words, file, line, settings)
            yield sentence.attempt(read_tree, file, line)
        elif trees or rows:
            problem = f"a sentence has one line # constituency = (…), but this one {len(trees)}"
            yield Rejected(file, first, problem, "failed")


def _stanza_tree(
    tree: str, words: list[str], file: str, line: int, settings: SplitSettings
) -> Sentence | Rejected:
    """Read one tree; take its words from the rows, which must be the same, if there are any."""
    items = list(brackets.read(tree, file, settings))
    if len(items) != 1:
        problem = f"{len(items)} pieces in place of one tree — correct its brackets"
        raise BadSentenceError(problem if items else "a tree without words")
    found = dataclasses.replace(items[0], line=line)
    if isinstance(found, Rejected):
        return found
    if words and len(words) != len(found.words):
        raise BadSentenceError(f"the tree has {len(found.words)} words, the rows {len(words)}")
    for word, row in zip(found.words, words, strict=False):
        if brackets.held(row) not in (word, unescape(word)):
            raise BadSentenceError(f"the tree has the word {word!r}, its row {row!r} — correct one")
    return dataclasses.replace(found, words=tuple(words) or found.words)


def read_2012(text: str, file: str, settings: SplitSettings) -> Iterator[Sentence | Rejected]:
    """Yield the tree of every sentence of CoNLL-2012, of which each row has a part."""
    for first, lines in _blocks(text):
        numbered = enumerate(lines, start=first)
        rows = [(n, _COLUMN.findall(line)) for n, line in numbered if not line.startswith("#")]
        if rows:
            yield sentence.attempt(partial(_parse_column, rows, file, settings), file, rows[0][0])


def _parse_column(
    rows: list[tuple[int, list[str]]], file: str, settings: SplitSettings
) -> Sentence | Rejected:
    """Read the words, tags and parts of a tree in columns 4, 5 and 6.

    Raises:
        BadSentenceError: a column is not as expected, or the parts are not one tree of all words.
    """
    tree = ""
    for number, row in rows:
        if len(row) < 6 or not _PART.fullmatch(row[5]):
            raise BadSentenceError("expected 6 columns and more, the last a part of a tree", number)
        sentence.check_decoded(" ".join(row), settings.encoding, number)
        if row[3] == "[WORD]":
            problem = "the words are not filled in — make this file of OntoNotes' own"
            raise BadSentenceError(problem, number)
        leaf = brackets.bracketed([SPOKEN.get(row[3], row[3])], [row[4]], ())
        # the blank keeps a bracket after a word's backslash from being read as escaped
        tree += row[5].replace("(", " (").replace("*", f" {leaf[:-1]} )")
    if not any("(" in row[5] for _, row in rows):
        raise BadSentenceError("no parse is given: column 6 has no bracket")
    return _stanza_tree(tree, [], file, rows[0][0], settings)


def write_stanza(sentences: Iterator[Sentence]) -> Iterator[str]:
    """Yield a sentence in CoNLL-U for each tree; its heads and relations are ``_``."""
    for item in sentences:
        (tree,) = brackets.write(iter([item]))
        yield f"# constituency = {tree}"
        for number, (word, tag) in enumerate(zip(item.words, item.tags, strict=True), start=1):
            yield "\t".join([str(number), held(word), "_", "_", tag or "_", *"_____"]) + "\n"
        yield "\n"


def held(word: str) -> str:
    """Return a word as a row holds it."""
    return re.sub(r"[\t\n]", " ", word)


#: Constituency trees in CoNLL-U.
STANZA = _format(
    read_stanza, (), certain=_TREE_LINE, write=write_stanza, continuous=True, held=held
)

#: The columns of CoNLL-2012: OntoNotes' trees beside their other layers.
CONLL_2012 = _format(
    read_2012,
    (".gold_conll", ".v4_gold_conll", ".auto_conll", ".v4_auto_conll"),
    punctuation="auto",
    certain=_DOCUMENT,
    labels="ptb",
)
