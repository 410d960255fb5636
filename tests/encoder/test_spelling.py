"""Spelling of what an encoder reads: each script's line, and what must not change."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.encoder.pieces import plain


@pytest.mark.parametrize(
    ("word", "read"),
    [
        ("ἄνθρωπος", "άνθρωπος"),
        ("θεοῦ", "θεού"),
        ("τὸν", "τον"),
        ("ὁ", "ο"),
        ("ψυχῇ", "ψυχή"),
        ("πραΰς", "πραΰς"),
        ("Ἀθῆναι", "Αθήναι"),
        ("άνθρωπος", "άνθρωπος"),
        ("פו", "פו"),
        ("בְּרֵאשִׁית", "בראשית"),
        ("שָׁלוֹם", "שלום"),
        ("קאַפּאָטע", "קאַפּאָטע"),
        ("ייִדיש", "ייִדיש"),
        ("كِتَابٌ", "كتاب"),
        ("كتـــاب", "كتاب"),
        ("جدًا", "جدًا"),
        ("ـ", "ـ"),
        ("Straße", "Straße"),
        ("việt", "việt"),
    ],
)
def test_a_word_is_read_without_marks_that_most_text_lacks(word: str, read: str) -> None:
    assert plain(word) == read


@given(st.text(min_size=1))
def test_nothing_becomes_empty_and_a_second_time_changes_nothing(word: str) -> None:
    once = plain(word)
    assert once and plain(once) == once


@given(st.text(st.characters(max_codepoint=0x2FF), min_size=1))
def test_latin_text_is_unchanged(word: str) -> None:
    assert plain(word) == word


def test_decomposed_greek_is_the_same() -> None:
    assert plain(unicodedata.normalize("NFD", "ἄνθρωπος")) == "άνθρωπος"
