"""Decode labelled trees of the highest expected labelled F1, the k best, and phrase marginals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from attree.base.errors import NotFiniteError
from attree.decoding.k_best import BestLabelled, Node, Ranked
from attree.training.inside import log_partition, marginals
from attree.training.scores import SpanScores, best_trees
from attree.trees.constraints import CROSSED, Constraints, Span, crossing
from attree.trees.tree import joined, parted
from attree.trees.trees import Trees

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]

#: Gain of a required span, larger than that of all the rest of a tree.
_REQUIRED = 1e6
#: What a chain's own probability adds to its gain: it settles between equal ones, S+VP and VP+S,
#: which rounding would settle otherwise, differently in another batch.
_OWN = 1e-9
#: Stands for a probability of 0 in logarithms.
_LEAST = 1e-300


def decode_labelled(
    scores: SpanScores,
    threshold: float,
    constraints: Constraints | None = None,
    *,
    unlabelled: float = 0.0,
) -> Trees:
    """Return the trees of the highest expected labelled F1, or of a mean with unlabelled F1.

    A tree maximises ``Σ (p(span) ((1 − u) p(label | span) + u p(any label | span)) − threshold)``
    over its labels. The best threshold is half of the F1 that is reached. In a chain each label
    counts, but the span only once for unlabelled F1. Spans that gain nothing are left out, so trees
    need not be binary; the whole sentence always has a label.

    Args:
        scores: of a batch, with labels.
        threshold: what a label must gain to be kept.
        constraints: for a batch of one sentence.
        unlabelled: ``u``, the share of unlabelled F1.

    Returns:
        labelled trees; the score of a span is its log probability, its marginal the probability
        that it has a label.

    Raises:
        NotFiniteError: a sentence's scores are NaN or infinite.
    """
    chart = _LabelChart(scores, constraints)
    # a label is at most as probable as its span: spans below the threshold cannot gain
    cells = np.nonzero(chart.likely > min(threshold, 1.0 - 1e-6))
    gains = chart.gains(cells, threshold, unlabelled)
    gain, chain = np.zeros(chart.likely.shape), np.zeros(chart.likely.shape, np.int64)
    gain[cells], chain[cells] = np.maximum(gains.max(-1), 0.0), gains.argmax(-1)
    nodes = _best_nodes(gain, scores.n_words)
    return chart.trees(zip(*(column.tolist() for column in (*nodes, chain[nodes])), strict=True))


def phrase_marginals(scores: SpanScores, constraints: Constraints) -> _Floats:
    """Return the probability that each span of one sentence has a label, (n + 1, n + 1).

    Args:
        scores: of a batch of one sentence, with labels.
        constraints: that trees keep to.
    """
    chart = _LabelChart(scores, constraints)
    cells = np.nonzero(chart.likely > 0)
    chances = np.zeros(chart.likely.shape)
    chances[cells] = chart.phrases(cells)
    return chances[0]


class _LabelChart:
    """Probabilities of the spans of a batch and of their labels.

    Args:
        scores: of the batch, with labels.
        constraints: for a batch of one sentence.

    Attributes:
        likely: (sentences, n + 1, n + 1), the probability of every span, 1 for single words.

    Raises:
        NotFiniteError: a sentence's scores are NaN or infinite.
    """

    def __init__(self, scores: SpanScores, constraints: Constraints | None = None) -> None:
        self.scores, self.n_words = scores, scores.n_words.cpu().numpy()
        names = scores.label_names
        limits = Conditions(constraints, int(self.n_words[0]), names) if constraints else None
        span = scores.span.detach().cpu().numpy()
        if not np.isfinite(span.sum()):
            raise NotFiniteError("not-finite", "a sentence's span scores are NaN or infinite")
        if limits is not None:
            cells = (np.zeros_like(limits.spans[0]), *limits.spans)
            span = span + limits.weights(_label_chances(scores, cells))
        self.limits, self.likely = limits, marginals(span, self.n_words)
        # words and whole sentences are certain, cells past a sentence are impossible
        position = np.arange(self.likely.shape[1])
        self.likely[:, position[:-1], position[1:]] = position[1:] <= self.n_words[:, None]
        self.likely[np.arange(len(self.n_words)), 0, self.n_words] = 1.0

    def labels(self, cells: tuple[_Ints, ...]) -> _Floats:
        """Return the probability of every label of some spans, (cells, labels)."""
        chances = _label_chances(self.scores, cells)
        return chances if self.limits is None else self.limits.renormalise(chances, *cells[1:])

    def phrases(self, cells: tuple[_Ints, ...]) -> _Floats:
        """Return the probability that each of some spans has a label, (cells,)."""
        chances: _Floats = self.likely[cells] * (1.0 - self.labels(cells)[:, 0])
        chances[self._whole(cells)] = 1.0
        return np.clip(chances, 0.0, 1.0)

    def gains(self, cells: tuple[_Ints, ...], threshold: float, unlabelled: float) -> _Floats:
        """Return the gain of each chain on some spans, (cells, chains), -inf if not allowed."""
        credit, size = _credit(self.scores.label_names, unlabelled)
        # by torch, which keeps to the threads that it was given: numpy's own would wait by spinning
        shares = torch.from_numpy(self.labels(cells)) @ torch.from_numpy(credit)
        gains: _Floats = shares.numpy() * self.likely[cells][:, None] - threshold * size
        gains[self._whole(cells), 0] = -np.inf
        if self.limits is not None:
            gains[~self.limits.permitted[cells[1:]]] = -np.inf
            gains += _REQUIRED * self.limits.required[cells[1:]][:, None]
        return gains

    def _whole(self, cells: tuple[_Ints, ...]) -> NDArray[np.bool_]:
        """Return a mask of the spans that are whole sentences, (cells,) bool."""
        tree, start, end = cells
        whole: NDArray[np.bool_] = (start == 0) & (end == self.n_words[tree])
        return whole

    def trees(self, phrases: Iterable[tuple[int, int, int, int]]) -> Trees:
        """Return the trees of the batch, with a score and a marginal of each span.

        Args:
            phrases: sentence, start, end and label number of each, in pre-order.
        """
        chains = [parted(name) for name in self.scores.label_names]
        fixed = {} if self.limits is None else self.limits.fixed
        spans: list[list[Span]] = [[] for _ in self.n_words]
        names: list[list[str]] = [[] for _ in self.n_words]
        for tree, start, end, label in phrases:
            chain = fixed.get((start, end)) or chains[label]
            spans[tree] += [(start, end)] * len(chain)
            names[tree] += chain
        trees = Trees.from_spans(self.n_words, spans, names)
        cells = (trees.tree_of, trees.starts.astype(np.int64), trees.ends.astype(np.int64))
        chances = np.log(np.maximum(self.likely[cells], _LEAST))
        return replace(trees, scores=chances, marginals=self.phrases(cells))


def _label_chances(scores: SpanScores, cells: tuple[_Ints, ...]) -> _Floats:
    """Return the probability of every label of some spans without constraints, (cells, labels)."""
    assert scores.labels is not None
    index = tuple(torch.from_numpy(axis).to(scores.labels.device) for axis in cells)
    chances: _Floats = scores.labels.detach()[index].double().softmax(-1).cpu().numpy()
    if not np.isfinite(chances.sum()):
        raise NotFiniteError("not-finite", "a sentence's label scores are NaN or infinite")
    return chances


@lru_cache(maxsize=8)
def _credit(names: tuple[str, ...], unlabelled: float) -> tuple[_Floats, _Floats]:
    """Return how much one chain gets right of another, (chains, chains), and the chains' sizes.

    Each label counts ``1 − unlabelled``, and a span with a label ``unlabelled``. A chain gets
    `_OWN` more right of itself.
    """
    chains = [Counter(parted(name)) for name in names]
    shared = np.array([[(a & b).total() for b in chains] for a in chains], np.float64)
    size = np.array([chain.total() for chain in chains], np.float64)
    phrase = np.minimum(size, 1.0)
    shared = (1.0 - unlabelled) * shared + unlabelled * np.outer(phrase, phrase)
    return shared + _OWN * np.diag(phrase), (1.0 - unlabelled) * size + unlabelled * phrase


def _best_nodes(gain: _Floats, n_words: torch.Tensor) -> tuple[_Ints, ...]:
    """Return the spans, words too, of the binary trees of the highest gain, in pre-order.

    Args:
        gain: (sentences, n + 1, n + 1), 0 or more, of every span.
        n_words: (sentences,).

    Returns:
        sentence, start and end of each span.
    """
    trees = best_trees(torch.from_numpy(gain), n_words)
    sentence = np.repeat(np.arange(len(trees)), trees.n_words)
    word = np.arange(len(sentence)) - trees.word_offsets[sentence]
    tree = np.concatenate((trees.tree_of, sentence))
    start, end = np.concatenate((trees.starts, word)), np.concatenate((trees.ends, word + 1))
    order = np.lexsort((-end, start, tree))
    return tree[order], start[order], end[order]


class Conditions:
    """Which labels each span of one sentence may have under constraints.

    The probability of a labelled tree under constraints is the model's, renormalised over all trees
    that keep to them. A span may have the label that is given; any but the empty one if it is a
    phrase without a known label; only the empty one if it is no phrase. The log of the total
    probability of its permitted labels is added to the span's score.

    Args:
        constraints: of the sentence.
        n_words: number of words.
        names: the parser's labels, the empty one first. A given label that is not among them is
            copied to the tree, and permits every label but the empty one while decoding.

    Attributes:
        crossed: (n + 1, n + 1) bool, True for spans that no tree may have.
        permitted: (n + 1, n + 1, labels) bool.
        required: (n + 1, n + 1) bool, True for spans that must be in the tree.
        fixed: span → its known labels, upper first.
        spans: starts and ends of the spans with a constraint.

    Raises:
        AttreeError: a span outside the sentence.
    """

    def __init__(self, constraints: Constraints, n_words: int, names: tuple[str, ...]) -> None:
        self.crossed = constraints.crossed(n_words)
        empty = np.arange(len(names)) == 0
        self.permitted = np.ones((*self.crossed.shape, len(names)), bool)
        self.required = np.zeros_like(self.crossed)
        self.fixed: dict[Span, list[str]] = {}
        for span in constraints.forbidden:
            self.permitted[span] = empty
        for span, labels in constraints.chains().items():
            self.required[span] = True
            chain = [label for label in labels if label is not None]
            if chain:
                self.fixed[span] = chain
            label = joined(chain)
            is_label = [name == label for name in names]
            self.permitted[span] = is_label if label in names[1:] else ~empty
        self.spans = np.nonzero(~self.permitted.all(2))

    def weights(self, chances: _Floats) -> _Floats:
        """Return what to add to span scores, (n + 1, n + 1).

        Args:
            chances: label probabilities of ``spans``, (spans, labels).
        """
        weights = np.where(self.crossed, CROSSED, 0.0)
        shares = (chances * self.permitted[self.spans]).sum(1)
        weights[self.spans] += np.log(np.maximum(shares, _LEAST))
        return weights

    def renormalise(self, chances: _Floats, starts: _Ints, ends: _Ints) -> _Floats:
        """Return the label probabilities of some spans among their permitted labels."""
        kept = np.maximum(chances, _LEAST) * self.permitted[starts, ends]
        shares: _Floats = kept / kept.sum(1, keepdims=True)
        return shares


def best_labelled(
    scores: SpanScores, threshold: float, k: int, *, unlabelled: float = 0.0
) -> Ranked:
    """Return the k labelled trees of the highest expected gain, all different, the best first.

    A tree's score is the sum that :func:`decode_labelled` maximises; its tree comes first. A tree's
    probability is summed over its binarisations, and conditioned on the whole sentence having a
    label.

    Args:
        scores: of a batch of one sentence, with labels.
        threshold: what a label must gain.
        k: number of trees; fewer are returned if there are fewer.
        unlabelled: the share of unlabelled F1.

    Raises:
        NotFiniteError: the sentence's scores are NaN or infinite.
    """
    chart = _LabelChart(scores)
    side = int(scores.n_words[0]) + 1
    gains = np.zeros((side, side, len(scores.label_names)))
    starts, ends = np.triu_indices(side, 1)
    gains[starts, ends] = chart.gains((np.zeros_like(starts), starts, ends), threshold, unlabelled)
    label, gain = gains.argmax(2), np.maximum(gains.max(2), 0.0)
    _, start, end = _best_nodes(gain[None], scores.n_words)
    nodes = zip(start.tolist(), end.tolist(), label[start, end].tolist(), strict=True)
    totals, ranked = _rank_trees(gains, [node for node in nodes if node[2]], k)
    trees = [chart.trees([(0, *node) for node in nodes]) for nodes in ranked]
    return Ranked(Trees.concatenate(trees), totals, _probabilities(scores, ranked))


def best_optional(span: _Floats, first: Trees, k: int) -> Ranked:
    """Return the k different trees with the highest sums of the scores of their phrases.

    Phrases have two words or more.

    Args:
        span: (n + 1, n + 1), the score of every span of one sentence.
        first: the tree that the parser returns, put first among equal ones.
        k: number of trees; fewer are returned if there are fewer.
    """
    gains = np.stack([np.zeros_like(span), span], 2)
    word = np.arange(len(span) - 1)
    gains[word, word + 1, 1] = -np.inf  # a word is no phrase
    totals, ranked = _rank_trees(gains, [(start, end, 1) for start, end in first.of(0).spans], k)
    spans = [[(start, end) for start, end, _ in nodes] for nodes in ranked]
    trees = Trees.from_spans([len(span) - 1] * len(spans), spans)
    return Ranked(replace(trees, scores=span[trees.starts, trees.ends]), totals)


def _rank_trees(gains: _Floats, first: list[Node], k: int) -> tuple[list[float], list[list[Node]]]:
    """Return scores and phrases of the k best trees, with the parser's own tree first."""
    ranked = list(BestLabelled(gains).nodes(k))
    others = [entry for entry in ranked if entry[1] != first]
    scores, phrases = zip(*[(ranked[0][0], first), *others][:k], strict=True)
    return list(scores), list(phrases)


def _probabilities(scores: SpanScores, trees: Sequence[Sequence[Node]]) -> list[float]:
    """Return the probability of each labelled tree, summed over its binarisations."""
    assert scores.labels is not None
    span, n_words = scores.span.cpu(), scores.n_words.cpu()
    labels = scores.labels[0].double().log_softmax(-1).cpu().numpy()
    whole = labels[0, int(n_words[0])]
    whole -= np.log(-np.expm1(whole[0]))  # it has a label in every tree
    of_all = log_partition(span, n_words)
    probabilities = []
    for phrases in trees:
        label = np.zeros(labels.shape[:2], np.int64)
        for start, end, number in phrases:
            label[start, end] = number
        chances = np.take_along_axis(labels, label[:, :, None], 2)[:, :, 0]
        allowed = torch.from_numpy(~crossing([node[:2] for node in phrases], len(labels)))[None]
        of_tree = log_partition(span + torch.from_numpy(chances), n_words, allowed)
        words = float(np.diagonal(chances, 1).sum())
        probabilities.append(float(np.exp(float(of_tree - of_all) + words)))
    return probabilities
