from __future__ import annotations

import itertools
import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attree.raw_text.words import sentences_of, settle, split_beside, tokeniser
from tests.refusals import refused


def test_whitespace_takes_lines_of_words_as_they_are() -> None:
    split = tokeniser("whitespace", split=False)
    words = [[["a", "b", "c"]], [[]], [["d e", "f"]], [[]]]
    assert split(["a b\tc", "", ["d e", " ", "f"], "  "]) == words


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("en", "He didn't (say so).", "He did n't ( say so ) ."),
        ("de", "Das ist z.B. gut, oder?", "Das ist z.B. gut , oder ?"),
        ("fr", "L'homme s'en va.", "L' homme s' en va ."),
        ("ko", "나는 학교에 갔다.", "나는 학교에 갔다 ."),
        ("he", "הוא הלך הביתה.", "הוא הלך הביתה ."),
        ("eu", "Etxera joan da.", "Etxera joan da ."),
        ("hu", "Hazament a fiú.", "Hazament a fiú ."),
        ("pl", "Chłopiec poszedł, potem wrócił.", "Chłopiec poszedł , potem wrócił ."),
        ("sv", "Pojken gick hem.", "Pojken gick hem ."),
        ("icelandic", "Hann fór, held ég.", "Hann fór , held ég ."),
        ("zh", "老人回家了。", "老人 回家 了 。"),
        ("ja", "老人は家に帰った。", "老人 は 家 に 帰 っ た 。"),
        ("th", "ชายชราเดินกลับบ้าน", "ชาย ชรา เดิน กลับ บ้าน"),
        ("hy", "Ծերունին գնաց տուն։", "Ծերունին գնաց տուն ։"),
        ("ka", "მოხუცი სახლში წავიდა.", "მოხუცი სახლში წავიდა ."),
        ("xx", "Aeth adref, medd hi.", "Aeth adref , medd hi ."),
    ],
)
def test_a_language_has_its_rules(language: str, text: str, words: str) -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed")
    assert tokeniser(language, split=False)([text, ""]) == [[words.split()], [[]]]


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        ("en", "The cat ran. It was late!  ", ["The cat ran .", "It was late !"]),
        ("en", 'Dr. J. Smith left. "Go!" he said.', ["Dr. J. Smith left .", '" Go ! " he said .']),
        ("de", "Das ist z.B. gut. Wer?", ["Das ist z.B. gut .", "Wer ?"]),
        ("zh", "他睡了！「好吗？」他说。", ["他 睡了 ！", "「 好 吗 ？ 」", "他 说 。"]),
        ("hi", "यह घर है। वह गया।", ["यह घर है ।", "वह गया ।"]),
        ("ka", "ის წავიდა. ის იძინებს.", ["ის წავიდა .", "ის იძინებს ."]),
        ("ar", "نام الرجل. ذهب الولد؟", ["نام الرجل .", "ذهب الولد ؟"]),
    ],
)
def test_lines_are_split_into_sentences(language: str, text: str, sentences: list[str]) -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed")
    split = tokeniser(language, split=True)
    found = [one.split() for one in sentences]
    assert split([text, " ", ["kept", "whole", "."]]) == [found, [[]], [["kept", "whole", "."]]]


@pytest.mark.parametrize("text", ["=" * 100_000, "a" * 1001, "_" * 200, "a b " * 30_000])
def test_a_text_beyond_the_bounds_is_refused_and_costs_no_other(text: str) -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed")
    split = tokeniser("en", split=True)
    assert split(["It ran.", text, "It sat."]) == [[["It", "ran", "."]], None, [["It", "sat", "."]]]


#: Families, flags, skin tones, a keycap, a heart with its variant, marks, syllables in parts.
_CLUSTERS = [
    "\U0001f469\u200d\U0001f469\u200d\U0001f467", "🇫🇷", "🇩🇪", "👍🏽", "1️⃣", "❤️",
    "e\u0301", "q\u0308\u0323", "शि", "กำ", "שָׁ", "ᄒ\u1161ᆫ", "a", "B", "文", "。", ".", ",",
    "'", "-", "1", "\u200d", "\ufe0f", " ", " ", "\t", "(", "🏽",
]  # fmt: skip


@pytest.mark.parametrize("language", ["en", "ca", "hi", "ko", "zh", "th", "xx"])
@settings(deadline=None, max_examples=15)
@given(drawn=st.lists(st.sampled_from(_CLUSTERS), max_size=12))
def test_no_word_is_part_of_a_grapheme_cluster(language: str, drawn: list[str]) -> None:
    """Clusters are told by ICU, which does not split by them."""
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'attree[corpus]'")
    from icu4py.breakers import CharacterBreaker

    text = "".join(drawn)
    for split in (False, True):
        (sentences,) = tokeniser(language, split=split)([text])
        words = [word for sentence in sentences or [] for word in sentence]
        assert "".join(words) == "".join(text.split())
        ends = {*itertools.accumulate(map(len, map(str, CharacterBreaker(text, "root"))))}
        at = 0
        for word in words:
            at = text.index(word[0], at) if text[at : at + 1].isspace() else at
            at += len(word)
            assert at in ends or text[at : at + 1].isspace(), (word, text)


@pytest.mark.parametrize("emoji", ["\U0001f469\u200d\U0001f469\u200d\U0001f467", "🇫🇷", "👍🏽", "1️⃣"])
def test_an_emoji_is_a_word(emoji: str) -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'attree[corpus]'")
    for language in ("en", "de", "xx", "zh"):
        split = tokeniser(language, split=True)
        assert split([f"Yes {emoji} no {emoji}"]) == [[["Yes", emoji, "no", emoji]]]


def test_whitespace_cannot_split_into_sentences() -> None:
    with refused("not-split"):
        tokeniser("whitespace", split=True)


@pytest.mark.parametrize(
    ("given", "remembered", "text", "wanted", "says"),
    [
        ((None, None, None), "", "Ein alter Mann.", ("de", True), "rules for de, told from the"),
        ((None, None, None), "fr", "Ein Mann.", ("fr", True), "fr, the language that the parser"),
        ((None, None, None), "", "1 2 3", ("xx", True), "rules for any language, told"),
        (
            (None, None, None),
            "",
            "A cat slept.",
            ("xx", True),
            "short, and may be ro or en; --lang",
        ),
        (("icelandic", None, None), "fr", "", ("is", True), "^words and sentences .* for is$"),
        (("nob", None, False), "", "", ("nb", False), "^words are split"),
        (("tlh", None, None), "", "", ("tlh", True), "any language .tlh has none"),
        ((None, "rules", None), "de", "", ("de", True), "rules for de"),
        ((None, "whitespace", None), "french", "", ("whitespace", False), "^$"),
    ],
)
def test_how_text_is_split_is_chosen_and_said(
    given: tuple[str | None, str | None, bool | None],
    remembered: str,
    text: str,
    wanted: tuple[str, bool],
    says: str,
) -> None:
    how = settle(*given, remembered=remembered, texts=["", text])
    assert (how.name, how.sentences) == wanted
    assert re.search(says, how.note)


def test_nothing_is_said_of_words_that_are_given() -> None:
    for remembered in ("", "en"):
        assert settle(None, None, None, remembered=remembered, texts=[["the", "words"]]).note == ""


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (("frnch", None), "unknown-language frnch"),
        ((None, "de"), "unknown-tokenizer de --language"),
        (("de", "whitespace"), "option-without-effect"),
    ],
)
def test_what_cannot_be_settled_is_refused(
    given: tuple[str | None, str | None], problem: str
) -> None:
    with refused(*problem.split()):
        settle(*given, None)


#: A text beyond the bounds, nothing, several sentences, JSON's own marks, no text at all.
_TEXTS = [
    "Don't, 他说" + " and more" * 9_000,
    "=" * 1000 + " a",
    "",
    "One. Two.",
    "\"\\'",
    "\ud800 a",
]


@pytest.mark.parametrize("language", ["en", ""])
def test_a_text_is_split_beside_as_it_is_here(language: str) -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed")
    answers = [split_beside(text, language) for text in _TEXTS]
    assert [answer() for answer in answers] == [sentences_of(text, language) for text in _TEXTS]


def test_a_text_is_split_here_when_nobody_splits_it_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed")
    sentences = ("de", [["Das", "geht", "."], ["Gut", "."]])
    monkeypatch.setattr("attree.raw_text.words._SECONDS_TO_ANSWER", 0.5)
    for program in ("import time; time.sleep(60)", "raise SystemExit(1)", "print('[1')"):
        monkeypatch.setattr("attree.raw_text.words._BESIDE", program)
        assert split_beside("Das geht. Gut.", "de")() == sentences
    monkeypatch.setattr(sys, "executable", "/nowhere")
    assert split_beside("Das geht. Gut.", "de")() == sentences
