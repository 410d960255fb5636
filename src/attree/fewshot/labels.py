"""Labels of spans, and the tree of the highest expected labelled F1.

The probability of a labelled tree is that of its binary tree times, for each of its spans, that of
the label given the span::

    p(tree, labels) = exp(Σ s(i, j)) / Z · Π p(label | i, j)

where a span that only binarisation makes has the empty label. The labels have a distribution of
their own at each span, so the structure need not pay for them however few the trees.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attree.compiled import kernel
from attree.constraints import Constraints
from attree.encoder.load import Encoder
from attree.errors import NotFiniteError
from attree.fewshot.conditions import Conditions
from attree.fewshot.gold import CHAIN, IN_LABEL, SOME, UNSAID, GoldBatch
from attree.fewshot.inside import log_partition, marginals
from attree.fewshot.parts import BoundaryReader, Shape, dropout
from attree.fewshot.recipes import TrainingPlan
from attree.fewshot.scores import SpanScores
from attree.trees import Trees

#: What a required span gains: more than all the rest of a tree.
_REQUIRED = 1e6


class NameReader(BoundaryReader):
    """A part that scores names, linear in the states on both sides of the boundaries it reads.

    Args:
        names: what may be found: labels, tags.
        width: of a state, all layers of them together.
        rate: dropout on the states.
        layers: hidden states read.
    """

    #: How many boundaries have weights of their own, and how many biases there are.
    ends: ClassVar[int]
    biases: ClassVar[int]

    def __init__(
        self, names: tuple[str, ...], width: int, *, rate: float, layers: tuple[int, ...]
    ) -> None:
        super().__init__(rate, layers)
        self.names = names
        self.weights = nn.Parameter(torch.zeros(self.ends, 2 * width, len(names)))
        self.bias = nn.Parameter(torch.zeros(self.biases, len(names)))

    @classmethod
    def sizes(cls, shape: Shape, width: int) -> tuple[tuple[str, ...], int]:
        """Return the names and the width."""
        return tuple(shape["names"]), width


class LabelPart(NameReader):
    """Probabilities of labels, linear in the states at a span's two ends before the softmax.

    A word by itself has other weights than a span, and the whole sentence a further bias. The span
    scores are 0. The empty label is the first of the names.
    """

    #: Where a span begins, where it ends, where a word begins, where it ends.
    ends = 4
    #: Of a span, of a word, and added for the whole sentence.
    biases = 3

    @classmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return the layers, by default the plan's lowest, and the labels of its trees."""
        layers = plan.recipe.label_layers or plan.layers[:1]
        here = [layer for layer in layers if layer <= encoder.n_layers]
        return {"layers": here, "hidden": encoder.hidden_size, "names": ["", *plan.labels]}

    def logits(
        self,
        features: tuple[Tensor, Tensor],
        n_words: Tensor,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """(sentences, words + 1, words + 1, labels), before the softmax."""
        both = dropout(torch.cat(features, -1), self.rate, generator)
        begin, end, word_begin, word_end = (both @ weights for weights in self.weights)
        spans = begin[:, :, None] + end[:, None] + self.bias[0]
        sentence = torch.arange(len(n_words), device=n_words.device)
        spans[sentence, 0, n_words] += self.bias[2]
        place = torch.arange(spans.shape[1] - 1, device=spans.device)
        spans[:, place, place + 1] = word_begin[:, :-1] + word_end[:, 1:] + self.bias[1]
        return spans

    def scores(
        self,
        features: tuple[Tensor, Tensor],
        n_words: Tensor,
        generator: torch.Generator | None = None,
    ) -> SpanScores:
        """Score every label of every span of a batch."""
        labels = self.logits(features, n_words, generator)
        none = labels.new_zeros(labels.shape[:3], dtype=torch.float64)
        return SpanScores(none, none, n_words, labels, self.names)


def labelled_tree_crf(scores: SpanScores, gold: GoldBatch, score: str, margin: float) -> Tensor:
    """``−log p(gold labels and brackets)``, summed over the binary trees that cross no bracket.

    What a half-known tree does not say is summed over too.
    """
    assert scores.labels is not None
    said = _said(gold, scores.label_names, tuple(scores.span.shape)).to(scores.span.device)
    chances = scores.labels.log_softmax(-1)
    found = chances.gather(-1, said.clamp(min=0)[..., None])[..., 0].double()
    if (said < 0).any():
        labelled = chances[..., 1:].logsumexp(-1).double()
        found = torch.where(said == SOME, labelled, found.masked_fill(said == UNSAID, 0.0))
    place = torch.arange(found.shape[1] - 1, device=found.device)
    words = (found[:, place, place + 1] * (place < scores.n_words[:, None])).sum(1)
    free = log_partition(scores.span, scores.n_words)
    return free - log_partition(scores.span + found, scores.n_words, gold.allowed) - words


def _said(gold: GoldBatch, names: tuple[str, ...], shape: tuple[int, ...]) -> Tensor:
    """Return the label of every span, :data:`SOME` or :data:`UNSAID`."""
    code = {name: place for place, name in enumerate(names)}
    target = torch.zeros(shape, dtype=torch.int64)
    for table, tree in zip(target, gold.trees, strict=True):
        said, other = tree.said(code)
        table.fill_(other)
        for (start, end), label in said.items():
            table[start, end] = label
    return target


def decode_labelled(
    scores: SpanScores, threshold: float, constraints: Constraints | None = None
) -> Trees:
    """Return the trees of the highest expected labelled F1.

    The tree maximises ``Σ (p(span) p(label | span) − threshold)`` over its labels; for the F1 that
    it reaches, half of it is the best threshold. A chain counts each of its labels. Spans that
    gain nothing are left out, so that trees are not binary; the whole sentence always has a label.

    Args:
        scores: with labels.
        threshold: what a label must gain.
        constraints: of a batch of one sentence.

    Returns:
        labelled trees; the score of a span is the log of its probability, its marginal that of the
        span with any label.

    Raises:
        NotFiniteError: a sentence's scores are NaN or infinite.
    """
    known = _conditions(scores, constraints)
    likely, n_words = _likely(scores, known), scores.n_words.cpu().numpy()
    # a label is right less often than its span: what is less likely cannot gain
    places = np.nonzero(likely > min(threshold, 1.0 - 1e-6))
    gain, chain = np.zeros(likely.shape), np.zeros(likely.shape, np.int64)
    gain[places], chain[places] = _gains(scores, likely, places, threshold, known)
    names = [_chain(name) for name in scores.label_names]
    given = {} if known is None else known.given
    found: list[tuple[int, int, int, str, float]] = []
    for tree, n in enumerate(n_words.tolist()):
        for start, end in _best_spans(gain[tree], n).tolist():
            chance = float(np.log(max(likely[tree, start, end], 1e-300)))
            labels = given.get((start, end)) or names[chain[tree, start, end]]
            found += [(tree, start, end, label, chance) for label in labels]
    trees = _trees(n_words, found)
    places = (trees.tree_of, trees.starts.astype(np.int64), trees.ends.astype(np.int64))
    return replace(trees, marginals=_of_phrases(scores, likely, places, known))


def phrase_marginals(scores: SpanScores, constraints: Constraints) -> NDArray[np.float64]:
    """Return the probability of each span of one sentence as a phrase that has a label.

    Args:
        scores: of a batch of one sentence, with labels.
        constraints: under which.
    """
    known = _conditions(scores, constraints)
    likely = _likely(scores, known)
    places = np.nonzero(likely > 0)
    found = np.zeros(likely.shape)
    found[places] = _of_phrases(scores, likely, places, known)
    return found[0]


def _of_phrases(
    scores: SpanScores,
    likely: NDArray[np.float64],
    places: tuple[NDArray[np.int64], ...],
    known: Conditions | None,
) -> NDArray[np.float64]:
    """Return the probabilities of some spans as phrases that have a label."""
    tree, start, end = places
    found: NDArray[np.float64] = likely[places] * (1.0 - _chances(scores, places, known)[:, 0])
    found[(start == 0) & (end == scores.n_words.cpu().numpy()[tree])] = 1.0
    return np.clip(found, 0.0, 1.0)


def _conditions(scores: SpanScores, constraints: Constraints | None) -> Conditions | None:
    if not constraints:
        return None
    return Conditions.of(constraints, int(scores.n_words[0]), scores.label_names)


def _likely(scores: SpanScores, known: Conditions | None) -> NDArray[np.float64]:
    """(sentences, n + 1, n + 1): the probability of every span, 1 of words."""
    span, n_words = scores.span.detach().cpu().numpy(), scores.n_words.cpu().numpy()
    if not np.isfinite(span.sum()):
        raise NotFiniteError("a sentence's span scores are NaN or infinite")
    if known is not None:
        starts, ends = known.spans
        span = span + known.weights(_chances(scores, (np.zeros_like(starts), starts, ends)))
    likely = marginals(span, n_words)
    _certain(likely, n_words)
    return likely


def _chances(
    scores: SpanScores, places: tuple[NDArray[np.int64], ...], known: Conditions | None = None
) -> NDArray[np.float64]:
    """(places, labels): the probability of every label of some spans."""
    assert scores.labels is not None
    there = tuple(torch.from_numpy(each).to(scores.labels.device) for each in places)
    chances = scores.labels.detach()[there].double().softmax(-1).cpu().numpy()
    if not np.isfinite(chances.sum()):
        raise NotFiniteError("a sentence's label scores are NaN or infinite")
    return chances if known is None else known.renormalised(chances, *places[1:])


def _gains(
    scores: SpanScores,
    likely: NDArray[np.float64],
    places: tuple[NDArray[np.int64], ...],
    threshold: float,
    known: Conditions | None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return what the best chain of some spans gains, 0 or more, and which one it is."""
    tree, start, end = places
    chances = _chances(scores, places, known)
    credit, size = _credit(scores.label_names)
    gains = (chances @ credit) * likely[places][:, None] - threshold * size
    gains[(start == 0) & (end == scores.n_words.cpu().numpy()[tree]), 0] = -np.inf
    if known is not None:
        gains[~known.permitted[known.kind[start, end]]] = -np.inf
        gains += _REQUIRED * known.required[start, end][:, None]
    best = gains.argmax(-1)
    return np.maximum(np.take_along_axis(gains, best[:, None], 1)[:, 0], 0.0), best


def _chain(name: str) -> list[str]:
    """Return the labels of a unary chain, none of the empty one."""
    return [label.replace(IN_LABEL, CHAIN) for label in name.split(CHAIN) if label]


def _certain(likely: NDArray[np.float64], n_words: NDArray[np.int64]) -> None:
    """Give words and whole sentences the probability 1, and what lies past a sentence 0."""
    side = likely.shape[1]
    place = np.arange(side)
    likely[:, place[:-1], place[1:]] = place[1:] <= n_words[:, None]
    likely[np.arange(len(n_words)), 0, n_words] = 1.0


@lru_cache(maxsize=8)
def _credit(names: tuple[str, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(chains, chains): labels that one chain has right of another; (chains,) their lengths."""
    chains = [Counter(_chain(name)) for name in names]
    shared = [[(one & other).total() for other in chains] for one in chains]
    return np.array(shared, np.float64), np.array([chain.total() for chain in chains], np.float64)


@kernel
def _best_spans(gain: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Return the spans, one word long and more, of the binary tree of most gain, in pre-order."""
    best = np.zeros((n + 1, n + 1))
    split = np.zeros((n + 1, n + 1), np.int64)
    for w in range(1, n + 1):
        for i in range(n - w + 1):
            j = i + w
            most = -1.0 if w > 1 else 0.0
            for k in range(i + 1, j):
                if best[i, k] + best[k, j] > most:
                    most = best[i, k] + best[k, j]
                    split[i, j] = k
            best[i, j] = most + gain[i, j]
    spans = np.empty((2 * n - 1, 2), np.int64)
    waiting = np.empty((2 * n, 2), np.int64)
    waiting[0, 0], waiting[0, 1] = 0, n
    left, done = 1, 0
    while left:
        left -= 1
        i, j = waiting[left]
        spans[done, 0], spans[done, 1] = i, j
        done += 1
        if j - i > 1:
            k = split[i, j]
            waiting[left, 0], waiting[left, 1] = k, j
            waiting[left + 1, 0], waiting[left + 1, 1] = i, k
            left += 2
    return spans


def _trees(n_words: NDArray[np.int64], found: list[tuple[int, int, int, str, float]]) -> Trees:
    tree, starts, ends, names, scores = zip(*found, strict=True)
    counts = np.bincount(np.array(tree), minlength=len(n_words))
    trees = Trees(
        n_words,
        np.concatenate(([0], np.cumsum(counts))),
        np.array(starts, np.int32),
        np.array(ends, np.int32),
        scores=np.array(scores),
    )
    return trees.labelled(names)
