"""Self-training: a few-shot parser learns from raw sentences that it parsed itself and is sure of.

The row FSS of the article's few-shot table, in the manner of Shi, Livescu and Gimpel (2020, *On the
Role of Supervision in Unsupervised Constituency Parsing*), who add self-training to a supervised
span parser of a few trees. A sentence is as sure as the phrases that the parser found in it score
on average above 0, the score of no phrase::

    sure(x) = mean of s(i, j) over the phrases of the tree of x, but the whole sentence

The surer half of the raw sentences stands beside the given trees: of every batch they have one half
and the parser's own trees the other. Training starts anew each round.

Ours, beside the published figures: the span parser is :mod:`attree.training.parts` on a frozen
encoder; the raw sentences are the others of the treebank that trees are drawn from, whose trees are
not looked at; one round; no augmentation by swapped subtrees, which needs labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.encoder.load import Encoder
from attree.training.fit import fit
from attree.training.gold import GoldTrees, gold_tree
from attree.training.parser import TrainedParser
from attree.training.parts import BatchSource
from attree.training.recipes import TrainingPlan
from attree.trees.trees import Trees

#: The share of the raw sentences that is trained on.
_KEPT = 0.5
#: Those of the given trees and of the parser's own in every batch.
_HALVES = (0.5, 0.5)

#: Raw sentences that are parsed: 200 steps take 1,000 of ten trees a batch.
_MOST = 2000


def fit_in_rounds(
    encoder: Encoder,
    trees: GoldTrees,
    plan: TrainingPlan,
    raw: Sequence[Sequence[str]],
    **how: Any,
) -> TrainedParser:
    """Train a parser as :func:`attree.training.fit.fit` does, then once more a round of its recipe.

    Args:
        encoder: a loaded encoder.
        trees: to train on.
        plan: how.
        raw: the words of further sentences.
        how: as for :func:`~attree.training.fit.fit`.

    Raises:
        AttreeError: as by it; or no raw sentence of three words and more that fits the encoder.
    """
    if plan.recipe.rounds and len(trees.sources) > 1:
        problem = "self-training leaves no room for trees of another set"
        fix = "give one treebank, or train span-parser"
        raise AttreeError("two-treebanks", problem, fix=fix)
    parser = fit(encoder, trees, plan, **how)
    if not plan.recipe.rounds:
        return parser
    usable = _usable(encoder, raw, plan.seed)
    for _ in range(plan.recipe.rounds):
        parsed = sure_trees(parser, encoder, usable)
        parser = fit(encoder, trees + parsed, replace(plan, shares=_HALVES), **how)
        # given trees are those that somebody made
        parser.about |= {"trees": len(trees.gold), "sentences": trees.sentence}
    parser.about["rounds"] = plan.recipe.rounds
    return parser


def _usable(encoder: Encoder, raw: Sequence[Sequence[str]], seed: int) -> list[list[str]]:
    """Draw raw sentences that a tree says something of and the encoder can take."""
    order = np.random.default_rng(seed).permutation(len(raw))
    long = [list(raw[row]) for row in order if len(raw[row]) > 2][:_MOST]
    pieces = encoder.tokenise(long)
    usable = [words for words, split in zip(long, pieces, strict=True) if not split.too_long]
    if not usable:
        problem = "no other sentence of three words and more is left to train on as raw text"
        fix = "draw fewer trees than there are, or train span-parser"
        raise AttreeError("no-sentences", problem, fix=fix)
    return usable


def sure_trees(
    parser: TrainedParser, encoder: Encoder, sentences: Sequence[list[str]]
) -> GoldTrees:
    """Parse raw sentences and return the surer half of the trees that have a phrase.

    Raises:
        AttreeError: in none a phrase is found.
    """
    trees = parser.decode(BatchSource.of(encoder, sentences, parser.scorer))
    sure = sureness(trees)
    ranked = np.argsort(-sure, kind="stable")[: np.isfinite(sure).sum()]
    kept = np.sort(ranked[: max(round(_KEPT * len(sentences)), 1)]).tolist()
    if not kept:
        problem = "the parser of the first round finds no phrase in the raw sentences"
        fix = "train span-parser, or on more trees or steps"
        raise AttreeError("no-phrases", problem, fix=fix)
    gold = []
    for tree in kept:
        nodes = slice(trees.offsets[tree], trees.offsets[tree + 1])
        spans = zip(trees.starts[nodes].tolist(), trees.ends[nodes].tolist(), strict=True)
        gold.append(gold_tree(len(sentences[tree]), [*spans], name=f"raw sentence {tree}"))
    return GoldTrees(kept, [sentences[tree] for tree in kept], gold)


def sureness(trees: Trees) -> NDArray[np.float64]:
    """Return the mean score of each tree's phrases but the whole sentence; −inf where none is."""
    assert trees.scores is not None
    inner = trees.ends - trees.starts < trees.n_words[trees.tree_of]
    tree = trees.tree_of[inner]
    counts = np.bincount(tree, minlength=len(trees))
    sums = np.bincount(tree, trees.scores[inner], minlength=len(trees))
    return np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf)
