"""The parts of span scores against their definitions."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from attree.training.parts import BoundaryPart, HeadPart, SpanPart, added
from attree.training.recipes import RECIPES
from tests.training import reference

LENGTHS = (4, 2, 7)
HEADS = RECIPES["head-weights"]


def heads_batch(seed: int = 0) -> tuple[list[np.ndarray], tuple[torch.Tensor, torch.Tensor]]:
    generator = np.random.default_rng(seed)
    matrices = [generator.dirichlet(np.ones(n), size=(6, n)) for n in LENGTHS]
    padded = np.stack([reference.padded([m[head] for m in matrices]) for head in range(6)], 1)
    return matrices, (torch.from_numpy(padded).float(), torch.tensor(LENGTHS))


def test_separate_weights_score_inside_and_outside():
    matrices, batch = heads_batch()
    part = HeadPart(HEADS, {"heads": 6})
    with torch.no_grad():
        part.weights.copy_(torch.randn(2, 6, generator=torch.Generator().manual_seed(0)))
        span = part.scores(*batch).span.numpy()
    inner, outer = part.weights.detach().numpy()
    for place, each in enumerate(matrices):
        log = np.log(each + 1e-6)
        inside, outside = np.tensordot(inner, log, 1), np.tensordot(outer, log, 1)
        n = each.shape[1]
        for i in range(n):
            for j in range(i + 1, n + 1):
                expected = reference.span_score(inside, i, j, outside)
                assert span[place, i, j] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("combination", ["raw", "article"])
def test_a_uniform_start_averages_the_heads(combination: str):
    matrices, batch = heads_batch(1)
    part = HeadPart(replace(HEADS, combination=combination, separate=False), {"heads": 6})
    with torch.no_grad():
        (mixed,) = part.associations(*batch)
    for row, each in zip(mixed, matrices, strict=True):
        mean = each.mean(0)
        expected = mean if combination == "raw" else np.log(mean + 1e-6)
        n = len(mean)
        np.testing.assert_allclose(row[:n, :n], expected, atol=1e-5)
        assert row[n:].abs().sum() == row[:, n:].abs().sum() == 0


def test_boundaries_are_scored_at_both_ends():
    generator = torch.Generator().manual_seed(0)
    before, after = torch.randn(2, 3, 8, 5, generator=generator)
    batch = ((before, after), torch.tensor(LENGTHS))
    part = BoundaryPart(HEADS, {"layers": [0], "hidden": 5})
    with torch.no_grad():
        assert part.scores(*batch).span.abs().sum() == 0
        part.weights.copy_(torch.randn(5, 4, generator=generator))
        span = part.scores(*batch).span
    w = part.weights.detach()
    for place, n in enumerate(LENGTHS):
        for i in range(8):
            for j in range(8):
                expected = 0.0
                if i < j <= n:
                    expected = before[place, i] @ w[:, 0] + after[place, i] @ w[:, 2]
                    expected += before[place, j] @ w[:, 1] + after[place, j] @ w[:, 3]
                assert span[place, i, j] == pytest.approx(float(expected), abs=1e-5)


def test_parts_add_up():
    _, batch = heads_batch()
    part = HeadPart(replace(HEADS, separate=False), {"heads": 6})
    scores = part.scores(*batch)
    twice = added([scores, scores])
    assert torch.equal(twice.span, 2 * scores.span)
    assert torch.equal(twice.table, scores.table)


def test_a_span_is_scored_by_what_differs_between_its_ends(monkeypatch: pytest.MonkeyPatch):
    generator = torch.Generator().manual_seed(1)
    before, after = torch.randn(2, 3, 8, 5, generator=generator)
    batch = ((before, after), torch.tensor(LENGTHS))
    part = SpanPart(HEADS, {"layers": [0], "hidden": 5, "size": 6})
    with torch.no_grad():
        for weights in part.parameters():
            weights.copy_(torch.randn(weights.shape, generator=generator))
    found = part.scores(*batch).span.detach()
    for place, n in enumerate(LENGTHS):
        for i, j in itertools.combinations(range(n + 1), 2):
            forth, back = before[place, j] - before[place, i], after[place, i] - after[place, j]
            hidden = part.before.weight @ forth + part.after.weight @ back + part.first
            spread = (hidden - hidden.mean()) / (hidden.var(correction=0) + 1e-5).sqrt()
            normed = spread * part.norm.weight + part.norm.bias
            expected = (part.last.weight[0] @ normed.relu() + part.last.bias[0]).item()
            assert float(found[place, i, j]) == pytest.approx(expected, abs=1e-4)
    assert (found.tril() == 0).all()
    monkeypatch.setattr("attree.training.parts._AT_ONCE", 1)
    with torch.no_grad():
        torch.testing.assert_close(part.scores(*batch).span, found)
