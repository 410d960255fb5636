"""``attree treebank`` as people and the workflow call it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from attree.base.schemas import REJECTED, SENTENCES_SCHEMA, read_table
from attree.treebank.formats import together

TREE = "( (S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .)))\n"


def test_output_and_rejected(attree, tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text(TREE + "(S (A a)\n" + TREE)
    done = attree(
        "a.mrg", "--output", "o.parquet", "--rejected", "r.parquet",
        "--language", "english", "--split-name", "dev", "--accept-loss", "0.4",
    )  # fmt: skip
    assert done.status == 0
    assert done.out == ""
    assert "a.mrg:2: 1 bracket is not closed" in done.err
    assert "english dev: 2 read, 0 skipped, 1 failed, 0 emptied" in done.err
    table, metadata = read_table(tmp_path / "o.parquet", schema=SENTENCES_SCHEMA)
    assert table["words"].to_pylist() == [["the", "dog", "barks"]] * 2
    assert table["line"].to_pylist() == [1, 3]
    assert metadata["counts"] == {"read": 2, "skipped": 0, "failed": 1, "emptied": 0, "left_out": 0}
    assert [metadata[key] for key in ("language", "split", "format", "punctuation", "derived")] == [
        "english", "dev", "ptb", "ptb", "constituency",
    ]  # fmt: skip
    rejected, same = read_table(tmp_path / "r.parquet", schema=REJECTED)
    assert rejected["status"].to_pylist() == ["failed"]
    assert same == metadata


def test_check(attree, tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text(TREE * 3 + "(S (. .))\n(S (A a)\n")
    done = attree("a.mrg", "--check")
    assert done.status == 0
    assert all(len(line) <= 80 for line in done.out.splitlines())
    for expected in [
        "3 read, 0 skipped, 1 failed, 1 emptied",
        "3 words, a.mrg:1",
        "2 sentences",  # repeated
        "NP 3",
        "emptied    a.mrg:4: no word is left by punctuation policy ptb",
        "failed     a.mrg:5: 1 bracket is not closed",
    ]:
        assert expected in done.out
    assert not list(tmp_path.glob("*.parquet"))


def test_check_of_a_language(attree, tmp_path: Path) -> None:
    for split in ("train", "test"):
        file = tmp_path / f"treebanks/klingon/{split}.ptb"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(TREE)
    done = attree("--language", "klingon", "--check")
    assert "klingon train" in done.out
    assert "klingon test" in done.out
    done = attree(
        "--language", "klingon", "--split-name", "test", "--check", "--punctuation", "ptb"
    )
    assert "klingon train" not in done.out
    assert "1 more removed as punctuation" in done.out
    done = attree("--language", "klingon", "--output", "x.parquet")
    assert "add --split" in str(done.status)
    done = attree("--language", "klingonn", "--check")
    assert "did you mean klingon?" in str(done.status)


def test_check_of_a_folder(attree, tmp_path: Path) -> None:
    for name in ("mine/a.mrg", "mine/b.mrg", "mine/c.ptb", "mine/more/test.ptb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(TREE)
    (tmp_path / "mine/README").write_text("my trees")
    done = attree("mine", "--check")
    assert done.status == 0
    titles = [line for line in done.out.splitlines() if not line.startswith(" ")]
    assert titles == ["mine/*.mrg", "mine/*.ptb", "mine/more"]
    assert "mine: not in any format that their names or contents tell: README\n" in done.err
    assert "mine/*.mrg: 2 read" in done.err
    # a treebank that cannot be read costs no other
    (tmp_path / "mine/more/test.ptb").write_text("(S (A a)")
    done = attree("mine", "--check")
    assert "1 of 3 treebanks could not be read" in str(done.status)
    assert "mine/*.ptb: 1 read" in done.err
    assert "error: mine/more/test.ptb:1: no sentence could be read" in done.err


def test_check_of_the_folder_of_a_language(attree, tmp_path: Path) -> None:
    (tmp_path / "klingon").mkdir()
    (tmp_path / "klingon/language.yaml").write_text("punctuation: drop:DT\n")
    for split in ("train", "test"):
        (tmp_path / f"klingon/{split}.mrg").write_text(TREE)
    done = attree("klingon", "--check")
    assert "klingon train\n  settings   format ptb, utf-8, punctuation drop:DT" in done.out
    assert "klingon test" in done.out


def test_tags_that_would_leave_punctuation_out(attree, tmp_path: Path) -> None:
    (tmp_path / "a.ptb").write_text(TREE * 3)
    assert "(punctuation: ptb)" in attree("a.ptb", "--check").out
    (tmp_path / "b.ptb").write_text(TREE.replace("DT", "Art").replace("NN", "Subst"))
    assert "(punctuation: ptb)" not in attree("b.ptb", "--check").out


@pytest.mark.parametrize(
    ("content", "arguments", "problem"),
    [
        (None, ["absent.mrg", "--check"], "absent.mrg: no such file"),
        (None, ["absent", "--check"], "absent: no such file"),
        (b"", ["a.mrg", "--check"], "a.mrg:1: no sentence could be read"),
        (b"plain text\nand more", ["a.mrg", "--check"], "no sentence could be read"),
        (b"(S (. .))", ["a.mrg", "--output", "o.parquet"], "no sentence could be read"),
        (b"(A a)", ["a.mrg", "--check", "--format", "xml"], "is not one of its values"),
        (b"(A a)", ["a.mrg", "--check", "--encoding", "x-8"], "it takes the name of an encoding"),
        (b"(A a)", ["a.mrg", "--check", "--punctuation", "no"], "it takes auto, keep"),
        (b"(A a)", ["a.mrg", "--check", "--first", "0"], "--first"),
        (b"(A a)", ["a.mrg", "--check", "--part", "3/2"], "it takes a part such as 1/5"),
        (b"(A a)", ["a.mrg"], "add --output FILE, or --check"),
        (b"(A a)", ["--check"], "no files are given"),
        (b"(A a)", ["a.mrg", "--exclude", "*.mrg", "--check"], "every file is excluded"),
        (b"(A a)", ["a.txt", "--check"], "a.txt: no such file"),
        (None, [".", "--output", "o.parquet"], "no treebank is in this folder — name its files"),
        (None, [".", "--check"], "no treebank is in this folder"),
        (b"(A a)", [".", "a.mrg", "--check"], "a folder is checked whole, by itself"),
        (b"(A a)", [".", "--check", "--exclude", "*.mrg"], "a folder is checked whole, by itself"),
        (b"(A a)", [".", "--check", "--split-name", "x"], "a folder is checked whole, by itself"),
        ("(A a)".encode("utf-16"), ["a.mrg", "--check"], "UTF-16 — set encoding: utf-16"),
        (("(S (A a))" * 9).encode("utf-16-be"), ["a.mrg", "--check"], "utf-16-le or utf-16-be"),
        (
            gzip.compress(b"(S (A a))", mtime=0),
            ["a.mrg", "--check"],
            "this file is compressed — unpack it",
        ),
        (b"# x\n", ["convert", "a.mrg", "--output", "o.mrg"], "a.mrg:1: no sentence could be read"),
    ],
)
def test_one_line_and_a_failure(
    attree, tmp_path: Path, content: bytes | None, arguments: list[str], problem: str
) -> None:
    if content is not None:
        (tmp_path / "a.mrg").write_bytes(content)
    done = attree(*arguments)
    assert str(done.status).startswith("attree: error: ")
    assert problem in str(done.status)
    assert "\n" not in str(done.status)
    assert not (tmp_path / "o.parquet").exists()


def test_a_file_of_two_names_is_read_once(attree, tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text(TREE)
    (tmp_path / "b.mrg").symlink_to("a.mrg")
    files = ["a.mrg", str(tmp_path / "a.mrg"), "b.mrg", "a.mrg"]
    assert "1 read" in attree(*files, "--check").out
    attree("convert", *files, "--output", "o.mrg")
    assert (tmp_path / "o.mrg").read_text().count("\n") == TREE.count("\n")
    assert len(together(*(tmp_path / name for name in files))) == 1


def test_a_converted_table_says_what_was_removed_from_its_sentences(attree, tmp_path: Path) -> None:
    """Else it counts as one with all words, and is cleaned by another policy once more."""
    (tmp_path / "a.mrg").write_text(TREE)
    attree("a.mrg", "--punctuation", "ptb", "--output", "a.parquet")
    attree("convert", "a.parquet", "--output", "b.parquet")
    assert read_table(tmp_path / "b.parquet", schema=SENTENCES_SCHEMA)[1]["punctuation"] == "ptb"
    assert attree("convert", "a.mrg", "b.parquet", "--output", "c.parquet").status != 0
    assert not (tmp_path / "c.parquet").exists()


def test_a_file_is_excluded_by_any_of_its_names(attree, tmp_path: Path) -> None:
    for name in ("a.mrg", "b.mrg"):
        (tmp_path / name).write_text(f"(S (A {name[0]}) (B c))")
    (tmp_path / "link").symlink_to("a.mrg")
    for excluded in ("a.mrg", str(tmp_path / "a.mrg"), "./a.mrg", "link"):
        for files in (["a.mrg", "b.mrg"], [str(tmp_path / "*.mrg")]):
            said = attree(*files, "--exclude", excluded, "--check").out
            assert "b.mrg:1\n" in said and "a.mrg:1" not in said, (excluded, files)


def test_bytes_of_all_kinds(attree, tmp_path: Path) -> None:
    """A byte-order mark, CRLF, NUL, a bad byte, an emoji: nothing costs another sentence."""
    lines = [
        b"\xef\xbb\xbf(S (NN one))",
        b"(S (NN t\x00wo))",
        b"(S (NN caf\xe9))",
        "(S (NN 👍🏽))".encode(),
        "(S (NN \u200f\u05d0\u200e))".encode(),
        b"(S (NN " + b"x" * 5000 + b"))",
        b"",
        b"(S (NN last))",
    ]
    (tmp_path / "a.mrg").write_bytes(b"\r\n".join(lines) + b"\r\n")
    done = attree("a.mrg", "--output", "o.parquet", "--rejected", "r.parquet", "--accept-loss", "1")
    assert "a.mrg:3: byte 0xE9 is not utf-8 — set encoding: latin-1" in done.err
    table, _ = read_table(tmp_path / "o.parquet")
    words = [one[0] for one in table["words"].to_pylist()]
    assert words == ["one", "t\x00wo", "👍🏽", "\u200f\u05d0\u200e", "x" * 5000, "last"]
    assert table["line"].to_pylist() == [1, 2, 4, 5, 6, 8]
    done = attree("a.mrg", "--output", "o.parquet", "--encoding", "latin-1", "--overwrite")
    assert "7 read, 0 skipped, 0 failed" in done.err


def test_old_line_ends(attree, tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_bytes(b"(S (NN a))\r(S (NN b)\r(S (NN c))\r")
    done = attree("a.mrg", "--check")
    assert "a.mrg:2: 1 bracket" in done.out


def test_an_empty_file_among_others(attree, tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text(TREE)
    (tmp_path / "b.mrg").write_text("\n")
    done = attree("*.mrg", "--check")
    assert done.status == 0
    assert "b.mrg:1: the file is empty" in done.out


def test_wrong_settings_are_suspected(attree, tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text("(S (NPP Gutenberg) (NC x) (NN ok))\n")
    done = attree("a.mrg", "--check", "--punctuation", "ptb")
    assert "warning: punctuation policy ptb removed 67% of the words" in done.err
    assert "removed 67% of the words" in " ".join(done.out.split())
    (tmp_path / "a.mrg").write_bytes(b"(S (NN \xe9))\n" * 3 + b"(S (NN e))\n")
    done = attree("a.mrg", "--check")
    assert "warning: 1 of 4 sentences read; mostly: byte 0xE9 is not utf-8" in done.err
    assert "(encoding: latin-1)" in done.err


def test_many_rejected_sentences_do_not_flood_the_log(attree, tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text(TREE + "(S (A a)\n" * 100 + TREE * 200)
    done = attree("a.mrg", "--output", "o.parquet", "--accept-loss", "0.5")
    assert len(done.err.splitlines()) == 23


def test_nothing_is_left_when_writing_fails(attree, tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text(TREE)
    (tmp_path / "folder.parquet").mkdir()
    done = attree("a.mrg", "--output", "folder.parquet")
    assert "folder.parquet" in str(done.status)
    assert not list(tmp_path.glob("**/*.part"))
