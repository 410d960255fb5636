"""Text → sentences of words, by the rules of its language.

Words are split by spaCy's rules: they need no model and no network, there are more than seventy
languages, and they keep Penn Treebank's habits for English. Where spaCy has none, or none that do
(Chinese, Japanese, Thai, Armenian), words are those of ICU, which has rules for any language and
dictionaries for scripts without blanks. Sentences are ICU's,
for every language: a boundary after an abbreviation that spaCy's rules know, after an initial
(``J. Smith``) or before a small letter (``"Go!" he said.``) is none.

``whitespace`` takes lines as they are: one sentence of words with spaces between.
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
from attree.base.languages import ANY, code_of, rules_for, told
from attree.base.process import without_collecting

#: A text, or its words where the input has them already.
Line = str | list[str]

#: The sentences of a text, each a list of words; None of one beyond the bounds of the rules.
Sentences = list[list[str]] | None

#: Turns texts into the sentences of each.
Tokeniser = Callable[[list[Line]], list[Sentences]]

RULES, WHITESPACE = TOKENIZERS = ("rules", "whitespace")

#: Bounds on what rules are given. spaCy's strip punctuation one character at a time, so that
#: 100,000 `=` take hours, in a call that nothing can interrupt; within these bounds, seconds. ICU's
#: are fast, and its languages have no blanks; but nobody wants 100,000 words that are `=`.
_LONGEST_TEXT = 100_000
_MARKS = re.compile(r"[^\w\s]{101}|_{101}")
_LONG_RUN = re.compile(rf"\S{{501}}|{_MARKS.pattern}")

#: Languages written with spaces whose spaCy default wants a program beside it.
_BY_RULES = frozenset({"ko", "vi"})
#: Languages whose words spaCy splits with a dictionary beside it (Japanese, Thai), into characters
#: (Chinese), or without knowing their full stop (Armenian).
_BY_ICU = frozenset({"hy", "ja", "th", "zh"})

#: What a capital and a full stop are: no end of a sentence.
_INITIAL = re.compile(r"[^\W\d_]\.")
_OPENING = "([{\"'«»„“”‘’‹›"
_BRACKETS = "「『（《〈【〔［"


@dataclass(frozen=True, slots=True)
class Splitting:
    """How text is split.

    Attributes:
        name: for :func:`tokeniser`: ``whitespace`` or the code of a language.
        sentences: whether lines are split into sentences.
        note: a line that says so, empty where nobody needs to be told.
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
    """Settle how text is split.

    Args:
        language: a name or a code; None leaves it to the parser, then to the text.
        tokenizer: one of :data:`TOKENIZERS`; None is ``rules``.
        sentences: whether lines are split into sentences; None: unless by whitespace.
        remembered: the code of the language of the parser's trees, if it has one.
        texts: the first ones, to tell their language from where nothing else says it; where they
            are words already, there is nothing to tell.

    Raises:
        AttreeError: no such language or tokenizer, or both are given where one rules out the other.
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
    if first and not any(isinstance(text, str) for text in first):  # words are given
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
        code, why = told(raw), ", told from the text; --language says another"
    what = "words and sentences are split" if split else "words are split"
    return Splitting(code or ANY, split, f"{what} by the rules for {named(code)}{why}")


#: Texts that a language is told from.
_FIRST = 100


def named(code: str) -> str:
    """Return a language's code for people, and whose rules it takes where it has none."""
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
        AttreeError: no such language, spaCy or ICU not installed, or nothing to split sentences by.
    """
    if name != WHITESPACE:
        rules = _rules(rules_for(code_of(name)))
        return functools.partial(rules, split=split)
    if split:
        problem = "lines of words with spaces between are not split into sentences"
        fix = "leave --tokenizer whitespace or --sentences out"
        raise AttreeError("not-split", problem, fix=fix)
    return lambda texts: [[_words(text)] for text in texts]


def sentence_starts(text: str, language: str) -> list[int]:
    """Return the places of the characters that sentences begin with, the first of the text too.

    Args:
        text: of any number of sentences.
        language: its code.
    """
    parts = _rules(rules_for(language)).cut(text)
    return [0, *itertools.accumulate(map(len, parts[:-1]))]


class Splitter:
    """Splits texts one by one, by the rules of one language or of the language of each.

    Args:
        language: its code; empty: told from each text.
    """

    def __init__(self, language: str) -> None:
        self.language = language

    def __call__(self, text: str, *, split: bool) -> tuple[str, Sentences]:
        """Return the code of a text's language, and its sentences.

        Args:
            text: any.
            split: whether it is cut into sentences.
        """
        code = self.language or told([text]) or ANY
        return code, _rules(rules_for(code))([text], split=split)[0]

    def prepare(self) -> None:
        """Load what will be needed."""
        self("A.", split=True)


#: What the process beside runs. It splits and does nothing else: torch, which spaCy would import
#: for its models, is not wanted there. One that is not asked within a minute ends.
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


#: Until what the process beside was asked is split here; loading takes a second or two.
_SECONDS_TO_ANSWER = 30.0


@functools.cache
def splitter_beside(language: str) -> Splitter:
    """Return a splitter that works in a process of its own, started now.

    Importing spaCy takes half a second, and telling languages another: where an encoder is loaded
    meanwhile, nobody waits for them.

    Args:
        language: as of :class:`Splitter`.

    Returns:
        one for all parsers of this process, which ends with it; one that works here where a process
        would be of no use or cannot be: on a single core, in a worker, or where spaCy is imported
        or not installed.
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
    """A process that splits texts; when it fails in any way, they are split here from then on."""

    def __init__(self, language: str) -> None:
        super().__init__(language)
        self._lock, self._is_here = threading.Lock(), False
        command = [sys.executable, "-I", "-c", _BESIDE, json.dumps([*map(str, sys.path)]), language]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        # A session of its own: Ctrl-C in the terminal is not meant for it.
        self._child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=nothing, start_new_session=True
        )
        self._end = weakref.finalize(self, _end, self._child, os.getpid())
        self._owner = os.getpid()

    def __call__(self, text: str, *, split: bool) -> tuple[str, Sentences]:
        # A fork must not read what another waits for, nor wait for a lock that nobody will release.
        if not self._is_here and os.getpid() == self._owner:
            with self._lock:
                found = self._asked([text, split])
            if found is not None:
                return found
        self._is_here = True
        return super().__call__(text, split=split)

    def _asked(self, question: list[Any]) -> tuple[str, Sentences] | None:
        """Return what the process answers, None where there is no answer."""
        assert self._child.stdin is not None and self._child.stdout is not None
        late = threading.Timer(_SECONDS_TO_ANSWER, self._child.kill)  # one may have been stopped
        late.daemon = True
        late.start()
        try:
            self._child.stdin.write(json.dumps(question).encode() + b"\n")
            self._child.stdin.flush()
            code, sentences = json.loads(self._child.stdout.readline())
        except (OSError, ValueError):  # it has ended, or ends in the middle of a line
            self._end()
            return None
        except BaseException:  # interrupted: the answer to come must not be taken for the next one
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
    """Return the rules of a language, which are loaded once."""
    return _Rules(code)


class _Rules:
    """The rules of one language, of those that :func:`attree.base.languages.rules_for` gives."""

    def __init__(self, code: str) -> None:
        try:
            from icu4py.breakers import SentenceBreaker, WordBreaker

            with without_collecting():
                import spacy
        except ImportError:
            problem = "splitting text into words needs spaCy and icu4py"
            fix = "pip install 'attree[corpus]', or give lines of words: --tokenizer whitespace"
            raise AttreeError("not-installed", problem, fix=fix) from None
        self._locale = "root" if code == ANY else code
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
        known: dict[str, Any] = getattr(self._nlp.tokenizer, "rules", None) or {}
        self._abbreviations = frozenset(one for one in known if len(one) > 1 and one[-1] == ".")

    def __call__(self, texts: list[Line], *, split: bool) -> list[Sentences]:
        # words seen are forgotten after each shard, or memory would grow with the corpus
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
            parts = self._in_words(sentence, self._locale)
            return [word for part in parts for word in str(part).split()]
        return [token.text for token in self._nlp.make_doc(sentence) if not token.is_space]

    def cut(self, text: str) -> list[str]:
        """Cut a text into sentences."""
        found = [""]
        for part in map(str, self._in_sentences(text, self._locale)):
            if found[-1] and self._ends(found[-1], part):
                whole = found[-1].rstrip(_BRACKETS)  # ICU leaves 「 with the sentence before it
                found[-1:] = [whole, found[-1][len(whole) :]]
            found[-1] += part
        return found

    def _ends(self, sentence: str, after: str) -> bool:
        """Tell whether a sentence ends before the next part of the text."""
        last = sentence.split()[-1:]
        word = last[0].lstrip(_OPENING) if last else ""
        if word in self._abbreviations or _INITIAL.fullmatch(word):
            return False
        first = next((character for character in after if character.isalpha()), "")
        return first == first.title()  # a small letter, of scripts that begin sentences otherwise
