"""Split text into sentences of words, by the rules of its language.

spaCy's rules split words: they need no model and no network, cover more than seventy languages, and
follow the Penn Treebank for English. Where spaCy has no rules, or none that work alone (Chinese,
Japanese, Thai, Armenian), ICU splits words: it has rules for any language and dictionaries for
scripts without blanks. ICU splits sentences in every language, but not after an abbreviation in
spaCy's rules, after an initial (``J. Smith``) or before a small letter (``"Go!" he said.``).

No word is part of a grapheme cluster: a family of emoji, a flag, a letter with its marks is whole.

``whitespace`` takes a line as one sentence, whose words are separated by spaces.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import itertools
import json
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.languages import ANY, candidates, code_of, rules_for
from attree.base.process import without_collecting

#: A text, or its words if the input is split already.
Line = str | list[str]

#: The sentences of a text, each a list of words; None for a text past the bounds of the rules.
Sentences = list[list[str]] | None

#: A function from texts to the sentences of each.
Tokeniser = Callable[[list[Line]], list[Sentences]]

RULES, WHITESPACE = TOKENIZERS = ("rules", "whitespace")

#: Bounds on texts for rules. spaCy strips punctuation one character at a time, so that 100,000 `=`
#: take hours, in a call that nothing can interrupt; within these bounds it takes seconds. ICU is
#: fast, and its languages have no blanks; but nobody wants 100,000 words that are `=`.
_LONGEST_TEXT = 100_000
_MARKS = re.compile(r"[^\w\s]{101}|_{101}")
_LONG_RUN = re.compile(rf"\S{{501}}|{_MARKS.pattern}")

#: Languages written with spaces for which spaCy needs another program by default.
_BY_RULES = frozenset({"ko", "vi"})
#: Languages for which spaCy needs a dictionary (Japanese, Thai), splits into characters (Chinese),
#: or does not know the full stop (Armenian).
_BY_ICU = frozenset({"hy", "ja", "th", "zh"})

#: Characters of grapheme clusters of several: marks, joiners, flags' letters, parts of syllables.
_CONTINUES = (
    r"[\p{GCB=Extend}\p{GCB=SpacingMark}\p{GCB=ZWJ}\p{GCB=RI}\p{GCB=Prepend}\p{GCB=V}\p{GCB=T}]"
)

#: An initial, which does not end a sentence.
_INITIAL = re.compile(r"[^\W\d_]\.")
_OPENING = "([{\"'«»„“”‘’‹›"
_BRACKETS = "「『（《〈【〔［"


@dataclass(frozen=True, slots=True)
class Splitting:
    """How text is split.

    Attributes:
        name: for :func:`tokeniser`: ``whitespace`` or the code of a language.
        sentences: whether lines are split into sentences.
        note: a line for the user that says so; empty if the user asked for it.
    """

    name: str
    sentences: bool
    note: str = ""


def settle(
    language: str | None,
    tokenizer: str | None,
    sentences: bool | None,
    *,
    remembered: str = "",
    texts: Iterable[Line] = (),
) -> Splitting:
    """Decide how text is split.

    Args:
        language: a name or code; None means that of the parser, else that of the text.
        tokenizer: one of :data:`TOKENIZERS`; None is ``rules``.
        sentences: whether lines are split into sentences; None: unless by whitespace.
        remembered: the code of the language of the parser's trees, if it has one.
        texts: the first ones, from which the language is detected if nothing else tells it; lists
            of words need no language.

    Raises:
        AttreeError: there is no such language or tokenizer, or the two exclude each other.
    """
    if tokenizer not in (None, *TOKENIZERS):
        fix = f"choose {' or '.join(TOKENIZERS)}; --language says the language"
        raise AttreeError("unknown-tokenizer", f"unknown tokenizer {tokenizer!r}", fix=fix)
    if tokenizer == WHITESPACE:
        if language is not None:
            problem = "words between spaces need no language's rules"
            fix = "leave --language or --tokenizer out"
            raise AttreeError("option-without-effect", problem, fix=fix)
        return Splitting(WHITESPACE, bool(sentences))
    split = sentences is not False
    first = list(islice(texts, _FIRST))
    if first and not any(isinstance(text, str) for text in first):  # texts are split already
        code = code_of(language) if language is not None else remembered
        return Splitting(code or ANY, split)
    if language is not None:
        code, why = code_of(language), ""
    elif remembered:
        code, why = remembered, ", the language that the parser was trained on"
    else:
        raw = [text for text in first if isinstance(text, str) and text.strip()]
        if not raw:
            return Splitting(ANY, split)
        code, why = _told(candidates(raw))
    verb = "words and sentences are split" if split else "words are split"
    return Splitting(code or ANY, split, f"{verb} by the rules for {rules_name(code)}{why}")


def _told(found: tuple[str, ...]) -> tuple[str, str]:
    """Return the code of the language found, empty if in doubt; and how it was found."""
    if len(found) > 1:
        return "", f": the text is short, and may be {' or '.join(found)}; --language says which"
    return "".join(found), ", told from the text; --language says another"


def how_split(code: str, text: str) -> str:
    """Say by which rules a text was split, by a code that was told from it; or why by none."""
    found = candidates([text]) if code == ANY else (code,)
    told, why = _told(found)
    return f"words are split by the rules for {rules_name(told)}{why}"


#: How many texts a language is detected from.
_FIRST = 100


def rules_name(code: str) -> str:
    """Name a language's code for messages, and the rules it uses if it has none of its own."""
    rules = rules_for(code or ANY)
    if rules == code or not code:
        return "any language" if rules == ANY else code
    return f"{code} ({'any language' if rules == ANY else rules}: it has none of its own)"


def tokeniser(name: str, *, split: bool) -> Tokeniser:
    """Return the tokeniser of that name.

    Args:
        name: ``whitespace``, or a language's name or code; ``xx`` for any language.
        split: cut every line into sentences.

    Raises:
        AttreeError: there is no such language, spaCy or ICU is not installed, or ``whitespace`` is
            to split sentences.
    """
    if name != WHITESPACE:
        rules = _rules(rules_for(code_of(name)))
        return functools.partial(rules, split=split)
    if split:
        problem = "with --tokenizer whitespace, lines are not split into sentences"
        fix = "leave out --tokenizer whitespace or --split-lines"
        raise AttreeError("not-split", problem, fix=fix)
    return lambda texts: [[_words(text)] for text in texts]


def sentence_starts(text: str, language: str) -> list[int]:
    """Return the positions in a text at which sentences begin; the first is 0.

    Args:
        text: of any number of sentences.
        language: its code.
    """
    parts = _rules(rules_for(language)).cut(text)
    return [0, *itertools.accumulate(map(len, parts[:-1]))]


class Splitter:
    """Split texts one by one, by the rules of one language or of each text's language.

    Args:
        language: its code; if empty, it is detected from each text.
    """

    def __init__(self, language: str) -> None:
        self.language = language

    def __call__(self, text: str, *, split: bool) -> tuple[str, Sentences]:
        """Return the code of a text's language, and its sentences.

        Args:
            text: any.
            split: whether it is cut into sentences.
        """
        code = self.language or _told(candidates([text]))[0] or ANY
        return code, _rules(rules_for(code))([text], split=split)[0]

    def prepare(self) -> None:
        """Load the rules and the language identifier."""
        self("A.", split=True)

    def expect(self, text: str) -> None:
        """Say which text will be cut into sentences next: another process may begin now."""


#: The program of the process beside, which only splits: torch, which spaCy would import for its
#: models, is blocked. It ends if no text comes within a minute.
_BESIDE = """
import json, select, sys
sys.path[:] = json.loads(sys.argv[1])
sys.modules["torch"] = None
from attree.raw_text.words import Splitter
split = Splitter(sys.argv[2])
split.prepare()
if select.select([sys.stdin], [], [], 60)[0]:
    for line in sys.stdin:
        text, cut = json.loads(line)
        print(json.dumps(split(text, split=cut)), flush=True)
"""


#: How long to wait for the process beside, whose loading takes a second or two.
_SECONDS_TO_ANSWER = 30.0
#: Characters of a text that a pipe surely holds, so that nothing waits for it to be read.
_MOST_EXPECTED = 2_000


@functools.cache
def splitter_beside(language: str) -> Splitter:
    """Return a splitter that works in a process of its own, started now.

    Importing spaCy takes half a second, and loading the language identifier another: here they run
    while this process loads an encoder.

    Args:
        language: as for :class:`Splitter`.

    Returns:
        a splitter that all parsers of this process share, and that ends with it. It works in this
        process if another one would not help: on a single core, in a worker, or if spaCy is
        imported already or not installed.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if (
        (cores or 1) < 2
        or multiprocessing.parent_process() is not None
        or "spacy" in sys.modules
        or importlib.util.find_spec("spacy") is None
        or not Path(sys.executable or "").name.startswith("python")  # another program embeds Python
    ):
        return Splitter(language)
    try:
        return _Beside(language)
    except OSError:
        return Splitter(language)


class _Beside(Splitter):
    """Split texts in another process; after any failure, split them here."""

    def __init__(self, language: str) -> None:
        super().__init__(language)
        self._lock, self._is_here = threading.Lock(), False
        self._asked: list[Any] | None = None  # the question that it works on
        command = [sys.executable, "-I", "-c", _BESIDE, json.dumps([*map(str, sys.path)]), language]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        # its own session, so that Ctrl-C in the terminal does not reach it
        self._child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=nothing, start_new_session=True
        )
        self._end = weakref.finalize(self, _end, self._child, os.getpid())
        self._owner = os.getpid()

    def __call__(self, text: str, *, split: bool) -> tuple[str, Sentences]:
        # a fork must not read its parent's answers, nor wait for a lock that nobody will release
        if not self._is_here and os.getpid() == self._owner:
            with self._lock:
                answer = self._ask([text, split])
            if answer is not None:
                return answer
        self._is_here = True
        return super().__call__(text, split=split)

    def expect(self, text: str) -> None:
        if len(text) > _MOST_EXPECTED or os.getpid() != self._owner:
            return
        with self._lock, contextlib.suppress(OSError):  # if it has ended, the answer shows it
            if self._asked is None:  # one answer at a time is waited for
                self._write([text, True])

    def _write(self, question: list[Any]) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(question).encode() + b"\n")
        self._child.stdin.flush()
        self._asked = question

    def _ask(self, question: list[Any]) -> tuple[str, Sentences] | None:
        """Return the answer of the process, or None if there is none."""
        assert self._child.stdout is not None
        late = threading.Timer(_SECONDS_TO_ANSWER, self._child.kill)  # the process may hang
        late.daemon = True
        late.start()
        try:
            if self._asked not in (None, question):
                self._child.stdout.readline()
            if self._asked != question:
                self._write(question)
            code, sentences = json.loads(self._child.stdout.readline())
            self._asked = None
        except (OSError, ValueError):  # it has ended, maybe within a line
            self._end()
            return None
        except BaseException:  # interrupted: its late answer must not be taken for the next
            self._end()
            raise
        finally:
            late.cancel()
        return code, sentences


def _end(child: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() == owner:
        child.kill()
        child.communicate()


def _words(text: Line) -> list[str]:
    return text.split() if isinstance(text, str) else [word for word in text if word.strip()]


@functools.cache
def _rules(code: str) -> _Rules:
    """Return the rules of a language; load them once."""
    return _Rules(code)


class _Rules:
    """The rules of one language, by a code of :func:`attree.base.languages.rules_for`."""

    def __init__(self, code: str) -> None:
        try:
            import regex
            from icu4py.breakers import SentenceBreaker, WordBreaker

            with without_collecting():
                import spacy
        except ImportError:
            problem = "splitting text into words needs spaCy and icu4py"
            fix = "pip install spacy icu4py, or give lines of words: --tokenizer whitespace"
            raise AttreeError("not-installed", problem, fix=fix) from None
        self._locale = "root" if code == ANY else code
        self._clusters, self._continues = regex.compile(r"\X"), regex.compile(_CONTINUES)
        self._in_sentences, self._in_words = SentenceBreaker, WordBreaker
        self._nlp: spacy.language.Language | None = None
        self._abbreviations: frozenset[str] = frozenset()
        if code == ANY or code in _BY_ICU:
            return
        config: dict[str, Any] = {}
        if code in _BY_RULES:
            config = {"nlp": {"tokenizer": {"@tokenizers": "spacy.Tokenizer.v1"}}}
        self._nlp = spacy.blank(code, config=config)
        self._nlp.max_length = 1 << 22
        rules: dict[str, Any] = getattr(self._nlp.tokenizer, "rules", None) or {}
        self._abbreviations = frozenset(key for key in rules if len(key) > 1 and key[-1] == ".")

    def __call__(self, texts: list[Line], *, split: bool) -> list[Sentences]:
        # spaCy forgets the words of each shard, or memory would grow with the corpus
        with self._nlp.memory_zone() if self._nlp else contextlib.nullcontext():
            return [self._sentences(text, split) for text in texts]

    def _sentences(self, text: Line, split: bool) -> Sentences:
        if not isinstance(text, str):
            return [_words(text)]
        run = _MARKS if self._nlp is None else _LONG_RUN
        if len(text) > _LONGEST_TEXT or run.search(text):
            return None
        parts = [self._split(part) for part in (self.cut(text) if split else [text])]
        return [words for words in parts if words] or [[]]

    def _split(self, sentence: str) -> list[str]:
        if self._nlp is None:
            parts = [str(part) for part in self._in_words(sentence, self._locale)]
        else:
            parts = [token.text_with_ws for token in self._nlp.make_doc(sentence)]
        parts = self._whole_clusters(sentence, parts)
        return [word for part in parts for word in part.split()]

    def _whole_clusters(self, text: str, parts: list[str]) -> list[str]:
        """Return the parts of a text, those joined that are cut within a grapheme cluster."""
        if not self._continues.search(text):
            return parts
        ends = {cluster.end() for cluster in self._clusters.finditer(text)}
        cut = [0, *(end for end in itertools.accumulate(map(len, parts)) if end in ends)]
        return [text[start:end] for start, end in itertools.pairwise(cut)]

    def cut(self, text: str) -> list[str]:
        """Cut a text into sentences."""
        cuts, parts = [""], [str(part) for part in self._in_sentences(text, self._locale)]
        for part in self._whole_clusters(text, parts):
            if cuts[-1] and self._ends(cuts[-1], part):
                whole = cuts[-1].rstrip(_BRACKETS)  # ICU leaves 「 with the sentence before it
                cuts[-1:] = [whole, cuts[-1][len(whole) :]]
            cuts[-1] += part
        return cuts

    def _ends(self, sentence: str, after: str) -> bool:
        """Tell whether a sentence ends before the next part of the text."""
        last = sentence.split()[-1:]
        word = last[0].lstrip(_OPENING) if last else ""
        if word in self._abbreviations or _INITIAL.fullmatch(word):
            return False
        first = next((character for character in after if character.isalpha()), "")
        return first == first.title()  # not a small letter
