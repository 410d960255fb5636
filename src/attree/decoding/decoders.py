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
    spans = binary_offsets(n_words)[-1]
    starts, ends = np.empty(spans, np.int32), np.empty(spans, np.int32)
    write(starts, ends)
    return Trees.binary(n_words, starts, ends)


def greedy(scores: SplitScores, starts: Spans, ends: Spans) -> None:
    """Split the sentence at its best point, then each part again."""
    has_terms, has_cross = scores.has_terms, scores.has_cross
    top_down(scores.n_words, scores.prefix, scores.terms, has_terms, has_cross, starts, ends)


def chart(scores: SplitScores, starts: Spans, ends: Spans) -> None:
    """Find the tree whose splits sum highest.

    ``best(i, j) = max_k split(i, k, j) + best(i, k) + best(k, j)``
    """
    chart_over(scores, own_terms(scores), starts, ends)


def normalised_chart(scores: SplitScores, starts: Spans, ends: Spans) -> None:
    """Find the most probable tree of a top-down process, with the highest ``Σ log p(k | i, j)``.

    ``p`` is the softmax over a span's splits. Likelihood training normalises over the splits of one
    span at a time, so only normalised scores of different spans are comparable.
    """
    chart_over(scores, log_shares(scores), starts, ends)


def marginal_chart(scores: SplitScores, starts: Spans, ends: Spans) -> None:
    """Find the tree with the highest expected number of right spans, by summed marginals."""
    chart_over(replace(scores, has_cross=False), span_marginals(scores), starts, ends)


def span_marginals(scores: SplitScores) -> NDArray[np.float64]:
    """Return the probability of every span of two words and more, a table for each sentence.

    A tree is drawn top down, each split by ``p(k | i, j)``, the softmax over a span's splits. Span
    ``[i, j)`` of a sentence of ``n`` words is at ``[i, j]`` and ``[j, i]`` of its ``(n+1, n+1)``
    table.
    """
    probabilities = np.empty_like(scores.prefix)
    marginals(scores.n_words, scores.prefix, own_terms(scores), scores.has_cross, probabilities)
    return probabilities


def log_shares(scores: SplitScores) -> NDArray[np.float64]:
    """Return terms that make each split score ``log p(k | i, j)``; see :func:`normalised_chart`."""
    terms = own_terms(scores)
    normalise(scores.n_words, scores.prefix, terms, scores.has_cross)
    return terms


def own_terms(scores: SplitScores) -> NDArray[np.float64]:
    """Return the scores' own terms, zeros where there are none."""
    return scores.terms if scores.has_terms else np.zeros_like(scores.prefix)


def chart_over(scores: SplitScores, terms: NDArray[np.float64], starts: Spans, ends: Spans) -> None:
    """Decode with ``terms`` in place of the scores' own; ``terms`` is overwritten by the chart.

    Bottom up, the best score of a span is added to its left and right terms. With these terms the
    best tree is the greedy one, so splits are searched top down, in the ``n-1`` spans of the tree.
    """
    if scores.has_cross:
        add_best_with_cross(scores.n_words, scores.prefix, terms)
    else:
        add_best(scores.n_words, terms)
    top_down(scores.n_words, scores.prefix, terms, True, scores.has_cross, starts, ends)
