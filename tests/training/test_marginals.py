"""Marginals of spans: from the parser to bulk output."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from attree import Constraints, Parser, Trees
from attree.bulk.output import read_trees
from attree.encoder.source import ResolvedEncoder
from tests.command_line import python
from tests.training.conftest import run, train_into

WORDS = [["the", "old", "man"], ["cat"], [], ["a", "cat", "chased", "mice", "home"], ["rain"] * 90]


@pytest.fixture(scope="module", params=["tree-crf", "tree-crf-full", "tree-crf-labelled"])
def folder(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    resolved: Path,
    treebank: Path,
) -> Path:
    output = tmp_path_factory.mktemp("trained") / "parser"
    train_into(output, treebank, resolved, "--parser", request.param)
    return output


def test_trees_have_the_marginals_of_the_chart(folder: Path) -> None:
    parser = Parser.load(str(folder), device="cpu")
    for tree in parser.parse(WORDS):
        if tree.status != "ok":
            assert tree.marginals is None
            continue
        assert len(tree.marginals) == len(tree.spans)
        if len(tree.words) < 2:
            continue
        chart = parser.chart(tree.words)
        table = chart.marginals()
        wanted = [table[span] for span in tree.spans]
        np.testing.assert_allclose(tree.marginals, wanted, atol=1e-6)
        assert tree.marginals[0] == 1.0
        np.testing.assert_allclose(chart.tree().marginals, wanted, atol=1e-6)
        # of a span that is known, the others' follow
        known = Constraints(required=((0, 2, None),))
        given = chart.tree(known)
        table = chart.marginals(known)
        np.testing.assert_allclose(given.marginals, [table[s] for s in given.spans], atol=1e-6)


def test_bulk_output_has_them_on_request(folder: Path, resolved: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(" ".join(words) + "\n" for words in WORDS))
    options = ("--parser", folder, "--device", "cpu", "--threads", 1, "--dtype", "float32",
               "--tokenizer", "whitespace")  # fmt: skip
    run("parse", lines, *options, "--output", tmp_path / "without")
    run("parse", lines, *options, "--output", tmp_path / "with", "--marginals")
    rows = list(read_trees(tmp_path / "with"))
    plain = list(read_trees(tmp_path / "without"))
    assert [row for row in plain if "marginals" in row] == []
    trees = Parser.load(str(folder), device="cpu", dtype="float32").parse(WORDS)
    for row, other, tree in zip(rows, plain, trees, strict=True):
        found = row.pop("marginals")
        assert row == other
        if row["status"] != "ok":
            assert found is None
        else:
            np.testing.assert_allclose(found, tree.marginals or (), atol=1e-6)
    shard = pq.read_schema(tmp_path / "with/trees/shard-00000.parquet")
    assert str(shard.field("marginals").type) == "list<element: float not null>"


def test_shown_as_json(folder: Path) -> None:
    shown = json.loads(run("try", "the old man", "--parser", folder, "--json").output)
    assert len(shown["marginals"]) == len(shown["spans"]) and shown["marginals"][0] == 1.0


@pytest.mark.parametrize("text", ["the old man ? " * 40, "*", "[the] {old,man}", "the/old\0man"])
def test_a_text_is_no_file_name(folder: Path, text: str) -> None:
    options = ("--tokenizer", "whitespace", "--json")
    shown = run("try", text, "--parser", folder, *options).stdout
    assert json.loads(shown)["words"] == text.split()


def test_the_picture_is_of_the_first_sentence_and_that_is_told(
    folder: Path, tmp_path: Path
) -> None:
    mine, picture = tmp_path / "mine.half", tmp_path / "a.svg"
    mine.write_text("( (? the cat) sat )\n( (? old men) left )\n")
    shown = run("try", "--constraints", mine, "--parser", folder, "--svg", picture)
    assert ">cat<" in picture.read_text() and ">men<" not in picture.read_text()
    assert str(picture) in shown.stderr


def test_the_first_sentences_load_neither_numba_nor_pyarrow(folder: Path) -> None:
    code = (
        "import sys; from attree.cli.main import app; app(sys.argv[1:]);"
        "print(sorted({'numba', 'pyarrow'} & set(sys.modules)))"
    )
    asked = ["the old man left", "--parser", folder, "--tokenizer", "whitespace", "--json"]
    done = python(code, "try", *asked)
    assert done.stdout.endswith("}\n[]\n"), done.stderr
    many = python(code, "try", "-", *asked[1:], given="the old man left\n" * 11)
    assert many.stdout.count("\n") == 12 and "numba" in many.stdout, many.stderr


def test_parsers_without_a_distribution_are_refused(resolved: Path, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a cat\n")
    encoder = ResolvedEncoder.read(resolved)
    done = run("parse", tmp_path / "t.txt", "--encoder", encoder.folder, "--heads", "list:0.1",
               "--output", tmp_path / "out", "--marginals", ok=False)  # fmt: skip
    said = "--marginals needs --output, and a parser with a distribution over trees"
    assert said in str(done.exception)
    assert not (tmp_path / "out").exists()
    parser = Parser.load("upio", encoder=encoder.folder, heads="list:0.1", device="cpu")
    assert parser.parse([["a", "cat"]])[0].marginals is None


def test_numbers_of_spans_follow_their_spans() -> None:
    def made(value: float | None) -> Trees:
        chances = None if value is None else np.array([1.0, value])
        return Trees.binary([3], np.array([0, 1]), np.array([3, 3]), marginals=chances)

    both = Trees.concatenate([made(0.25), made(0.75)])
    assert both.take([1, 0]).marginals.tolist() == [1.0, 0.75, 1.0, 0.25]
    assert both.keep(both.marginals < 0.5).marginals.tolist() == [0.25]
    assert both.of(1).marginals == (1.0, 0.75)
    assert Trees.concatenate([made(0.25), made(None)]).marginals is None
    assert made(np.nan).of(0).marginals is None
    with pytest.raises(ValueError, match="2 spans need as many marginals"):
        Trees.binary([3], np.array([0, 1]), np.array([3, 3]), marginals=np.ones(1))
