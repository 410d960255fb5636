"""Trees from trained scores: every decoder of attree, and minimum Bayes risk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from attree.decoding import DECODERS
from attree.errors import NotFiniteError
from attree.fewshot.inside import marginals
from attree.fewshot.recipes import CHOICES
from attree.fewshot.scores import SpanScores
from attree.registry import choose
from attree.scoring.tables import SplitScores
from attree.trees import Trees

#: decoders of trained parsers: those of associations, and the tree of the highest expected number
#: of right spans under the distribution over trees (for parsers trained by ``tree_crf``)
NAMES = CHOICES["decoder"]


def decode(scores: SpanScores, *, score: str, decoder: str) -> Trees:
    """Parse a batch.

    Args:
        scores: of the sentences, padded.
        score: ``outside`` or ``inside_outside``; ``minimum_risk`` always takes the latter.
        decoder: one of :data:`NAMES`.

    Returns:
        binary trees; the score of a span is ``s_span``.

    Raises:
        NotFiniteError: a sentence's scores are NaN or infinite.
    """
    n_words = scores.n_words.cpu().numpy()
    span = scores.span.detach().cpu().numpy()
    if not np.isfinite(span.sum()):
        raise NotFiniteError("a sentence's span scores are NaN or infinite")
    if decoder == "minimum_risk":
        split = _span_terms(marginals(span, n_words), n_words)
    elif score == "outside":
        table = scores.table.detach().cpu().numpy()
        prefix = _flat(table + table.transpose(0, 2, 1), n_words)
        split = SplitScores(n_words, prefix, np.zeros(0), has_cross=True)
    else:
        split = _span_terms(span, n_words)
    trees = _decode(split, "chart" if decoder == "minimum_risk" else decoder)
    return replace(trees, scores=span[trees.tree_of, trees.starts, trees.ends])


def likelihoods(scores: SpanScores, trees: Trees) -> NDArray[np.float64]:
    """Return the marginal of each span of a batch's trees; that of the whole sentence is 1.

    Dropping unlikely ones leaves trees that need not be binary.
    """
    n_words = scores.n_words.cpu().numpy()
    likely = marginals(scores.span.detach().cpu().numpy(), n_words)
    found: NDArray[np.float64] = likely[trees.tree_of, trees.starts, trees.ends]
    # rounding must not cost the whole sentence its place
    found[(trees.starts == 0) & (trees.ends == n_words[trees.tree_of])] = 1.0
    return found


def _flat(tables: NDArray[np.float64], n_words: NDArray[np.int64]) -> NDArray[np.float64]:
    """Cut padded (batch, n + 1, n + 1) tables to each sentence's own cells, one after another."""
    return np.concatenate(
        [table[: n + 1, : n + 1].ravel() for table, n in zip(tables, n_words, strict=True)]
    )


def _span_terms(span: NDArray[np.float64], n_words: NDArray[np.int64]) -> SplitScores:
    """Scores of splits that are the sum of the scores of the two parts."""
    above = np.triu(span, 1)
    terms = _flat(above + above.transpose(0, 2, 1), n_words)
    return SplitScores(n_words, np.zeros_like(terms), terms, has_cross=False)


def _decode(scores: SplitScores, decoder: str) -> Trees:
    total = int(np.maximum(scores.n_words - 1, 0).sum())
    starts, ends = np.empty(total, np.int32), np.empty(total, np.int32)
    choose(DECODERS, decoder, what="decoder")(scores, starts, ends)
    return Trees.binary(scores.n_words, starts, ends)
