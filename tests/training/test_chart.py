"""Charts of trained parsers: trees, marginals and entropy under constraints, by enumeration."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attree import Constraints, Parser
from attree.training.fit import fit
from attree.training.inside import entropy
from attree.training.parser import TrainedChart, TrainedModel
from attree.training.recipes import RECIPES, TrainingPlan
from tests import drawn
from tests.refusals import refused
from tests.training import reference
from tests.training.conftest import read
from tests.training.test_labels import NAMES, _bag, _chains, example, learnable

Span = reference.Span
SEEDS = {"seed": st.integers(0, 10_000), "n": st.integers(2, 6)}


def chart(seed: int, n: int, parser: str) -> TrainedChart:
    scores = example(seed, n)
    if parser != "tree-crf-labelled":
        scores = replace(scores, labels=None, label_names=())
    return TrainedChart(scores, RECIPES[parser])


def weights(scores: TrainedChart, trees: list[frozenset[Span]]) -> list[float]:
    """Probability of each tree among these."""
    span = scores.scores.span[0].numpy()
    each = [math.exp(sum(span[one] for one in tree)) for tree in trees]
    return [one / sum(each) for one in each]


@settings(max_examples=40)
@given(**SEEDS, parser=st.sampled_from(["tree-crf", "tree-crf-full"]))
def test_unlabelled_trees_and_marginals(seed: int, n: int, parser: str):
    one, constraints = chart(seed, n, parser), drawn.constraints(seed, n)
    those, forbidden = drawn.best_trees(constraints, n), set(constraints.forbidden)
    expected = np.zeros((n + 1, n + 1))
    for tree, weight in zip(those, weights(one, those), strict=True):
        for span in tree - forbidden:
            expected[span] += weight
    np.testing.assert_allclose(one.marginals(constraints), expected, atol=1e-8)
    shown = set(one.trees(constraints).of(0).spans)
    span, likely = one.scores.span[0].numpy(), one.marginals(constraints)
    value = likely if parser == "tree-crf-full" else span

    def reached(tree: frozenset[Span]) -> float:
        return sum(value[each] for each in tree)

    if parser == "tree-crf-full":
        assert reached(shown) == pytest.approx(max(reached(t - forbidden) for t in those))
    else:
        same = [reached(tree) for tree in those if tree - forbidden == shown]
        assert max(same) == pytest.approx(max(map(reached, those)), abs=1e-8)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(10, 30),
    parser=st.sampled_from(["tree-crf", "tree-crf-full", "tree-crf-labelled"]),
)
def test_no_threshold_costs_a_required_span_its_place(seed: int, n: int, parser: str):
    """Its marginal may be 0.999… by rounding."""
    constraints = drawn.constraints(seed, n)
    one = replace(chart(seed, n, parser), threshold=1.0)
    assert set(constraints.chains()) <= set(one.trees(constraints).of(0).spans)


@settings(max_examples=30)
@given(**SEEDS, parser=st.sampled_from(["tree-crf-full", "tree-crf-labelled"]))
def test_entropy_is_that_of_all_binary_trees(seed: int, n: int, parser: str):
    one = chart(seed, n, parser)
    shares = weights(one, list(reference.trees(0, n)))
    (found,) = entropy(*one._arrays())
    assert found == pytest.approx(-sum(p * math.log(p) for p in shares), abs=1e-9)


def possible(constraints: Constraints, span: Span) -> list[int]:
    """The labels that a span may have."""
    if span in constraints.forbidden:
        return [0]
    given = constraints.chains().get(span)
    if given is None:
        return list(range(len(NAMES)))
    return [NAMES.index(given[0])] if given[0] in NAMES else list(range(1, len(NAMES)))


def labelled(one: TrainedChart, constraints: Constraints, n: int):
    """Probability of every label of every span given the constraints, by enumeration."""
    assert one.scores.labels is not None
    chances = one.scores.labels[0].softmax(-1).numpy()
    phrases: dict[tuple[Span, int], float] = defaultdict(float)
    total = 0.0
    required = {span for span in constraints.chains() if span[1] - span[0] > 1}
    for tree in reference.trees(0, n):
        if not required <= tree:
            continue
        everything = reference.with_words(tree, n)
        share = {span: possible(constraints, span) for span in everything}
        weight = math.exp(sum(one.scores.span[0].numpy()[span] for span in tree))
        for span, names in share.items():
            weight *= chances[span][names].sum()
        total += weight
        for span in everything:
            names = possible(constraints, span)
            for name in names:
                part = chances[span][name] / chances[span][names].sum()
                phrases[span, name] += weight * part
    return {each: value / total for each, value in phrases.items()}


@settings(max_examples=40)
@given(seed=SEEDS["seed"], n=st.integers(2, 5))
def test_labelled_trees_and_marginals(seed: int, n: int):
    one = chart(seed, n, "tree-crf-labelled")
    constraints = drawn.constraints(seed, n, (None, "A", "B", "new"), one_word=True)
    phrases = labelled(one, constraints, n)
    expected = np.zeros((n + 1, n + 1))
    for (span, name), value in phrases.items():
        expected[span] += value * (name > 0)
    expected[0, n] = 1.0
    np.testing.assert_allclose(one.marginals(constraints), expected, atol=1e-8)
    chains = _chains(one.trees(constraints).of(0))
    for span, given_labels in constraints.chains().items():
        assert span in chains
        assert given_labels == [None] or chains[span] == given_labels
    assert not set(chains) & set(constraints.forbidden)
    assert gain_of(chains, constraints, phrases, n) == pytest.approx(
        best_gain(constraints, phrases, n), abs=1e-8
    )


def right(phrases: dict[tuple[Span, int], float], span: Span, name: int) -> float:
    """Expected right labels of a chain, less the threshold."""
    found = sum(
        phrases.get((span, other), 0.0) * (_bag(NAMES[name]) & _bag(NAMES[other])).total()
        for other in range(len(NAMES))
    )
    return found - RECIPES["tree-crf-labelled"].threshold * _bag(NAMES[name]).total()


def gain_of(chains, constraints: Constraints, phrases, n: int) -> float:
    """What a tree gains; where the parser does not know a label, what the best would gain."""
    names = {span: "+".join(chain) for span, chain in chains.items()}
    return sum(
        right(phrases, span, NAMES.index(name))
        if name in NAMES
        else max(right(phrases, span, other) for other in possible(constraints, span))
        for span, name in names.items()
    )


def best_gain(constraints: Constraints, phrases, n: int) -> float:
    required = set(constraints.chains())
    best = -math.inf
    for tree in reference.trees(0, n):
        everything = reference.with_words(tree, n)
        if not required.issubset(everything):
            continue
        gains = []
        for span in everything:
            names = possible(constraints, span)[span == (0, n) and span not in required :]
            gains.append(max(right(phrases, span, name) for name in names))
        best = max(best, sum(gains))
    return best


@pytest.fixture(scope="module", params=["tree-crf-labelled", "tree-crf-full", "fpio", "fpoa"])
def parser(request: pytest.FixtureRequest, encoder, treebank) -> Parser:
    trees = learnable(treebank)
    fitted = fit(encoder, trees, TrainingPlan(RECIPES[request.param], (1, 2), steps=5))
    return Parser(TrainedModel(fitted, encoder))


def test_a_parser_s_chart_gives_its_tree_without_the_encoder(parser, treebank, monkeypatch):
    words = read(treebank, range(3, 12)).words
    charts = [parser.chart(sentence) for sentence in words if len(sentence) > 1]
    trees = parser.parse([sentence for sentence in words if len(sentence) > 1])
    monkeypatch.setattr(type(parser.encoder), "run", None, raising=False)
    for one, tree in zip(charts, trees, strict=True):
        assert one.tree() == tree and one.words == tree.words
        assert one.tree(Constraints(((0, 2, None),))).spans.count((0, 2)) >= 1
        assert one.tree() == tree


def test_only_tree_crfs_have_a_distribution(parser, request):
    one = parser.chart(["the", "old", "man", "lived"])
    if parser.model.trained.recipe.objective != "tree_crf":
        with refused("no-distribution"):
            one.marginals()
        return
    assert one.marginals()[0, 4] == 1.0


def test_what_has_no_chart(parser):
    for sentence, code in (("", "no-word"), (["cat"] * 900, "too-long")):
        with refused(code):
            parser.chart(sentence)
    with refused("span-outside", "2"):
        parser.chart(["a", "cat"]).tree(Constraints(((1, 3, None),)))
