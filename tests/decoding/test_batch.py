"""Many sentences at a time: the same trees as one by one, and clear errors."""

from __future__ import annotations

import concurrent.futures

import numpy as np
import pytest
from numpy.typing import NDArray

from attree.decoding import DECODERS
from attree.decoding.batch import decode
from attree.scoring import ASSOCIATIONS, SCORES
from attree.trees.trees import Trees, binary_offsets
from tests.refusals import refused
from tests.scoring.reference import attention, pairs, splits_of

LENGTHS = [3, 0, 1, 2, 40, 7, 1, 25, 0, 12, 5, 5, 80, 2, 33, 9]


@pytest.fixture(scope="module")
def heads() -> list[NDArray[np.float16]]:
    """Three associations a sentence, of shape (3, n, n)."""
    return [
        np.stack([attention(n, 10 * s + h) for h in range(3)]).astype(np.float16)
        if n
        else np.zeros((3, 0, 0), np.float16)
        for s, n in enumerate(LENGTHS)
    ]


def flat(matrices: list[NDArray[np.float16]]) -> NDArray[np.float16]:
    return np.concatenate([one.ravel() for one in matrices])


@pytest.mark.parametrize("decoder", sorted(DECODERS))
@pytest.mark.parametrize("score", sorted(SCORES))
@pytest.mark.parametrize("association", ASSOCIATIONS)
def test_a_batch_gives_the_trees_of_its_sentences_one_by_one(
    heads: list[NDArray[np.float16]], association: str, score: str, decoder: str
) -> None:
    recipe = {"association": association, "score": score, "decoder": decoder}
    alone = [
        decode(matrix.ravel(), [n], **recipe)
        for n, matrices in zip(LENGTHS, heads, strict=True)
        for matrix in matrices
    ]
    together = decode(flat(heads), LENGTHS, 3, **recipe)
    assert together == Trees.concatenate(alone)
    assert np.array_equal(together.offsets, binary_offsets(np.repeat(LENGTHS, 3)))
    for n, found in zip(np.repeat(LENGTHS, 3), alone, strict=True):
        spans = pairs(found)
        assert len(spans) == max(n - 1, 0)
        assert spans == sorted(spans, key=lambda span: (span[0], -span[1]))  # pre-order
        assert len(list(splits_of(spans))) == len(spans)


@pytest.mark.parametrize("decoder", sorted(DECODERS))
@pytest.mark.parametrize("score", sorted(SCORES))
def test_storage_changes_no_tree(
    heads: list[NDArray[np.float16]], score: str, decoder: str
) -> None:
    values = flat(heads)
    for association in ASSOCIATIONS:
        recipe = {"association": association, "score": score, "decoder": decoder}
        wanted = pairs(decode(values, LENGTHS, 3, **recipe))
        for dtype in (np.float32, np.float64):
            assert pairs(decode(values.astype(dtype), LENGTHS, 3, **recipe)) == wanted


def test_order_and_company_change_no_tree(heads: list[NDArray[np.float16]]) -> None:
    order = np.random.default_rng(0).permutation(len(LENGTHS))
    recipe = {"score": "inside_outside", "decoder": "chart"}
    trees = decode(flat(heads), LENGTHS, 3, **recipe)
    shuffled = decode(flat([heads[s] for s in order]), [LENGTHS[s] for s in order], 3, **recipe)
    assert shuffled == trees.take((3 * order[:, None] + np.arange(3)).ravel())


def test_threads_share_nothing(heads: list[NDArray[np.float16]]) -> None:
    values, recipe = flat(heads), {"score": "outside", "decoder": "chart"}
    wanted = pairs(decode(values, LENGTHS, 3, **recipe))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(decode, values, LENGTHS, 3, **recipe) for _ in range(8)]
        assert all(pairs(run.result()) == wanted for run in runs)


def test_nothing_to_parse() -> None:
    for lengths in ([], [0, 0], [1]):
        values = np.ones(sum(lengths), np.float16)
        trees = decode(values, lengths, score="outside", decoder="greedy")
        assert trees.starts.size == trees.ends.size == 0
        assert trees.starts.dtype == trees.ends.dtype == np.int32


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_association_that_is_not_finite_names_its_sentence(dtype: type, bad: float) -> None:
    values = np.full(3 * 16, 0.25, dtype)
    values[16 + 5] = bad
    for association in ASSOCIATIONS:
        recipe = {"association": association, "score": "outside", "decoder": "greedy"}
        with refused("not-finite", "1"):
            decode(values, [4, 4, 4], **recipe)
        with refused("not-finite", "70"):
            decode(values, [4, 4, 4], sentences=[60, 70, 80], **recipe)
    with refused("not-finite", "1", "0"):
        decode(values, [4], 3, score="outside", decoder="greedy")


def test_opposite_infinities_do_not_hide_each_other() -> None:
    values = np.array([0.5, np.inf, -np.inf, 0.5])
    with refused("not-finite", "0"):
        decode(values, [2], score="inside_outside", decoder="chart")


def test_what_has_no_logarithm_is_refused() -> None:
    with refused("not-finite", "0"):
        decode(np.full(4, -1.0), [2], association="log", score="outside", decoder="greedy")


def test_unknown_names_are_refused() -> None:
    values = np.ones(4)
    with refused("unknown-name", "gredy", "greedy"):
        decode(values, [2], score="outside", decoder="gredy")
    with refused("unknown-name"):
        decode(values, [2], score="out", decoder="greedy")
    with refused("unknown-name"):
        decode(values, [2], association="exp", score="outside", decoder="greedy")


def test_a_wrong_number_of_values_is_a_bug_told_at_once() -> None:
    with pytest.raises(ValueError, match="8 values are needed"):
        decode(np.ones(4), [2], 2, score="outside", decoder="greedy")


@pytest.mark.parametrize("decoder", ["greedy", "chart"])
def test_a_sentence_of_many_hundred_words_neither_recurses_nor_fails(decoder: str) -> None:
    n = 700
    right = np.triu(np.tile(np.linspace(0, 1, n, dtype=np.float16), (n, 1)), 1)
    assert decode(right.ravel(), [n], score="outside", decoder="greedy").starts.size == n - 1
    spans = pairs(decode(right.ravel(), [n], score="inside_outside", decoder=decoder))
    assert spans[0] == (0, n)
    assert len(list(splits_of(spans))) == n - 1
