"""Define what readers share: sentences, settings, formats, text of any bytes."""

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from attree.base.errors import AttreeError
from attree.base.reading import COMPRESSED, opened

#: One phrase node: half-open word interval and label.
Span = tuple[int, int, str]

#: Values of `SplitSettings`, which describes them.
Functions = Literal["cut", "keep"]
Escapes = Literal["undo", "keep"]
Nonprojective = Literal["skip", "lift"]
Final = Literal["as_is", "inside", "outside"]
Derived = Literal["constituency", "dependency"]
_Flat = Literal["half_flat", "inner_flat", "inner_flat_group", "inner_flat_group_clitics"]
Dependencies = Literal["whole", "half", "inner", _Flat]

#: ``failed``: the sentence could not be read; ``emptied``: no word was left; ``skipped``: left out
#: on purpose (not projective, longer than ``max_words``, in another ``part``, after ``first``).
Status = Literal["failed", "emptied", "skipped"]


@dataclass(slots=True)
class Sentence:
    """One sentence of a treebank: its words, their tags, and its phrases.

    Args:
        words: the leaves, unescaped, in order; at least one.
        tags: a part-of-speech tag for each word, cut at its first ``-`` or ``=``.
        spans: the phrase nodes in pre-order, with one-word phrases and unary chains, without the
            dummy root, traces and preterminals.
        file: its file, as the user named it.
        line: the 1-based line on which its tree starts.
        crossing: whether branches crossed, and blocks were raised (see ``crossing``).
        partial: whether only some of its phrases are known; labels may be marks (see ``half``).
        heads: of the words in a dependency tree, from 0, -1 for a root; empty if not known.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    spans: tuple[Span, ...]
    file: str
    line: int
    crossing: bool = False
    partial: bool = False
    heads: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """One sentence that is left out: its position, the reason, and a setting that may help."""

    file: str
    line: int
    reason: str
    status: Status
    setting: str = ""

    def __str__(self) -> str:
        """Return the line of a message."""
        return f"{self.file}:{self.line}: {self.reason}"


#: Outer nodes that treebanks put above every sentence; a node without a label must be unary.
DUMMY_ROOTS = ("TOP", "VROOT", "ROOT", "S1")
#: Subtrees that annotate a tree and hold none of its words (IcePaHC-style corpora).
DROP_LABELS = ("META", "lemma")
#: The tag of words that stand for nothing.
TRACE = "-NONE-"
#: Words that stand for nothing in the Penn Treebank and corpora in its manner: ``*T*-1``, ``*2s*``.
PENN_TRACE = r"0|\*(?:(?:\w+|\?)\*)?(?:[-=]\d+)*"


@dataclass(frozen=True, slots=True)
class SplitSettings:
    """Settings of one split; ``None`` means the format's default (see ``formats.resolve``).

    Args:
        format: a name of ``formats.FORMATS``; by default told by the files' extension.
        encoding: of the files; by default UTF-8, or that of the file or its format.
        punctuation: a policy of ``cleaning.POLICIES``.
        dummy_roots: outer labels that are no phrases; ``""`` is an outer node without a label.
        drop_labels: labels of subtrees that are left out with their words.
        traces: a regular expression of words that are traces, beside those tagged -NONE-; words
            tagged as numerals (CD…, NUM…) are none.
        functions: ``cut`` function tags (``NP-SBJ``) off labels and tags, or ``keep`` them there,
            also those that a format has in a place of their own.
        escapes: ``undo`` PTB's escapes (``-LRB-``, ``\\/``) in words, or ``keep`` them.
        nonprojective: what to do with a crossing dependency tree.
        max_words: longer sentences (after cleaning) are skipped.
        part: sentences (after cleaning and ``max_words``) are dealt in turn to some parts; those of
            one part, such as ``1/5``, or of several, ``2-5/5``, are kept.
        first: sentences after this many (after all other filters) are skipped.
        dependencies: ``whole``: every subtree of a dependency tree is a phrase, and there are no
            other phrases. Else a dependency tree gives a partly bracketed tree (see
            ``ud_phrases``), of the subtrees that are phrases (``half``) and of phrases inside them
            (``inner``); ``half_flat`` and ``inner_flat`` are for languages without verb phrases,
            ``inner_flat_group`` for those that have nodes of verbs with their auxiliaries alone,
            and ``inner_flat_group_clitics`` for French.
        short: whether sentences with a dependency tree come again, cut down to their main clause,
            to train on.
        labels: the treebank's own (``treebank``), ``universal`` ones (``universal:TABLE`` names the
            table, see ``labels``), or left ``unknown``.
        derived: ``constituency``, or ``dependency`` where brackets were made from dependencies.
        final_punctuation: ``as_is``, or ``inside``: a phrase of the whole sentence except its final
            punctuation is widened to the whole (in partly bracketed trees: marked as no phrase), or
            ``outside``: phrases of the whole sentence are narrowed to leave it out.
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
    short: bool = False
    labels: str = "treebank"
    final_punctuation: Final = "as_is"
    accept_loss: float = 0.0


@dataclass(frozen=True, slots=True)
class Format:
    """A treebank format: a registry line of ``formats.FORMATS`` names one.

    Args:
        read: text of a whole file, its name, settings → every sentence, in order: a `Sentence`,
            a ``crossing.Graph`` where branches may cross, or `Rejected`.
        extensions: of files in this format, unless the user names another format.
        punctuation: the usual policy for treebanks in this format.
        dummy_roots, drop_labels, traces: defaults of `SplitSettings`.
        derived: what its brackets are derived from.
        fallback: the encoding of files that are not UTF-8.
        certain: tells from the beginning of a text that it is in this format for certain.
        family: of formats in one family, the ``certain`` one is read, whatever the extension.
        write: trees → pieces of text; None if the format cannot be written. They are ``Graph`` of
            ``crossing``, or each a `Sentence` if the format is ``continuous``.
        continuous: of a format that can be written: whether it takes sentences, not graphs.
        binary: whether ``read`` opens the file itself, and gets no text.
        partial: whether trees may be partly bracketed.
        held: word → word as ``read`` has it after it was written.
        labels: the table of universal labels of treebanks in this format, if all share one; the
            identity table means that ``read`` makes labels universal.
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
    partial: bool = False
    labels: str = ""
    held: Callable[[str], str] = str


def has_line(pattern: str) -> Callable[[str], bool]:
    """Return a test whether a line of a text starts with a regular expression.

    It searches for line breaks, which is several times as fast as ``^``.
    """
    line = re.compile(rf"\n{pattern}", re.MULTILINE)
    return lambda text: line.search(f"\n{text}") is not None


_FUNCTION = re.compile("[-=]")


def cut_label(label: str) -> str:
    """Cut function tags: at the first ``-`` or ``=``, unless that is the first character."""
    return _FUNCTION.split(label, maxsplit=1)[0] or label


def split_label(label: str) -> tuple[str, str]:
    """Return a label's name and function: ``NP-SBJ`` has ``SBJ``, ``NP=2`` has ``=2``.

    A label whose function could not stand by itself (``NP-``, ``NP--X``) is a name as a whole.
    """
    name = cut_label(label)
    mark, function = label[len(name) :][:1], label[len(name) + 1 :]
    if mark == "=":
        return name, mark + function
    return (label, "") if function[:1] in ("", "-", "=") else (name, function)


def join_label(name: str, function: str) -> str:
    """Return the label of a name and a function (see `split_label`)."""
    return name + function if function[:1] in ("", "=") else f"{name}-{function}"


def unescape_label(label: str) -> str:
    """Undo ``-LRB-`` in a label such as ``$-LRB-``; by itself it is a tag of the Penn Treebank."""
    whole = label in ("-LRB-", "-RRB-")
    return label if whole else label.replace("-LRB-", "(").replace("-RRB-", ")")


_Read = TypeVar("_Read")

#: Undecodable bytes in a text.
UNDECODED = re.compile("[\udc80-\udcff]")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF8 = ("utf-8", "utf8")


def read_text(path: str | Path, encoding: str) -> str:
    r"""Read a whole file, with ``\n`` as its line end and no byte-order mark.

    Undecodable bytes become lone surrogates (``surrogateescape``), so that only their sentences are
    lost; find them with `undecoded`.

    Raises:
        AttreeError: the file is absent or a folder, is UTF-16 although UTF-8 was set, or the
            encoding is unknown or no encoding of text.
    """
    with opened(path, what="treebank file") as handle:
        data = handle.read()
    wide = data.startswith(_UTF16) or 4 * data.count(0) > max(len(data), 100)
    if wide and encoding.lower() in _UTF8:
        fix = "set encoding: utf-16; if it has no byte-order mark, utf-16-le or utf-16-be"
        raise AttreeError("encoding", "this file is UTF-16", file=path, fix=fix)
    if data.startswith(COMPRESSED):
        raise AttreeError("compressed", "this file is compressed", file=path, fix="unpack it")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode(encoding, errors="surrogateescape")
    except UnicodeDecodeError as error:  # a codec without surrogateescape
        line, fix = data.count(b"\n", 0, error.start) + 1, "set another encoding"
        problem = f"this file is not {encoding}"
        raise AttreeError("encoding", problem, file=path, line=line, fix=fix) from None
    except (LookupError, ValueError):
        # such as the codecs "idna" and "undefined", or a name with a NUL
        problem, fix = f"{encoding!r} is not a text encoding", "use a name such as utf-8 or latin-1"
        raise AttreeError("unknown-encoding", problem, file=path, fix=fix) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def undecoded(text: str, begin: int, end: int, encoding: str) -> tuple[str, str] | None:
    """Describe an undecodable byte in a stretch of text, with a setting that may help; or None."""
    if (match := UNDECODED.search(text, begin, end)) is None:
        return None
    setting = f"encoding: {'latin-1' if encoding.lower() in _UTF8 else 'utf-8'}"
    byte = ord(match[0]) - 0xDC00
    return f"byte 0x{byte:02X} is not {encoding} — set {setting}, or the file's own", setting


class BadSentenceError(Exception):
    """A fault in a sentence, for which it is rejected.

    Args:
        problem: what is wrong.
        line: the line at fault; None means the sentence's first line.
        status: of the rejected sentence.
        setting: a setting that may help.
    """

    def __init__(
        self, problem: str, line: int | None = None, status: Status = "failed", setting: str = ""
    ) -> None:
        super().__init__(problem)
        self.line, self.status, self.setting = line, status, setting


def check_decoded(text: str, encoding: str | None, line: int | None = None) -> None:
    """Refuse undecodable bytes in a sentence, or in a line of it.

    Raises:
        BadSentenceError: there is such a byte.
    """
    if problem := undecoded(text, 0, len(text), encoding or "utf-8"):
        raise BadSentenceError(problem[0], line, setting=problem[1])


def attempt(read: Callable[[], _Read], file: str, first: int) -> _Read | Rejected:
    """Read a sentence that begins on line ``first``, or return it as rejected."""
    try:
        return read()
    except BadSentenceError as bad:
        return Rejected(file, bad.line or first, str(bad), bad.status, bad.setting)
