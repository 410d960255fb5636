"""Raw text → sentences: bad lines cost themselves, places are told, nothing is shown twice."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest

from attree.annotate.text import (
    OriginalSentence,
    are_treebanks,
    text_sentences,
    trees_to_correct,
)
from attree.base.errors import AttreeError
from attree.raw_text.inputs import find_inputs
from attree.raw_text.words import code_of, tokeniser
from attree.trees.tree import Tree
from tests.annotate.conftest import Begin
from tests.refusals import refused


def sentences(
    *paths: Path, name: str = "whitespace", done: Collection[tuple[str, ...]] = ()
) -> tuple[list[OriginalSentence], Counter[str]]:
    passed: Counter[str] = Counter()
    split = tokeniser(name, split=name != "whitespace")
    found = text_sentences(find_inputs(paths)[0], split, done, passed, max_words=10)
    return list(found), passed


def test_places_and_what_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    lines = [
        b"\xef\xbb\xbfa b",
        b"",
        b"one",
        b"\xff\xfe bad",
        b"a b",
        b"c d" * 9,
        b"e\x00 f",
        b"g h\r",
    ]
    path.write_bytes(b"\n".join(lines) + b"\n" + b"x " * 99)
    found, passed = sentences(path)
    assert [(one.line, one.words) for one in found] == [
        (1, ("a", "b")), (6, ("c", *["dc"] * 8, "d")), (8, ("g", "h")),
    ]  # fmt: skip
    assert passed == {
        "one word": 1, "undecodable": 1, "repeated": 1, "control": 1, "too_long": 1,
    }  # fmt: skip


def test_several_texts_are_one_and_several_treebanks_too(tmp_path: Path) -> None:
    for name, content in (("a.txt", "a b\nc d\n"), ("b.txt", "c d\ne f\n")):
        (tmp_path / name).write_text(content)
    found, _ = sentences(tmp_path / "a.txt", tmp_path / "b.txt")
    places = [(one.file, one.line, " ".join(one.words)) for one in found]
    assert places == [("a.txt", 1, "a b"), ("a.txt", 2, "c d"), ("b.txt", 2, "e f")]
    trees = [tmp_path / "a.mrg", tmp_path / "b.export"]
    trees[0].write_text("(S (A a) (B b))\n")
    trees[1].write_text(
        "#BOS 1\nc\tC\t--\t--\t500\nd\tD\t--\t--\t500\n#500\tS\t--\t--\t0\n#EOS 1\n"
    )
    assert are_treebanks(trees)
    assert [one.words for one in trees_to_correct(trees, (), Counter())] == [("a", "b"), ("c", "d")]
    with refused("treebank-among-texts", file="a.mrg"):
        are_treebanks([tmp_path / "a.txt", trees[0]])


@pytest.mark.parametrize("number", ["10 000", "10\u00a0000", "10\u2009000"])
def test_what_was_saved_without_white_space_is_not_shown_again(tmp_path: Path, number: str) -> None:
    path, words = tmp_path / "a.conllu", (number, "mice")
    rows = [f"{n}\t{word}\t_\tX\t_\t_\t{2 - 2 * (n > 1)}\tdep\t_\t_\n"
            for n, word in enumerate(words, start=1)]  # fmt: skip
    path.write_text("".join(rows), encoding="utf-8")
    (tmp_path / "saved.ptb").write_text(Tree(words, ((0, 2),), ("S",)).brackets())
    (saved,) = trees_to_correct([tmp_path / "saved.ptb"], set(), Counter())
    assert saved.words == ("10_000", "mice")
    for done, shown in ((set(), [words]), ({saved.words}, []), ({words}, [])):  # skipped as it is
        assert [one.words for one in trees_to_correct([path], done, Counter())] == shown


def test_what_was_saved_is_not_shown_again_with_its_escapes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("-LRB- either\\/or -RRB-\nnew words\n")
    (first, second), _ = sentences(tmp_path / "a.txt")
    (tmp_path / "saved.ptb").write_text(Tree(first.words, ((0, 3),), ("S",)).brackets())
    (saved,) = trees_to_correct([tmp_path / "saved.ptb"], (), Counter())
    assert saved.words == ("(", "either/or", ")")
    for done in (saved.words, first.words):  # saved, or skipped as it is
        assert sentences(tmp_path / "a.txt", done={done})[0] == [second]


def test_lines_are_split_by_the_language_and_read_compressed(tmp_path: Path) -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed")
    path = tmp_path / "text.txt.gz"
    path.write_bytes(gzip.compress("Hún fór heim. Ég kom seint!\n".encode()))
    found, _ = sentences(path, name=code_of("Icelandic"))
    assert [(one.line, " ".join(one.words)) for one in found] == [
        (1, "Hún fór heim ."),
        (1, "Ég kom seint !"),
    ]


def test_a_language_is_named_or_given_by_its_code() -> None:
    assert [code_of(name) for name in ("icelandic", "is", "xx")] == ["is", "is", "xx"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "this text has no sentence"),
        ("\n  \n", "this text has no sentence"),
        ("one\ntwo\n", "no sentence of this text can be annotated: 2 one word"),
        ("a " * 50 + "\n", "1 too long — give one sentence a line, or a higher --max-words"),
        ("(S (NP (D the) (N cat)) (VP (V ran)))\n", "this is trees in brackets, not text"),
    ],
)
def test_a_text_without_a_sentence_is_one_line(
    session_of: Begin, text: Path, tmp_path: Path, content: str, said: str
) -> None:
    text.write_text(content, encoding="utf-8")
    with pytest.raises(AttreeError) as error, session_of(max_words=20):
        pass
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "bank").exists()


def test_sentences_too_long_for_the_encoder_are_passed_over(session_of: Begin, text: Path) -> None:
    text.write_text("cat " * 900 + "\nthe cat ran\n", encoding="utf-8")
    with session_of(max_words=1000) as session:
        assert session.shown.source.words == ("the", "cat", "ran")
        assert session.state()["passed"] == {"too_long": 1}
