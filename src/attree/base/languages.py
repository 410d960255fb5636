"""Languages by name and by code, the one whose rules split words, and the one of a text.

Names and codes are those of ``langcodes`` (BCP 47, ISO 639, and names in most languages); a text's
language is told by ``py3langid``, offline. ``tests/benchmarks/RESULTS.md`` compares it with others.
"""

from __future__ import annotations

import functools
import importlib.util
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from attree.base.errors import AttreeError

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

#: spaCy's code of the rules for any language.
ANY = "xx"

#: How far a language may be from one whose rules split its words, by CLDR's distances: Bosnian is
#: 8 from Croatian, Egyptian Arabic 10 from Arabic, Galician 20 from Spanish.
_NEAR = 10

#: Characters that are enough to tell a language by.
_ENOUGH = 4096

#: A name of a folder or a file that is shorter is no language's: *mon* and *gum* are codes.
_SHORTEST_NAME = 4


def code_of(language: str) -> str:
    """Return the code of a language.

    Args:
        language: its name (``icelandic``, ``Íslenska``) or a code of it (``is``, ``isl``,
            ``is-IS``); ``xx`` for any language.

    Raises:
        AttreeError: there is no such language.
    """
    given = language.strip()
    if given == ANY or given in spacy_codes():
        return given
    import langcodes

    try:
        named = langcodes.get if langcodes.tag_is_valid(given) else langcodes.find
        match = named(given)
    except LookupError:
        match = langcodes.get("und")
    if not match.is_valid() or match.language in (None, "und", "zxx", "mul", "mis"):
        fix = f"give its name or its ISO code, such as icelandic or is; {ANY} for any language"
        raise AttreeError("unknown-language", f"there is no language {language!r}", fix=fix)
    return str(match.prefer_macrolanguage().language)


def code_in(name: str) -> str:
    """Return the code of the language that a treebank's name says (``german_spmrl``), or ``""``.

    Only full names count, and only of languages with a code of two letters or with rules of words:
    other words are names of some language too (*mono*, *legal*).
    """
    if len(name) < _SHORTEST_NAME:
        return ""
    import langcodes

    try:
        code = str(langcodes.find(name).language)
    except LookupError:
        return ""
    return code if len(code) == 2 or code in spacy_codes() else ""


@functools.cache
def spacy_codes() -> frozenset[str]:
    """Return the codes of the languages that spaCy has rules for, without importing spaCy."""
    spec = importlib.util.find_spec("spacy")
    folders = [] if spec is None else (spec.submodule_search_locations or [])
    inside = (one for folder in folders for one in Path(folder, "lang").glob("*/__init__.py"))
    return frozenset(one.parent.name for one in inside) - {ANY}


@functools.cache
def rules_for(code: str) -> str:
    """Return the code of spaCy's rules for a language.

    Returns:
        that of the language itself, or of one so near that its readers read both (Bosnian by
        Croatian rules); ``xx`` where there is none.
    """
    if code == ANY or code in spacy_codes():
        return code
    import langcodes

    near, distance = langcodes.closest_match(code, sorted(spacy_codes()), max_distance=_NEAR)
    return near if distance <= _NEAR else ANY


def told(texts: Iterable[str]) -> str:
    """Return the code of the language that texts are in, told from their first characters.

    Returns:
        a code of two letters, or ``""`` where nothing tells: no letters, or hardly any.
    """
    text = " ".join(islice(_some(texts), 64))[:_ENOUGH]
    if not any(character.isalpha() for character in text):
        return ""
    identifier = _identifier()
    from py3langid.langid import RAW_FLOOR

    code, score = identifier.classify(text)
    return "" if score <= RAW_FLOOR else str(code)


def language_of_most(sentences: Sequence[Sequence[str]]) -> str:
    """Return the code of the language that sentences are in, each told by itself.

    Args:
        sentences: their words; a hundred of them, from first to last, are looked at.

    Returns:
        a code of two letters, or ``""`` where less than two thirds are in one language: several
        treebanks, or words that are spelt as in none.
    """
    step = max(len(sentences) // 100, 1)
    counts = Counter(told([" ".join(words)]) for words in sentences[::step])
    code, count = counts.most_common(1)[0] if counts else ("", 0)
    return code if 3 * count >= 2 * counts.total() else ""


def _some(texts: Iterable[str]) -> Iterable[str]:
    """Yield texts, the first characters of each, that there be enough and no more are read."""
    left = _ENOUGH
    for text in texts:
        if part := " ".join(text[:_ENOUGH].split()):
            yield part
            left -= len(part)
        if left <= 0:
            return


@functools.cache
def _identifier() -> LanguageIdentifier:
    """Load the identifier, of the languages that have codes of two letters.

    Among the others are creoles and dialects, for which it takes short English sentences.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages([code for code in identifier.labels if len(code) == 2])
    return identifier
