"""``attree evaluate --test FILE.tsv``: phrases that any analysis has, spans that none has."""

from __future__ import annotations

from pathlib import Path

import pytest

from attree.apps.systems import HEADER, read
from tests.apps.conftest import evaluate as run
from tests.apps.conftest import write
from tests.refusals import refused

ROWS = ["tr\tKedi fareyi kovaladı .\t\t0-2", "en\tThe cat chased the mouse .\t0-2 2-5\t1-3 0-4"]
TREES = [
    "(S (X (N Kedi) (N fareyi)) (V kovaladı) (P .))",
    "(S (NP (D The) (N cat)) (VP (V chased) (NP (D the) (N mouse))) (P .))",
]


def table(path: Path, *rows: str) -> Path:
    path.write_text("".join(f"{row}\n" for row in (HEADER, *rows)), encoding="utf-8")
    return path


def test_sentences_and_spans_are_counted_and_what_is_wrong_is_listed(tmp_path: Path) -> None:
    simple = table(tmp_path / "simple.tsv", *ROWS)
    mine = write(tmp_path / "mine.mrg", TREES)
    flat = write(tmp_path / "flat.mrg", ["(S (N Kedi) (N fareyi) (V kovaladı) (P .))"])
    done = run("--test", simple, "--parser", f"{mine},{flat}", "--accept-loss", "0.5")
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "en 1 of 1 0 of 2 0 of 1 0 of 2" in rows
    assert "tr 0 of 1 1 of 1 1 of 1 0 of 1" in rows
    assert "all 1 of 2 1 of 3 1 of 2 0 of 3" in rows
    assert rows[-2:] == [
        f"mine.mrg: {simple}:2: impossible: [Kedi fareyi]",
        f"flat.mrg: {simple}:3: no phrase: [The cat chased the mouse .]",
    ]


def test_a_phrase_that_is_missing_makes_a_sentence_wrong(tmp_path: Path) -> None:
    simple = table(tmp_path / "simple.tsv", ROWS[1])
    flat = "(S (NP (D The) (N cat)) (V chased) (D the) (N mouse) (P .))"
    done = run("--test", simple, "--parser", write(tmp_path / "flat.mrg", [flat]))
    line = done.stdout.splitlines()[-1]
    assert line == f"flat.mrg: {simple}:2: no phrase: [chased the mouse]"


@pytest.mark.parametrize("given", [0, 1])
def test_a_sentence_without_a_tree_is_not_right(tmp_path: Path, given: int) -> None:
    """Whether phrases are asked of it, or only that an impossible span is not drawn."""
    simple = table(tmp_path / "simple.tsv", *ROWS)
    right = ["(S (N Kedi) (VP (N fareyi) (V kovaladı)) (P .))", TREES[1]]
    mine = write(tmp_path / "mine.mrg", [right[given]])
    done = run("--test", simple, "--parser", mine, "--accept-loss", "0.5")
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    (whole,) = (row for row in rows if row.startswith("all "))
    assert whole == "all 1 of 2 0 of 3"
    assert rows[-1].startswith(f"mine.mrg: {simple}:{3 - given}: ")


def test_missing_trees_are_an_error_unless_accepted(tmp_path: Path) -> None:
    simple = table(tmp_path / "simple.tsv", *ROWS)
    mine = write(tmp_path / "mine.mrg", TREES[1:])
    for accepted in ([], ["--accept-loss", "0.4"]):
        with refused("missing-trees", "mine.mrg", "1", "2", "--accept-loss", "0.5"):
            run("--test", simple, "--parser", mine, *accepted)


@pytest.mark.parametrize(
    ("option", "value"), [("--worst", "3"), ("--max-words", "3"), ("--punctuation", "ptb")]
)
def test_options_for_treebanks_are_refused(tmp_path: Path, option: str, value: str) -> None:
    simple = table(tmp_path / "simple.tsv", *ROWS)
    mine = write(tmp_path / "mine.mrg", TREES)
    with refused("option-without-effect", option):
        run("--test", simple, "--parser", mine, option, value)


def test_the_spans_of_a_table_are_read(tmp_path: Path) -> None:
    (first, second) = read(table(tmp_path / "simple.tsv", *ROWS))
    assert (first.line, first.phrases, first.impossible) == (2, (), ((0, 2),))
    assert (second.phrases, second.impossible) == (((0, 2), (2, 5)), ((1, 3), (0, 4)))


def test_only_ends_of_lines_end_a_row(tmp_path: Path) -> None:
    rows = ["en\ta b\u2028c\t0-2\t", "en\td e f\x85\t\t0-2"]
    simple = table(tmp_path / "simple.tsv", *rows)
    simple.write_bytes(simple.read_bytes().replace(b"\n", b"\r\n"))
    found = [(one.line, one.words) for one in read(simple)]
    assert found == [(2, ("a", "b\u2028c")), (3, ("d", "e", "f\x85"))]


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("en\ta b c\t0-4\t", "span-outside"),
        ("en\ta b c\t\t1-9", "span-outside"),
        ("en\ta b c\t0-2\t0-2", "contradiction"),
        ("en\ta b c\t0-2 1-3\t", "crossing-spans"),
        ("en\ta b c\t\t0-3", "whole-sentence"),
        ("en\ta b c\t2-1\t", "not-a-span"),
        ("en\ta b c\t0-1\t", "not-a-span"),
        ("en\ta b c\t0:2\t", "not-a-span"),
        ("en\ta b c\t0-2 \t", "not-a-span"),
        ("en\ta b  c\t0-2\t", "bad-words"),
        ("en\ta b c\t0-2", "other-columns"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, row: str, code: str) -> None:
    simple = table(tmp_path / "simple.tsv", ROWS[0], row)
    with refused(code, file="simple.tsv", line=3):
        run("--test", simple, "--parser", write(tmp_path / "mine.mrg", TREES))


def test_another_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.tsv").write_text("a\tb\n")
    with refused("other-table", file="other.tsv", line=1):
        read(tmp_path / "other.tsv")
    with refused("no-sentences", file="empty.tsv"):
        read(table(tmp_path / "empty.tsv"))
