"""Decode one sentence under constraints, by any decoder of split scores, or branch it right.

Penalties in the scores keep trees to the constraints: see :meth:`Constraints.penalties`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attree.base.errors import AttreeError, NotFiniteError
from attree.decoding.batch import scores_of_spans
from attree.decoding.decoders import GREEDY, MAXIMISED, binary_trees, chart, with_terms
from attree.decoding.k_best import BestTrees, Ranked
from attree.decoding.kernels import add_best
from attree.scoring.tables import SplitScores, split_scores, transform
from attree.treebank.binarise import binarise
from attree.trees.constraints import Constraints
from attree.trees.tree import NO_LABEL
from attree.trees.trees import Trees


def decode_under(scores: SplitScores, decoder: str, constraints: Constraints) -> Trees:
    """Return the tree of one sentence under constraints.

    Args:
        scores: of the sentence, not changed.
        decoder: a name of :data:`attree.decoding.DECODERS`.
        constraints: required and forbidden spans. Forbidden spans are never in the tree: if no
            binary tree can avoid one, the node above it has more than two children.

    Returns:
        the tree; the score of a span is that of its split.

    Raises:
        AttreeError: constraints outside the sentence.
    """
    penalties = constraints.penalties(int(scores.n_words[0]))
    penalties = (penalties + penalties.T).ravel()
    if decoder in GREEDY:
        # a split must also count the penalties that its parts cannot avoid
        add_best(scores.n_words, penalties)
    maximised = _maximised(scores, decoder)
    penalised = replace(maximised, terms=maximised.terms + penalties)
    trees = binary_trees(scores.n_words, partial(GREEDY.get(decoder, chart), penalised))
    forbidden = set(constraints.forbidden)
    spans = zip(trees.starts.tolist(), trees.ends.tolist(), strict=True)
    allowed = np.array([span not in forbidden for span in spans], bool)
    return replace(trees, scores=scores_of_spans(trees, scores)).keep(allowed)


def _maximised(scores: SplitScores, decoder: str) -> SplitScores:
    """Return the scores that a decoder of :data:`MAXIMISED` maximises; the given ones stay."""
    return MAXIMISED[decoder](replace(scores, terms=scores.terms.copy()))


def branched_right(n_words: int, constraints: Constraints, *, labelled: bool) -> Trees:
    """Return the tree of one sentence, right-branching except for required spans.

    Args:
        n_words: number of words.
        constraints: required spans, and forbidden ones, which are left out.
        labelled: whether spans have labels, :data:`NO_LABEL` if not known, and include one-word
            phrases.

    Raises:
        AttreeError: constraints outside the sentence.
    """
    constraints.check(n_words)
    chains = constraints.chains()
    made = {(start, end) for start, _, end in binarise(n_words, chains).tolist()}
    if labelled:
        made |= set(chains)
    spans = sorted(made - set(constraints.forbidden), key=lambda span: (span[0], -span[1]))
    if not labelled:
        return Trees.from_spans([n_words], [spans])
    named = [(span, label or NO_LABEL) for span in spans for label in chains.get(span, [None])]
    return Trees.from_spans([n_words], [[span for span, _ in named]], [[x for _, x in named]])


@dataclass(frozen=True, slots=True)
class SplitChart:
    """Split scores of one sentence (:class:`attree.parsers.batches.SentenceScores`).

    Attributes:
        scores: of the splits.
        decoder: a name of :data:`attree.decoding.DECODERS`.
    """

    scores: SplitScores
    decoder: str

    @classmethod
    def of(cls, values: NDArray[np.float32], n_words: ArrayLike, **recipe: str) -> SplitChart:
        """Score one sentence; arguments as of :func:`attree.decoding.batch.decode`.

        Raises:
            NotFiniteError: an association with NaN or infinity in it.
        """
        words = np.asarray(n_words, np.int64)
        scores = split_scores(transform(values, recipe["association"]), words, recipe["score"])
        if scores.not_finite >= 0:
            raise NotFiniteError("not-finite", "this sentence's association is NaN or infinite")
        return cls(scores, recipe["decoder"])

    def trees(self, constraints: Constraints) -> Trees:
        """Return the tree under constraints; the score of a span is that of its split."""
        return decode_under(self.scores, self.decoder, constraints)

    def best(self, k: int) -> Ranked:
        """Return the k best trees by what the decoder maximises, with split scores of spans.

        Raises:
            AttreeError: the decoder does not compare whole trees.
        """
        if self.decoder in GREEDY:
            problem = f"this parser's decoder, {self.decoder}, compares splits and not whole trees"
            fix = "take a parser that decodes by a chart, such as upio-log or tree-crf-full"
            raise AttreeError("no-whole-trees", problem, fix=fix)
        maximised = _maximised(self.scores, self.decoder)
        n, above = int(self.scores.n_words[0]), 0.0
        if self.decoder == "normalised_chart":
            # normalisers are in the terms of splits, except that of the whole sentence
            above = maximised.terms[n] - with_terms(self.scores).terms[n]
        totals, trees = [], []
        for total, spans in BestTrees(maximised).first(k):
            totals.append(total + above)
            tree = Trees.from_spans([n], [spans])
            trees.append(replace(tree, scores=scores_of_spans(tree, self.scores)))
        return Ranked(Trees.concatenate(trees), totals)

    def marginals(self, constraints: Constraints) -> NDArray[np.float64]:
        """Refuse: the scores of splits are no distribution."""
        raise no_distribution()


def no_distribution() -> AttreeError:
    """Return the error for a parser without probabilities of trees."""
    fix = "take one that `attree train` made by a tree CRF, such as tree-crf-full"
    return AttreeError("no-distribution", "this parser has no distribution over trees", fix=fix)
