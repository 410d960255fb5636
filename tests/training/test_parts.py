"""The parts of span scores against their definitions, the association against plain loops."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from attree.encoder.load import EncoderOutput
from attree.encoder.pieces import Pieces
from attree.scoring import FLOOR
from attree.training.features import Layout, SentenceFeatures, read_back
from attree.training.parts import Batch, BoundaryPart, HeadPart, SpanPart, SpanScorer, sum_parts
from attree.training.projection import Projection, StateBatch, association_of, initialise
from attree.training.recipes import RECIPES
from tests.refusals import refused
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


@pytest.mark.parametrize("combination", ["log", "article"])
def test_a_uniform_start_averages_the_heads(combination: str):
    matrices, batch = heads_batch(1)
    part = HeadPart(replace(HEADS, combination=combination, separate=False), {"heads": 6})
    with torch.no_grad():
        (mixed,) = part.associations(*batch)
    for row, each in zip(mixed, matrices, strict=True):
        logs = np.log(each + 1e-6).mean(0)
        expected = logs if combination == "log" else np.log(each.mean(0) + 1e-6)
        n = len(expected)
        np.testing.assert_allclose(row[:n, :n], expected, atol=1e-5)
        assert row[n:].abs().sum() == row[:, n:].abs().sum() == 0


@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-5), (torch.bfloat16, 0.05)])
def test_a_frozen_scorer_multiplies_in_the_type_of_the_states(dtype: torch.dtype, most: float):
    generator = torch.Generator().manual_seed(0)
    sides = tuple(torch.randn(2, 3, 8, 5, generator=generator).to(dtype))
    shapes = {"boundary": {"layers": [0], "hidden": 5}}
    scorer = SpanScorer(replace(HEADS, parts=("boundary",)), shapes)
    with torch.no_grad():
        scorer.parts["boundary"].weights.copy_(torch.randn(5, 4, generator=generator))
        batch = Batch(torch.tensor(LENGTHS), {"boundary": sides})
        exact = scorer.scores(batch).span
        scorer.freeze(dtype)
        frozen = scorer.scores(batch).span
    assert frozen.dtype == exact.dtype == torch.float64
    if dtype == torch.bfloat16:
        assert not torch.allclose(frozen, exact, rtol=1e-5)
    assert exact.abs().max() > 0 and (frozen - exact).abs().max() < most * exact.abs().max()


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
    twice = sum_parts([scores, scores])
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


HIDDEN = 12


def sentences(seed: int, word_of: list[list[int]], layers: int = 1):
    generator = np.random.default_rng(seed)
    words = [np.array(w, np.int32) for w in word_of]
    states = [generator.normal(size=(layers, len(w), HIDDEN)).astype(np.float16) for w in words]
    return states, words


def output_of(states: list[np.ndarray], word_of: list[np.ndarray]) -> EncoderOutput:
    layout = Layout(tuple(range(len(states[0]))), 0)
    none = [np.empty((0, len(words), len(words))) for words in word_of]
    pieces = [Pieces(words, words, int(words.max()) + 1, 0, False) for words in word_of]
    return read_back(list(map(SentenceFeatures, pieces, states, none)), layout, layout)


def state_batch(states: list[np.ndarray], word_of: list[np.ndarray]) -> StateBatch:
    return StateBatch.of(output_of(states, word_of), range(len(states[0])), specials=True)


def weights(seed: int, layers: int = 1, size: int = HIDDEN):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(size, HIDDEN), (size,), (size, HIDDEN), (size,)]
    return [[torch.randn(s, generator=generator) for s in shapes] for _ in range(layers)]


def naive(projection: Projection, states: np.ndarray, word_of: np.ndarray, layer: int):
    """One sentence, one layer, word by word."""
    x = torch.from_numpy(states[layer].astype(np.float32))
    q = x @ projection.query[layer] + projection.query_bias[layer]
    k = x @ projection.key[layer] + projection.key_bias[layer]
    width = q.shape[1] // projection.heads
    pieces = torch.zeros(len(x), len(x))
    for head in range(projection.heads):
        part = slice(head * width, (head + 1) * width)
        pieces += (q[:, part] @ k[:, part].T / math.sqrt(width)).softmax(1) / projection.heads
    n = word_of.max() + 1
    out = torch.zeros(n, n)
    for i in range(n):
        for j in range(n):
            block = pieces[np.flatnonzero(word_of == i)][:, np.flatnonzero(word_of == j)]
            out[i, j] = block.sum(1).mean()
    return out


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("word_of", [[0, 0, 1, 2, 2, 2], [-1, 0, 1, 1, -1], [0, 1]])
@pytest.mark.parametrize("frozen", [False, True])
def test_equals_plain_loops_whatever_the_padding(heads: int, word_of: list[int], frozen: bool):
    states, words = sentences(0, [word_of, [0, 1, 1, 2, 3, 4, 4, 5]], layers=2)
    projection = Projection(2, HIDDEN, HIDDEN, heads=heads)
    initialise(projection, weights(1, layers=2))
    if frozen:
        projection.freeze(torch.float32)
    batch = state_batch(states, words)
    with torch.no_grad():
        raw = projection(batch, batch.states)
        log = association_of(raw, batch.words(), "log")
        for place, of_piece in enumerate(words):
            n = of_piece.max() + 1
            each = torch.stack([naive(projection, states[place], of_piece, x) for x in range(2)])
            torch.testing.assert_close(raw[:, place, :n, :n], each, atol=1e-5, rtol=1e-5)
            expected = (each + FLOOR).log().mean(0)
            torch.testing.assert_close(log[place, :n, :n], expected, atol=1e-4, rtol=1e-4)
            assert raw[:, place, n:].abs().sum() == raw[:, place, :, n:].abs().sum() == 0
            assert log[place, n:].abs().sum() == log[place, :, n:].abs().sum() == 0


def test_a_frozen_projection_multiplies_in_its_type():
    states, words = sentences(0, [[0, 1, 1, 2, 3, 4, 4, 5]])
    projection = Projection(1, HIDDEN, HIDDEN)
    initialise(projection, weights(1))
    batch = state_batch([0.3 * one for one in states], words)
    with torch.no_grad():
        exact = projection(batch, batch.states)
        projection.freeze(torch.bfloat16)
        coarse = projection(batch, batch.states)
    assert coarse.dtype == torch.float32 and 0 < (coarse - exact).abs().max() < 0.1


@pytest.mark.parametrize("specials", [True, False])
def test_states_of_padding_do_not_count(specials: bool):
    states, words = sentences(6, [[-1, 0, 0, 1, 2, -1], [-1, 0, 1, -1]], layers=2)
    projection = Projection(2, HIDDEN, HIDDEN, heads=3)
    initialise(projection, weights(7, layers=2))
    output = output_of(states, words)
    for layer in output.states.values():
        layer[1, 4:] = 9.0  # as an encoder leaves something there
    projection.freeze(torch.float32)
    found = []
    for whole in (False, True):
        batch = StateBatch.of(output, (0, 1), specials=specials, whole=whole)
        assert (batch.rows is None) == whole
        with torch.no_grad():
            found.append(projection(batch, batch.states))
    torch.testing.assert_close(*found, atol=1e-6, rtol=1e-5)
    assert found[0].abs().max() > 0 and (found[1][:, 1, 2:] == 0).all()


def test_rows_sum_to_one_without_specials():
    states, words = sentences(2, [[0, 0, 1, 2], [0, 1]])
    projection = Projection(1, HIDDEN, HIDDEN)
    initialise(projection, weights(3))
    batch = state_batch(states, words)
    with torch.no_grad():
        raw = projection(batch, batch.states)[0]
    torch.testing.assert_close(raw[0].sum(1), torch.ones(3))
    torch.testing.assert_close(raw[1, :2].sum(1), torch.ones(2))


@pytest.mark.parametrize("heads", [1, 2])
def test_truncated_start_is_the_best_of_its_rank(heads: int):
    """At full rank the logits are the encoder's; below it the error is what SVD leaves."""
    states, words = sentences(4, [[0, 1, 2, 3, 4]])
    batch = state_batch(states, words)
    # an encoder of two heads of width 6 whose products have rank 3
    (q, qb, k, kb), *_ = weights(5)
    for head in range(heads):
        width = HIDDEN // heads
        part = slice(head * width, (head + 1) * width)
        low = torch.cat([q[part], qb[part, None]], 1)
        u, s, v = torch.linalg.svd(low, full_matrices=False)
        low = u[:, :3] * s[:3] @ v[:3]
        q[part], qb[part] = low[:, :-1], low[:, -1]
    full = Projection(1, HIDDEN, HIDDEN, heads=heads)
    initialise(full, [[q, qb, k, kb]])
    small = Projection(1, HIDDEN, 3 * heads, heads=heads)
    initialise(small, [[q, qb, k, kb]])
    with torch.no_grad():
        found, expected = (each(batch, batch.states) for each in (small, full))
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_random_start_has_its_seed():
    made = []
    for seed in (1, 1, 2):
        projection = Projection(1, HIDDEN, 50)
        generator = torch.Generator().manual_seed(seed)
        initialise(projection, [], how="random", generator=generator)
        made.append(projection.query.detach())
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])


def test_bad_sizes_are_refused():
    with refused("bad-size", "5"):
        Projection(1, HIDDEN, HIDDEN, heads=5)
    with refused("unknown-name", "encoder"):
        initialise(Projection(1, HIDDEN, HIDDEN), weights(0), how="zeros")
    with refused("bad-size"):
        initialise(Projection(1, HIDDEN, 24, heads=2), weights(0))
