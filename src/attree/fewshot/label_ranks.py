"""The k best trees of one sentence that need not be binary, and probabilities of labelled ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from attree.constraints import crossing
from attree.decoding.k_best import BestLabelled, Node, Ranked
from attree.fewshot.inside import log_partition
from attree.fewshot.label_trees import best_spans, label_gains, labelled_trees, span_chances
from attree.fewshot.scores import SpanScores
from attree.trees import Trees


def best_labelled(scores: SpanScores, threshold: float, k: int) -> Ranked:
    """Return the k labelled trees of the highest expected gain, all different, the best first.

    A tree's score is ``Σ (p(span) p(label | span) − threshold)`` over its labels, as in
    :func:`attree.fewshot.label_trees.decode_labelled`, whose tree is the first. Its probability is
    summed over its binarisations, among the trees whose whole sentence has a label.

    Args:
        scores: of a batch of one sentence, with labels.
        threshold: what a label must gain.
        k: how many; fewer come where there are fewer.

    Raises:
        NotFiniteError: the sentence's scores are NaN or infinite.
    """
    likely = span_chances(scores)
    gains = _gains(scores, likely, threshold)
    totals, found = _ranked(gains, _own(gains), k)
    trees = [labelled_trees(scores, likely, [(0, *node) for node in one]) for one in found]
    chances = _Chances(scores)
    return Ranked(Trees.concatenate(trees), totals, [chances.of(one) for one in found])


def best_optional(span: NDArray[np.float64], own: Trees, k: int) -> Ranked:
    """Return the k trees of phrases of two words and more whose scores sum highest, all different.

    Args:
        span: (n + 1, n + 1), the score of every span of one sentence.
        own: the tree that the parser takes, which comes first.
        k: how many; fewer come where there are fewer.
    """
    gains = np.stack([np.zeros_like(span), span], 2)
    place = np.arange(len(span) - 1)
    gains[place, place + 1, 1] = -np.inf  # a word is no phrase
    phrases = [(start, end, 1) for start, end in own.of(0).spans]
    totals, found = _ranked(gains, phrases, k)
    spans = [[(start, end) for start, end, _ in one] for one in found]
    trees = Trees.from_spans([len(span) - 1] * len(spans), spans)
    return Ranked(replace(trees, scores=span[trees.starts, trees.ends]), totals)


def _ranked(
    gains: NDArray[np.float64], own: list[Node], k: int
) -> tuple[list[float], list[list[Node]]]:
    """Return scores and phrases of the best trees; of those of one score, the own one is first."""
    found = list(BestLabelled(gains).nodes(k))
    others = [one for one in found if one[1] != own]
    ranked = [(found[0][0], own), *others][:k]
    return [score for score, _ in ranked], [phrases for _, phrases in ranked]


def _gains(
    scores: SpanScores, likely: NDArray[np.float64], threshold: float
) -> NDArray[np.float64]:
    """(n + 1, n + 1, chains): what each chain of every span gains."""
    side = int(scores.n_words[0]) + 1
    starts, ends = np.triu_indices(side, 1)
    found = np.zeros((side, side, len(scores.label_names)))
    places = (np.zeros_like(starts), starts, ends)
    found[starts, ends] = label_gains(scores, likely, places, threshold)
    return found


def _own(gains: NDArray[np.float64]) -> list[Node]:
    """Return the phrases of the tree that the parser takes."""
    label, gain = gains.argmax(2), np.maximum(gains.max(2), 0.0)
    spans = best_spans(gain, len(gains) - 1).tolist()
    return [(start, end, int(label[start, end])) for start, end in spans if label[start, end]]


class _Chances:
    """Probabilities of labelled trees of one sentence.

    Args:
        scores: of a batch of one sentence, with labels.
    """

    def __init__(self, scores: SpanScores) -> None:
        assert scores.labels is not None
        self._span, self._n_words = scores.span.cpu(), scores.n_words.cpu()
        self._labels = scores.labels[0].double().log_softmax(-1).cpu().numpy()
        whole = self._labels[0, int(self._n_words[0])]
        whole -= np.log(-np.expm1(whole[0]))  # it has a label in every tree
        self._all = log_partition(self._span, self._n_words)

    def of(self, phrases: list[Node]) -> float:
        """Return the probability of a tree: the sum over its binarisations."""
        side = len(self._labels)
        said = np.zeros((side, side), np.int64)
        for start, end, label in phrases:
            said[start, end] = label
        chances = np.take_along_axis(self._labels, said[:, :, None], 2)[:, :, 0]
        allowed = ~crossing([node[:2] for node in phrases], side)[None]
        table = self._span + torch.from_numpy(chances)
        trees = log_partition(table, self._n_words, torch.from_numpy(allowed))
        words = float(np.diagonal(chances, 1).sum())
        return float(np.exp(float(trees - self._all) + words))
