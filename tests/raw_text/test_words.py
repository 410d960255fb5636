from __future__ import annotations

import itertools
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attree.raw_text.words import Splitter, settle, splitter_beside, tokeniser
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


@pytest.mark.parametrize("language", ["en", "fr", "hi", "ko", "zh", "th", "xx"])
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
        (("tlh", None, None), "", "", ("tlh", True), "tlh .any language: it has none"),
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


@pytest.fixture
def on_two_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A process with no tokeniser beside it yet."""
    pytest.importorskip("spacy", reason="spaCy is not installed")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    splitter_beside.cache_clear()
    yield monkeypatch
    splitter_beside.cache_clear()


#: More than a pipe holds, a text beyond the bounds, nothing, several sentences, JSON's own marks.
_TEXTS = ["Don't, 他说" + " and more" * 9_000, "=" * 1000 + " a", "", "One. Two.", "\"\\'"]


def _beside(language: str) -> Any:
    with pytest.MonkeyPatch.context() as as_if:
        as_if.delitem(sys.modules, "spacy", raising=False)  # not imported yet
        found = splitter_beside(language)
    assert type(found) is not Splitter
    return found


@pytest.mark.parametrize("language", ["en", ""])
def test_texts_are_split_beside_as_they_are_here(
    on_two_cores: pytest.MonkeyPatch, language: str
) -> None:
    beside, here = _beside(language), Splitter(language)
    for text in _TEXTS:
        for split in (False, True):
            assert beside(text, split=split) == here(text, split=split)
    assert not beside._is_here  # nothing was split here
    text = "The old man walked home. Go."
    words = [["The", "old", "man", "walked", "home", "."], ["Go", "."]]
    assert beside(text, split=True) == ("en", words)
    assert splitter_beside(language) is beside


def _killed(beside: Any) -> None:
    beside._child.kill()
    beside._child.wait()


def _forked(beside: Any) -> None:
    beside._owner = 0


def _stopped(beside: Any) -> None:
    beside._child.send_signal(signal.SIGSTOP)


@pytest.mark.parametrize("fault", [_killed, _forked, _stopped])
@pytest.mark.parametrize("after", [0, 1])
def test_texts_are_split_here_when_nobody_splits_them_beside(
    on_two_cores: pytest.MonkeyPatch, fault: Callable[[Any], None], after: int
) -> None:
    beside = _beside("de")
    for _ in range(after):
        assert beside("Geht es?", split=False) == ("de", [["Geht", "es", "?"]])
    fault(beside)
    on_two_cores.setattr("attree.raw_text.words._SECONDS_TO_ANSWER", 0.5)
    assert beside("Das geht.", split=True) == ("de", [["Das", "geht", "."]])
    assert beside._is_here


def test_an_answer_nobody_waited_for_is_not_taken_for_the_next(on_two_cores: None) -> None:
    beside = _beside("en")
    assert beside("Wait.", split=False)[1] == [["Wait", "."]]

    def interrupted(answer: bytes) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as ctrl_c, pytest.raises(KeyboardInterrupt):
        ctrl_c.setattr(json, "loads", interrupted)
        beside("The first.", split=False)
    assert beside._child.poll() is not None
    assert beside("The second.", split=False)[1] == [["The", "second", "."]]


@pytest.mark.parametrize("asked", ["Old men. Go.", "Another. One."])
def test_a_text_that_is_expected_may_come_or_not(on_two_cores: None, asked: str) -> None:
    beside, here = _beside("en"), Splitter("en")
    for splitter in (beside, here):
        splitter.expect("Old men. Go.")
    for text in (asked, "The next."):
        assert beside(text, split=True) == here(text, split=True)
    assert not beside._is_here


def test_of_two_texts_that_are_expected_each_gets_its_own_answer(on_two_cores: None) -> None:
    beside, here = _beside("en"), Splitter("en")
    for text in ("Old men.", "Young women.", "Old men."):
        beside.expect(text)
    for text in ("Old men.", "Young women.", "The end."):
        assert beside(text, split=True) == here(text, split=True)
    assert not beside._is_here


def test_a_process_that_has_ended_expects_nothing(on_two_cores: None) -> None:
    beside = _beside("en")
    _killed(beside)
    beside.expect("Old men. Go.")
    assert beside("Old men. Go.", split=True) == ("en", [["Old", "men", "."], ["Go", "."]])


def test_its_process_ends_with_the_splitter(on_two_cores: pytest.MonkeyPatch) -> None:
    beside = _beside("en")
    child = beside._child
    assert child.poll() is None
    del beside
    splitter_beside.cache_clear()
    assert child.poll() is not None


@pytest.mark.parametrize("why", ["one core", "spaCy is here already", "another program"])
def test_where_a_process_beside_is_of_no_use(on_two_cores: pytest.MonkeyPatch, why: str) -> None:
    on_two_cores.delitem(sys.modules, "spacy", raising=False)
    if why == "one core":
        on_two_cores.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    elif why == "another program":
        on_two_cores.setattr(sys, "executable", "/usr/bin/qgis")
    else:
        on_two_cores.setitem(sys.modules, "spacy", sys)
    assert type(splitter_beside("en")) is Splitter
