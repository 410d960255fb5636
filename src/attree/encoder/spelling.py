"""Spell words as an encoder knows them, without marks that most text lacks.

What comes out has the words as they were. The table :data:`SPELLINGS` has a line for each script.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

#: Accents that modern Greek writes as one, and breathings, the iota below and lengths, which it
#: does not write.
_GREEK_ACCENTS = re.compile("[\u0300\u0342]")
_UNWRITTEN = re.compile("[\u0304\u0306\u0313\u0314\u0345]")
_GREEK_SYLLABLE = re.compile("αι|ει|οι|υι|ου|αυ|ευ|ηυ|[αεηιουω]")
_ACUTE = "\u0301"

#: Points and accents of Hebrew, and the letters with points that Yiddish has of its own.
_HEBREW_POINTS = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]")
_YIDDISH = re.compile("א[\u05b7\u05b8]|[ײי]\u05b7|י\u05b4|ו\u05bc|[בכפת][\u05bc\u05bf]|ש\u05c2")

_TATWEEL, _TANWIN, _SHADDA = "\u0640", "\u064b", "\u0651"
_ARABIC_MARKS = re.compile("[\u064b-\u0652\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]")


def _modern_greek(word: str) -> str:
    apart = _UNWRITTEN.sub("", _GREEK_ACCENTS.sub(_ACUTE, unicodedata.normalize("NFD", word)))
    without = apart.replace(_ACUTE, "")
    if len(_GREEK_SYLLABLE.findall(without.lower())) < 2:  # such words have no accent
        apart = without
    return unicodedata.normalize("NFC", apart)


def _unpointed(word: str) -> str:
    if _HEBREW_POINTS.search(_YIDDISH.sub("", word)) is None:
        return word
    return _HEBREW_POINTS.sub("", word)


def _unmarked_arabic(word: str) -> str:
    word = word.replace(_TATWEEL, "")
    # text without vowel signs has these two in some words, which the encoder knows with them
    rare = set(_ARABIC_MARKS.findall(word)) - {_TANWIN, _SHADDA}
    return _ARABIC_MARKS.sub("", word) if rare else word


#: Script → a character that calls for it, and what is done with the whole word. The figures are of
#: ``universal`` on 60 sentences of UD with these marks put in by a program: pieces a word, headed
#: precision and recall of subtrees, read as they are and by this table. Full-width Latin and
#: decomposed Korean, Vietnamese and French are not here: the tokeniser composes them.
SPELLINGS: dict[str, tuple[str, Callable[[str], str]]] = {
    # Greek-GUD: 2.50 → 1.66 pieces, 87.5/56.1 → 91.4/71.0 (without the marks 1.64, 92.4/72.9)
    "polytonic Greek": ("[\u1f00-\u1fff]|[α-ωΑ-Ω][\u0300\u0313\u0314\u0342\u0345]", _modern_greek),
    # Hebrew-IAHLTwiki: 6.02 → 1.62 pieces, 68.7/42.4 → 83.2/69.0 (without: the same)
    "pointed Hebrew": (_HEBREW_POINTS.pattern, _unpointed),
    # Arabic-PUD with vowel signs: 7.14 → 1.47 pieces, 67.0/49.7 → 82.3/75.1; stretched: 2.35 → 1.46
    # pieces, 79.6/71.4 → 82.3/74.6 (without either 1.50, 82.5/75.4)
    "Arabic with vowel signs or stretched": (
        f"{_TATWEEL}|{_ARABIC_MARKS.pattern}",
        _unmarked_arabic,
    ),
}
_CALLS = re.compile("|".join(pattern for pattern, _ in SPELLINGS.values()))


def plain(word: str) -> str:
    """Return a word as the encoder is to read it; the word itself if nothing would be left."""
    if word.isascii() or _CALLS.search(word) is None:
        return word
    spelt = word
    for pattern, respell in SPELLINGS.values():
        if re.search(pattern, spelt):
            spelt = respell(spelt)
    return spelt or word
