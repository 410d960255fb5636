"""Decoding trained scores: against attree's decoders of associations, and enumeration."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attree.decoding import DECODERS
from attree.decoding.batch import decode as decode_associations
from attree.training.inside import marginals
from attree.training.recipes import CHOICES
from attree.training.scores import SpanScores, decode, likelihoods, span_scores
from tests.training import reference

#: those that read split scores alone
OF_ASSOCIATIONS = [name for name in CHOICES["decoder"] if name in DECODERS]
LENGTHS = [5, 1, 7, 2, 3]


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
