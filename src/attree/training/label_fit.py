"""Fit labels and tags to a trained structure, each by a regularised regression.

Given a trained structure, the expected log likelihood of the labels is::

    Σ_spans p(span | gold brackets) log p(label | span)

where p(span | gold brackets) is a span's share of the binary trees that cross no gold bracket: 1
for a gold bracket, less for the spans that only binarisation makes, whose label is empty. The sum
is concave in the weights of a linear score, so a solver finds its maximum. That takes seconds,
needs no learning rate, and leaves the structure as it is.

Unknown labels of partly bracketed trees are guessed, fitted, and guessed again from the fit: see
:class:`Guess`.

Memory and work are bounded. Loss and gradient are summed over blocks of spans, so that the scores
of all labels of all spans are never in memory together. If there are many blocks, the first ones
are solved alone and then all together. Very many trees are sampled, so that fitting takes minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from attree.base.process import give_memory_back
from attree.base.terminal import Progress, silent
from attree.training.features import Features
from attree.training.gold import SOME_LABEL, GoldTree, gold_batch
from attree.training.inside import batch_inside_outside
from attree.training.objectives import split_batch
from attree.training.optimisers import LBFGS
from attree.training.parser import TrainedParser
from attree.training.parts import BatchSource, LabelPart, NameReader, SpanScorer, TagPart, sum_parts
from attree.training.recipes import LABELLED
from attree.training.scores import told_by_heads

#: Penalty on squared weights, in nats, for states scaled to a variance of 1 over all of them.
PENALTY = 0.02
#: The same for tags.
_TAG_PENALTY = 0.001

#: Spans less probable than this are left out.
_LEAST = 0.02

#: Most steps of the solver, and most passes over the spans: for the first blocks, then for all if
#: there are more, starting from the weights of the first.
_STEPS, _PASSES = (60, 20), (75, 25)
#: How often labels are fitted if some are guessed.
_ROUNDS = 2
_AT_A_TIME = 16
#: Words of one block, and number of blocks that are solved first, alone.
_BLOCK, _FIRST = 5_000, 4
#: Most words of all blocks, and most words × names.
_MOST_WORDS, _MOST_WORK = 150_000, 10_000_000


@dataclass(frozen=True, slots=True)
class LabelledSpans:
    """A block of spans of some sentences, and the boundaries between which they lie.

    Attributes:
        states: (boundaries, width) float16, hidden states on the two sides of each boundary.
        begin, end: (spans,) int64, numbers of boundaries.
        kind: (spans,) int64, 0 for a span, 1 for a word, 2 for a whole sentence.
        target: (spans,) int64, number of the label, :data:`attree.training.gold.UNKNOWN_LABEL` or
            :data:`attree.training.gold.SOME_LABEL`.
        weight: (spans,) float32, how much each span counts.
        partial: (spans,) bool, True for spans of partly bracketed trees.
        phrase: (spans, 2) float32, what dependencies say of each span: see
            :func:`attree.training.scores.told_by_heads`.
    """

    states: Tensor
    begin: Tensor
    end: Tensor
    kind: Tensor
    target: Tensor
    weight: Tensor
    partial: Tensor
    phrase: Tensor

    @property
    def unknown(self) -> Tensor:
        """Return the numbers of the spans without a known label, (unknown,) int64."""
        return torch.nonzero(self.target < 0)[:, 0]


#: (boundaries, width) states of one tree, and the columns of its :class:`LabelledSpans`.
_Spans = tuple[Tensor, tuple[np.ndarray, ...]]


def labelled_spans(
    scorer: SpanScorer, source: BatchSource, gold: Sequence[GoldTree], progress: Progress = silent
) -> list[LabelledSpans]:
    """Collect the spans of a sample of trees that are probable enough, and all words, in blocks.

    Args:
        scorer: of the structure and the labels.
        source: features of the sentences of ``gold``, in its order.
        gold: the trees.
        progress: shows how far it is.
    """
    part = scorer.each()["labels"]
    assert isinstance(part, LabelPart)
    names = part.names
    code = {name: number for number, name in enumerate(names)}
    structure = {name: x for name, x in scorer.each().items() if not isinstance(x, NameReader)}

    @torch.no_grad()
    def spans(indices: Sequence[int]) -> Iterator[_Spans]:
        for chunk in _runs(gold, indices):
            batch, trees = source.batch(chunk), gold_batch([gold[index] for index in chunk])
            parts = [x.scores(batch.features[name], batch.n_words) for name, x in structure.items()]
            summed = sum_parts(parts)
            scores = summed.span.cpu().double()
            phrase = summed.phrase
            phrase = torch.zeros((*scores.shape, 2)) if phrase is None else phrase.cpu()
            if trees.penalties is not None:
                scores = scores + trees.penalties
            # span probabilities among the trees that are compatible with gold
            lengths, allowed = trees.n_words.numpy(), trees.allowed.numpy()
            _, likely = batch_inside_outside(scores.contiguous().numpy(), lengths, allowed)
            states = torch.cat(batch.features["labels"], -1)
            for row, tree in enumerate(trees.trees):
                columns = _columns(tree, likely[row], code)
                added = phrase[row].numpy()[columns[:2]].astype(np.float32)
                yield states[row, : tree.n_words + 1], (*columns, added)
            advance(len(chunk))

    chosen = sample(gold, len(names))
    with progress("labels", total=len(chosen)) as advance:
        return _blocks(gold, chosen, spans)


def _runs(gold: Sequence[GoldTree], indices: Sequence[int]) -> Iterator[list[int]]:
    for first in range(0, len(indices), _AT_A_TIME):
        chunk = indices[first : first + _AT_A_TIME]
        yield from split_batch(chunk, [gold[index].n_words for index in chunk])
        give_memory_back()


def _blocks(
    gold: Sequence[GoldTree],
    indices: Sequence[int],
    spans_of: Callable[[Sequence[int]], Iterable[_Spans]],
) -> list[LabelledSpans]:
    """Join the spans of trees into blocks of about :data:`_BLOCK` words.

    Args:
        gold: trees.
        indices: of the trees to use.
        spans_of: returns the spans of the trees at some indices, in any order.
    """
    block_of = (np.cumsum([gold[index].n_words for index in indices]) - 1) // _BLOCK
    parts = np.split(np.array(indices), np.flatnonzero(np.diff(block_of)) + 1)
    return [_block(spans_of(part.tolist())) for part in parts]


def _block(trees: Iterable[_Spans]) -> LabelledSpans:
    """Join the spans of trees."""
    blocks, columns, first = [], [], 0
    for states, (begin, end, *others) in trees:
        blocks.append(states.half().cpu())  # a copy: parts of batches would keep the whole batches
        columns.append((begin + first, end + first, *others))
        first += len(states)
    tensors = [torch.from_numpy(np.concatenate(column)) for column in zip(*columns, strict=True)]
    return LabelledSpans(torch.cat(blocks), *tensors)


def sample(gold: Sequence[GoldTree], names: int) -> list[int]:
    """Return the indices of the trees to fit ``names`` labels or tags to.

    Few trees are all used, in their order. Many are shuffled, so that every block is a random
    sample, and limited in number.
    """
    words = np.array([tree.n_words for tree in gold])
    if words.sum() <= _FIRST * _BLOCK:
        return list(range(len(gold)))
    order = np.random.default_rng(0).permutation(len(gold))
    most = min(_MOST_WORDS, _MOST_WORK // max(names, 1))
    return list(order[np.cumsum(words[order]) <= most].tolist())


def _columns(tree: GoldTree, likely: np.ndarray, code: dict[str, int]) -> tuple[np.ndarray, ...]:
    """Return the columns of :class:`LabelledSpans`, without states, for one tree."""
    n = tree.n_words
    likely[np.arange(n), np.arange(1, n + 1)] = 1.0
    starts, ends = np.nonzero(likely[: n + 1, : n + 1] > _LEAST)
    label_of, other = tree.targets(code)
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    target = np.array([label_of.get(span, other) for span in spans], np.int64)
    wide, whole = ends - starts > 1, ends - starts == n
    kind = np.where(wide, np.where(whole, 2, 0), 1)
    # every whole sentence is a phrase, whether it is given or not
    weight = np.where(whole & (target < 0), 0.0, likely[starts, ends]).astype(np.float32)
    return starts, ends, kind, target, weight, np.full(len(target), tree.known is not None)


def fit_tags(
    part: TagPart, source: BatchSource, gold: Sequence[GoldTree], progress: Progress = silent
) -> None:
    """Fit tags by penalised likelihood, as labels are.

    Args:
        part: whose names are the tags.
        source: features ``tags`` of the sentences of ``gold``, in its order.
        gold: trees whose tags are all names of the part.
        progress: shows how far it is.
    """
    code = {name: number for number, name in enumerate(part.names)}

    def words(indices: Sequence[int]) -> Iterator[_Spans]:
        for chunk in _runs(gold, indices):
            states = torch.cat(source.batch(chunk).features["tags"], -1)
            for row, tree in zip(states, [gold[index] for index in chunk], strict=True):
                n = tree.n_words
                begin, none = np.arange(n), np.zeros(n, np.int64)
                target = np.array([code[tag] for tag in tree.tags])
                one, told = np.ones(n, np.float32), np.zeros((n, 2), np.float32)
                yield row[: n + 1], (begin, begin + 1, none, target, one, none > 0, told)

    _fit(part, _blocks(gold, sample(gold, len(part.names)), words), _TAG_PENALTY, progress)


#: Least share of a label's phrases that another parser must take for phrases, to start from it.
_ALIGNED = 0.1


@torch.no_grad()
def align_labels(
    parser: TrainedParser, first: TrainedParser, features: Features, gold: Sequence[GoldTree]
) -> list[str]:
    """Start the labels that another parser lacks from its labels of the same phrases.

    With ``c(l, m)`` the expected number of phrases ``l`` that it labels ``m``, a label starts from
    the mean of its weights ``w``, and from the bias of which it has its share::

        w(l) = Σ_m c(l, m) / c(l) w(m),    b(l) = Σ_m c(l, m) / c(l) (b(m) + log(c(l, m) / c(m)))

    Args:
        parser: whose labels are set, if it has some of the same layers as the other parser's.
        first: the other parser.
        features: of the sentences of ``gold``, in its order.
        gold: trees, of which those with labels count.

    Returns:
        the labels whose phrases are none to the other parser; they start from zero.
    """
    part, theirs = (one.scorer.each().get("labels") for one in (parser, first))
    if not (isinstance(part, LabelPart) and isinstance(theirs, LabelPart)):
        return []
    new = [n for n, name in enumerate(part.names) if name not in theirs.names]
    if not new or part.layers != theirs.layers:
        return []
    code = {name: number for number, name in enumerate(part.names)}
    counts, phrases = torch.zeros(len(part.names), len(theirs.names)), torch.zeros(len(part.names))
    source = BatchSource(features, first.scorer)
    for chunk in _runs(gold, [index for index, tree in enumerate(gold) if tree.labels]):
        labels = first.scorer.scores(source.batch(chunk)).labels
        assert labels is not None
        for row, tree in enumerate(gold[index] for index in chunk):
            for start, end, name in tree.labels:
                counts[code[name]] += labels[row, start, end].softmax(-1).cpu()
                phrases[code[name]] += 1
    counts = counts[:, 1:] + 1e-6
    of_label, of_theirs = counts.sum(1, keepdim=True), counts.sum(0)
    known = of_label[:, 0] >= _ALIGNED * phrases
    share = (counts / of_label)[new] * known[new, None]
    part.weights[..., new] = theirs.weights[..., 1:] @ share.T.to(theirs.weights)
    biases = theirs.bias[:, None, 1:].cpu() + (counts[new] / of_theirs).log()
    part.bias[:, new] = (share * biases).sum(-1).to(part.bias)
    return [part.names[n] for n in new if not known[n]]


def structure(parser: TrainedParser) -> TrainedParser:
    """Return the parser of the parts that are trained by steps, which shares their weights."""
    recipe = parser.recipe
    joint = recipe.objective in LABELLED
    aside = ("tags",) if joint else ("labels", "tags")
    kept = tuple(part for part in recipe.parts if part not in aside)
    if kept == recipe.parts:
        return parser
    recipe = replace(recipe, parts=kept, decoder=recipe.decoder if joint else "minimum_risk")
    scorer = SpanScorer(recipe, parser.shape, parser.scorer.each())
    return TrainedParser(recipe, scorer, parser.encoder)


def fit_aside(
    parser: TrainedParser,
    learner: TrainedParser,
    features: Features,
    gold: Sequence[GoldTree],
    progress: Progress = silent,
) -> None:
    """Fit the labels and tags of a parser that were not trained by steps.

    Only trees that have labels, or tags, are used: guessing all labels of a tree from those of
    others costs labelled F1.
    """
    parts = parser.scorer.each()
    labels, tags = parts.get("labels"), parts.get("tags")
    if isinstance(labels, LabelPart) and "labels" not in learner.recipe.parts:
        labelled = [index for index, tree in enumerate(gold) if tree.labels]
        source = BatchSource(features, parser.scorer, labelled)
        chosen = [gold[index] for index in labelled]
        _fit(labels, labelled_spans(parser.scorer, source, chosen, progress), PENALTY, progress)
    if isinstance(tags, TagPart) and tags.names:
        tagged = [index for index, tree in enumerate(gold) if tree.tags]
        only = SpanScorer(replace(parser.recipe, parts=("tags",)), parser.shape, parts)
        source = BatchSource(features, only, tagged)
        fit_tags(tags, source, [gold[index] for index in tagged], progress)


class _Regression:
    """The penalised likelihood of weights for states scaled to equal variances.

    The penalty is on the distance from the part's first weights: zeros, or those of another parser.
    Weights and blocks are on the processor, whatever the part's device.

    Args:
        part: with its first weights.
        some: blocks whose states are scaled to a mean of 0, and to 1 over two boundaries.
        cost: of the penalty.

    Attributes:
        weights, bias: of the scaled states.
    """

    def __init__(self, part: NameReader, some: Sequence[LabelledSpans], cost: float) -> None:
        states = torch.cat([block.states for block in some]).float()
        spread = (states.std(0, correction=0) + 1e-3) * (2 * states.shape[1]) ** 0.5
        self._centre, self._factor, self._cost = states.mean(0), 1.0 / spread, cost
        first, bias = (values.detach().cpu().clone() for values in (part.weights, part.bias))
        shift = self._shift(first)
        bias[: len(shift)] += shift
        first /= self._factor[:, None]
        self._first, self._first_bias = first, bias
        self.weights, self.bias = first.clone().requires_grad_(), bias.clone().requires_grad_()

    def _shift(self, weights: Tensor) -> Tensor:
        # the centre counts twice for spans and for words: at both boundaries
        return (self._centre @ weights).unflatten(0, (-1, 2)).sum(1)

    @torch.no_grad()
    def write(self, part: NameReader) -> None:
        """Set the part's weights to these, of states that are not scaled."""
        weights = self.weights * self._factor[:, None]
        shift = self._shift(weights)
        self.bias[: len(shift)] -= shift
        part.weights.copy_(weights)
        part.bias.copy_(self.bias)

    def logits(self, block: LabelledSpans) -> Tensor:
        """Return the logits of the names of every span, (spans, names)."""
        states = block.states.to(torch.float32, copy=True).sub_(self._centre).mul_(self._factor)
        return _logits(states @ self.weights, self.bias, block)

    def loss(
        self,
        blocks: Sequence[LabelledSpans],
        guessed: Mapping[int, Tensor],
        advance: Callable[[int], None],
    ) -> Tensor:
        """Return the loss over blocks, and leave its gradient in the weights.

        ``guessed`` are label probabilities of the spans of each block that have no known label;
        empty if every label is known.
        """
        self.weights.grad = self.bias.grad = None
        total = torch.zeros(())
        for number, block in enumerate(blocks):
            chances = self.logits(block).log_softmax(-1)
            likely = chances.gather(1, block.target.clamp(min=0)[:, None])[:, 0]
            if guessed:
                rows = block.unknown
                likely = likely.index_copy(0, rows, (chances[rows] * guessed[number]).sum(1))
            value = -(block.weight * likely).sum()
            if number == 0:
                distance = (self.weights - self._first).square().sum()
                of_bias = (self.bias - self._first_bias).square().sum()
                value = self._cost * (distance + 0.02 * of_bias) + value
            value.backward()
            total = total + value.detach()
        advance(len(blocks))
        return total


def _fit(
    part: NameReader, blocks: Sequence[LabelledSpans], cost: float, progress: Progress
) -> None:
    """Set the weights of a part to those of the highest penalised likelihood."""
    some = blocks[:_FIRST]  # they are like the others
    fitted = _Regression(part, some, cost)
    complete = all(bool((block.target >= 0).all()) for block in blocks)
    guess = None if complete else Guess(blocks, len(part.names))
    guessed: dict[int, Tensor] = {}
    title = "solving labels" if isinstance(part, LabelPart) else "solving tags"
    rounds = 1 if guess is None else _ROUNDS
    solved = [some, blocks] if len(blocks) > _FIRST else [some]
    stages = list(zip(solved, _STEPS, _PASSES, strict=False))
    total = rounds * sum(len(chosen) * passes for chosen, _, passes in stages)
    with progress(title, total=total, unit="blocks") as advance:
        for turn in range(rounds):
            for number, block in enumerate(blocks):
                if guess is not None:
                    with torch.no_grad():
                        logits = fitted.logits(block) if turn else None
                        guessed[number] = guess.labels(block, logits)
            for chosen, steps, passes in stages:
                solver = LBFGS(
                    [fitted.weights, fitted.bias],
                    max_iter=steps,
                    max_eval=passes,
                    history_size=10,
                    line_search_fn="strong_wolfe",
                )
                solver.step(partial(fitted.loss, chosen, guessed, advance))
                # the solver stops early once it has converged
                advance(len(chosen) * max(passes - solver.state[fitted.weights]["func_evals"], 0))
    fitted.write(part)


def _logits(sides: Tensor, bias: Tensor, spans: LabelledSpans) -> Tensor:
    """(spans, labels), of (4, boundaries, labels): see :class:`attree.training.parts.LabelPart`.

    Tags have two sides only, and one bias.
    """
    word = (spans.kind == 1).long()
    flat, count = sides.flatten(0, 1), sides.shape[1]
    begins = flat.index_select(0, 2 * word * count + spans.begin)
    ends = flat.index_select(0, (2 * word + 1) * count + spans.end)
    extra = bias[2:].sum(0) * (spans.kind == 2)[:, None]
    logits = begins + ends + bias.index_select(0, word) + extra
    if spans.phrase.any():
        added = told_by_heads(logits[:, 1:].logsumexp(-1) - logits[:, 0], spans.phrase)[:, None]
        logits = logits + added * (torch.arange(flat.shape[1]) > 0)
    return logits


#: Assumed share of phrases that are given, if there is no whole tree to estimate it from.
_HALF = 0.5
#: Pseudo-count of phrases that pulls a label's share towards the share of all labels.
_PRIOR = 4.0
_MOST = 0.98


class Guess:
    """Guess labels for the spans of partly bracketed trees that have none.

    A partly bracketed tree gives some of its phrases, and hardly ever says that a span is no
    phrase. Training on the given spans alone would teach that every span is a phrase. So we
    estimate which share of the phrases of each label is given::

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
            target, partial = spans.target, spans.partial
            given += _count_labels(spans, (target > 0) & partial, target, n_labels)
            whole += _count_labels(spans, (target >= 0) & ~partial, target, n_labels)
            mass += _count_labels(spans, partial, torch.zeros_like(target), 1)[:, 0]
        rates = torch.where(whole[:, 1:].sum(1, keepdim=True) > 0, whole, given / _HALF)
        rates[:, 0] = torch.where(whole[:, 0] > 0, whole[:, 0], mass - rates[:, 1:].sum(1))
        self.rates = rates.clamp(min=1e-3) / rates.clamp(min=1e-3).sum(1, keepdim=True)
        expected = self.rates * mass[:, None]
        of_all = (given.sum(1) / expected[:, 1:].sum(1).clamp(min=1e-6)).clamp(max=_MOST)
        self.shares = (given + _PRIOR * of_all[:, None]) / (expected + _PRIOR)
        self.shares = self.shares.clamp(max=_MOST).index_fill(1, torch.tensor([0]), 0.0)

    def labels(self, spans: LabelledSpans, logits: Tensor | None = None) -> Tensor:
        """Return label probabilities of a block's unknown spans, (unknown, labels) float16.

        They are guessed from ``logits``, (spans, labels), or else from the rates of labels.
        """
        rows = spans.unknown
        word = (spans.kind == 1).long()[rows]
        chances = self.rates[word] if logits is None else logits[rows].softmax(-1)
        labelled = spans.target[rows] == SOME_LABEL
        guessed = torch.where(labelled[:, None], chances, chances * (1.0 - self.shares)[word])
        guessed[labelled, 0] = 0.0
        return (guessed / guessed.sum(1, keepdim=True).clamp(min=1e-30)).half()


def _count_labels(spans: LabelledSpans, chosen: Tensor, labels: Tensor, n_labels: int) -> Tensor:
    """Return the summed weights of labels, (2, labels), of chosen wider spans and of words."""
    chosen = chosen & (spans.kind != 2)
    cells = ((spans.kind == 1).long()[chosen], labels[chosen])
    return torch.zeros(2, n_labels).index_put(cells, spans.weight[chosen], accumulate=True)
