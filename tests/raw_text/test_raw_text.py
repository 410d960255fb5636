"""Raw text in every form, and each way in which it can be bad."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pyarrow as pa
import pytest

from attree.base.schemas import SENTENCES_SCHEMA, write_table
from attree.raw_text.lines import measure, read_texts, text_files
from tests.refusals import refused

DAMAGED = "unreadable"
LINES = ["l' arrivée surprend", "שלום עולם", "the end"]


def table(path: Path) -> None:
    empty: dict[str, list[list[str]]] = {name: [[]] * 3 for name in SENTENCES_SCHEMA.names}
    columns = {
        **empty,
        "sentence": [0, 1, 2],
        "file": ["f"] * 3,
        "line": [1, 2, 3],
        "words": [line.split() for line in LINES],
    }
    write_table(path, pa.table(columns), schema=SENTENCES_SCHEMA, metadata={})


def test_every_form_gives_the_same_lines_and_hash(tmp_path: Path) -> None:
    text = "\r\n".join([LINES[0], "", "  ", *LINES[1:]])
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (tmp_path / "b.txt.xz").write_bytes(lzma.compress(text.encode()))
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(text.encode()))
    table(tmp_path / "d.parquet")
    files = text_files([tmp_path])
    assert len(files) == 4
    assert all(list(read_texts([file])) == LINES for file in files)
    found = measure(files[:1])
    assert all(measure([file]) == found for file in files)
    assert (found["lines"], found["characters"]) == (3, sum(map(len, LINES)))
    assert measure(files[:2])["hash"] != found["hash"]


def test_a_folder_is_all_its_text_but_not_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "more" / "b.txt").write_text("two")
    (tmp_path / "LICENSE.x.txt").write_text("do what you like")
    (tmp_path / "README.md").write_text("three")
    assert list(read_texts(text_files([tmp_path]))) == ["one", "two"]


def test_a_treebank_is_no_text_to_learn_from(tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text("( (S (NP (DT the) (NN cat)) (VP (VBD slept))) )\n")
    with refused("not-text", file="a.mrg"):
        text_files([tmp_path / "a.mrg"])


def test_lines_that_are_no_text_are_passed_over_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\nb\x07ll\n" + b"x" * (2**20 + 1) + b"\ntwo\n")
    assert measure(text_files([tmp_path]))["lines"] == 2
    said = capsys.readouterr().err
    assert "1 lines of the text are passed over: control" in said and "too_long" in said


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("latin.txt", b"fine\ncaf\xe9\n", "encoding latin.txt:2"),
        ("cut.txt.xz", lzma.compress(b"a line\n" * 999)[:-20], DAMAGED),
        ("cut.txt.gz", gzip.compress(b"a line\n" * 999)[:-9], DAMAGED),
        ("none.txt.xz", b"not xz at all", DAMAGED),
        ("empty.txt", b" \n\n", "no-text"),
        ("cut.parquet", b"PAR1", "unreadable-table cut.parquet"),
    ],
    ids=["latin-1", "cut xz", "cut gz", "no xz", "empty", "cut Parquet"],
)
def test_bad_files_are_named(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    (tmp_path / name).write_bytes(content)
    with refused(*problem.split()):
        measure(text_files([tmp_path / name]))


def test_text_that_is_not_there(tmp_path: Path) -> None:
    with refused("missing-file", file="gone.txt"):
        text_files([tmp_path / "gone.txt"])
    with refused("no-inputs"):
        text_files([tmp_path])
