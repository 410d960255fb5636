"""Lines → sentences of words.

``whitespace`` takes lines as they are: one sentence of words with spaces between. A language code
takes spaCy's rules for that language: they need no model and no network, there are more than
seventy languages, they keep Penn Treebank's habits for English, and they are twice as fast as
Moses' rules in Python. Its sentence splitter goes by the languages' closing punctuation.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attree.errors import AttreeError
from attree.process import without_collecting

#: A text, or its words where the input has them already.
Line = str | list[str]

#: Turns texts into the sentences of each, each a list of words; None for a text that is beyond the
#: bounds of the tokeniser.
Tokeniser = Callable[[list[Line]], list[list[list[str]] | None]]

WHITESPACE = "whitespace"

#: Bounds on what spaCy's rules are given. They strip punctuation one character at a time, so that
#: 100,000 `=` take hours, in a call that nothing can interrupt; within these bounds, seconds.
_LONGEST_TEXT = 100_000
_LONG_RUN = re.compile(r"\S{501}|[^\w\s]{101}|_{101}")

#: Languages written with spaces whose spaCy default wants a program beside it.
_BY_RULES = frozenset({"ko", "vi"})


#: Names that treebanks' folders usually have → codes of languages.
_CODES = {
    "arabic": "ar", "basque": "eu", "bulgarian": "bg", "catalan": "ca", "chinese": "zh",
    "croatian": "hr", "czech": "cs", "danish": "da", "dutch": "nl", "english": "en",
    "estonian": "et", "finnish": "fi", "french": "fr", "german": "de", "greek": "el",
    "hebrew": "he", "hindi": "hi", "hungarian": "hu", "icelandic": "is", "indonesian": "id",
    "italian": "it", "japanese": "ja", "korean": "ko", "latvian": "lv", "lithuanian": "lt",
    "norwegian": "nb", "persian": "fa", "polish": "pl", "portuguese": "pt", "romanian": "ro",
    "russian": "ru", "slovak": "sk", "slovenian": "sl", "spanish": "es", "swedish": "sv",
    "turkish": "tr", "ukrainian": "uk", "vietnamese": "vi",
}  # fmt: skip


def code_of(language: str) -> str:
    """Return the code of a language that is named (``icelandic``); any other word as it is."""
    return _CODES.get(language.lower(), language)


def choose(tokenizer: str | None, sentences: bool | None, trained_on: str) -> tuple[str, bool, str]:
    """Settle how text is split.

    Args:
        tokenizer: what is asked for; None leaves the choice.
        sentences: whether text is split into sentences; None leaves the choice.
        trained_on: the language of the parser's trees as far as it is known, such as ``french``.

    Returns:
        a name for :func:`tokeniser`, whether sentences are split, and a line that says so, empty
        where it was asked for.
    """
    code = tokenizer or _CODES.get(trained_on.lower(), "")
    split = code != WHITESPACE if sentences is None else sentences
    if code == WHITESPACE:
        return code, split, ""
    why = "" if tokenizer else f", the parser's language ({trained_on})"
    if not code:
        code, why = "en", ", as no language is given: --language de, or --tokenizer whitespace"
    what = "words and sentences" if split else "words"
    return code, split, f"{what} are split by spaCy's rules for {code}{why}"


def tokeniser(name: str, *, split: bool) -> Tokeniser:
    """Return the tokeniser of that name.

    Args:
        name: ``whitespace`` or a language code of spaCy (``en``, ``de``, …, ``xx`` for any).
        split: cut every line into sentences.

    Raises:
        AttreeError: no such language, spaCy not installed, or nothing to split sentences by.
    """
    if name != WHITESPACE:
        return _Spacy(name, split=split)
    if split:
        raise AttreeError(
            "lines of words with spaces between are not split into sentences",
            fix="name the language: --tokenizer de",
        )
    return _by_whitespace


#: What the process beside runs. It splits and does nothing else: torch, which spaCy would import
#: for its models, is not wanted there. One that is not asked within a minute ends.
_BESIDE = """
import json, select, sys
sys.path[:] = json.loads(sys.argv[1])
sys.modules["torch"] = None
from attree.words import tokeniser
split = tokeniser(sys.argv[2], split=False)
if select.select([sys.stdin], [], [], 60)[0]:
    for line in sys.stdin:
        print(json.dumps(split(json.loads(line))), flush=True)
"""


@functools.cache
def tokeniser_beside(language: str) -> Tokeniser | None:
    """Return a tokeniser that runs in a process of its own, started now.

    Importing spaCy takes half a second: where an encoder is loaded meanwhile, nobody waits for it.

    Args:
        language: whose rules split texts into words, as of :func:`tokeniser`.

    Returns:
        one for all parsers of this process, which ends with it; None where it would be of no use
        or cannot be: on a single core, in a worker, or where spaCy is imported or not installed.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if (
        (cores or 1) < 2
        or multiprocessing.parent_process() is not None
        or "spacy" in sys.modules
        or importlib.util.find_spec("spacy") is None
        or not Path(sys.executable or "").name.startswith("python")  # another program embeds Python
    ):
        return None
    try:
        return _Beside(language)
    except OSError:
        return None


class _Beside:
    """A process that splits texts; when it fails in any way, they are split here from then on."""

    def __init__(self, language: str) -> None:
        self._language, self._lock = language, threading.Lock()
        self._here: Tokeniser | None = None
        command = [sys.executable, "-I", "-c", _BESIDE, json.dumps([*map(str, sys.path)]), language]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        # A session of its own: Ctrl-C in the terminal is not meant for it.
        self._child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=nothing, start_new_session=True
        )
        self._end = weakref.finalize(self, _end, self._child, os.getpid())
        self._owner = os.getpid()

    def __call__(self, texts: list[Line]) -> list[list[list[str]] | None]:
        # A fork must not read what another waits for, nor wait for a lock that nobody will release.
        if self._here is None and os.getpid() == self._owner:
            with self._lock:
                found = self._asked(texts)
            if found is not None:
                return found
        if self._here is None:
            self._here = tokeniser(self._language, split=False)
        return self._here(texts)

    def _asked(self, texts: list[Line]) -> list[list[list[str]] | None] | None:
        """Return what the process answers, None where there is no answer."""
        assert self._child.stdin is not None and self._child.stdout is not None
        try:
            self._child.stdin.write(json.dumps(texts).encode() + b"\n")
            self._child.stdin.flush()
            found: list[list[list[str]] | None] = json.loads(self._child.stdout.readline())
        except (OSError, ValueError):  # it has ended, or ends in the middle of a line
            self._end()
            return None
        except BaseException:  # interrupted: the answer to come must not be taken for the next one
            self._end()
            raise
        return found


def _end(child: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() == owner:
        child.kill()
        child.communicate()


def _by_whitespace(texts: list[Line]) -> list[list[list[str]] | None]:
    return [[_words(text)] for text in texts]


def _words(text: Line) -> list[str]:
    return text.split() if isinstance(text, str) else [word for word in text if word.strip()]


class _Spacy:
    def __init__(self, language: str, *, split: bool) -> None:
        try:
            with without_collecting():
                import spacy
        except ImportError:
            raise AttreeError(
                f"--tokenizer {language} needs spaCy",
                fix="pip install 'attree[corpus]', or give lines of words: --tokenizer whitespace",
            ) from None
        config: dict[str, Any] = {}
        if language in _BY_RULES:
            config = {"nlp": {"tokenizer": {"@tokenizers": "spacy.Tokenizer.v1"}}}
        try:
            self._nlp = spacy.blank(language, config=config)
        except ImportError as error:
            reason = str(error).strip().splitlines()[0]
            raise AttreeError(
                f"no tokeniser for {language!r} ({reason})",
                fix="use a code of https://spacy.io/usage/models#languages, xx, or whitespace",
            ) from None
        self._nlp.max_length = 1 << 22
        if split:
            self._nlp.add_pipe("sentencizer")
        self._split = split
        self._is_bounded = isinstance(self._nlp.tokenizer, spacy.tokenizer.Tokenizer)

    def __call__(self, texts: list[Line]) -> list[list[list[str]] | None]:
        # words seen are forgotten after each shard, or memory would grow with the corpus
        with self._nlp.memory_zone():
            return [self._bounded(text) for text in texts]

    def _bounded(self, text: Line) -> list[list[str]] | None:
        if not self._is_bounded or not isinstance(text, str):
            return self._sentences(text)
        beyond = len(text) > _LONGEST_TEXT or _LONG_RUN.search(text)
        return None if beyond else self._sentences(text)

    def _sentences(self, text: Line) -> list[list[str]]:
        if not isinstance(text, str):
            return [_words(text)]
        if not text:
            return [[]]
        if not self._split:
            return [[token.text for token in self._nlp.make_doc(text) if not token.is_space]]
        found = [
            [token.text for token in part if not token.is_space] for part in self._nlp(text).sents
        ]
        return [words for words in found if words] or [[]]
