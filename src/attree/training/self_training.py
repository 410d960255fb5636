"""Self-training: train a few-shot parser on raw sentences that it parsed itself with confidence.

This is the row FSS of the article's few-shot table, after Shi, Livescu and Gimpel (2020, *On the
Role of Supervision in Unsupervised Constituency Parsing*), who add self-training to a supervised
span parser trained on a few trees. The confidence in a tree is the mean score of its phrases::

    sure(x) = mean of s(i, j) over the phrases of the tree of x, without the whole sentence

A score of 0 means no phrase. The more confident half of the raw sentences is added to the given
trees; each batch is half given trees, half parsed ones. Training starts anew each round.

Differences from the published method: the span parser is that of :mod:`attree.training.parts`, on a
frozen encoder; the raw sentences are the remaining ones of the treebank, without their trees; there
is one round; and no augmentation by swapped subtrees, which needs labels.
"""

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

#: Share of the raw sentences that is trained on.
_KEPT = 0.5
#: Shares of given and of parsed trees in every batch.
_HALVES = (0.5, 0.5)

#: Most raw sentences that are parsed: 200 steps of ten trees a batch use 1,000.
_MOST = 2000


def fit_in_rounds(
    encoder: Encoder, trees: GoldTrees, plan: TrainingPlan, raw: Sequence[Sequence[str]], **how: Any
) -> TrainedParser:
    """Train a parser as :func:`attree.training.fit.fit` does, then again for each round.

    Args:
        encoder: a loaded encoder.
        trees: to train on.
        plan: of the training.
        raw: words of raw sentences.
        how: further arguments of :func:`~attree.training.fit.fit`.

    Raises:
        AttreeError: as :func:`~attree.training.fit.fit`; or no raw sentence has three words or
            more and fits the encoder.
    """
    if plan.recipe.rounds and len(trees.sources) > 1:
        problem = "self-training takes trees of one treebank only"
        raise AttreeError("two-treebanks", problem, fix="give one treebank, or train span-parser")
    parser = fit(encoder, trees, plan, **how)
    if not plan.recipe.rounds:
        return parser
    usable = _usable(encoder, raw, plan.seed)
    for _ in range(plan.recipe.rounds):
        parsed = sure_trees(parser, encoder, usable)
        parser = fit(encoder, trees + parsed, replace(plan, shares=_HALVES), **how)
        # the record counts the given trees only
        parser.about |= {"trees": len(trees.gold), "sentences": trees.sentence}
    parser.about["rounds"] = plan.recipe.rounds
    return parser


def _usable(encoder: Encoder, raw: Sequence[Sequence[str]], seed: int) -> list[list[str]]:
    """Draw raw sentences of three words and more that fit the encoder."""
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
    """Parse raw sentences and return the more confident half of the trees with a phrase.

    Raises:
        AttreeError: no tree has a phrase.
    """
    trees = parser.decode(BatchSource.of(encoder, sentences, parser.scorer))
    sure = sureness(trees)
    ranked = np.argsort(-sure, kind="stable")[: np.isfinite(sure).sum()]
    kept = np.sort(ranked[: max(round(_KEPT * len(sentences)), 1)]).tolist()
    if not kept:
        problem = "the parser of the first round finds no phrase in the raw sentences"
        raise AttreeError("no-phrases", problem, fix="train span-parser, or on more trees or steps")
    words = [sentences[tree] for tree in kept]
    gold = [
        gold_tree(len(tree.words), tree.spans, name=f"raw sentence {row}")
        for row, tree in zip(kept, trees.take(kept).each(words), strict=True)
    ]
    return GoldTrees(kept, words, gold)


def sureness(trees: Trees) -> NDArray[np.float64]:
    """Return the mean score of each tree's phrases without the whole sentence, −inf if none."""
    assert trees.scores is not None
    inner = trees.ends - trees.starts < trees.n_words[trees.tree_of]
    tree = trees.tree_of[inner]
    counts = np.bincount(tree, minlength=len(trees))
    sums = np.bincount(tree, trees.scores[inner], minlength=len(trees))
    return np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf)
