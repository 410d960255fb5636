"""Marginals of spans: from the parser to bulk output; how far they can be believed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from attree import Constraints, Parser, Trees
from attree.base.schemas import read_table
from attree.bulk.output import read_trees
from attree.encoder.source import ResolvedEncoder
from attree.training.calibration import TEMPERATURES, Confidence
from attree.training.fit import fit
from attree.training.parser import gold_trees
from attree.training.parts import BatchSource
from attree.training.recipes import RECIPES, TrainingPlan
from tests.command_line import python
from tests.training import reference
from tests.training.conftest import read, run, train_into

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


@pytest.fixture(scope="module")
def judged(encoder, treebank):
    """A parser, sentences of up to seven words that it has not seen, and its confidence."""
    table, _ = read_table(treebank)
    parser = fit(
        encoder,
        read(treebank, range(20)),
        TrainingPlan(RECIPES["tree-crf-full"], layers=(2,), steps=60, batch=20),
    )
    lengths = np.array([len(words) for words in table["words"].to_pylist()])
    there = np.flatnonzero((lengths < 8) & (np.arange(40) >= 20))
    trees = read(treebank, there.tolist())
    source = BatchSource.of(encoder, trees.words, parser.scorer)
    gold = gold_trees(trees.gold)
    halves = np.array_split(np.arange(len(there)), 2)
    batches = [(source.batch(one.tolist()), gold.take(one)) for one in halves]
    return parser, batches, Confidence(parser, batches)


@pytest.mark.parametrize("temperature", [1.0, 0.5, 3.0])
def test_probabilities_are_those_of_all_trees_under_a_temperature(judged, temperature: float):
    parser, batches, confidence = judged
    expected, right = [], []
    for batch, gold in batches:
        scores, trees = parser.span_scores(batch), parser.trees(batch)
        for place, n in enumerate(trees.n_words.tolist()):
            table = scores.span[place].numpy() / temperature
            likely = reference.marginals(table, n) if n > 1 else None
            inside = slice(trees.offsets[place], trees.offsets[place + 1])
            known = slice(gold.offsets[place], gold.offsets[place + 1])
            true = set(zip(gold.starts[known], gold.ends[known], strict=True))
            for span in zip(trees.starts[inside], trees.ends[inside], strict=True):
                if span != (0, n) and span[1] - span[0] > 1:
                    expected.append(likely[span])
                    right.append(span in true)
    assert len(expected) > 20 and 0 < sum(right) < len(right)
    np.testing.assert_allclose(confidence.likely(temperature), expected, atol=1e-9)
    assert confidence.right.tolist() == right


def test_the_error_is_that_of_ten_bins(judged):
    _, _, confidence = judged
    likely, right = confidence.likely(), confidence.right
    naive = 0.0
    for low in np.arange(10) / 10:
        own = [
            (p, r)
            for p, r in zip(likely, right, strict=True)
            if low <= p < low + 0.1 or (low == 0.9 and p == 1)
        ]
        if own:
            p, r = np.mean(own, axis=0)
            naive += len(own) / len(likely) * abs(p - r)
    assert confidence.error() == pytest.approx(naive)
    assert sum(one.spans for one in confidence.bins()) == len(likely)


def test_the_temperature_is_the_one_under_which_the_answers_are_most_likely(judged):
    parser, batches, confidence = judged

    def loss(temperature: float) -> float:
        p = confidence.likely(temperature)
        return -np.log(np.where(confidence.right, p, 1 - p)).sum()

    best = confidence.temperature()
    assert loss(best) == min(map(loss, TEMPERATURES))
    # sure of everything and often wrong: the temperature must rise
    hot = Confidence(parser, batches)
    hot._scored = [
        (type(scores)(scores.table, scores.span * 3, scores.n_words), trees, part)
        for scores, trees, part in confidence._scored
    ]
    assert hot.temperature() == pytest.approx(3 * best, abs=0.35) or hot.temperature() == 5.0


def test_no_spans_are_no_error(judged):
    parser, _, _ = judged
    empty = Confidence(parser, [])
    assert empty.error() == 0.0 and empty.bins() == []
