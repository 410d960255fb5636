"""The inside algorithm and span marginals against all derivations of short sentences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from attree.grammar.model import Rules
from tests.training import reference

N, T = 3, 4


def drawn(n: int, batch: int = 2, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Root, binary rules and log probabilities of words, at random."""
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    binary = (2 * random(batch, N, (N + T) ** 2)).softmax(2).view(batch, N, N + T, N + T)
    return random(batch, N).softmax(1), binary, random(batch, n, T) - 3


def derivations(
    root: Tensor, binary: Tensor, words: Tensor
) -> Iterator[tuple[frozenset[reference.Span], float]]:
    """Yield the tree and the probability of every derivation of one sentence."""
    n = len(words)
    for tree in reference.trees(0, n):
        spans = sorted(tree)
        for symbols in itertools.product(range(N), repeat=len(spans)):
            of = dict(zip(spans, symbols, strict=True))
            for tags in itertools.product(range(T), repeat=n):
                of |= {(i, i + 1): N + tag for i, tag in enumerate(tags)}
                found = root[of[0, n]] * words[range(n), tags].sum().exp()
                for i, j in spans:
                    (k,) = (k for k in range(i + 1, j) if {(i, k), (k, j)} <= of.keys())
                    found = found * binary[of[i, j], of[i, k], of[k, j]]
                yield tree, float(found)


def inside(root: Tensor, binary: Tensor, words: Tensor) -> float:
    """``log p(words)`` by plain recursion: every tree, with its symbols summed out."""

    def part(i: int, j: int) -> Tensor:
        zero = torch.zeros(N + T, dtype=torch.float64)
        if j - i == 1:
            zero[N:] = words[i].exp()
            return zero
        for k in range(i + 1, j):
            zero[:N] += torch.einsum("abc,b,c->a", binary, part(i, k), part(k, j))
        return zero

    return math.log(float(root @ part(0, len(words))[:N]))


@pytest.mark.parametrize("n", [2, 3])
def test_the_likelihood_is_the_sum_over_all_derivations(n: int) -> None:
    root, binary, words = drawn(n)
    found = Rules(root, binary, words).likelihood()
    for at in range(2):
        total = sum(p for _, p in derivations(root[at], binary[at], words[at]))
        assert float(found[at]) == pytest.approx(math.log(total), abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_the_likelihood_is_the_recursion_s(n: int) -> None:
    for dtype, near in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        parts = drawn(n, seed=n)
        found = Rules(*(part.to(dtype) for part in parts)).likelihood()
        for at in range(2):
            assert float(found[at]) == pytest.approx(inside(*(p[at] for p in parts)), abs=near)


@pytest.mark.parametrize("n", [2, 3])
def test_marginals_are_the_shares_of_derivations(n: int) -> None:
    root, binary, words = drawn(n, seed=n)
    found = Rules(root, binary, words).marginals()
    for at in range(2):
        expected, total = np.zeros((n + 1, n + 1)), 0.0
        for tree, p in derivations(root[at], binary[at], words[at]):
            total += p
            for span in tree:
                expected[span] += p
        assert found[at].numpy() == pytest.approx(expected / total, abs=1e-12)


@pytest.mark.parametrize("n", [4, 5, 6])
def test_marginals_are_the_shares_of_trees(n: int) -> None:
    """Of each tree the symbols are summed out by rules that forbid every other span."""
    parts = drawn(n, seed=n)
    root, binary, words = (part[0] for part in parts)
    expected, total = np.zeros((n + 1, n + 1)), 0.0

    def part(tree: frozenset[reference.Span], i: int, j: int) -> Tensor:
        out = torch.zeros(N + T, dtype=torch.float64)
        if j - i == 1:
            out[N:] = words[i].exp()
            return out
        own = [*tree, *((place, place + 1) for place in range(n))]
        (k,) = (k for k in range(i + 1, j) if (i, k) in own and (k, j) in own)
        out[:N] = torch.einsum("abc,b,c->a", binary, part(tree, i, k), part(tree, k, j))
        return out

    for tree in reference.trees(0, n):
        p = float(root @ part(tree, 0, n)[:N])
        total += p
        for span in tree:
            expected[span] += p
    assert Rules(*parts).marginals()[0].numpy() == pytest.approx(expected / total, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_the_outside_pass_is_the_gradient(n: int) -> None:
    parts = [part.requires_grad_() for part in drawn(n)]
    assert torch.autograd.gradcheck(lambda *given: Rules(*given).likelihood(), parts)


def test_long_sentences_do_not_leave_float32() -> None:
    root, binary, words = drawn(120, batch=1)
    exact = Rules(root, binary, words - 40).likelihood()
    near = Rules(root.float(), binary.float(), (words - 40).float())
    assert float(near.likelihood()) == pytest.approx(float(exact), rel=1e-5)
    marginals = near.marginals()
    assert float(marginals[0, 0, 120]) == pytest.approx(1, abs=1e-3)
    assert float(marginals.sum()) == pytest.approx(119, rel=1e-3)


def test_sentences_of_a_batch_do_not_touch() -> None:
    parts = drawn(7, batch=5)
    together = Rules(*parts)
    for at in range(5):
        alone = Rules(*(part[at : at + 1] for part in parts))
        torch.testing.assert_close(alone.likelihood()[0], together.likelihood()[at])
        torch.testing.assert_close(alone.marginals()[0], together.marginals()[at])
