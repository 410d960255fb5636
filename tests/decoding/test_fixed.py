"""Trees that look at nothing but the number of words."""

from __future__ import annotations

from collections import Counter
from math import comb

import numpy as np
import pytest

from attree.decoding import FIXED
from attree.decoding.fixed import fixed_trees
from tests.refusals import refused
from tests.scoring.reference import Spans, all_trees, pairs, spans, splits_of

LENGTHS = [5, 0, 1, 2, 30, 3, 300, 7]
RANDOM = [name for name in FIXED if name.startswith("random_")]
DRAWS = 42_000


def tree(name: str, n: int) -> Spans:
    return pairs(fixed_trees(name, [n]))


def test_right_left_and_balanced_trees() -> None:
    assert tree("right_branching", 4) == [(0, 4), (1, 4), (2, 4)]
    assert tree("left_branching", 4) == [(0, 4), (0, 3), (0, 2)]
    assert tree("balanced", 5) == [(0, 5), (0, 2), (2, 5), (3, 5)]
    assert tree("balanced", 4) == [(0, 4), (0, 2), (2, 4)]


@pytest.mark.parametrize("name", FIXED)
def test_every_tree_is_binary_and_in_pre_order(name: str) -> None:
    trees = fixed_trees(name, LENGTHS, seed=3)
    for s, n in enumerate(LENGTHS):
        found = pairs(trees.take([s]))
        assert len(list(splits_of(found))) == max(n - 1, 0)
        assert found == sorted(found, key=lambda span: (span[0], -span[1]))


@pytest.mark.parametrize("name", RANDOM)
def test_a_random_tree_depends_on_seed_and_sentence_alone(name: str) -> None:
    trees = fixed_trees(name, LENGTHS, seed=1, sentences=range(100, 108))
    for s, n in enumerate(LENGTHS):
        assert fixed_trees(name, [n], seed=1, sentences=[100 + s]) == trees.take([s])
    assert trees != fixed_trees(name, LENGTHS, seed=2)
    assert trees != fixed_trees(name, LENGTHS, seed=1)


def chances(name: str, n: int) -> dict[tuple[tuple[int, int], ...], float]:
    """Return the probability of every tree of ``n`` words."""
    trees = [tuple(spans(one)) for one in all_trees(0, n)]
    if name == "random_uniform_tree":
        return dict.fromkeys(trees, 1 / len(trees))
    if name == "random_uniform_split":
        return {one: float(np.prod([1 / (j - i - 1) for i, j in one])) for one in trees}
    found = dict.fromkeys(trees, 0.0)

    def walk(stack: tuple[int, ...], read: int, done: Spans, chance: float) -> None:
        """Follow every shift-reduce derivation."""
        if len(done) == n - 1:
            found[tuple(sorted(done, key=lambda span: (span[0], -span[1])))] += chance
            return
        can_reduce, can_shift = len(stack) > 1, read < n
        each = chance / (can_reduce + can_shift)
        if can_shift:
            walk((*stack, read), read + 1, done, each)
        if can_reduce:
            walk(stack[:-1], read, [*done, (stack[-2], read)], each)

    walk((), 0, [], 1.0)
    return found


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("n", [3, 4, 5])
def test_random_trees_come_as_often_as_they_should(name: str, n: int) -> None:
    found = fixed_trees(name, np.full(DRAWS, n))
    starts, ends = (side.reshape(DRAWS, n - 1) for side in (found.starts, found.ends))
    drawn = Counter(
        tuple(zip(a, b, strict=True)) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
    )
    wanted = chances(name, n)
    assert sum(wanted.values()) == pytest.approx(1.0)
    assert len(wanted) == comb(2 * n - 2, n - 1) // n
    assert set(drawn) <= set(wanted)
    for one, chance in wanted.items():
        spread = np.sqrt(DRAWS * chance * (1 - chance))
        assert abs(drawn[one] - DRAWS * chance) < 5 * spread


def test_an_unknown_name_is_refused() -> None:
    with refused("unknown-name", "right", "tree"):
        fixed_trees("right", [3])
