"""Punctuation policies, pruning and filters."""

from __future__ import annotations

import pytest

from attree.treebank.cleaning import (
    PTB_TAGS,
    CleaningCounts,
    clean,
    is_punctuation,
    parts,
    policy,
    prepare,
)
from attree.treebank.sentence import Rejected, Sentence, SplitSettings
from tests.refusals import refused

QUOTED = Sentence(
    ("``", "go", "''", "(", "!", ")", "."),
    ("``", "VB", "''", "-LRB-", ".", "-RRB-", "."),
    ((0, 7, "S"), (0, 3, "VP"), (1, 2, "VP"), (3, 6, "PRN"), (4, 5, "X")),
    "f",
    3,
)


def test_ptb_keeps_exactly_the_tags_of_words() -> None:
    assert len(PTB_TAGS - {"ADD", "AFX", "GW", "XX"}) == 36
    assert not PTB_TAGS & {"$", "#", ",", ".", ":", "``", "''", "-LRB-", "-RRB-", "-NONE-"}


def test_ptb_keeps_the_words_of_later_treebanks() -> None:
    tags = ("GW", "HYPH", "ADD", "AFX", "NFP", "XX")
    cleaned = clean(Sentence(tags, tags, ((0, 6, "S"),), "f", 1), policy("ptb"))
    assert cleaned is not None and cleaned.words == ("GW", "ADD", "AFX", "XX")


def test_emptied_phrases_are_pruned() -> None:
    cleaned = clean(QUOTED, policy("ptb"))
    assert cleaned == Sentence(("go",), ("VB",), ((0, 1, "S"), (0, 1, "VP"), (0, 1, "VP")), "f", 3)


def test_keep_keeps_the_same_sentence() -> None:
    assert clean(QUOTED, policy("keep")) is QUOTED
    assert clean(cleaned := Sentence(("a",), ("NN",), (), "f", 1), policy("ptb")) is cleaned


def test_drop_takes_tags_with_commas() -> None:
    sentence = Sentence(("ja", ",", "."), ("ITJ", "$,", "$."), ((0, 3, "S"),), "f", 1)
    assert clean(sentence, policy("drop:$, $.")) == Sentence(
        ("ja",), ("ITJ",), ((0, 1, "S"),), "f", 1
    )


@pytest.mark.parametrize(
    ("word", "is_mark"),
    [("...", True), ("«", True), ("-LRB-", False), ("(", True), ("。", True), ("״", True),
     ("l'", False), ("$", False), ("%", True), ("3.5", False), ("…»", True)],
)  # fmt: skip
def test_unicode_punctuation(word: str, is_mark: bool) -> None:
    assert is_punctuation(word) == is_mark


@pytest.mark.parametrize("name", ["", "drop", "drop:", "ptb:x", "none", "Keep"])
def test_unknown_policy(name: str) -> None:
    with refused("unknown-policy", "policy"):
        policy(name)


def test_parts_share_every_sentence_out_once() -> None:
    items = [Sentence(("w",) * n, ("NN",) * n, ((0, n, "S"),), "f", n) for n in range(1, 14)]

    def lines(part: str, **more: int) -> list[int]:
        settings = SplitSettings(format="ptb", punctuation="keep", max_words=12, part=part, **more)
        done = prepare(items, settings, CleaningCounts())
        return [item.line for item in done if isinstance(item, Sentence)]

    assert lines("2/5") == [2, 7, 12]  # the longest is not dealt
    assert sorted(lines("1/5") + lines("2-5/5")) == lines("1/1") == list(range(1, 13))
    assert lines("2/5", first=2) == [2, 7]


@pytest.mark.parametrize("part", ["0/5", "6/5", "4-3/5", "1/0", "1", "a/b", "1/5 ", "-1/5", ""])
def test_what_is_no_part_is_refused(part: str) -> None:
    with refused("bad-part"):
        parts(part)


def test_filters_count_everything() -> None:
    def sentence(n: int, line: int) -> Sentence:
        return Sentence(("w",) * n + (".",), ("NN",) * n + (".",), ((0, n + 1, "S"),), "f", line)

    items = [sentence(n, line) for line, n in enumerate([3, 0, 5, 2, 1, 4, 1], start=1)]
    items.insert(2, Rejected("f", 9, "broken", "failed"))
    counts = CleaningCounts()
    settings = SplitSettings(format="ptb", punctuation="ptb", max_words=3, first=2)
    done = list(prepare(items, settings, counts))
    assert [item.line for item in done if isinstance(item, Sentence)] == [1, 4]
    assert counts.as_dict() == {"read": 2, "skipped": 4, "failed": 1, "emptied": 1}
    assert (counts.total, counts.words, counts.words_removed) == (8, 5, 7)
    reasons = [item.reason for item in done if isinstance(item, Rejected)]
    assert reasons[0] == "no word is left by punctuation policy ptb"
    assert "5 words, more than max_words: 3" in reasons
    assert reasons[-1] == "after the first: 2"
