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
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from attree.base.errors import AttreeError
from attree.base.languages import ANY, ENOUGH_TEXTS, candidates, code_of, rules_for
from attree.base.process import without_collecting
from attree.base.text import encodable

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

    def tokeniser(self) -> Tokeniser:
        """Return what splits text so; see :func:`tokeniser`."""
        return tokeniser(self.name, split=self.sentences)


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
    first = list(islice(texts, ENOUGH_TEXTS))
    code, why = remembered, ", the language that the parser was trained on"
    if language is not None:
        code, why = code_of(language), ""
    if first and not any(isinstance(text, str) for text in first):  # texts are split already
        return Splitting(code or ANY, split)
    if not code:
        if not (raw := [text for text in first if isinstance(text, str) and text.strip()]):
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
    told, why = _told(candidates([text]) if code == ANY else (code,))
    return f"words are split by the rules for {rules_name(told)}{why}"


def rules_name(code: str) -> str:
    """Name a language's code for messages, and the rules it uses if it has none of its own."""
    rules = rules_for(code or ANY)
    name = "any language" if rules == ANY else rules
    return name if rules == (code or ANY) else f"{name} ({code} has none of its own)"


def tokeniser(name: str, *, split: bool) -> Tokeniser:
    """Return the tokeniser of that name.

    Args:
        name: ``whitespace``, or a language's name or code; ``xx`` for any language.
        split: cut every line into sentences.

    Raises:
        AttreeError: there is no such language, or ``whitespace`` is to split sentences.
    """
    if name != WHITESPACE:
        return functools.partial(_rules(rules_for(code_of(name))), split=split)
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
    return [0, *itertools.accumulate(map(len, _rules(rules_for(language)).cut(text)[:-1]))]


def sentences_of(text: str, language: str, *, split: bool = True) -> tuple[str, list[list[str]]]:
    """Split a text into sentences of words, by the rules of one language or of its own.

    Args:
        text: any, with a file's byte-order mark or without; past the bounds of the rules it is one
            sentence, split at white space.
        language: its code; if empty, it is detected.
        split: whether the text is cut into sentences; else it is one.

    Returns:
        the code of the language, and the words of each sentence.
    """
    text = encodable(text).removeprefix("\ufeff")
    code = _told((language,) if language else candidates([text]))[0] or ANY
    return code, _rules(rules_for(code))([text], split=split)[0] or [text.split()]


#: Splits one text. torch, which spaCy would import for its models, is blocked.
_BESIDE = """
import json, sys
sys.path[:], sys.modules["torch"] = json.loads(sys.argv[1]), None
from attree.raw_text.words import sentences_of
print(json.dumps(sentences_of(*sys.argv[2:])))
"""


def split_beside(text: str, language: str) -> Callable[[], tuple[str, list[list[str]]]]:
    """Begin to split a text in another process; return a function that waits for the answer.

    Importing spaCy takes half a second, and telling the language a bit: there both run while this
    process loads an encoder. Arguments and answer are those of :func:`sentences_of`.
    """
    command = [sys.executable, "-I", "-c", _BESIDE, json.dumps([*map(str, sys.path)]), text]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    try:
        child = subprocess.Popen([*command, language], stdout=pipe, stderr=nothing)
    except (OSError, ValueError):  # no process can be started, or none with such a text
        return functools.partial(sentences_of, text, language)

    def answer() -> tuple[str, list[list[str]]]:
        try:
            code, sentences = json.loads(child.communicate(timeout=_SECONDS_TO_ANSWER)[0])
        except (subprocess.TimeoutExpired, ValueError):  # it hangs, or has ended
            child.kill()
            return sentences_of(text, language)
        return code, sentences

    return answer


#: How long to wait for a process beside, which takes a second or two.
_SECONDS_TO_ANSWER = 30.0


def _words(text: Line) -> list[str]:
    return text.split() if isinstance(text, str) else [word for word in text if word.strip()]


class _Rules:
    """The rules of one language, by a code of :func:`attree.base.languages.rules_for`."""

    def __init__(self, code: str) -> None:
        import regex
        from icu4py.breakers import SentenceBreaker, WordBreaker

        with without_collecting():
            import spacy
        self._locale = "root" if code == ANY else code
        self._clusters, self._continues = regex.compile(r"\X"), regex.compile(_CONTINUES)
        self._in_sentences, self._in_words = SentenceBreaker, WordBreaker
        self._nlp: spacy.language.Language | None = None
        self._abbreviations: frozenset[str] = frozenset()
        if code == ANY or code in _BY_ICU:
            return
        plain = {"nlp": {"tokenizer": {"@tokenizers": "spacy.Tokenizer.v1"}}}
        self._nlp = spacy.blank(code, config=plain if code in _BY_RULES else {})
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
        if len(text) > _LONGEST_TEXT or (_MARKS if self._nlp is None else _LONG_RUN).search(text):
            return None
        parts = [self._split(part) for part in (self.cut(text) if split else [text])]
        return [words for words in parts if words] or [[]]

    def _split(self, sentence: str) -> list[str]:
        if self._nlp is None:
            parts = [str(part) for part in self._in_words(sentence, self._locale)]
        else:
            parts = [token.text_with_ws for token in self._nlp.make_doc(sentence)]
        return [word for part in self._whole_clusters(sentence, parts) for word in part.split()]

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


#: Returns the rules of a language, loaded once.
_rules = functools.cache(_Rules)
