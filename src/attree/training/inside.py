"""The inside algorithm over all binary trees of a sentence, and span marginals, compiled.

A tree's score is the sum of the scores of its spans of two words and more. The gradient of the log
partition function with respect to a span's score is the span's marginal. The outside pass computes
it in one more sweep, without a recorded graph.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from attree.base.compiled import finite_kernel

#: Largest |log| of a product of weights that is computed in plain floating-point numbers.
_SAFE = 690.0


@finite_kernel
def _spread(scores: np.ndarray, n: int) -> tuple[float, float]:
    """Return the mean score of spans of two words and more, and the largest distance from it."""
    total, least, most = 0.0, np.inf, -np.inf
    for i in range(n - 1):
        for j in range(i + 2, n + 1):
            total += scores[i, j]
            least = min(least, scores[i, j])
            most = max(most, scores[i, j])
    mean = total / (n * (n - 1) / 2) if n > 1 else 0.0
    return mean, max(most - mean, mean - least)


@finite_kernel
def _products(
    scores: np.ndarray, n: int, allowed: np.ndarray, marginals: np.ndarray, mean: float
) -> float:
    """Return log Z of one sentence by sums of products, and fill ``marginals``.

    Each span weighs ``exp(score - mean)``: no tree then leaves the range of a float, and a split
    costs one product where logarithms cost an exponential. ``left[i, j]`` and ``right[j, i]`` hold
    the same inside sum (and the same outside mass), so that both sides of a split lie contiguous.
    """
    side = n + 1
    left, right = np.zeros((side, side)), np.zeros((side, side))
    sums = np.zeros((side, side))
    for i in range(n):
        left[i, i + 1] = right[i + 1, i] = 1.0
    for w in range(2, side):
        for i in range(side - w):
            j = i + w
            if allowed[i, j]:
                total = 0.0
                for k in range(i + 1, j):
                    total += left[i, k] * right[j, k]
                sums[i, j] = total
                left[i, j] = right[j, i] = total * np.exp(scores[i, j] - mean)
    if left[0, n] > 0.0:
        from_left, from_right = np.zeros((side, side)), np.zeros((side, side))
        from_left[0, n] = 1.0
        for w in range(n, 1, -1):
            for i in range(side - w):
                j = i + w
                mass = from_left[i, j] + from_right[j, i]
                marginals[i, j] = mass
                if mass > 0.0:
                    share = mass / sums[i, j]
                    for k in range(i + 1, j):
                        part = share * left[i, k] * right[j, k]
                        from_left[i, k] += part
                        from_right[j, k] += part
    return np.log(left[0, n]) + mean * (n - 1)


@finite_kernel
def _logarithms(scores: np.ndarray, n: int, allowed: np.ndarray, marginals: np.ndarray) -> float:
    """Do as :func:`_products` in logarithms, for scores so far apart that sums would overflow."""
    side = n + 1
    left = np.full((side, side), -np.inf)
    right = np.full((side, side), -np.inf)
    share = np.empty((n * n * n - n) // 6)
    first = np.empty((side, side), np.int64)
    for i in range(n):
        left[i, i + 1] = 0.0
        right[i + 1, i] = 0.0
    position = 0
    for w in range(2, side):
        for i in range(side - w):
            j = i + w
            first[i, j] = position
            total, most = 0.0, -np.inf
            if allowed[i, j]:
                for k in range(i + 1, j):
                    value = left[i, k] + right[j, k]
                    share[position + k - i - 1] = value
                    most = max(most, value)
            if most > -np.inf:
                for k in range(w - 1):
                    value = np.exp(share[position + k] - most)
                    share[position + k] = value
                    total += value
                for k in range(w - 1):
                    share[position + k] /= total
                left[i, j] = right[j, i] = most + np.log(total) + scores[i, j]
            position += w - 1
    # without a tree every marginal is 0; a span of no tree has no mass, so its shares are not read
    marginals[0, n] = 1.0 if left[0, n] > -np.inf else 0.0
    for w in range(n, 1, -1):
        for i in range(side - w):
            j = i + w
            mass = marginals[i, j]
            if mass > 0.0:
                offset = first[i, j] - i - 1
                for k in range(i + 1, j):
                    part = mass * share[offset + k]
                    marginals[i, k] += part
                    marginals[k, j] += part
    for i in range(n):
        marginals[i, i + 1] = 0.0
    return left[0, n]


@finite_kernel
def batch_inside_outside(
    scores: np.ndarray, n_words: np.ndarray, allowed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return log partition functions (batch,) and span marginals (batch, side, side)."""
    partition = np.empty(len(n_words))
    marginals = np.zeros(scores.shape)
    for b in range(len(n_words)):
        n = n_words[b]
        mean, spread = _spread(scores[b], n)
        # by products where they cannot overflow: a tree is n - 1 spans
        if (n - 1) * (spread + np.log(4.0)) < _SAFE:
            partition[b] = _products(scores[b], n, allowed[b], marginals[b], mean)
        else:
            partition[b] = _logarithms(scores[b], n, allowed[b], marginals[b])
    return partition, marginals


class _LogPartition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, n_words: Tensor, allowed: Tensor) -> Tensor:
        table = scores.detach().cpu().double().contiguous().numpy()
        lengths, free = n_words.cpu().numpy(), allowed.cpu().numpy()
        partition, marginals = batch_inside_outside(table, lengths, free)
        # the compiled loop assumes finite numbers
        partition[~np.isfinite(table).all(axis=(1, 2))] = np.nan
        ctx.save_for_backward(torch.from_numpy(marginals).to(scores))
        return torch.from_numpy(partition).to(scores)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (marginals,) = ctx.saved_tensors
        return marginals * gradient[:, None, None], None, None


def log_partition(spans: Tensor, n_words: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Return the log of the summed ``exp(score)`` of all binary trees; differentiable.

    Args:
        spans: (batch, n + 1, n + 1) span scores; only spans of two words and more count.
        n_words: (batch,) number of words.
        allowed: (batch, n + 1, n + 1) bool; trees with a span that is not allowed are left out.

    Returns:
        (batch,), ``-inf`` where no tree is allowed.
    """
    if allowed is None:
        allowed = torch.ones(spans.shape, dtype=torch.bool)
    return _LogPartition.apply(spans, n_words, allowed)


def marginals(spans: np.ndarray, n_words: np.ndarray) -> np.ndarray:
    """Return the probability of every span among binary trees, (batch, n + 1, n + 1)."""
    return _all_trees(spans, n_words)[1]


def entropy(spans: np.ndarray, n_words: np.ndarray) -> np.ndarray:
    """Return the entropy over binary trees, in nats, (batch,): ``log Z − Σ p(s) s``."""
    partition, likely = _all_trees(spans, n_words)
    entropies: np.ndarray = partition - (likely * spans).sum((1, 2))
    return np.maximum(entropies, 0.0)


def _all_trees(spans: np.ndarray, n_words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scores = np.ascontiguousarray(spans, np.float64)
    return batch_inside_outside(scores, n_words, np.ones(scores.shape, np.bool_))
