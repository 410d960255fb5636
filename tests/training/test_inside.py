"""The inside algorithm and span marginals against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attree.training import inside
from attree.training.gold import gold_batch, gold_tree
from attree.training.inside import log_partition, marginals
from attree.training.scores import span_scores
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


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 7))
def test_compatible_trees_equal_enumeration(seed: int, n: int):
    generator = np.random.default_rng(seed)
    table = np.triu(generator.normal(0, 2, (n + 1, n + 1)), 1)
    brackets = reference.random_tree(generator, 0, n)
    gold = gold_batch([gold_tree(n, brackets, name="t")])
    found = log_partition(torch.from_numpy(table[None]), torch.tensor([n]), gold.allowed)
    assert found.item() == pytest.approx(reference.log_partition(table, n, brackets), rel=1e-10)


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
def test_both_ways_of_summing_agree(n: int):
    """Scores far apart are summed as logarithms, others as products."""
    generator = np.random.default_rng(2)
    table = np.triu(generator.normal(0, 3, (n + 1, n + 1)), 1)
    allowed = np.ones(table.shape, bool)
    allowed[0, 2] = False
    found = []
    for function, mean in ((inside._logarithms, []), (inside._products, [0.1])):
        likely = np.zeros_like(table)
        found.append((function(table, n, allowed, likely, *mean), likely))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-11)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-11)


def test_batch_equals_one_by_one():
    generator = np.random.default_rng(1)
    lengths = np.array([5, 1, 12, 2, 7])
    tables = np.triu(generator.normal(size=(5, 13, 13)), 1)
    together = marginals(tables, lengths)
    for table, n, found in zip(tables, lengths, together, strict=True):
        alone = marginals(table[None, : n + 1, : n + 1], np.array([n]))[0]
        np.testing.assert_array_equal(found[: n + 1, : n + 1], alone)
        assert found[n + 1 :].sum() == found[:, n + 1 :].sum() == 0
