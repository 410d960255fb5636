"""Labels and tags fitted to a structure that is trained already: a regression each, regularised.

With a trained structure the expected log likelihood of the labels is::

    Σ_spans p(span | gold brackets) log p(label | span)

where p(span | gold brackets) is a span's share of the binary trees that cross no gold bracket: 1
for a gold bracket, less for the spans that only binarisation makes, whose label is empty. That is
convex in the weights of a linear score, so it is solved, not trained by steps: it takes seconds,
depends on no learning rate, and leaves the structure as it is, however few the trees.

What half-known trees leave open is guessed, fitted, and guessed again by what was fitted: see
:class:`Guess`.

Memory and work are bounded. Loss and gradient are summed over blocks of spans, so that the scores
of all labels of all spans never stand side by side; of many blocks one is solved first; and of very
many trees so many are drawn that the work stays within minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from attree.base.progress import Progress, silent
from attree.training.features import Features
from attree.training.gold import SOME, GoldBatch, GoldTree, gold_batch
from attree.training.inside import batch_inside_outside
from attree.training.parser import TrainedParser
from attree.training.parts import BatchSource, LabelPart, NameReader, SpanScorer, TagPart, added
from attree.training.recipes import LABELLED

#: What the squared weights cost, in nats, of states scaled to a variance of 1 over all of them.
PENALTY = 0.02
#: The same of tags, which words have many of.
_TAG_PENALTY = 0.001

#: Spans of binarisation that are less likely are left out.
_LEAST = 0.02

#: Steps of the solver, and passes over the spans, over the first block if there are several; then
#: over all of them, from what the first has come to.
_STEPS, _PASSES = (60, 20), (75, 25)
#: How often labels are fitted where some are guessed.
_ROUNDS = 2
_AT_A_TIME = 16
#: Words of one block, and of all at most; and the latter times names.
_BLOCK, _MOST_WORDS, _MOST_WORK = 20_000, 150_000, 10_000_000


@dataclass(frozen=True, slots=True)
class LabelledSpans:
    """A block of spans of some sentences, and the boundaries that they lie between.

    Attributes:
        states: (boundaries, width) float16, what stands on the two sides of each.
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

    @property
    def unknown(self) -> Tensor:
        """(unknown,) int64: which spans have no known label."""
        return torch.nonzero(self.target < 0)[:, 0]


@torch.no_grad()
def labelled_spans(
    scorer: SpanScorer,
    source: BatchSource,
    gold: Sequence[GoldTree],
    names: Sequence[str],
    places: Sequence[int] | None = None,
    progress: Progress = silent,
) -> list[LabelledSpans]:
    """Gather the spans of trees that a structure is sure enough of, and all words, in blocks.

    Args:
        scorer: of the structure and the labels.
        source: features of the sentences of ``gold``, in its order.
        gold: the trees.
        names: the labels, the empty one first.
        places: of which trees; of all by default.
        progress: shows how far it is.
    """
    code = {name: place for place, name in enumerate(names)}
    chosen, blocks = range(len(gold)) if places is None else places, _Blocks()
    structure = {name: x for name, x in scorer.each().items() if not isinstance(x, NameReader)}
    with progress("labels", total=len(chosen)) as advance:
        for some in _runs(chosen):
            batch, trees = source.batch(some), [gold[tree] for tree in some]
            spans = [x.scores(batch.features[name], batch.n_words) for name, x in structure.items()]
            likely = _likely(added(spans).span.cpu().double(), gold_batch(trees))
            both = torch.cat(batch.features["labels"], -1).half().cpu()
            for row, tree in enumerate(trees):
                blocks.add(both[row, : tree.n_words + 1], _of_tree(tree, likely[row], code))
            advance(len(some))
    return blocks.all()


def _runs(places: Sequence[int]) -> Iterator[list[int]]:
    for first in range(0, len(places), _AT_A_TIME):
        yield list(places[first : first + _AT_A_TIME])


@dataclass(slots=True)
class _Blocks:
    """Puts the spans of trees together, as many as make a block."""

    done: list[LabelledSpans] = field(default_factory=list)
    _states: list[Tensor] = field(default_factory=list)
    _columns: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    _first: int = 0

    def add(self, states: Tensor, columns: tuple[np.ndarray, ...]) -> None:
        """Add a tree: its boundaries, and the columns of its spans."""
        begin, end, *others = columns
        self._states.append(states)
        self._columns.append((begin + self._first, end + self._first, *others))
        self._first += len(states)
        if self._first - len(self._states) > _BLOCK:  # of a sentence one boundary more than words
            self._close()

    def _close(self) -> None:
        begin, end, kind, target, weight, half = (
            torch.from_numpy(np.concatenate(column)) for column in zip(*self._columns, strict=True)
        )
        states = torch.cat(self._states)
        self.done.append(LabelledSpans(states, begin, end, kind, target, weight.float(), half))
        self._states, self._columns, self._first = [], [], 0

    def all(self) -> list[LabelledSpans]:
        """Return the blocks."""
        if self._first:
            self._close()
        return self.done


def sample(gold: Sequence[GoldTree], names: int) -> list[int]:
    """Return the trees that so many names are fitted to: all of few trees, in their order.

    Many are shuffled, so that a block is like all of them, and are left out past what is worth its
    time.
    """
    words = np.array([tree.n_words for tree in gold])
    if words.sum() <= _BLOCK:
        return list(range(len(gold)))
    order = np.random.default_rng(0).permutation(len(gold))
    most = min(_MOST_WORDS, _MOST_WORK // max(names, 1))
    chosen: list[int] = order[np.cumsum(words[order]) <= most].tolist()
    return chosen


def _likely(span: Tensor, gold: GoldBatch) -> np.ndarray:
    """Return the probability of every span among the trees that are compatible with gold."""
    scores = span if gold.penalties is None else span + gold.penalties
    lengths, allowed = gold.n_words.numpy(), gold.allowed.numpy()
    return batch_inside_outside(scores.contiguous().numpy(), lengths, allowed, True)[1]


def _of_tree(tree: GoldTree, likely: np.ndarray, code: dict[str, int]) -> tuple[np.ndarray, ...]:
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
    return starts, ends, kind, target, weight, half


def fit_labels(
    scorer: SpanScorer, source: BatchSource, gold: Sequence[GoldTree], progress: Progress = silent
) -> None:
    """Set the weights of a scorer's labels; those of its other parts stay.

    Args:
        scorer: with a part ``labels``.
        source: features of the sentences of ``gold``, in its order.
        gold: trees with labels.
        progress: shows how far it is.
    """
    part = scorer.each()["labels"]
    assert isinstance(part, LabelPart)
    places = sample(gold, len(part.names))
    _fit(
        part, labelled_spans(scorer, source, gold, part.names, places, progress), PENALTY, progress
    )


def fit_tags(
    part: TagPart, source: BatchSource, gold: Sequence[GoldTree], progress: Progress = silent
) -> None:
    """Set the weights of tags: the likelihood of each word's, penalised as that of labels is.

    Args:
        part: with the tags as its names.
        source: features ``tags`` of the sentences of ``gold``, in its order.
        gold: trees with tags, all of them names of the part.
        progress: shows how far it is.
    """
    code, blocks = {name: place for place, name in enumerate(part.names)}, _Blocks()
    for some in _runs(sample(gold, len(part.names))):
        both = torch.cat(source.batch(some).features["tags"], -1).half().cpu()
        for row, tree in zip(both, some, strict=True):
            n = gold[tree].n_words
            begin, none = np.arange(n), np.zeros(n, np.int64)
            target = np.array([code[tag] for tag in gold[tree].tags])
            every = np.ones(n, np.float32)
            blocks.add(row[: n + 1], (begin, begin + 1, none, target, every, none > 0))
    _fit(part, blocks.all(), _TAG_PENALTY, progress)


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
    scorer = SpanScorer(recipe, parser.shape, parser.scorer.each())
    return TrainedParser(recipe, parser.shape, scorer, parser.encoder)


def fit_aside(
    parser: TrainedParser,
    learner: TrainedParser,
    features: Features,
    gold: Sequence[GoldTree],
    progress: Progress = silent,
) -> None:
    """Fit the parts of a parser that were not trained by steps, to the trees that have some.

    A tree of which no label is known says nothing of labels: to guess them all from those of other
    trees costs labelled F1.
    """
    parts = parser.scorer.each()
    if "labels" in parts and "labels" not in learner.recipe.parts:
        those = [place for place, tree in enumerate(gold) if tree.labels]
        source = BatchSource(features, parser.scorer, those)
        fit_labels(parser.scorer, source, [gold[place] for place in those], progress)
    tags = parts.get("tags")
    if isinstance(tags, TagPart) and tags.names:
        only = _only(parser, ("tags",), parser.recipe.decoder).scorer
        those = [place for place, tree in enumerate(gold) if tree.tags]
        source = BatchSource(features, only, those)
        fit_tags(tags, source, [gold[place] for place in those], progress)


@dataclass(frozen=True, slots=True)
class _Scale:
    """What takes states to a mean of 0 and the same variance in all, 1 over all of them."""

    centre: Tensor
    factor: Tensor

    @classmethod
    def of(cls, block: LabelledSpans) -> _Scale:
        """Return that of a block: the first, which is like the others."""
        states = block.states.float()
        factor = 1.0 / ((states.std(0, correction=0) + 1e-3) * (2 * states.shape[1]) ** 0.5)
        return cls(states.mean(0), factor)

    def __call__(self, states: Tensor) -> Tensor:
        return (states.float() - self.centre) * self.factor


def _fit(
    part: LabelPart | TagPart,
    blocks: Sequence[LabelledSpans],
    penalty: float,
    progress: Progress = silent,
) -> None:
    """Set the weights of a part to those of the highest penalised likelihood.

    What is penalised is how far they are from those that it has: 0, or another parser's.
    """
    scale = _Scale.of(blocks[0])
    # what the centre brings is that of two boundaries, of spans and of words
    kinds = len(part.weights) // 2
    weights, bias = part.weights.detach().clone(), part.bias.detach().clone()
    bias[:kinds] += (scale.centre @ weights).unflatten(0, (-1, 2)).sum(1)
    weights /= scale.factor[:, None]
    weights, bias = _solved(blocks, scale, part, (weights, bias), penalty, progress)
    weights *= scale.factor[:, None]
    bias[:kinds] -= (scale.centre @ weights).unflatten(0, (-1, 2)).sum(1)
    with torch.no_grad():
        part.weights.copy_(weights)
        part.bias.copy_(bias)


def _logits(sides: Tensor, bias: Tensor, spans: LabelledSpans) -> Tensor:
    """(spans, labels), of (4, boundaries, labels): see :class:`attree.training.parts.LabelPart`.

    Tags have two sides only, and one bias.
    """
    word = (spans.kind == 1).long()
    flat, count = sides.flatten(0, 1), sides.shape[1]
    begins = flat.index_select(0, 2 * word * count + spans.begin)
    ends = flat.index_select(0, (2 * word + 1) * count + spans.end)
    extra = bias[2:].sum(0) * (spans.kind == 2)[:, None]
    return begins + ends + bias.index_select(0, word) + extra


def _solved(
    blocks: Sequence[LabelledSpans],
    scale: _Scale,
    part: LabelPart | TagPart,
    first: tuple[Tensor, Tensor],
    cost: float,
    progress: Progress,
) -> tuple[Tensor, Tensor]:
    """Return weights and biases of the highest likelihood, penalised by how far the first are."""
    weights, bias = (each.clone().requires_grad_() for each in first)
    known = all(bool((block.target >= 0).all()) for block in blocks)
    guess = None if known else Guess(blocks, len(part.names))
    guessed = None if guess is None else [guess.first(block) for block in blocks]
    what = "solving labels" if isinstance(part, LabelPart) else "solving tags"
    rounds = 1 if guess is None else _ROUNDS
    stages = [*zip((blocks[:1], blocks)[: len(blocks)], _STEPS, _PASSES, strict=False)]
    total = rounds * sum(len(some) * passes for some, _, passes in stages)
    with progress(what, total=total, unit="blocks") as advance:
        for turn in range(rounds):
            if guess is not None and turn > 0:
                with torch.no_grad():
                    guessed = [
                        guess.of(block, _logits(scale(block.states) @ weights, bias, block))
                        for block in blocks
                    ]
            for some, steps, passes in stages:
                solver = torch.optim.LBFGS(
                    [weights, bias],
                    max_iter=steps,
                    max_eval=passes,
                    history_size=10,
                    line_search_fn="strong_wolfe",
                )
                _fitted(solver, some, scale, first, cost, guessed, advance)
    return weights.detach(), bias.detach()


def _fitted(
    solver: torch.optim.LBFGS,
    blocks: Sequence[LabelledSpans],
    scale: _Scale,
    first: tuple[Tensor, Tensor],
    cost: float,
    guessed: Sequence[Tensor] | None,
    advance: Callable[[int], None],
) -> None:
    """Fit the solver's weights and biases in place; with guesses of the labels of some spans."""
    group = solver.param_groups[0]
    weights, bias = group["params"]
    done = 0

    def loss() -> Tensor:
        nonlocal done
        solver.zero_grad()
        total = torch.zeros(())
        for place, block in enumerate(blocks):
            chances = _logits(scale(block.states) @ weights, bias, block).log_softmax(-1)
            likely = chances.gather(1, block.target.clamp(min=0)[:, None])[:, 0]
            if guessed is not None:
                rows = block.unknown
                likely = likely.index_copy(0, rows, (chances[rows] * guessed[place]).sum(1))
            value = -(block.weight * likely).sum()
            if place == 0:
                far = (weights - first[0]).square().sum(), (bias - first[1]).square().sum()
                value = cost * (far[0] + 0.02 * far[1]) + value
            value.backward()
            total = total + value.detach()
        done += 1
        advance(len(blocks))
        return total

    solver.step(loss)
    # it ends sooner where nothing is left to gain
    advance(len(blocks) * max(group["max_eval"] - done, 0))


#: The share of phrases that are given where no whole tree says how many there are.
_HALF = 0.5
#: Phrases by which a label's share is drawn to that of all labels.
_PRIOR = 4.0
_MOST = 0.98


class Guess:
    """Guess labels for the spans of half-known trees that have none.

    A half-known tree gives some of its phrases, and hardly ever says that a span is no phrase.
    Training on the given spans alone would teach that every span is a phrase. So we estimate which
    share of the phrases of each label is given::

        g(label) = given / expected,    expected: as many as whole trees have, in as many spans

    or one half where there is no whole tree. A span of which nothing is known then has the label ::

        q(label | i, j) ∝ p(label | i, j) (1 − g(label)),    g(empty) = 0

    where ``p`` is first the rate of the label, then what was fitted to the guess before.

    Args:
        blocks: all spans.
        n_labels: how many labels there are, the empty one first.
    """

    def __init__(self, blocks: Sequence[LabelledSpans], n_labels: int) -> None:
        given, whole = torch.zeros(2, n_labels), torch.zeros(2, n_labels)
        mass = torch.zeros(2)
        for spans in blocks:
            given += _counted(spans, (spans.target > 0) & spans.half, n_labels)
            whole += _counted(spans, (spans.target >= 0) & ~spans.half, n_labels)
            mass += _masses(spans)
        rates = torch.where(whole[:, 1:].sum(1, keepdim=True) > 0, whole, given / _HALF)
        rates[:, 0] = torch.where(whole[:, 0] > 0, whole[:, 0], mass - rates[:, 1:].sum(1))
        self.rates = rates.clamp(min=1e-3) / rates.clamp(min=1e-3).sum(1, keepdim=True)
        expected = self.rates * mass[:, None]
        of_all = (given.sum(1) / expected[:, 1:].sum(1).clamp(min=1e-6)).clamp(max=_MOST)
        self.shares = (given + _PRIOR * of_all[:, None]) / (expected + _PRIOR)
        self.shares = self.shares.clamp(max=_MOST).index_fill(1, torch.tensor([0]), 0.0)

    def first(self, spans: LabelledSpans) -> Tensor:
        """(unknown, labels): of a block, by the rates of the labels."""
        word = (spans.kind == 1).long()[spans.unknown]
        return self._of(spans, self.rates[word])

    def of(self, spans: LabelledSpans, logits: Tensor) -> Tensor:
        """(unknown, labels): of a block, by the (spans, labels) scores of the labels."""
        return self._of(spans, logits[spans.unknown].softmax(-1))

    def _of(self, spans: LabelledSpans, chances: Tensor) -> Tensor:
        rows = spans.unknown
        some = spans.target[rows] == SOME
        found = chances * (1.0 - self.shares)[(spans.kind == 1).long()[rows]]
        found = torch.where(some[:, None], chances, found)
        found[some, 0] = 0.0
        return found / found.sum(1, keepdim=True).clamp(min=1e-30)


def _counted(spans: LabelledSpans, chosen: Tensor, n_labels: int) -> Tensor:
    """(2, labels): weights of labels on chosen spans of two words and more, and on words."""
    chosen = chosen & (spans.kind != 2)
    places = ((spans.kind == 1).long()[chosen], spans.target[chosen])
    return torch.zeros(2, n_labels).index_put(places, spans.weight[chosen], accumulate=True)


def _masses(spans: LabelledSpans) -> Tensor:
    """(2,): expected spans of half-known trees, of two words and more, and words."""
    chosen = spans.half & (spans.kind != 2)
    places = ((spans.kind == 1).long()[chosen],)
    return torch.zeros(2).index_put(places, spans.weight[chosen], accumulate=True)
