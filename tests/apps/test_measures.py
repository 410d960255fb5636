"""``attree measures`` on treebanks and on bulk output, and what is read back of its tables."""

from __future__ import annotations

import csv
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attree.apps.measures import write_measures
from attree.apps.reading import Reading
from attree.base.schemas import SENTENCES_SCHEMA, write_table
from attree.bulk.options import RowSettings
from attree.bulk.output import Rows, Statistics, make_folders, write_shard
from attree.cli.main import app
from attree.decoding.fixed import fixed_trees
from attree.trees.trees import Trees
from tests.command_line import CliRunner
from tests.refusals import refused

ROOT = Path(__file__).parents[2]
TABLES = ("words", "sentences", "phrases")


def run(*arguments: object, ok: bool = True) -> str:
    done = CliRunner().invoke(app, ["measures", *map(str, arguments)])
    assert (done.exit_code == 0) == ok, done.output
    return str(done.exception) if done.exception else done.output


def read(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every table, after comparing Parquet with text."""
    found = {}
    for name in TABLES:
        rows = pq.read_table(folder / f"{name}.parquet").to_pylist()
        with (folder / f"{name}.tsv").open(encoding="utf-8", newline="") as handle:
            texts = list(csv.DictReader(handle, delimiter="\t"))
        assert len(rows) == len(texts)
        for row, text in zip(rows, texts, strict=True):
            assert list(row) == list(text)
            for key, value in row.items():
                if isinstance(value, float):
                    assert float(text[key]) == pytest.approx(value, rel=1e-5)
                elif key not in ("text", "file"):
                    assert text[key] == ("" if value is None else str(value))
        found[name] = rows
    return found


def test_a_treebank(tmp_path: Path) -> None:
    treebank = ROOT / "workflow/resources/treebanks/english/test.mrg"
    said = run(treebank, "--output", tmp_path)
    found = read(tmp_path)
    assert said.startswith("50 sentences; 769 words; ")
    first = [row for row in found["words"] if row["sentence"] == 0]
    assert " ".join(row["text"] for row in first).startswith("Sales of electric bicycles")
    assert [row["word"] for row in first] == list(range(23))
    assert [first[0][k] for k in ("top_down", "bottom_up", "left_corner", "depth")] == [3, 1, 2, 3]
    assert {row["status"] for row in found["words"]} == {"ok"}
    nodes = sum(row["nodes"] for row in found["sentences"])
    assert nodes == sum(row["count"] for row in found["phrases"])
    for name in ("top_down", "bottom_up", "left_corner"):
        assert sum(row[name] for row in found["words"]) == nodes


def test_a_table_gives_what_its_treebank_gives(tmp_path: Path) -> None:
    treebank = ROOT / "workflow/resources/treebanks/english/test.mrg"
    table = tmp_path / "table.parquet"
    arguments = ["treebank", str(treebank), "--output", str(table), "--punctuation", "keep"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    run(treebank, "--output", tmp_path / "a")
    run(table, "--output", tmp_path / "b")
    assert read(tmp_path / "a") == read(tmp_path / "b")
    run(treebank, "--output", tmp_path / "plain", "--plain")
    plain = read(tmp_path / "plain")
    assert sum(row["nodes"] for row in plain["sentences"]) < sum(
        row["nodes"] for row in read(tmp_path / "a")["sentences"]
    )


def bulk(folder: Path, numbers: range, *, labelled: bool = False) -> None:
    """Write shards as ``attree parse`` does, of every kind of row."""
    make_folders(folder, RowSettings())
    for number in numbers:
        words = [["a", '"', "cat\u00a0s"], [], ["one"], ["x"] * 4]
        trees = fixed_trees("right_branching", [len(one) for one in words])
        if labelled:
            trees = trees.labelled(["NP"] * trees.starts.size)
        rows = Rows(["t.txt"] * 4, [1, 2, 3, 3], [0, 0, 0, 1],
                    ["ok", "empty", "ok", "too_long"], words, trees)  # fmt: skip
        write_shard(folder, number, rows, Statistics(), RowSettings())


def test_bulk_output_with_every_row(tmp_path: Path) -> None:
    bulk(tmp_path / "out", range(12))
    assert run(tmp_path / "out", "--output", tmp_path / "m").startswith(
        "48 sentences; 96 words; 0 "
    )
    found = read(tmp_path / "m")
    sentences = found["sentences"][:4]
    assert [row["status"] for row in sentences] == ["ok", "empty", "ok", "too_long"]
    assert [row["words"] for row in sentences] == [3, 0, 1, 4]
    assert [row["nodes"] for row in sentences] == [2, 0, 0, 3]
    assert [row["mean_phrase_length"] for row in sentences] == [2.5, None, None, 3.0]
    assert [row["right_branching"] for row in sentences] == [1.0, None, None, 1.0]
    assert [row["text"] for row in found["words"][:4]] == ["a", '"', "cat\u00a0s", "one"]
    assert [row["top_down"] for row in found["words"][:8]] == [1, 1, 0, 0, 1, 1, 1, 0]
    assert {(row["line"], row["sentence"]) for row in found["words"]} == {(1, 0), (3, 0), (3, 1)}


def test_bulk_output_with_labels(tmp_path: Path) -> None:
    bulk(tmp_path / "out", range(1), labelled=True)
    run(tmp_path / "out", "--output", tmp_path / "m")
    phrases = read(tmp_path / "m")["phrases"]
    assert [(row["label"], row["count"], row["mean_length"]) for row in phrases] == [
        ("NP", 2, 2.5),
        ("NP", 3, 3.0),
    ]


def test_words_that_end_cells_and_rows(tmp_path: Path) -> None:
    words = ["a\tb", "c\nd", 'say "x"', "\r", "NA", "-LRB-", "<b>", "\x1b[31m"]
    row = {"sentence": 0, "file": "a\tb.mrg", "line": 1, "words": words, "tags": ["X"] * 8,
           "starts": [0], "ends": [8], "labels": ["S\t"]}  # fmt: skip
    table = pa.Table.from_pylist([row], schema=SENTENCES_SCHEMA)
    write_table(tmp_path / "t.parquet", table, schema=SENTENCES_SCHEMA, metadata={})
    run(tmp_path / "t.parquet", "--output", tmp_path / "m")
    assert [row["text"] for row in pq.read_table(tmp_path / "m/words.parquet").to_pylist()] == words
    text = (tmp_path / "m/words.tsv").read_text(encoding="utf-8")
    assert len(text.split("\n")) == 1 + 8 + 1 and "\r" not in text
    assert all(line.count("\t") == 9 for line in text.split("\n")[:-1])
    with (tmp_path / "m/words.tsv").open(newline="") as handle:
        cells = [row["text"] for row in csv.DictReader(handle, delimiter="\t")]
    assert cells == ["a\\tb", "c\\nd", 'say "x"', "\\r", *words[4:]]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("gone.mrg", None, "missing-file gone.mrg"),
        ("empty.mrg", "", "no-sentences"),
        ("x.zzz", "(S (A a))", "unknown-format --format"),
    ],
)
def test_bad_input_is_one_line(
    name: str, content: str | None, problem: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with refused(*problem.split()):
        write_measures(Reading().all([tmp_path / name]), tmp_path / "m")
    assert not (tmp_path / "m").exists() or not list((tmp_path / "m").iterdir())


def test_a_folder_that_is_none_of_bulk_parsing(tmp_path: Path) -> None:
    assert "no treebank is in this folder" in run(tmp_path, "--output", tmp_path / "m", ok=False)


def test_measures_with_a_damaged_table_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "t.mrg").write_text("(S (A a) (B b))\n")
    run(tmp_path / "t.mrg", "--output", tmp_path / "m")
    table = tmp_path / "m/words.parquet"
    whole = table.read_bytes()
    table.write_bytes(whole.replace(b"top_down", b"top\xfddown"))
    run(tmp_path / "t.mrg", "--output", tmp_path / "m", "--overwrite")
    assert table.read_bytes() == whole


def test_measures_in_a_folder_with_a_colon_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which pyarrow takes for an address, where the path is relative."""
    monkeypatch.chdir(tmp_path)
    Path("t.mrg").write_text("(S (A a) (B b))\n")
    for more in ((), ("--overwrite",)):
        run("t.mrg", "--output", "at:noon/m", *more)
    assert Path("at:noon/m/words.parquet").is_file()


def test_a_bad_tree_costs_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.mrg").write_text("(S (A a) (B b))\n(S (A a (B\n\n(S (A c) (B d))\n")
    said = run(tmp_path / "t.mrg", "--output", tmp_path / "m")
    assert " sentences, 1 not read; " in said
    assert json.dumps(read(tmp_path / "m")["words"]).count('"text"') >= 2


def test_trees_that_are_known_in_part_are_not_measured(tmp_path: Path) -> None:
    (tmp_path / "t.half").write_text("(S (A a) (B b))\n(? the old man) walked\n")
    said = CliRunner().invoke(
        app, ["measures", str(tmp_path / "t.half"), "--output", str(tmp_path / "m")]
    )
    assert "only some of this tree is known" in said.output + str(said.exception)


def test_memory_stays_flat(tmp_path: Path) -> None:
    def peak(shards: int) -> int:
        bulk(tmp_path / f"{shards}", range(shards))
        tracemalloc.start()
        write_measures(Reading().all([tmp_path / f"{shards}"]), tmp_path / "m")
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(3)
    assert peak(120) < 1.5 * peak(12)


def test_trees_of_shards_are_those_of_rows(tmp_path: Path) -> None:
    from attree.bulk.output import read_shards, read_trees

    bulk(tmp_path, range(3))
    rows = list(read_trees(tmp_path))
    trees = Trees.concatenate([rows.trees for rows in read_shards(tmp_path)])
    assert [list(trees.of(i).spans) for i in range(12)] == [row["spans"] for row in rows]
    assert trees.n_words.tolist() == [len(row["words"]) for row in rows]
