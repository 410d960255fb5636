"""Averaging parsers: the tree that agrees best with the trees of several (Shayegh et al. 2024).

The F1 of a tree ``T`` with the tree ``M`` of a member is ``2 |T ∩ M| / (|T| + |M|)`` over distinct
spans of two words and more, including the whole sentence. Every binary tree has ``n - 1`` of them,
so its mean F1 is a sum over its spans: for each span, the members that have it, weighted by
``2 / (n - 1 + |M|)``. The chart finds the best sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.decoding.batch import chunks
from attree.decoding.decoders import binary_trees, chart
from attree.scoring.tables import SplitScores
from attree.trees.trees import Trees

#: Table cells at a time, of 8 bytes each, in a few tables.
_CELLS_AT_A_TIME = 1_000_000


def average(
    members: Sequence[Trees],
    *,
    threshold: float | None = None,
    weights: Sequence[float] | None = None,
) -> Trees:
    """Return consensus trees of several parsers, those that agree best with them.

    Args:
        members: the trees of each parser, all of the same sentences; they need not be binary.
        threshold: None for binary trees of the highest mean F1. Otherwise a share from 0 to 1: a
            span counts the share of members that have it, minus the threshold, and trees, in
            general not binary, maximise the sum over their spans. The whole sentence is always a
            span.
        weights: how much each member counts, above 0; equal by default. Shares of members are
            shares of their weights.

    Returns:
        unlabelled trees; a span's score is the share of members that have it. Ties take the
        smallest split.

    Raises:
        AttreeError: there is not one weight for each member.
    """
    votes = _votes(weights, len(members))
    tables = np.concatenate(([0], np.cumsum((members[0].n_words + 1) ** 2)))
    parts = [
        _average([trees.take(np.arange(*rows)) for trees in members], votes, threshold)
        for rows in chunks(tables, _CELLS_AT_A_TIME)
    ]
    return Trees.concatenate(parts)


def _votes(weights: Sequence[float] | None, members: int) -> NDArray[np.float64]:
    """Return the normalised weights of members, (members,) float64."""
    votes = np.array([1.0] * members if weights is None else weights)
    if votes.size != members or not (np.isfinite(votes) & (votes > 0)).all():
        problem = f"weights {votes.tolist()} are not a number above 0 for each of {members} parsers"
        fix = "give each parser a number above 0, or give none"
        raise AttreeError("bad-weights", problem, fix=fix)
    return votes / votes.sum()


def _average(
    members: Sequence[Trees], votes: NDArray[np.float64], threshold: float | None
) -> Trees:
    words = members[0].n_words
    side = words + 1
    tables = np.concatenate(([0], np.cumsum(side**2)))
    shares, scores = np.zeros(tables[-1]), np.zeros(tables[-1])
    for member, vote in zip(members, votes, strict=True):
        tree, starts, ends = _distinct_spans(member)
        spans = words - 1 + np.bincount(tree, minlength=words.size)
        for row, column in ((starts, ends), (ends, starts)):  # for the right and the left side
            cells = tables[tree] + row * side[tree] + column
            shares[cells] += vote
            scores[cells] += 2.0 * vote / spans[tree]
    if threshold is not None:
        scores = np.maximum(shares - threshold, 0.0)
    splits = SplitScores(words, np.zeros_like(scores), scores, has_cross=False)
    trees = binary_trees(words, partial(chart, splits))
    cells = tables[trees.tree_of] + trees.starts * side[trees.tree_of] + trees.ends
    trees = replace(trees, scores=shares[cells])
    if threshold is None:
        return trees
    whole = (trees.starts == 0) & (trees.ends == words[trees.tree_of])
    return trees.keep(whole | (shares[cells] > threshold))


def _distinct_spans(trees: Trees) -> tuple[NDArray[np.int64], ...]:
    """Return tree, start and end of the distinct spans of two words and more, sorted.

    The whole sentence is always among them.
    """
    long = trees.n_words > 1
    tree = np.concatenate([trees.tree_of, np.flatnonzero(long)])
    starts = np.concatenate([trees.starts, np.zeros(int(long.sum()), np.int32)])
    ends = np.concatenate([trees.ends, trees.n_words[long]])
    return tuple(np.unique(np.stack([tree, starts, ends], axis=1)[ends - starts > 1], axis=0).T)
