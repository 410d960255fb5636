"""The best trees of trained parsers, and their probabilities, by enumeration."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attree import Parser
from attree.cli.main import app
from attree.training.parser import TrainedChart
from attree.training.recipes import RECIPES
from attree.trees.constraints import Constraints
from tests.command_line import CliRunner
from tests.refusals import refused
from tests.training import reference
from tests.training.test_chart import chart, weights
from tests.training.test_labels import example

SEEDS = {"seed": st.integers(0, 10_000), "n": st.integers(2, 6)}


@settings(max_examples=40)
@given(**SEEDS, k=st.integers(1, 60), parser=st.sampled_from(["tree-crf", "tree-crf-full"]))
def test_trees_scores_and_probabilities(seed: int, n: int, k: int, parser: str):
    one = chart(seed, n, parser)
    those = list(reference.trees(0, n))
    likely = dict(zip(those, weights(one, those), strict=True))
    value = one.scores.span[0].numpy()
    if parser == "tree-crf-full":
        value = one.marginals(Constraints())
    words = sum(value[place, place + 1] for place in range(n)) if parser == "tree-crf" else 0.0
    totals = {tree: words + sum(value[span] for span in tree - {(0, n)}) for tree in those}
    found = one.best(k)
    trees = [frozenset(found.trees.of(place).spans) for place in range(len(found.trees))]
    assert len(trees) == len(set(trees)) == min(k, len(those))
    best = sorted(totals.values(), reverse=True)[:k]
    np.testing.assert_allclose(found.scores, best, atol=1e-9)
    np.testing.assert_allclose([totals[tree] for tree in trees], best, atol=1e-9)
    np.testing.assert_allclose(found.probabilities, [likely[tree] for tree in trees], atol=1e-9)
    if k >= len(those):
        assert sum(found.probabilities) == pytest.approx(1.0)
    assert found.trees.of(0).spans == one.trees(Constraints()).of(0).spans


def test_parsers_without_a_distribution_have_no_probabilities() -> None:
    scores = replace(example(0, 5), labels=None, label_names=())
    assert TrainedChart(scores, RECIPES["fpio"]).best(3).probabilities is None
    with refused("no-whole-trees"):
        TrainedChart(scores, RECIPES["fpoa"]).best(3)


def train(folder: Path, parser: str, encoder: Path, treebank: Path) -> str:
    arguments = ["train", "--sentences", treebank, "--encoder", encoder, "--trees", 5, "--steps",
                 3, "--parser", parser, "--output", folder, "--device", "cpu"]  # fmt: skip
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return str(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, resolved: Path, treebank: Path) -> str:
    return train(tmp_path_factory.mktemp("t") / "parser", "tree-crf-full", resolved, treebank)


def test_labelled_trees_by_parser_and_command(
    resolved: Path, treebank: Path, tmp_path: Path
) -> None:
    folder = train(tmp_path / "parser", "tree-crf-labelled", resolved, treebank)
    parser = Parser.load(folder, device="cpu")
    words = ["the", "old", "man", "lived", "near"]
    found = parser.k_best(words, 50)
    assert found[0].tree == parser.parse([words])[0]
    assert len({one.tree.brackets() for one in found}) == 50
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert 0 < sum(one.probability for one in found) <= 1
    for one in found:
        assert one.tree.labels and one.tree.marginals and one.tree.spans[0] == (0, 5)
    run = ["try", " ".join(words), "--parser", folder, "--best", "3", "--brackets"]
    lines = CliRunner().invoke(app, run).stdout.strip().split("\n")
    assert [line.split("\t")[0] for line in lines] == [one.tree.brackets() for one in found[:3]]
    ((tree, score, probability),) = parser.k_best("cat", 5)
    assert (tree, score, probability) == (parser.parse(["cat"])[0], None, None)


def test_parser_and_command(folder: str) -> None:
    parser = Parser.load(folder, device="cpu")
    words = ["the", "old", "man", "lived", "near"]
    found = parser.k_best(words, 100)
    assert len(found) == 14
    assert found[0].tree == parser.parse([words])[0]
    assert sum(one.probability for one in found) == pytest.approx(1.0)
    for sentence in ("", "cat", ["cat"] * 80):
        ((tree, score, probability),) = parser.k_best(sentence, 5)
        assert (tree, score, probability) == (parser.parse([sentence])[0], None, None)
    with refused("bad-count", "0"):
        parser.k_best(words, 0)
    run = ["try", " ".join(words), "--parser", folder, "--best", "3"]
    shown = CliRunner().invoke(app, run).stdout
    assert shown.startswith(f"1, score {found[0].score:.4f}, probability ")
    assert shown.count(", probability ") == 3
    lines = CliRunner().invoke(app, [*run, "--json"]).stdout.strip().split("\n")
    rows = [json.loads(line) for line in lines]
    assert [row["rank"] for row in rows] == [1, 2, 3]
    assert [row["probability"] for row in rows] == [one.probability for one in found[:3]]
    lines = CliRunner().invoke(app, [*run, "--brackets"]).stdout.strip().split("\n")
    assert [line.split("\t")[0] for line in lines] == [one.tree.brackets() for one in found[:3]]
