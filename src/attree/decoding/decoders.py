"""The decoders, which write the ``n-1`` spans of every sentence's tree in pre-order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from attree.decoding.kernels import add_best, add_best_with_cross, marginals, normalise, top_down
from attree.scoring.tables import SplitScores
from attree.trees.trees import Spans, Trees, binary_offsets


def binary_trees(n_words: NDArray[np.int64], write: Callable[[Spans, Spans], None]) -> Trees:
    """Return the trees whose starts and ends ``write`` fills in, in pre-order."""
    offsets = binary_offsets(n_words)
    starts, ends = np.empty((2, offsets[-1]), np.int32)
    write(starts, ends)
    return Trees(n_words, offsets, starts, ends)


def greedy(scores: SplitScores, starts: Spans, ends: Spans) -> None:
    """Split the sentence at its best point, then each part again."""
    tables = scores.n_words, scores.prefix, scores.terms
    top_down(*tables, scores.has_terms, scores.has_cross, starts, ends)


def chart(scores: SplitScores, starts: Spans, ends: Spans) -> None:
    """Find the tree whose splits sum highest.

    ``best(i, j) = max_k split(i, k, j) + best(i, k) + best(k, j)``
    """
    scores = with_terms(scores)
    add_best_sums(scores)
    # with these sums in its terms the best tree is the greedy one, which has only n-1 spans
    greedy(scores, starts, ends)


def normalised_chart(scores: SplitScores, starts: Spans, ends: Spans) -> None:
    """Find the most probable tree of a top-down process, with the highest ``Σ log p(k | i, j)``.

    ``p`` is the softmax over a span's splits. Likelihood training normalises over the splits of one
    span at a time, so only normalised scores of different spans are comparable.
    """
    chart(log_shares(scores), starts, ends)


def marginal_chart(scores: SplitScores, starts: Spans, ends: Spans) -> None:
    """Find the tree with the highest expected number of right spans, by summed marginals."""
    chart(marginal_scores(scores), starts, ends)


def span_marginals(scores: SplitScores) -> NDArray[np.float64]:
    """Return the probability of every span of two words and more, a table for each sentence.

    A tree is drawn top down, each split by ``p(k | i, j)``, the softmax over a span's splits. Span
    ``[i, j)`` of a sentence of ``n`` words is at ``[i, j]`` and ``[j, i]`` of its ``(n+1, n+1)``
    table.
    """
    probabilities, scores = np.empty_like(scores.prefix), with_terms(scores)
    marginals(scores.n_words, scores.prefix, scores.terms, scores.has_cross, probabilities)
    return probabilities


def marginal_scores(scores: SplitScores) -> SplitScores:
    """Return scores that sum to the expected number of right spans; see :func:`span_marginals`."""
    return replace(scores, terms=span_marginals(scores), has_cross=False)


def log_shares(scores: SplitScores) -> SplitScores:
    """Make each split score ``log p(k | i, j)``, in place; see :func:`normalised_chart`.

    The normaliser of the whole sentence, which is no part of a split, is in no score.
    """
    scores = with_terms(scores)
    normalise(scores.n_words, scores.prefix, scores.terms, scores.has_cross)
    return scores


def with_terms(scores: SplitScores) -> SplitScores:
    """Return scores that have terms, zeros if they had none."""
    return scores if scores.has_terms else replace(scores, terms=np.zeros_like(scores.prefix))


def add_best_sums(scores: SplitScores) -> None:
    """Add to the terms of every span the best sum of the splits in it, bottom up, in place."""
    if scores.has_cross:
        add_best_with_cross(scores.n_words, scores.prefix, scores.terms)
    else:
        add_best(scores.n_words, scores.terms)


#: The decoders that compare the splits of one span at a time, not whole trees.
GREEDY = {"greedy": greedy}
#: decoder → the scores that it maximises without constraints, which may overwrite the given ones
MAXIMISED: dict[str, Callable[[SplitScores], SplitScores]] = {
    "greedy": with_terms,
    "chart": with_terms,
    "normalised_chart": log_shares,
    "marginal_chart": marginal_scores,
}
