"""The inside algorithm, marginals and decoders of trained scores against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attree.decoding import DECODERS
from attree.decoding.batch import decode as decode_associations
from attree.training import inside
from attree.training.gold import gold_batch, gold_tree
from attree.training.inside import log_partition, marginals
from attree.training.recipes import CHOICES
from attree.training.scores import TERMS, SpanScores, decode, likelihoods, span_scores
from tests.training import reference


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 7), spread=st.sampled_from([0.1, 3.0, 20.0]))
def test_inside_and_marginals_equal_enumeration(seed: int, n: int, spread: float):
    generator = np.random.default_rng(seed)
    table = np.triu(generator.normal(0, spread, (n + 1, n + 1)), 1)
    n_words = torch.tensor([n])
    found = log_partition(torch.from_numpy(table[None]), n_words)
    assert found.item() == pytest.approx(reference.log_partition(table, n), rel=1e-10, abs=1e-10)
    likely = marginals(table[None], n_words.numpy())[0]
    np.testing.assert_allclose(likely, reference.marginals(table, n), atol=1e-10)


def test_published_numbers():
    """The method page's worked examples, a tree of three words and one of four."""
    three = [[0.8414, 0.1337, 0.025], [0.6067, 0.0008, 0.3925], [0.429, 0.355, 0.216]]
    four = [
        [0.2018, 0.0702, 0.588, 0.14],
        [0.4721, 0.0162, 0.3212, 0.1905],
        [0.0814, 0.3212, 0.1687, 0.4287],
        [0.0173, 0.5644, 0.2553, 0.163],
    ]
    matrices = [np.log(np.array(three) + 1e-6), np.log(np.array(four) + 1e-6)]
    n_words = torch.tensor([3, 4])
    spans = span_scores(torch.from_numpy(reference.padded(matrices)), n_words).span
    np.testing.assert_allclose(log_partition(spans, n_words), [-2.151653, -0.260412], atol=2e-6)
    gold = gold_batch([gold_tree(3, [(0, 3)], name="a"), gold_tree(4, [(0, 4), (0, 2)], name="b")])
    compatible = log_partition(spans, n_words, gold.allowed)
    np.testing.assert_allclose(compatible, [-2.151653, -1.570785], atol=2e-6)
    likely = marginals(spans.numpy(), n_words.numpy())
    assert likely[0, 0, 2] == pytest.approx(0.517352, abs=2e-6)
    assert likely[1, 2, 4] == pytest.approx(0.603536, abs=2e-6)


def test_marginals_are_a_distribution_over_trees():
    """Long sentences and extreme scores: still n − 1 spans on average, none above one."""
    generator = np.random.default_rng(0)
    n = 120
    table = np.triu(generator.normal(0, 50, (1, n + 1, n + 1)), 1)
    likely = marginals(table, np.array([n]))[0]
    assert likely.sum() == pytest.approx(n - 1)
    assert likely.max() <= 1 + 1e-9
    assert likely[0, n] == pytest.approx(1)


@pytest.mark.parametrize("n", [3, 30])
@pytest.mark.parametrize("whole", [True, False])
def test_both_ways_of_summing_agree(n: int, whole: bool):
    """Scores far apart are summed as logarithms, others as products; some sentence has no tree."""
    generator = np.random.default_rng(2)
    table = np.triu(generator.normal(0, 3, (n + 1, n + 1)), 1)
    allowed = np.ones(table.shape, bool)
    allowed[0, 2], allowed[0, n] = False, whole
    found = []
    for function, mean in ((inside._logarithms, []), (inside._products, [0.1])):
        likely = np.zeros_like(table)
        found.append((function(table, n, allowed, likely, *mean), likely))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-11)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-11)
    assert found[0][1][0, n] == pytest.approx(float(whole))


def test_batch_equals_one_by_one():
    generator = np.random.default_rng(1)
    lengths = np.array([5, 1, 12, 2, 7])
    tables = np.triu(generator.normal(size=(5, 13, 13)), 1)
    together = marginals(tables, lengths)
    for table, n, found in zip(tables, lengths, together, strict=True):
        alone = marginals(table[None, : n + 1, : n + 1], np.array([n]))[0]
        np.testing.assert_array_equal(found[: n + 1, : n + 1], alone)
        assert found[n + 1 :].sum() == found[:, n + 1 :].sum() == 0


#: those that read split scores alone
OF_ASSOCIATIONS = [name for name in CHOICES["decoder"] if name in DECODERS]
LENGTHS = [5, 1, 7, 2, 3]


def test_scores_that_a_recipe_may_name_are_those_that_can_be_trained():
    assert set(CHOICES["score"]) == set(TERMS)


def example(seed: int = 0):
    generator = np.random.default_rng(seed)
    matrices = [np.log(generator.dirichlet(np.ones(n), size=n) + 1e-6) for n in LENGTHS]
    batch = torch.from_numpy(reference.padded(matrices))
    return matrices, span_scores(batch, torch.tensor(LENGTHS))


@pytest.mark.parametrize("score", ["outside", "inside_outside"])
@pytest.mark.parametrize("decoder", OF_ASSOCIATIONS)
def test_equals_decoding_the_associations(score: str, decoder: str):
    matrices, scores = example()
    values = np.concatenate([matrix.ravel() for matrix in matrices])
    expected = decode_associations(values, LENGTHS, score=score, decoder=decoder)
    found = decode(scores, score=score, decoder=decoder)
    assert found == expected


def test_minimum_risk_is_the_tree_of_most_expected_spans():
    _, scores = example(1)
    trees = decode(scores, score="inside_outside", decoder="minimum_risk")
    likely = marginals(scores.span.numpy(), np.array(LENGTHS))
    for place, n in enumerate(LENGTHS):
        spans = set(trees.of(place).spans)
        best = max(
            reference.trees(0, n), key=lambda tree: sum(likely[place][span] for span in tree)
        )
        assert spans == set(best)


def test_the_optional_chart_keeps_the_spans_that_sum_highest():
    generator = np.random.default_rng(3)
    span = np.triu(generator.normal(size=(len(LENGTHS), 8, 8)), 1)
    scores = SpanScores(torch.zeros(span.shape), torch.from_numpy(span), torch.tensor(LENGTHS))
    trees = decode(scores, score="inside_outside", decoder="optional_chart")
    for place, n in enumerate(LENGTHS):
        whole = {(0, n)} if n > 1 else set()
        positive = [{s for s in tree if span[place][s] > 0} for tree in reference.trees(0, n)]
        best = max(positive, key=lambda spans: sum(span[place][s] for s in spans))
        assert set(trees.of(place).spans) == best | whole


def test_unlikely_spans_are_told_and_the_whole_sentence_is_certain():
    _, scores = example(2)
    trees = decode(scores, score="inside_outside", decoder="minimum_risk")
    found = likelihoods(scores, trees)
    whole = (trees.starts == 0) & (trees.ends == np.array(LENGTHS)[trees.tree_of])
    assert (found[whole] == 1).all()
    assert ((found > 0) & (found <= 1 + 1e-9)).all()
    assert (found < 0.4).any()
