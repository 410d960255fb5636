from __future__ import annotations

import os
import re
import sys

import pytest

from attree.errors import AttreeError
from attree.words import _CODES, choose, split_ahead, tokeniser


def test_whitespace_takes_lines_of_words_as_they_are() -> None:
    split = tokeniser("whitespace", split=False)
    assert split(["a b\tc", "", ["d e", " ", "f"], "  "]) == [
        [["a", "b", "c"]],
        [[]],
        [["d e", "f"]],
        [[]],
    ]


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
    ],
)
def test_a_language_has_its_rules(language: str, text: str, words: str) -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'attree[corpus]'")
    assert tokeniser(language, split=False)([text, ""]) == [[words.split()], [[]]]


def test_lines_are_split_into_sentences() -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'attree[corpus]'")
    split = tokeniser("en", split=True)
    assert split(["The cat ran. It was late!  ", " ", ["kept", "whole", "."]]) == [
        [["The", "cat", "ran", "."], ["It", "was", "late", "!"]],
        [[]],
        [["kept", "whole", "."]],
    ]


@pytest.mark.parametrize("text", ["=" * 100_000, "a" * 1001, "_" * 200, "a b " * 30_000])
def test_a_text_beyond_the_bounds_is_refused_and_costs_no_other(text: str) -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'attree[corpus]'")
    split = tokeniser("en", split=True)
    assert split(["It ran.", text, "It sat."]) == [
        [["It", "ran", "."]],
        None,
        [["It", "sat", "."]],
    ]


def test_whitespace_cannot_split_into_sentences() -> None:
    with pytest.raises(AttreeError, match="name the language"):
        tokeniser("whitespace", split=True)


@pytest.mark.parametrize(
    ("given", "wanted", "says"),
    [
        ((None, None, ""), ("en", True), "words and sentences are split .* en, as no language"),
        ((None, None, "French"), ("fr", True), r"rules for fr, the parser's language \(French\)"),
        ((None, None, "mine"), ("en", True), "as no language is given"),
        (("de", None, "french"), ("de", True), "rules for de$"),
        (("de", False, ""), ("de", False), "^words are split"),
        (("whitespace", None, "french"), ("whitespace", False), "^$"),
    ],
)
def test_how_text_is_split_is_chosen_and_said(
    given: tuple[str | None, bool | None, str], wanted: tuple[str, bool], says: str
) -> None:
    *chosen, line = choose(*given)
    assert tuple(chosen) == wanted
    assert re.search(says, line)


def test_every_language_by_name_has_rules() -> None:
    spacy = pytest.importorskip("spacy")
    for code in _CODES.values():
        spacy.util.get_lang_class(code)


def test_a_sentence_is_split_ahead_as_it_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Don't, 他说" + " and more" * 9_000  # more than a pipe holds
    expected = tokeniser("en", split=False)([text])[0]
    monkeypatch.delitem(sys.modules, "spacy")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    waiting = [split_ahead(one, "en") for one in (text, "=" * 1000)]
    unknown = split_ahead("x", "no-such")
    assert expected and waiting[0]() == expected[0]
    assert waiting[1]() is None
    assert unknown() is None


def test_nothing_is_split_ahead_on_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "spacy", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert split_ahead("A sentence.", "en")() is None
