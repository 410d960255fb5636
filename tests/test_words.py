from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from attree.errors import AttreeError
from attree.words import _CODES, Line, choose, tokeniser, tokeniser_beside


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


@pytest.fixture
def on_two_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A process with no tokeniser beside it yet."""
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'attree[corpus]'")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    tokeniser_beside.cache_clear()
    yield monkeypatch
    tokeniser_beside.cache_clear()


#: More than a pipe holds, a text beyond the bounds, nothing, words, and JSON's own marks.
_TEXTS: list[Line] = [
    "Don't, 他说" + " and more" * 9_000, "=" * 1000, "", ["a b", " "], '"\\'
]  # fmt: skip


def _beside(language: str) -> Any:
    with pytest.MonkeyPatch.context() as as_if:
        as_if.delitem(sys.modules, "spacy", raising=False)  # not imported yet
        found = tokeniser_beside(language)
    assert found is not None
    return found


def test_texts_are_split_beside_as_they_are_here(on_two_cores: pytest.MonkeyPatch) -> None:
    beside = _beside("en")
    found = [beside(_TEXTS), beside(["And again."])]
    assert beside._here is None  # nothing was split here
    here = tokeniser("en", split=False)
    assert found == [here(_TEXTS), here(["And again."])]
    assert found[0][1] is None
    assert tokeniser_beside("en") is beside


def _killed(beside: Any) -> None:
    beside._child.kill()
    beside._child.wait()


def _forked(beside: Any) -> None:
    beside._owner = 0


@pytest.mark.parametrize("fault", [_killed, _forked])
@pytest.mark.parametrize("after", [0, 1])
def test_texts_are_split_here_when_nobody_splits_them_beside(
    on_two_cores: pytest.MonkeyPatch, fault: Callable[[Any], None], after: int
) -> None:
    beside = _beside("de")
    for _ in range(after):
        assert beside(["Geht es?"]) == [[["Geht", "es", "?"]]]
    fault(beside)
    assert beside(["Das geht."]) == [[["Das", "geht", "."]]]
    assert beside._here is not None


def test_an_unknown_language_is_refused_as_it_is_here(on_two_cores: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttreeError, match="no tokeniser for 'no-such'"):
        _beside("no-such")(["x"])


def test_an_answer_nobody_waited_for_is_not_taken_for_the_next(
    on_two_cores: None,
) -> None:
    beside = _beside("en")
    assert beside(["Wait."]) == [[["Wait", "."]]]

    def interrupted(answer: bytes) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as ctrl_c, pytest.raises(KeyboardInterrupt):
        ctrl_c.setattr(json, "loads", interrupted)
        beside(["The first."])
    assert beside._child.poll() is not None
    assert beside(["The second."]) == [[["The", "second", "."]]]


def test_its_process_ends_with_the_tokeniser(on_two_cores: pytest.MonkeyPatch) -> None:
    beside = _beside("en")
    child = beside._child
    assert child.poll() is None
    del beside
    tokeniser_beside.cache_clear()
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
    assert tokeniser_beside("en") is None
