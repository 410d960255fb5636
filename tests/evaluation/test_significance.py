"""Paired bootstrap against one written plainly, and on cases whose answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attree.evaluation.resampling import Difference, paired_bootstraps
from tests.refusals import refused

Counts = list[tuple[int, int, int]]


def paired_bootstrap(one: Any, other: Any, **how: int) -> Difference:
    return paired_bootstraps(np.stack([one, other]), **how)[0, 1]


def corpus_f1_parts(counts: Counts) -> Any:
    return np.array([(2.0 * matched, gold + predicted) for matched, gold, predicted in counts])


def corpus_f1(counts: Counts) -> float:
    down = sum(gold + predicted for _, gold, predicted in counts)
    return 100 * 2 * sum(matched for matched, _, _ in counts) / down if down else 0.0


def naive(one: Counts, other: Counts, resamples: int, seed: int) -> tuple[float, float]:
    """Return the difference and its p value, a resample and a sentence at a time."""
    rng = np.random.default_rng(seed)
    observed = corpus_f1(one) - corpus_f1(other)
    as_far = 0
    for _ in range(resamples):
        rows = rng.integers(len(one), size=len(one))
        drawn = corpus_f1([one[row] for row in rows]) - corpus_f1([other[row] for row in rows])
        as_far += abs(drawn - observed) >= abs(observed) - 1e-9
    return observed, (1 + as_far) / (1 + resamples)


def random_counts(seed: int, sentences: int, better: float) -> Counts:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(sentences):
        gold = int(rng.integers(1, 20))
        found.append((1 + int(rng.binomial(gold - 1, better)), gold, gold + 2))
    return found


@pytest.mark.parametrize("better", [0.5, 0.55, 0.7])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_is_the_plain_bootstrap(seed: int, better: float) -> None:
    one, other = random_counts(seed, 30, better), random_counts(seed + 10, 30, 0.5)
    found = paired_bootstrap(corpus_f1_parts(one), corpus_f1_parts(other), resamples=300, seed=seed)
    assert found[:2] == pytest.approx(naive(one, other, 300, seed))
    assert found.low <= found.difference <= found.high


def test_the_same_parser_twice_differs_by_nothing() -> None:
    one = corpus_f1_parts(random_counts(0, 20, 0.5))
    assert paired_bootstrap(one, one, resamples=50) == (0, 1, 0, 0)


def test_better_on_every_sentence_is_not_chance_and_the_sign_says_which() -> None:
    good, bad = corpus_f1_parts([(9, 10, 10)] * 40), corpus_f1_parts([(8, 10, 10)] * 40)
    found = paired_bootstrap(good, bad, resamples=999)
    assert found.difference == pytest.approx(10)
    assert found.p == pytest.approx(1 / 1000)
    assert paired_bootstrap(bad, good, resamples=999).difference == pytest.approx(-10)


def test_p_values_of_equal_parsers_are_spread_evenly() -> None:
    found = [
        paired_bootstrap(
            corpus_f1_parts(random_counts(2 * seed, 60, 0.5)),
            corpus_f1_parts(random_counts(2 * seed + 1, 60, 0.5)),
            resamples=200,
        ).p
        for seed in range(200)
    ]
    assert 0.02 <= np.mean(np.array(found) < 0.1) <= 0.2
    assert 0.4 <= np.mean(np.array(found) < 0.5) <= 0.6


def test_nothing_to_score_is_refused() -> None:
    with refused("nothing-to-score"):
        paired_bootstrap(np.zeros((3, 2)), np.zeros((3, 2)))
