"""Losses against plain loops and enumeration, their gradients against finite differences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attree.training.gold import GoldTree, gold_batch, gold_tree
from attree.training.objectives import OBJECTIVES
from attree.training.recipes import LABELLED
from attree.training.scores import TERMS, span_scores
from tests.refusals import refused
from tests.scoring.reference import SPLITS
from tests.training import reference

OBJECTIVE_AND_SCORE = [
    (objective, score)
    for objective in OBJECTIVES
    for score in TERMS
    if objective not in LABELLED
    and (objective not in ("tree_crf", "chart_margin") or score == "inside_outside")
]


def example(
    seed: int, lengths: tuple[int, ...], *, log: bool = True
) -> tuple[list[np.ndarray], list[GoldTree], list[list[tuple[int, int]]]]:
    generator = np.random.default_rng(seed)
    matrices = [generator.dirichlet(np.full(n, 0.5), size=n) for n in lengths]
    brackets = [reference.random_tree(generator, 0, n) for n in lengths]
    gold = [
        gold_tree(n, spans, name=f"t{place}")
        for place, (n, spans) in enumerate(zip(lengths, brackets, strict=True))
    ]
    return [np.log(m + 1e-6) if log else m for m in matrices], gold, brackets


def losses(matrices: list[np.ndarray], gold: list[GoldTree], objective: str, score: str):
    batch = torch.from_numpy(reference.padded(matrices)).requires_grad_()
    scores = span_scores(batch, torch.tensor([len(m) for m in matrices]))
    return OBJECTIVES[objective](scores, gold_batch(gold), score, 0.3), batch


def chart_margin(table: np.ndarray, n: int, gold: set) -> float:
    """Every binary tree, and every choice of the spans in it that are constituents."""
    gold = gold - {(0, n)}
    best = -math.inf
    for tree in reference.trees(0, n):
        inner = sorted(tree - {(0, n)})
        for choice in itertools.product([False, True], repeat=len(inner)):
            chosen = {span for span, taken in zip(inner, choice, strict=True) if taken}
            wrong = len(chosen - gold) + len((set(inner) & gold) - chosen)
            best = max(best, sum(table[span] for span in chosen) + wrong)
    return best - sum(table[span] for span in gold)


def naive(matrix: np.ndarray, gold: GoldTree, spans: list, objective: str, score: str) -> float:
    n = len(matrix)
    table = np.zeros((n + 1, n + 1))
    for i in range(n):
        for j in range(i + 1, n + 1):
            table[i, j] = reference.span_score(matrix, i, j)
    if objective == "chart_margin":
        return chart_margin(table, n, {span for span in spans if span[1] - span[0] > 1})
    if objective == "tree_crf":
        free = reference.log_partition(table, n)
        return free - reference.log_partition(table, n, spans)
    total = 0.0
    for i, split, j in gold.splits.tolist():
        values = {k: SPLITS[score](matrix, i, k, j) for k in range(i + 1, j)}
        if objective == "likelihood":
            total += math.log(sum(math.exp(v) for v in values.values())) - values[split]
        else:
            gaps = (0.3 + v - values[split] for k, v in values.items() if k != split)
            total += sum(max(0.0, gap) for gap in gaps)
    return total


@pytest.mark.parametrize(("objective", "score"), OBJECTIVE_AND_SCORE)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), lengths=st.lists(st.integers(2, 7), min_size=1, max_size=4))
def test_losses_equal_plain_loops(objective: str, score: str, seed: int, lengths: list[int]):
    matrices, gold, brackets = example(seed, tuple(lengths))
    found, _ = losses(matrices, gold, objective, score)
    expected = [
        naive(m, tree, spans, objective, score)
        for m, tree, spans in zip(matrices, gold, brackets, strict=True)
    ]
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("objective", "score"), OBJECTIVE_AND_SCORE)
@pytest.mark.parametrize("log", [True, False])
def test_gradients_equal_finite_differences(objective: str, score: str, log: bool):
    matrices, gold, _ = example(3, (6, 3, 9), log=log)
    n_words = torch.tensor([len(m) for m in matrices])
    batch = torch.from_numpy(reference.padded(matrices)).requires_grad_()
    answers = gold_batch(gold)

    def loss(values: torch.Tensor) -> torch.Tensor:
        word = torch.arange(values.shape[1]) < n_words[:, None]
        values = values * (word[:, :, None] & word[:, None, :])
        return OBJECTIVES[objective](span_scores(values, n_words), answers, score, 0.3)

    assert torch.autograd.gradcheck(loss, (batch,), eps=1e-6, atol=1e-7)


@pytest.mark.parametrize(("objective", "score"), OBJECTIVE_AND_SCORE)
def test_padding_and_batching_change_nothing(objective: str, score: str):
    matrices, gold, _ = example(5, (4, 30, 2, 11, 3))
    together, batch = losses(matrices, gold, objective, score)
    together.sum().backward()
    for place, (matrix, tree) in enumerate(zip(matrices, gold, strict=True)):
        alone, single = losses([matrix], [tree], objective, score)
        alone.sum().backward()
        n = len(matrix)
        np.testing.assert_allclose(together[place].detach(), alone[0].detach(), rtol=1e-11)
        np.testing.assert_allclose(batch.grad[place, :n, :n], single.grad[0], atol=1e-12)


def test_crossing_gold_brackets_name_the_tree():
    matrices, gold, _ = example(2, (4, 4))
    gold[1] = GoldTree("wsj_0001:7", 4, np.array([[0, 3], [1, 4], [0, 4]]), gold[1].splits)
    with refused("crossing-spans", "wsj_0001:7"):
        losses(matrices, gold, "tree_crf", "inside_outside")
