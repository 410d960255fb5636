"""The best trees of trained parsers, labelled or not, and their probabilities, by enumeration."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example as always
from hypothesis import given, settings
from hypothesis import strategies as st

from attree import Parser
from attree.training.label_trees import best_labelled, decode_labelled
from attree.training.parser import TrainedChart
from attree.training.recipes import RECIPES
from attree.training.scores import SpanScores
from attree.trees.constraints import Constraints
from attree.trees.trees import Trees
from tests.refusals import refused
from tests.training import reference
from tests.training.conftest import run, train_into
from tests.training.test_chart import chart, weights
from tests.training.test_labels import NAMES, _chains, example, gains

SEEDS = {"seed": st.integers(0, 10_000), "n": st.integers(2, 6)}
#: What settles between equal chains, 1e-9 a phrase, adds less than this to a small tree's gain.
TIES = 1e-8


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


@pytest.mark.parametrize("name", ["tree-crf-full", "tree-crf-labelled"])
def test_parser_and_command(name: str, resolved: Path, treebank: Path, tmp_path: Path) -> None:
    folder = str(tmp_path / "parser")
    train_into(tmp_path / "parser", treebank, resolved, "--parser", name)
    parser = Parser.load(folder, device="cpu")
    words = ["the", "old", "man", "lived", "near"]
    found = parser.k_best(words, 50)
    assert found[0].tree == parser.parse([words])[0]
    likely = sum(one.probability for one in found)
    assert len({one.tree.brackets() for one in found}) == len(found)
    if name == "tree-crf-full":
        assert len(found) == 14 and likely == pytest.approx(1.0)
    else:
        assert len(found) == 50 and 0 < likely <= 1
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        assert all(one.tree.labels and one.tree.spans[0] == (0, 5) for one in found)
    assert all(one.tree.marginals for one in found)
    for sentence in ("", "cat", ["cat"] * 80):
        ((tree, score, probability),) = parser.k_best(sentence, 5)
        assert (tree, score, probability) == (parser.parse([sentence])[0], None, None)
    with refused("bad-count", "0"):
        parser.k_best(words, 0)
    asked = ["try", " ".join(words), "--parser", folder, "--best", 3]
    shown = run(*asked).stdout
    assert shown.startswith(f"1, score {found[0].score:.4f}, probability ")
    assert shown.count(", probability ") == 3
    rows = [json.loads(line) for line in run(*asked, "--json").stdout.strip().split("\n")]
    assert [row["rank"] for row in rows] == [1, 2, 3]
    likely = [one.probability for one in found[:3]]
    assert [row["probability"] for row in rows] == pytest.approx(likely)
    lines = run(*asked, "--brackets").stdout.strip().split("\n")
    assert [line.split("\t")[0] for line in lines] == [one.tree.brackets() for one in found[:3]]


#: The number of the label of each phrase.
Phrases = dict[tuple[int, int], int]


def with_two_labels(scores: SpanScores) -> SpanScores:
    """Return scores of which one label and a chain are left."""
    assert scores.labels is not None
    chosen = [0, 1, 3]
    names = tuple(NAMES[place] for place in chosen)
    return replace(scores, labels=scores.labels[..., chosen].log_softmax(-1), label_names=names)


def families(spans: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield every choice of spans that do not cross."""
    if not spans:
        yield ()
        return
    first, *rest = spans
    yield from families(rest)
    for others in families([span for span in rest if not reference.crosses(first, span)]):
        yield (first, *others)


def labelled_trees(n: int) -> Iterator[Phrases]:
    """Yield every labelled tree: the number of the label of each phrase; the whole is one."""
    whole = (0, n)
    spans = [(i, j) for i in range(n) for j in range(i + 1, n + 1) if (i, j) != whole]
    for family in families(spans):
        phrases = (whole, *family)
        for labels in itertools.product(range(1, len(NAMES)), repeat=len(phrases)):
            yield dict(zip(phrases, labels, strict=True))


def probability(scores: SpanScores, tree: Phrases) -> float:
    """The sum over binary trees that have the phrases, the rest of their spans without a label."""
    n = int(scores.n_words[0])
    span, chances = scores.span[0].numpy(), scores.labels[0].numpy()

    def labels(binary: frozenset[reference.Span]) -> float:
        return sum(chances[each][tree.get(each, 0)] for each in reference.with_words(binary, n))

    found = reference.log_partition(span, n, tree, labels) - reference.log_partition(span, n)
    return math.exp(found) / (1.0 - math.exp(chances[0, n][0]))


def phrases(trees: Trees, place: int, names: tuple[str, ...]) -> Phrases:
    tree = trees.of(place)
    assert list(tree.spans) == sorted(tree.spans, key=lambda span: (span[0], -span[1]))
    return {span: names.index("+".join(chain)) for span, chain in _chains(tree).items()}


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("threshold", [0.1, 0.35])
def test_labelled_trees_are_the_best_of_all(n: int, threshold: float):
    """Every tree comes, once, with its score and its probability, best first."""
    for seed in range(1 if n == 3 else 5):
        scores = example(seed, n)
        value = gains(scores, threshold, 0.25)
        those = list(labelled_trees(n))
        best = sorted(sum(value[span][x] for span, x in tree.items()) for tree in those)[::-1]
        for k in (1, 7, len(those) + 5):
            found = best_labelled(scores, threshold, k, unlabelled=0.25)
            trees = [
                phrases(found.trees, place, scores.label_names) for place in range(len(found.trees))
            ]
            assert len({frozenset(tree.items()) for tree in trees}) == min(k, len(those))
            np.testing.assert_allclose(found.scores, best[:k], atol=TIES)
            own = [sum(value[span][x] for span, x in tree.items()) for tree in trees]
            np.testing.assert_allclose(own, found.scores, atol=TIES)
            own = decode_labelled(scores, threshold, unlabelled=0.25)
            assert found.trees.take([0]) == own
        assert sum(found.probabilities) == pytest.approx(1.0)
        for tree, likely in itertools.islice(zip(trees, found.probabilities, strict=True), 40):
            assert likely == pytest.approx(probability(scores, tree), rel=1e-6, abs=1e-12)


@settings(max_examples=25, deadline=None)
@always(seed=376, n=4, threshold=0.6)
@given(seed=st.integers(0, 10_000), n=st.integers(4, 5), threshold=st.sampled_from([0.2, 0.6]))
def test_the_best_labelled_trees_of_longer_sentences(seed: int, n: int, threshold: float):
    """The best labels of each choice of spans are enough to know the best trees."""
    scores, k = with_two_labels(example(seed, n)), 40
    value = gains(scores, threshold)
    whole = (0, n)
    spans = [(i, j) for i in range(n) for j in range(i + 1, n + 1) if (i, j) != whole]
    best: list[float] = []
    for family in families(spans):
        each = [value[span][1:] for span in (whole, *family)]
        best += sum(np.ix_(*each)).ravel().tolist()
        best = sorted(best, reverse=True)[:k]
    found = best_labelled(scores, threshold, k)
    np.testing.assert_allclose(found.scores, best, atol=TIES)
    trees = {
        frozenset(phrases(found.trees, place, scores.label_names).items()) for place in range(k)
    }
    assert len(trees) == k
    assert found.trees.take([0]) == decode_labelled(scores, threshold)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 6), k=st.integers(1, 250))
def test_trees_of_a_parser_that_leaves_spans_out(seed: int, n: int, k: int):
    scores = replace(example(seed, n), labels=None, label_names=())
    one = TrainedChart(scores, RECIPES["span-parser"])
    span = scores.span[0].numpy()
    inner = [(i, j) for i in range(n) for j in range(i + 2, n + 1) if (i, j) != (0, n)]
    values = {(*one, (0, n)): sum(span[x] for x in (*one, (0, n))) for one in families(inner)}
    best = sorted(values.values(), reverse=True)[:k]
    found = one.best(k)
    np.testing.assert_allclose(found.scores, best, atol=1e-9)
    trees = [found.trees.of(place) for place in range(len(found.trees))]
    assert len({tree.spans for tree in trees}) == len(best)
    assert [sum(tree.span_scores or ()) for tree in trees] == pytest.approx(best)
    assert trees[0].spans == one.trees(Constraints()).of(0).spans
    assert found.probabilities is None


def test_trees_of_one_score_begin_with_the_parser_s_own():
    """Nothing is known of any span: every tree of as many labels is as good as the others."""
    scores = replace(example(0, 4), span=torch.zeros(1, 5, 5, dtype=torch.float64))
    scores = replace(scores, labels=torch.zeros(1, 5, 5, len(NAMES), dtype=torch.float64))
    for threshold in (0.0, 0.3, 0.9):
        found = best_labelled(scores, threshold, 30)
        trees = [phrases(found.trees, place, NAMES) for place in range(30)]
        assert len({frozenset(tree.items()) for tree in trees}) == 30
        assert found.trees.take([0]) == decode_labelled(scores, threshold)
        assert found.scores == sorted(found.scores, reverse=True)


def test_long_sentences_have_their_list_too():
    scores = example(3, 120)
    found = best_labelled(scores, 0.2, 25)
    assert found.trees.take([0]) == decode_labelled(scores, 0.2)
    trees = {frozenset(phrases(found.trees, place, NAMES).items()) for place in range(25)}
    assert len(trees) == 25
    assert all(0.0 <= chance <= 1.0 for chance in found.probabilities)


def test_numbers_that_are_not_finite_are_told():
    scores = example(0, 4)
    scores.labels[0, 0, 4, 1] = math.nan
    with refused("not-finite"):
        best_labelled(scores, 0.2, 3)
