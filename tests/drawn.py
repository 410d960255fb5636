"""Constraints drawn at random."""

from __future__ import annotations

import numpy as np

from attree.trees.constraints import Constraints
from tests.training import reference


def constraints(
    seed: int, n: int, labels: tuple[str | None, ...] = (None,), *, one_word: bool = False
) -> Constraints:
    """Required spans that do not cross, forbidden ones wherever they are not required."""
    generator = np.random.default_rng(seed)
    required = {span for span in reference.random_tree(generator, 0, n) if generator.random() < 0.4}
    least = 1 if one_word else 2
    spans = [(i, j) for i in range(n) for j in range(i + least, n + 1) if (i, j) != (0, n)]
    others = [span for span in spans if span not in required]
    forbidden = [span for span in others if generator.random() < 0.2]
    required |= {
        (i, i + 1)
        for i in range(n)
        if one_word and n > 1 and (i, i + 1) not in forbidden and generator.random() < 0.2
    }
    label = [labels[place] for place in generator.integers(0, len(labels), len(required))]
    given = tuple((i, j, name) for (i, j), name in zip(sorted(required), label, strict=True))
    return Constraints(given, tuple(forbidden))


def best_trees(constraints: Constraints, n: int) -> list[frozenset[reference.Span]]:
    """All binary trees that have every required span and the fewest forbidden ones."""
    required = {span for span in constraints.chains() if span[1] - span[0] > 1}
    having = [tree for tree in reference.trees(0, n) if required <= tree]
    fewest = min(len(tree & set(constraints.forbidden)) for tree in having)
    return [tree for tree in having if len(tree & set(constraints.forbidden)) == fewest]
