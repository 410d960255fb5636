"""Bulk parsing of sentences of whose trees a part is known."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from attree.bulk.output import read_trees
from attree.raw_text.inputs import find_inputs
from attree.raw_text.lines import parse_lines, refuse_treebanks
from attree.treebank.brackets import bracketed
from attree.treebank.half import constraints_of, read_line
from attree.treebank.pairing import read_whole
from attree.treebank.sentence import SplitSettings
from attree.trees.constraints import UNKNOWN, Constraints
from tests.bulk.conftest import Parse, tree_bytes
from tests.bulk.test_trained import run
from tests.parsers.test_parse_under_constraints import keeps
from tests.refusals import refused
from tests.training.conftest import resolved, treebank

__all__ = ["resolved", "treebank"]  # fixtures

#: line → its status
LINES = {
    b"( (NP the old man) walked (? to (! town yesterday)) )": "ok",
    b"the old man walked home": "ok",
    b"": "empty",
    b"# a comment": "empty",
    b"( (NP (! the old man)) sat)": "contradictory",
    b"( (! the old man sat))": "contradictory",
    b"( (NP the old": "malformed",
    b"(NP the old) (NP man)": "malformed",
    b"she ( twice ) sat": "malformed",
    b"( (NP the \xff cat) sat)": "undecodable",
    b"( (NP the \x00 cat) sat)": "control",
    b"( (NP " + b"cat " * 70 + b") sat)": "too_long",
    b"(= (S (NP the cat) (VP sat (ADVP now))))\r": "ok",
    b"( (NP cat))": "ok",
}


def half_lines(sentences: int, *, of: Sequence[str]) -> tuple[list[str], list[Constraints | None]]:
    """Partly bracketed lines of random words, nine in ten of which say nothing."""
    generator = np.random.default_rng(1)
    lines, each = [], []
    for number in range(sentences):
        words = generator.choice(of, generator.integers(2, 12)).tolist()
        if number % 10:
            lines.append(" ".join(words))
        else:
            end = int(generator.integers(2, len(words) + 1))
            lines.append(f"( (NP {' '.join(words[:end])}) {' '.join(words[end:])})")
        each.append(None if number % 10 else Constraints(((0, end, "NP"),)))
    return lines, each


def test_every_line_has_its_row_and_every_bad_one_its_status(parse: Parse, tmp_path: Path) -> None:
    path = tmp_path / "mine.half"
    path.write_bytes(b"\xef\xbb\xbf" + b"\n".join(LINES) + b"\n")
    ran = parse.ok(path, tmp_path / "out", "--too-long", "right_branching", "--to", "brackets")
    rows = list(read_trees(tmp_path / "out"))
    assert [row["status"] for row in rows] == list(LINES.values())
    assert [row["line"] for row in rows] == list(range(1, len(LINES) + 1))
    first, whole, long = rows[0], rows[12], rows[11]
    assert first["words"] == ["the", "old", "man", "walked", "to", "town", "yesterday"]
    assert {(0, 3), (4, 7)} <= set(first["spans"]) and (5, 7) not in first["spans"]
    assert whole["spans"] == [(0, 4), (0, 2), (2, 4)]
    assert len(long["words"]) == 71 and (0, 70) in long["spans"]
    assert "line 5: 'the old man' is both required and forbidden — undo one of the two" in ran.out
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["status"]["contradictory"] == 2 and summary["lines"] == len(LINES)


def test_sentences_of_which_nothing_is_known_are_parsed_as_text_is(
    parse: Parse, tmp_path: Path
) -> None:
    lines, each = half_lines(120, of=["the", "old", "man", "cat", "walked", "home"])
    (tmp_path / "a.half").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "a.txt").write_text("".join(f"{' '.join(words_of(line))}\n" for line in lines))
    for kind in ("half", "txt"):
        parse.ok(tmp_path / f"a.{kind}", tmp_path / kind, "--shard-lines", "50")
    rows = [list(read_trees(tmp_path / kind)) for kind in ("half", "txt")]
    changed = 0
    for one, here, there in zip(each, *rows, strict=True):
        assert here["words"] == there["words"]
        if one is None:
            assert {**here, "file": ""} == {**there, "file": ""}
        else:
            assert {(start, end) for start, end, _ in one.required} <= set(here["spans"])
            changed += here["spans"] != there["spans"]
    assert changed > 3


def words_of(line: str) -> list[str]:
    return list(read_line(line).words)


def test_workers_compression_and_a_second_run_change_nothing(parse: Parse, tmp_path: Path) -> None:
    lines, _ = half_lines(90, of=["the", "old", "man", "cat"])
    text = "".join(f"{line}\n" for line in lines).encode()
    for folder, name, content in (("a", "x.half", text), ("b", "x.half.gz", gzip.compress(text))):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(content)
    options = ("--shard-lines", "20", "--to", "brackets")
    parse.ok(tmp_path / "a/x.half", tmp_path / "one", *options)
    first = tree_bytes(tmp_path / "one")
    parse.ok(tmp_path / "a/x.half", tmp_path / "two", *options, "--workers", "2")
    assert tree_bytes(tmp_path / "two") == first
    shutil.rmtree(tmp_path / "two/trees")
    parse.ok(tmp_path / "a/x.half", tmp_path / "two", *options)
    assert tree_bytes(tmp_path / "two") == first
    parse.ok(tmp_path / "b/x.half.gz", tmp_path / "three", *options)
    texts = [tmp_path / folder / "brackets/shard-00002.txt" for folder in ("one", "three")]
    assert texts[0].read_text() == texts[1].read_text()


@pytest.fixture(scope="module")
def real(data: Path) -> list[tuple[list[str], str, Constraints]]:
    """Words, partly bracketed line and what it says, of real sentences in three languages."""
    files = ["en_wsj_sample/wsj_0003.mrg", "fr_sequoia/sequoia.mrg", "he_htb/hebrew_script.ptb"]
    generator, found = np.random.default_rng(0), []
    for file in files:
        how = SplitSettings(format="spmrl" if file.startswith("fr") else None)
        for one in islice(read_whole([data / "constituency" / file], how, print), 50):
            chosen = [span for span in one.spans if generator.random() < 0.4]
            marked = [(i, j, x if generator.random() < 0.7 else UNKNOWN) for i, j, x in chosen]
            known_of = {(i, j): x for i, j, x in marked}
            marked = [(i, j, known_of[i, j]) for i, j in known_of]
            line = f"({bracketed(one.words, ['X'] * len(one.words), marked)})"
            found.append((list(one.words), line, constraints_of(read_line(line))))
    return found


@pytest.mark.parametrize("recipe", ["upio", "tree-crf-full", "tree-crf-labelled"])
def test_on_real_sentences_all_that_is_given_comes_back(
    recipe: str, real, resolved: Path, treebank: Path, tmp_path: Path
) -> None:
    model: tuple[object, ...] = ("--parser", "upio", "--heads", "list:0.1,1.2")
    if recipe != "upio":
        run("train", "--sentences", treebank, "--encoder", resolved, "--parser", recipe,
            "--trees", 8, "--steps", 2, "--output", tmp_path / "parser",
            "--device", "cpu")  # fmt: skip
        model = ("--parser", tmp_path / "parser")
    (tmp_path / "real.half").write_text("".join(f"{line}\n" for _, line, _ in real))
    run("parse", tmp_path / "real.half", *model, "--encoder", resolved, "--device", "cpu",
        "--output", tmp_path / "out", "--to", "brackets")  # fmt: skip
    written = (tmp_path / "out/brackets/shard-00000.txt").read_text().splitlines()
    labels = recipe == "tree-crf-labelled"
    rows = list(read_trees(tmp_path / "out"))
    assert len(written) == len(rows) == len(real) > 90
    statuses = [row["status"] for row in rows]
    assert statuses.count("ok") > 20 and set(statuses) <= {"ok", "too_long"}
    for (words, _, one), row, line in zip(real, rows, written, strict=True):
        assert row["words"] == words
        if labels:  # read back as any treebank reader has it
            back = read_line(line)
            spans = {(start, end) for start, end, _ in back.spans}
            assert set(one.chains()) <= spans | {(0, len(words))}
        shown = _Tree(row["spans"], row.get("labels"))
        assert keeps(shown, one, labels=labels)


class _Tree:
    """Spans and labels of a row."""

    def __init__(self, spans: list[tuple[int, int]], labels: list[str] | None) -> None:
        self.spans, self.labels = spans, labels


def test_apply_keeps_what_is_known_if_it_is_asked_to(
    resolved: Path, treebank: Path, tmp_path: Path
) -> None:
    run("train", "--sentences", treebank, "--encoder", resolved, "--parser", "tree-crf-full",
        "--trees", 8, "--steps", 2, "--output", tmp_path / "parser", "--device", "cpu")  # fmt: skip
    mine = tmp_path / "mine.half"
    mine.write_text("( (? cat mice) (! rain home) old )\n(= (S (NP old cat) (VP chased rain)))\n")
    options = ("--parser", tmp_path / "parser", "--encoder", resolved, "--device", "cpu")
    run("apply", mine, *options, "--keep-known", "--output", tmp_path / "kept.parquet")
    first, second = pq.read_table(tmp_path / "kept.parquet").to_pylist()
    spans = list(zip(first["starts"], first["ends"], strict=True))
    assert (0, 2) in spans and (2, 4) not in spans
    assert list(zip(second["starts"], second["ends"], strict=True)) == [(0, 4), (0, 2), (2, 4)]
    with pytest.raises(AssertionError):
        run("apply", mine, *options, "--output", tmp_path / "free.parquet")
    assert not (tmp_path / "free.parquet").exists()


def test_lines_say_what_is_known_and_why_they_are_bad() -> None:
    payload = b"\n".join(LINES) + b"\n"
    read = parse_lines(payload, kind="half", column="text", first=True)
    found = [one.constraints for one in read]
    assert read[1].text == ["the", "old", "man", "walked", "home"] and not found[1]
    assert found[0] == Constraints(((0, 3, "NP"), (4, 7, None)), ((5, 7),))
    assert found[4:11] == [None] * 7
    told = [one.reason for one in read]
    assert [number for number, reason in enumerate(told, 1) if reason] == [5, 6, 7, 8, 9]
    told = [reason for reason in told if reason]
    assert "not closed" in told[2] and "not one tree" in told[3]


@pytest.mark.parametrize(
    ("text", "partly_bracketed"),
    [
        ("( (NP the old man) walked )\nthe cat\n", True),
        ("# mine\n\n(? the old man)\n", True),
        ("(= the (NP old man))\r\n", True),
        ("(laughs)\nHe sat.\n", False),
        ("(He said (twice))\n", False),
        ("He said ( (NP x) )\n", False),
    ],
)
def test_partly_bracketed_trees_under_the_name_of_text(
    text: str, partly_bracketed: bool, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text(text, newline="")
    files, _ = find_inputs([tmp_path / "a.txt"])
    if not partly_bracketed:
        refuse_treebanks(files)
        return
    with refused("not-text", file="a.txt"):
        refuse_treebanks(files)
