"""Find a language by name or code, the rules that split its words, and the language of a text.

Names and codes are those of ``langcodes`` (BCP 47, ISO 639, and names in most languages).
``py3langid`` detects languages, offline; ``docs/languages.md`` compares it with others.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from attree.base.errors import AttreeError
from attree.base.files import private_cache, whole_file

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

#: spaCy's code of the rules for any language.
ANY = "xx"

#: The largest CLDR distance between a language and another whose rules split its words: Bosnian is
#: 8 from Croatian, Egyptian Arabic 10 from Arabic, Galician 20 from Spanish.
_NEAR = 10

#: How many characters and texts (lines, sentences) are enough to detect a language.
_ENOUGH, ENOUGH_TEXTS = 4096, 100

#: Log odds of a language against the next from which on it is told. Of the first three, five and
#: eight words of 2,760 sentences in 46 languages, 46 % are taken for another below it, 1 % above.
_SURE = 5.0
#: Longer texts are in no doubt: they are told from those in a near language, or it matters little.
_SHORT = 100
#: Letters of Yiddish: double ones, and alef with a vowel, which Hebrew has if all vowels are there.
_YIDDISH = re.compile("[\u05f0-\u05f2\ufb1d\ufb1f\ufb2e\ufb2f]|\u05d0[\u05b7\u05b8]")
_POINTS = re.compile("[\u05b0-\u05bc]")
#: What the language identifier consists of.
_MODEL = ("nb_ptc", "nb_pc", "nb_classes", "tk_output", "tk_nextmove", "tk_row")

#: Shorter names of folders and files are no language's name: *mon* and *gum* are codes too.
_SHORTEST_NAME = 4


def code_of(language: str) -> str:
    """Return the code of a language.

    Args:
        language: its name (``icelandic``, ``Íslenska``) or a code of it (``is``, ``isl``,
            ``is-IS``); ``xx`` for any language.

    Raises:
        AttreeError: there is no such language.
    """
    name = language.strip()
    if name == ANY or name in spacy_codes():
        return name
    import langcodes

    try:
        match = (langcodes.get if langcodes.tag_is_valid(name) else langcodes.find)(name)
    except LookupError:
        match = langcodes.get("und")
    if not match.is_valid() or match.language in (None, "und", "zxx", "mul", "mis"):
        fix = f"give its name or its ISO code, such as icelandic or is; {ANY} for any language"
        raise AttreeError("unknown-language", f"there is no language {language!r}", fix=fix)
    return str(match.prefer_macrolanguage().language)


def code_in(name: str) -> str:
    """Return the code of the language named in a treebank's name (``german_spmrl``), or ``""``.

    Only full names count, and only of languages with a two-letter code or with word rules: many
    other words happen to name a language (*mono*, *legal*).
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
    inside = (path for folder in folders for path in Path(folder, "lang").glob("*/__init__.py"))
    return frozenset(path.parent.name for path in inside) - {ANY}


@functools.cache
def rules_for(code: str) -> str:
    """Return the code of spaCy's rules for a language.

    Returns:
        the language's own code, or that of a very near language (Croatian rules for Bosnian);
        ``xx`` where there is none.
    """
    if code == ANY or code in spacy_codes():
        return code
    import langcodes

    near, distance = langcodes.closest_match(code, sorted(spacy_codes()), max_distance=_NEAR)
    return near if distance <= _NEAR else ANY


def detect(texts: Iterable[str]) -> str:
    """Detect the language of texts by their first characters.

    Returns:
        a two-letter code, or ``""`` where there are no letters, or hardly any.
    """
    return next(iter(candidates(texts)), "")


def candidates(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the languages that texts may be in, by their first characters.

    Returns:
        two-letter codes, the likeliest first: two where a short text may be in either and other
        rules would split it; none where there are no letters, or hardly any.
    """
    beginnings = (" ".join(text[:_ENOUGH].split()) for text in texts)
    text = " ".join(islice(filter(None, beginnings), ENOUGH_TEXTS))[:_ENOUGH]
    if not any(character.isalpha() for character in text):
        return ()
    from py3langid.langid import RAW_FLOOR

    (code, score), (second, lower) = _identifier().rank(text)[:2]
    if score <= RAW_FLOOR:
        return ()
    if code == "he" and _YIDDISH.search(text) and len(_POINTS.findall(text)) < len(text) / 4:
        return ("yi",)  # the identifier does not know it
    if code == "he" and text.count("ע") > max(1, len(text) / 12):  # the vowel e of Yiddish
        return ("he", "yi")
    is_sure = score - lower >= _SURE or len(text) > _SHORT or rules_for(code) == rules_for(second)
    return (code,) if is_sure else (code, second)


def language_of_most(sentences: Sequence[Sequence[str]]) -> str:
    """Detect the language of most sentences, each by itself.

    Args:
        sentences: their words; about a hundred, spread over all of them, are looked at.

    Returns:
        a two-letter code, or ``""`` where less than two thirds are in one language, as in several
        treebanks, or in words of no common spelling.
    """
    step = max(len(sentences) // 100, 1)
    counts = Counter(detect([" ".join(words)]) for words in sentences[::step])
    code, count = counts.most_common(1)[0] if counts else ("", 0)
    return code if 3 * count >= 2 * counts.total() else ""


@functools.cache
def _identifier() -> LanguageIdentifier:
    """Load the language identifier; keep it unpacked in the user's cache, 64 MB.

    To unpack it takes 0.4 s of processor time, a tenth of a first tree.
    """
    import numpy as np
    import py3langid
    from py3langid.langid import LanguageIdentifier

    try:
        path = private_cache("languages") / f"py3langid-{py3langid.__version__}.npz"
    except (OSError, RuntimeError):  # there is no such folder
        return _unpacked()
    # it is not there, or damaged
    with suppress(OSError, EOFError, ValueError, KeyError, BadZipFile), np.load(path) as kept:
        ptc, pc, classes, output, *tables = (kept[name] for name in _MODEL)
        moves, rows = (array(table.dtype.char, table.tobytes()) for table in tables)
        return LanguageIdentifier(ptc, pc, classes.tolist(), moves, output.tolist(), tk_row=rows)
    identifier = _unpacked()
    arrays: Any = {name: np.asarray(getattr(identifier, name)) for name in _MODEL}
    with suppress(OSError, AttreeError), whole_file(path) as part, part.open("wb") as file:
        np.savez(file, **arrays)
    return identifier


def _unpacked() -> LanguageIdentifier:
    """Unpack the identifier, limited to languages with two-letter codes.

    It takes short English sentences for some of the others, such as creoles and dialects.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
    identifier.set_languages([code for code in identifier.labels if len(code) == 2])
    return identifier
