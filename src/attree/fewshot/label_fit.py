"""Labels and tags fitted to a structure that is trained already: a regression each, regularised.

With a trained structure the expected log likelihood of the labels is::

    Σ_spans p(span | gold brackets) log p(label | span)

where p(span | gold brackets) is a span's share of the binary trees that cross no gold bracket: 1
for a gold bracket, less for the spans that only binarisation makes, whose label is empty. That is
convex in the weights of a linear score, so it is solved, not trained by steps: it takes seconds,
depends on no learning rate, and leaves the structure as it is, however few the trees.

What half-known trees leave open is guessed, fitted, and guessed again by what was fitted: see
:mod:`attree.fewshot.half_labels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from attree.fewshot.features import FeatureStore
from attree.fewshot.gold import GoldBatch, GoldTree, gold_batch
from attree.fewshot.half_labels import Guess
from attree.fewshot.inside import batch_inside_outside
from attree.fewshot.labels import LabelPart
from attree.fewshot.parser import TrainedParser
from attree.fewshot.recipes import LABELLED
from attree.fewshot.scorer import BatchSource, Scorer
from attree.fewshot.tags import TagPart

#: What the squared weights cost, in nats, of states scaled to a variance of 1 over all of them.
PENALTY = 0.02
#: The same of tags, which words have many of.
_TAG_PENALTY = 0.001

#: Spans of binarisation that are less likely are left out.
_LEAST = 0.02

_ITERATIONS = 60
#: How often labels are fitted where some are guessed.
_ROUNDS = 2
_AT_A_TIME = 16


@dataclass(frozen=True, slots=True)
class LabelledSpans:
    """Spans of some sentences, and the boundaries that they lie between.

    Attributes:
        states: (boundaries, width) float32, what stands on the two sides of each.
        begin, end: (spans,) int64, boundaries.
        kind: (spans,) int64, 0 of a span, 1 of a word, 2 of a whole sentence.
        target: (spans,) int64, their labels, :data:`UNSAID` or :data:`SOME`.
        weight: (spans,) float32, how much each counts.
        half: (spans,) bool, whether it is a span of a half-known tree.
    """

    states: Tensor
    begin: Tensor
    end: Tensor
    kind: Tensor
    target: Tensor
    weight: Tensor
    half: Tensor


@torch.no_grad()
def labelled_spans(
    scorer: Scorer, source: BatchSource, gold: Sequence[GoldTree], names: Sequence[str]
) -> LabelledSpans:
    """Gather the spans of trees that a structure is sure enough of, and all words.

    Args:
        scorer: of the structure and the labels.
        source: features of the sentences of ``gold``, in its order.
        gold: the trees.
        names: the labels, the empty one first.
    """
    code = {name: place for place, name in enumerate(names)}
    states, columns, first = [], [], 0
    for place in range(0, len(gold), _AT_A_TIME):
        some = list(range(place, min(place + _AT_A_TIME, len(gold))))
        batch, trees = source.batch(some), [gold[tree] for tree in some]
        likely = _likely(scorer.scores(batch).span.cpu().double(), gold_batch(trees))
        both = torch.cat(batch.features["labels"], -1).cpu()
        for row, tree in enumerate(trees):
            states.append(both[row, : tree.n_words + 1])
            columns.append(_of_tree(tree, likely[row], code, first))
            first += tree.n_words + 1
    begin, end, kind, target, weight, half = (
        torch.from_numpy(np.concatenate(column)) for column in zip(*columns, strict=True)
    )
    return LabelledSpans(torch.cat(states), begin, end, kind, target, weight.float(), half)


def _likely(span: Tensor, gold: GoldBatch) -> np.ndarray:
    """Return the probability of every span among the trees that are compatible with gold."""
    scores = span if gold.penalties is None else span + gold.penalties
    lengths, allowed = gold.n_words.numpy(), gold.allowed.numpy()
    return batch_inside_outside(scores.contiguous().numpy(), lengths, allowed, True)[1]


def _of_tree(
    tree: GoldTree, likely: np.ndarray, code: dict[str, int], first: int
) -> tuple[np.ndarray, ...]:
    """Return the columns of :class:`LabelledSpans` but the states, of one tree's spans."""
    n = tree.n_words
    likely[np.arange(n), np.arange(1, n + 1)] = 1.0
    starts, ends = np.nonzero(likely[: n + 1, : n + 1] > _LEAST)
    said, other = tree.said(code)
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    target = np.array([said.get(span, other) for span in spans], np.int64)
    wide, whole = ends - starts > 1, ends - starts == n
    kind = np.where(wide, np.where(whole, 2, 0), 1)
    # every whole sentence is a phrase, whether it is given or not
    weight = np.where(whole & (target < 0), 0.0, likely[starts, ends])
    half = np.full(len(target), tree.known is not None)
    return starts + first, ends + first, kind, target, weight, half


def fit_labels(scorer: Scorer, source: BatchSource, gold: Sequence[GoldTree]) -> None:
    """Set the weights of a scorer's labels; those of its other parts stay.

    Args:
        scorer: with a part ``labels``.
        source: features of the sentences of ``gold``, in its order.
        gold: trees with labels.
    """
    part = scorer.each()["labels"]
    assert isinstance(part, LabelPart)
    _fit(part, labelled_spans(scorer, source, gold, part.names), PENALTY)


def fit_tags(part: TagPart, source: BatchSource, gold: Sequence[GoldTree]) -> None:
    """Set the weights of tags: the likelihood of each word's, penalised as that of labels is.

    Args:
        part: with the tags as its names.
        source: features ``tags`` of the sentences of ``gold``, in its order.
        gold: trees, some of which have tags.
    """
    some = [place for place, tree in enumerate(gold) if tree.tags]
    code = {name: place for place, name in enumerate(part.names)}
    states, words, first = [], [], 0
    for place in range(0, len(some), _AT_A_TIME):
        chosen = some[place : place + _AT_A_TIME]
        both = torch.cat(source.batch(chosen).features["tags"], -1).cpu()
        for row, tree in zip(both, chosen, strict=True):
            n = gold[tree].n_words
            states.append(row[: n + 1])
            words.append(torch.arange(first, first + n))
            first += n + 1
    begin = torch.cat(words)
    target = torch.tensor([code[tag] for tree in some for tag in gold[tree].tags])
    none, every = torch.zeros_like(begin), torch.ones(len(begin))
    spans = LabelledSpans(torch.cat(states), begin, begin + 1, none, target, every, none.bool())
    _fit(part, spans, _TAG_PENALTY)


def structure(parser: TrainedParser) -> TrainedParser:
    """Return what is trained by steps: all but tags, and labels that are fitted after."""
    recipe = parser.recipe
    joint = recipe.objective in LABELLED
    aside = ("tags",) if joint else ("labels", "tags")
    kept = tuple(part for part in recipe.parts if part not in aside)
    if kept == recipe.parts:
        return parser
    return _only(parser, kept, recipe.decoder if joint else "minimum_risk")


def _only(parser: TrainedParser, parts: tuple[str, ...], decoder: str) -> TrainedParser:
    """Return the parser of some of a parser's parts, which share their weights."""
    recipe = replace(parser.recipe, parts=parts, decoder=decoder)
    scorer = Scorer(recipe, parser.shape, parser.scorer.each())
    return TrainedParser(recipe, parser.shape, scorer, parser.encoder)


def fit_aside(
    parser: TrainedParser, learner: TrainedParser, store: FeatureStore, gold: Sequence[GoldTree]
) -> None:
    """Fit the parts of a parser that were not trained by steps."""
    device = str(next(parser.scorer.parameters()).device)
    parts = parser.scorer.each()
    if "labels" in parts and "labels" not in learner.recipe.parts:
        fit_labels(parser.scorer, BatchSource(store, parser.scorer, device=device), gold)
    tags = parts.get("tags")
    if isinstance(tags, TagPart) and tags.names:
        only = _only(parser, ("tags",), parser.recipe.decoder).scorer
        fit_tags(tags, BatchSource(store, only, device=device), gold)


def _fit(part: LabelPart | TagPart, spans: LabelledSpans, penalty: float) -> None:
    """Set the weights of a part to those of the highest penalised likelihood."""
    centre = spans.states.mean(0)
    scale = 1.0 / ((spans.states.std(0, correction=0) + 1e-3) * (2 * len(centre)) ** 0.5)
    weights, bias = _solved(spans, (spans.states - centre) * scale, part, penalty)
    weights *= scale[:, None]
    # what the centre brings is that of two boundaries, of spans and of words
    bias[: len(weights) // 2] -= (centre @ weights).unflatten(0, (-1, 2)).sum(1)
    with torch.no_grad():
        part.weights.copy_(weights)
        part.bias.copy_(bias)


def _logits(sides: Tensor, bias: Tensor, spans: LabelledSpans) -> Tensor:
    """(spans, labels), of (4, boundaries, labels): see :class:`attree.fewshot.labels.LabelPart`.

    Tags have two sides only, and one bias.
    """
    word = (spans.kind == 1).long()
    flat, count = sides.flatten(0, 1), sides.shape[1]
    begins = flat.index_select(0, 2 * word * count + spans.begin)
    ends = flat.index_select(0, (2 * word + 1) * count + spans.end)
    extra = bias[2:].sum(0) * (spans.kind == 2)[:, None]
    return begins + ends + bias.index_select(0, word) + extra


def _solved(
    spans: LabelledSpans, states: Tensor, part: LabelPart | TagPart, cost: float
) -> tuple[Tensor, Tensor]:
    """Return weights and biases of the highest penalised likelihood."""
    weights = torch.zeros(part.weights.shape, requires_grad=True)
    bias = torch.zeros(part.bias.shape, requires_grad=True)
    if (spans.target >= 0).all():
        return _fitted(spans, states, weights, bias, cost)
    guess = Guess(spans, len(part.names))
    guessed = guess.first()
    for _ in range(_ROUNDS):
        _fitted(spans, states, weights, bias, cost, (guess.rows, guessed))
        with torch.no_grad():
            chances = _logits(states @ weights, bias, spans)[guess.rows].softmax(-1)
        guessed = guess.of(chances)
    return weights.detach(), bias.detach()


def _fitted(
    spans: LabelledSpans,
    states: Tensor,
    weights: Tensor,
    bias: Tensor,
    cost: float,
    guessed: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Fit weights and biases in place by L-BFGS; with guesses of the labels of some spans."""
    solver = torch.optim.LBFGS(
        [weights, bias], max_iter=_ITERATIONS, history_size=10, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        solver.zero_grad()
        chances = _logits(states @ weights, bias, spans).log_softmax(-1)
        likely = chances.gather(1, spans.target.clamp(min=0)[:, None])[:, 0]
        if guessed is not None:
            rows, shares = guessed
            likely = likely.index_copy(0, rows, (chances[rows] * shares).sum(1))
        penalty = weights.square().sum() + 0.02 * bias.square().sum()
        value = cost * penalty - (spans.weight * likely).sum()
        value.backward()
        return value

    solver.step(loss)
    return weights.detach(), bias.detach()
