"""Raw text in every form, and each way in which it can be bad."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pyarrow as pa
import pytest

from attree.encoder.mlm.data import by_language, measure, one_corpus
from attree.errors import AttreeError
from attree.schemas import SENTENCES, write_table

LINES = ["l' arrivée surprend", "שלום עולם", "the end"]


def table(path: Path) -> None:
    empty: dict[str, list[list[str]]] = {name: [[]] * 3 for name in SENTENCES.names}
    columns = {
        **empty,
        "sentence": [0, 1, 2],
        "file": ["f"] * 3,
        "line": [1, 2, 3],
        "words": [line.split() for line in LINES],
    }
    write_table(path, pa.table(columns), schema=SENTENCES, metadata={})


def test_every_form_gives_the_same_lines_and_hash(tmp_path: Path) -> None:
    text = "\r\n".join([LINES[0], "", "  ", *LINES[1:]])
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (tmp_path / "b.txt.xz").write_bytes(lzma.compress(text.encode()))
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(text.encode()))
    table(tmp_path / "d.parquet")
    corpora = [one_corpus("x", [path]) for path in sorted(tmp_path.iterdir())]
    assert len(corpora) == 4
    assert all(list(corpus.lines()) == LINES for corpus in corpora)
    assert len({measure(corpus).hash for corpus in corpora}) == 1
    assert measure(corpora[0]).lines == 3
    assert measure(corpora[0]).characters == sum(map(len, LINES))


def test_a_folder_is_all_its_text_but_not_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "more" / "b.txt").write_text("two")
    (tmp_path / "LICENSE.x.txt").write_text("do what you like")
    (tmp_path / "README.md").write_text("three")
    assert list(one_corpus("x", [tmp_path]).lines()) == ["one", "two"]


def test_languages_are_named_by_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "eu").mkdir()
    (tmp_path / "eu" / "one.txt").write_text("bat")
    (tmp_path / "eu" / "two.txt").write_text("bi")
    (tmp_path / "sv.txt").write_text("ett")
    (tmp_path / "LICENSE.txt").write_text("free")
    found = by_language([tmp_path])
    assert {corpus.name: list(corpus.lines()) for corpus in found} == {
        "eu": ["bat", "bi"],
        "sv": ["ett"],
    }
    assert [c.name for c in by_language([tmp_path / "sv.txt", tmp_path / "eu"])] == [
        "one",
        "sv",
        "two",
    ]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("latin.txt", b"fine\ncaf\xe9\n", r"latin\.txt:2: this text is not UTF-8"),
        ("cut.txt.xz", lzma.compress(b"a line\n" * 999)[:-20], "damaged or cut short"),
        ("cut.txt.gz", gzip.compress(b"a line\n" * 999)[:-9], "damaged or cut short"),
        ("none.txt.xz", b"not xz at all", "damaged or cut short"),
        ("empty.txt", b" \n\n", "this file has no text"),
        ("cut.parquet", b"PAR1", "not a whole Parquet file"),
    ],
    ids=["latin-1", "cut xz", "cut gz", "no xz", "empty", "cut Parquet"],
)
def test_bad_files_are_named(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(AttreeError, match=problem):
        measure(one_corpus("x", [tmp_path / name]))


def test_text_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AttreeError, match="does not exist"):
        one_corpus("x", [tmp_path / "gone.txt"])
    with pytest.raises(AttreeError, match="no text in this folder"):
        one_corpus("x", [tmp_path])
    with pytest.raises(AttreeError, match="no text here"):
        by_language([tmp_path])
