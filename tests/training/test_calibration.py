"""Calibration against enumeration: probabilities by temperature, bins, the error, the choice."""

from __future__ import annotations

import numpy as np
import pytest

from attree.base.schemas import read_table
from attree.training.calibration import TEMPERATURES, Confidence
from attree.training.fit import fit
from attree.training.gold import read_trees
from attree.training.parser import gold_trees
from attree.training.parts import BatchSource
from attree.training.recipes import RECIPES, TrainingPlan
from tests.training import reference


@pytest.fixture(scope="module")
def judged(encoder, treebank):
    """A parser, sentences of up to seven words that it has not seen, and its confidence."""
    table, _ = read_table(treebank)
    parser = fit(
        encoder,
        read_trees(table, range(20)),
        TrainingPlan(RECIPES["tree-crf-full"], layers=(2,), steps=60, batch=20),
    )
    lengths = np.array([len(words) for words in table["words"].to_pylist()])
    there = np.flatnonzero((lengths < 8) & (np.arange(40) >= 20))
    trees = read_trees(table, there.tolist())
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
