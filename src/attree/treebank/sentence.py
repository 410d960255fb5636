"""What crosses every boundary of this package: sentences, settings, and what a format is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

#: One phrase node: half-open word interval and label.
Span = tuple[int, int, str]

#: What to do with PTB's escapes in words (``-LRB-``, ``\\/``), and with crossing dependencies; what
#: brackets were made from; whether a dependency tree says all of a constituency tree.
Functions = Literal["cut", "keep"]
Escapes = Literal["undo", "keep"]
Nonprojective = Literal["skip", "lift"]
Final = Literal["as_is", "inside"]
Derived = Literal["constituency", "dependency"]
Dependencies = Literal["whole", "half", "inner"]

#: ``failed``: could not be read; ``emptied``: no word was left; ``skipped``: left out on purpose
#: (not projective, longer than ``max_words``, in no ``part`` of this split, after the first
#: ``first``).
Status = Literal["failed", "emptied", "skipped"]


@dataclass(slots=True)
class Sentence:
    """One sentence of a treebank: its words, their tags, and its phrases.

    Args:
        words: the leaves, unescaped, in order; at least one.
        tags: one part-of-speech tag a word, cut at its first ``-`` or ``=``.
        spans: the phrase nodes in pre-order; one-word phrases and unary chains are kept, the dummy
            root, traces and preterminals are not in it.
        file: the file it came from, as it was named.
        line: the 1-based line its tree starts on.
        crossing: whether branches crossed, and phrases were raised (see ``crossing``).
        half: whether only some of its phrases are known; labels may be marks (see ``half``).
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    spans: tuple[Span, ...]
    file: str
    line: int
    crossing: bool = False
    half: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """One sentence that is not in the table: where it stands, why, and what setting may help."""

    file: str
    line: int
    reason: str
    status: Status
    setting: str = ""

    def __str__(self) -> str:
        """Return the line that tells it."""
        return f"{self.file}:{self.line}: {self.reason}"


#: Outer nodes that treebanks put above every sentence; an empty label counts where it is unary.
DUMMY_ROOTS = ("TOP", "VROOT", "ROOT", "S1")
#: Subtrees that annotate a tree and hold none of its words (IcePaHC-style corpora).
DROP_LABELS = ("META", "lemma")


@dataclass(frozen=True, slots=True)
class SplitSettings:
    """Settings of one split; ``None`` means what the format says (see ``formats.resolve``).

    Args:
        format: a name of ``formats.FORMATS``; by default told by the files' extension.
        encoding: of the files; by default UTF-8, or what the file or its format says.
        punctuation: a policy of ``cleaning.POLICIES``.
        dummy_roots: outer labels that are no phrases; ``""`` is an outer node without a label.
        drop_labels: labels of subtrees that are left out, words and all.
        traces: a regular expression of words that stand for no word, beside those tagged -NONE-.
        functions: ``cut`` function tags (``NP-SBJ``) off labels, or ``keep`` them.
        escapes: ``undo`` PTB's escapes (``-LRB-``, ``\\/``) in words, or ``keep`` them.
        nonprojective: what to do with a crossing dependency tree.
        max_words: longer sentences (after cleaning) are skipped.
        part: sentences (after cleaning and ``max_words``) are dealt in turn to some parts; those of
            one, such as ``1/5``, or of several, ``2-5/5``, are kept.
        first: sentences after this many (counted after all that) are skipped.
        dependencies: dependency trees are read ``whole``, each subtree a phrase and nothing else,
            or as what they say of a constituency tree (see ``ud_phrases``): ``half``, the subtrees
            that are phrases, or ``inner``, those and phrases inside them.
        labels: the treebank's own (``treebank``), ``universal`` ones (``universal:TABLE`` names the
            table, see ``labels``), or left ``unknown``.
        derived: ``constituency``, or ``dependency`` where brackets were made from dependencies.
        final_punctuation: where treebanks differ, ``as_is``, or ``inside``: a phrase that is all of
            the sentence but punctuation at its end takes it in (of half-known trees: is none).
        accept_loss: the share of sentences, and of words, that may be lost (see ``check.refuse``).
    """

    format: str | None = None
    encoding: str | None = None
    punctuation: str | None = None
    dummy_roots: tuple[str, ...] | None = None
    drop_labels: tuple[str, ...] | None = None
    traces: str | None = None
    functions: Functions = "cut"
    escapes: Escapes = "undo"
    nonprojective: Nonprojective = "skip"
    max_words: int | None = None
    part: str | None = None
    first: int | None = None
    derived: Derived | None = None
    dependencies: Dependencies = "whole"
    labels: str = "treebank"
    final_punctuation: Final = "as_is"
    accept_loss: float = 0.0


@dataclass(frozen=True, slots=True)
class Format:
    """A treebank format: a registry line of ``formats.FORMATS`` names one.

    Args:
        read: text of a whole file, its name, settings → every sentence, in order: a `Sentence`,
            a ``crossing.Graph`` where branches may cross, or `Rejected`.
        extensions: of files that are in this format unless something else is given.
        punctuation: the policy that is usual for treebanks in this format.
        dummy_roots, drop_labels, traces: as in `Settings`.
        derived: what its brackets are derived from.
        fallback: the encoding of files that are not UTF-8.
        certain: tells from the beginning of a text that it is in this format, without a doubt.
        family: of two formats of one family, that which is ``certain`` is read, whatever the
            extension.
        write: ``crossing.Graph`` → pieces of text; None where it cannot be written.
        continuous: whether what is written must be made continuous.
        binary: whether ``read`` opens the file itself, and is given no text.
        half: whether what it writes can be known by half; ``write`` takes sentences then.
        labels: the table of universal labels of treebanks in this format, if all have one; where
            it is the identity, ``read`` makes the labels universal.
    """

    read: Callable[[str, str, SplitSettings], Iterator[Any]]
    extensions: tuple[str, ...]
    punctuation: str = "keep"
    dummy_roots: tuple[str, ...] = DUMMY_ROOTS
    drop_labels: tuple[str, ...] = DROP_LABELS
    traces: str | None = None
    derived: Derived = "constituency"
    fallback: str = ""
    certain: Callable[[str], bool] | None = None
    family: str = ""
    write: Callable[[Iterator[Any]], Iterator[str]] | None = None
    continuous: bool = False
    binary: bool = False
    half: bool = False
    labels: str = ""


def has_line(pattern: str) -> Callable[[str], bool]:
    """Return what tells whether a line of a text starts with a regular expression.

    It looks for line breaks, which is several times as fast as ``^`` at every place.
    """
    line = re.compile(rf"\n{pattern}", re.MULTILINE)
    return lambda text: line.search(f"\n{text}") is not None


def cut_label(label: str) -> str:
    """Cut function tags: at the first ``-`` or ``=``, unless that is the first character."""
    for place, character in enumerate(label):
        if character in "-=":
            return label[:place] or label
    return label
