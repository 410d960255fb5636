"""Training losses, and one trainer for all of them."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from attree.base.errors import AttreeError
from attree.training.gold import (
    NO_HEAD,
    SOME_LABEL,
    UNKNOWN_LABEL,
    GoldBatch,
    GoldTrees,
    gold_batch,
)
from attree.training.inside import log_partition
from attree.training.optimisers import AdamW
from attree.training.parts import BatchSource, SpanScorer
from attree.training.recipes import TrainingPlan
from attree.training.scores import SpanScores, best_trees, span_mask, split_values
from attree.training.state import TrainingState
from attree.trees.constraints import AVOIDED

#: (scores, gold, split score's name, margin) → (trees,) losses
Loss = Callable[[SpanScores, GoldBatch, str, float], Tensor]


def _split_table(scores: SpanScores, gold: GoldBatch, score: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return scores of the splits of gold spans, which splits exist, and the gold split.

    The shapes are (spans, splits), (spans, splits) and (spans, 1). Rows are padded to the longest
    span, so that a batch takes one gather.
    """
    widest = int((gold.end - gold.start).max()) if len(gold.tree) else 2
    offsets = torch.arange(1, widest, device=gold.start.device)
    exists = offsets < (gold.end - gold.start)[:, None]
    start, end = gold.start[:, None], gold.end[:, None]
    split = torch.minimum(start + offsets, end - 1)
    values = split_values(scores, score, gold.tree[:, None], start, split, end)
    return values, exists, (gold.split - gold.start - 1)[:, None]


def _sum_by_tree(losses: Tensor, gold: GoldBatch) -> Tensor:
    return losses.new_zeros(len(gold.trees)).index_add(0, gold.tree, losses)


def likelihood(scores: SpanScores, gold: GoldBatch, score: str, margin: float) -> Tensor:
    """``−Σ log p(split | span)`` over gold spans; p is the softmax over the span's splits."""
    values, exists, target = _split_table(scores, gold, score)
    chances = values.masked_fill(~exists, -torch.inf).log_softmax(1)
    return _sum_by_tree(-chances.gather(1, target)[:, 0], gold)


def margin(scores: SpanScores, gold: GoldBatch, score: str, margin: float) -> Tensor:
    """``Σ max(0, margin + s(span, k) − s(span, k*))`` over gold spans and splits ``k ≠ k*``."""
    values, exists, target = _split_table(scores, gold, score)
    short = (margin + values - values.gather(1, target)).clamp(min=0)
    return _sum_by_tree((short * exists.scatter(1, target, False)).sum(1), gold)


def tree_crf(scores: SpanScores, gold: GoldBatch, score: str, margin: float) -> Tensor:
    """``log Z − log Z(trees compatible with gold)``, a tree's score the sum of its ``s_span``.

    Every binary tree that crosses no gold bracket is compatible; for a partly bracketed tree,
    those of them with the fewest forbidden spans.

    Raises:
        AttreeError: a tree has crossing brackets, so no binary tree is compatible with it.
    """
    free = log_partition(scores.span, scores.n_words)
    if gold.penalties is None:
        compatible = log_partition(scores.span, scores.n_words, gold.allowed)
    else:
        avoiding = log_partition(scores.span + gold.penalties, scores.n_words, gold.allowed)
        # the number of forbidden spans, the same in all compatible trees
        fewest = (avoiding.detach() / AVOIDED).round().nan_to_num(neginf=0, posinf=0)
        compatible = avoiding - AVOIDED * fewest
    if (impossible := torch.isneginf(compatible)).any():
        problem = f"tree {gold.trees[int(impossible.nonzero()[0])].name} has crossing brackets"
        raise AttreeError("crossing-spans", problem, fix="leave it out of training")
    return free - compatible


def chart_margin(scores: SpanScores, gold: GoldBatch, score: str, margin: float) -> Tensor:
    """``max_T (s(T) + Δ) - s(gold)``: the hinge loss of a tree, 0 or more.

    ``T`` is a binary tree some of whose spans are constituents. ``Δ`` counts the spans that are
    wrongly a constituent, or wrongly none. The whole sentence is in every tree and does not count.
    """
    inner = span_mask(scores.n_words, scores.span.shape[1])
    inner[range(len(inner)), 0, scores.n_words] = False
    bracket = gold.brackets & inner
    # the better of "constituent" and "none"; the wrong one gains a margin of 1
    either = torch.where(bracket, scores.span.clamp(min=1.0), (scores.span + 1.0).clamp(min=0.0))
    either = either * inner
    trees = best_trees(either.detach(), scores.n_words)
    tree, start, end = (
        torch.from_numpy(part.astype(np.int64)).to(either.device)
        for part in (trees.tree_of, trees.starts, trees.ends)
    )
    best = either.new_zeros(len(either)).index_add(0, tree, either[tree, start, end])
    return best - (scores.span * bracket).sum((1, 2))


def labelled_tree_crf(scores: SpanScores, gold: GoldBatch, score: str, margin: float) -> Tensor:
    """``−log p(gold labels and brackets)``, summed over the binary trees that cross no bracket.

    Unknown labels of partly bracketed trees are summed over too.
    """
    assert scores.labels is not None
    code = {name: number for number, name in enumerate(scores.label_names)}
    # the label number of every span, SOME_LABEL or UNKNOWN_LABEL
    labels = torch.zeros(scores.span.shape, dtype=torch.int64)
    for table, tree in zip(labels, gold.trees, strict=True):
        label_of, other = tree.targets(code)
        table.fill_(other)
        for (start, end), label in label_of.items():
            table[start, end] = label
    labels = labels.to(scores.span.device)
    chances = scores.labels.log_softmax(-1)
    terms = chances.gather(-1, labels.clamp(min=0)[..., None])[..., 0].double()
    if (labels < 0).any():
        labelled = chances[..., 1:].logsumexp(-1).double()
        terms = torch.where(
            labels == SOME_LABEL, labelled, terms.masked_fill(labels == UNKNOWN_LABEL, 0.0)
        )
    word = torch.arange(terms.shape[1] - 1, device=terms.device)
    words = (terms[:, word, word + 1] * (word < scores.n_words[:, None])).sum(1)
    free = log_partition(scores.span, scores.n_words)
    return free - log_partition(scores.span + terms, scores.n_words, gold.allowed) - words


#: Weight of the loss of heads beside that of trees.
HEADS_WEIGHT = 0.4


def head_loss(scores: SpanScores, gold: GoldBatch) -> Tensor:
    """``−Σ log p(head | word)`` over the words whose head is known, for each tree."""
    assert scores.heads is not None
    columns = torch.where(gold.heads == -1, scores.heads.shape[2] - 1, gold.heads.clamp(min=0))
    return -(scores.heads.gather(2, columns[..., None])[..., 0] * (gold.heads != NO_HEAD)).sum(1)


#: The losses by name.
OBJECTIVES: dict[str, Loss] = {
    loss.__name__: loss for loss in (likelihood, margin, tree_crf, chart_margin, labelled_tree_crf)
}

#: Most cells of a batch's tables, (sentences, words + 1, words + 1), computed at a time.
_CELLS = 60_000

#: Of early stopping: steps between two checks, and checks without a gain.
_CHECK_EVERY, _PATIENCE = 20, 5

#: association → margin of the losses
MARGINS = {"log": 0.3, "raw": 0.01}


@dataclass(slots=True)
class Report:
    """Mean loss of each training step, held-out checks ``(step, F1)``, and the best step."""

    losses: list[float] = field(default_factory=list)
    checks: list[tuple[int, float]] = field(default_factory=list)
    best_step: int = 0


def batches(count: int, size: int, steps: int, generator: torch.Generator) -> Iterator[list[int]]:
    """Yield ``steps`` batches of tree indices in random order, each tree once before any twice."""
    waiting: list[int] = []
    for _ in range(steps):
        if not waiting:
            waiting = torch.randperm(count, generator=generator).tolist()
        yield waiting[:size]
        waiting = waiting[size:]


def shared_batches(
    counts: Sequence[int],
    shares: Sequence[float],
    size: int,
    steps: int,
    generator: torch.Generator,
) -> Iterator[list[int]]:
    """Yield ``steps`` batches of tree indices in which each treebank has its share.

    The next tree always comes from the treebank that is furthest behind its share. So shares hold
    in every batch up to rounding, and over several batches if a share is less than one tree. Each
    tree comes once before any tree of its treebank comes twice; a small treebank may be repeated
    within a batch.

    Args:
        counts: number of trees of each treebank, one treebank after the other.
        shares: of the treebanks, in any unit.
        size: trees in a batch.
        steps: number of batches.
        generator: of the order.
    """

    def cycle(first: int, count: int) -> Iterator[int]:
        while True:
            yield from (first + torch.randperm(count, generator=generator)).tolist()

    ends = np.cumsum(counts).tolist()
    orders = [cycle(end - count, count) for end, count in zip(ends, counts, strict=True)]
    part = np.array(shares, np.float64) / sum(shares)
    drawn = np.zeros(len(part))
    for _ in range(steps):
        before = drawn.copy()
        for _ in range(size):
            behind = part * (drawn.sum() + 1) - drawn
            # the first of those that are equal up to rounding
            drawn[int(np.argmax(behind > behind.max() - 1e-9))] += 1
        now = (drawn - before).astype(int).tolist()
        yield [next(order) for order, count in zip(orders, now, strict=True) for _ in range(count)]


def _draw_batches(
    usable: Sequence[int], plan: TrainingPlan, trees: Sequence[int], generator: torch.Generator
) -> Iterator[list[int]]:
    """Yield batches of indices into ``usable``.

    Raises:
        AttreeError: a treebank has no usable tree, and shares are given.
    """
    size, steps, shares = plan.batch, plan.steps, plan.shares
    if not shares:
        return batches(len(usable), size, steps, generator)
    ends = np.cumsum(trees)
    counts = np.bincount(np.searchsorted(ends, usable, side="right"), minlength=len(ends))
    if not counts.all():
        problem = f"treebank {int(counts.argmin()) + 1} of {len(counts)} has no tree of three words"
        raise AttreeError("no-trees", problem, fix="leave this treebank out")
    return shared_batches(counts.tolist(), shares, size, steps, generator)


def train(
    scorer: SpanScorer,
    source: BatchSource,
    trees: GoldTrees,
    plan: TrainingPlan,
    *,
    held_out: Callable[[], float] | None = None,
    state: TrainingState | None = None,
    advance: Callable[[int], None] = lambda count: None,
) -> Report:
    """Train ``scorer`` in place, on its device.

    Equal seeds give bit-identical weights on a CPU with the same number of threads. Sentences of
    one and two words have only one binary tree and are left out.

    Args:
        scorer: the weights.
        source: features of the sentences of ``trees``, in their order.
        trees: to train on.
        plan: of the training.
        held_out: returns F1 on held-out trees; if given, training stops once this no longer grows,
            and the best weights are kept.
        state: of an earlier process to go on from, to the same weights; not with ``held_out``.
        advance: called after each step.

    Raises:
        AttreeError: no tree of three words or more, or a loss that is not a number.
    """
    gold = trees.gold
    usable = [index for index, tree in enumerate(gold) if tree.n_words > 2]
    if not usable:
        problem = "all trees to train on have one or two words, so there is nothing to learn"
        raise AttreeError("short-trees", problem, fix="choose other trees")
    order = torch.Generator().manual_seed(plan.seed)
    device = scorer.device
    noise = torch.Generator(device=device).manual_seed(plan.seed)
    optimiser = AdamW([*scorer.groups(), *source.groups()], weight_decay=0.0, fused=True)
    rates = [group["lr"] for group in optimiser.param_groups]
    recipe, margin = plan.recipe, MARGINS[plan.recipe.association]
    state = state or TrainingState()
    state.restore(optimiser, noise)
    report, best_f1, kept = Report(state.losses), -1.0, scorer.state_dict()
    for step, indices in enumerate(_draw_batches(usable, plan, trees.sources, order), 1):
        if step <= len(report.losses):
            continue
        chosen, loss = [usable[index] for index in indices], 0.0
        if plan.decay:
            for group, rate in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = rate * (1.0 - (step - 1) / plan.steps)
        optimiser.zero_grad()
        for part in split_batch(chosen, [gold[index].n_words for index in chosen]):
            answers = gold_batch([gold[index] for index in part], device=device)
            scores = scorer.scores(source.batch(part), noise)
            losses = OBJECTIVES[recipe.objective](scores, answers, recipe.score, margin)
            if scores.heads is not None:
                losses = losses + HEADS_WEIGHT * head_loss(scores, answers)
            if (broken := ~torch.isfinite(losses)).any():
                name = answers.trees[int(broken.nonzero()[0])].name
                problem = f"the loss of tree {name} is not a number at step {step}"
                fix = "lower the learning rate, or leave the tree out"
                raise AttreeError("loss-not-finite", problem, fix=fix)
            mean = losses.mean() * (len(part) / len(chosen))
            mean.backward()
            loss += float(mean.detach())
        optimiser.step()
        report.losses.append(loss)
        state.keep(optimiser, noise)
        advance(1)
        if held_out is not None and (step % _CHECK_EVERY == 0 or step == plan.steps):
            f1 = held_out()
            report.checks.append((step, f1))
            if f1 > best_f1:
                best_f1, report.best_step = f1, step
                kept = copy.deepcopy(scorer.state_dict())
            if step - report.best_step >= _PATIENCE * _CHECK_EVERY:
                break
    if held_out is None:
        report.best_step = len(report.losses)
    scorer.load_state_dict(kept)
    return report


def split_batch(indices: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
    """Split a batch with large padded tables into groups of sentences of similar length.

    The trainer sums the gradients of the groups, so memory is that of one group, with little
    padding.

    Args:
        indices: of the sentences.
        lengths: of the sentences, in words.
    """
    if (max(lengths) + 1) ** 2 * len(indices) <= _CELLS:
        return [list(indices)]
    groups: list[list[int]] = []
    longest = 0
    for length, index in sorted(zip(lengths, indices, strict=True), reverse=True):
        if not groups or longest * (len(groups[-1]) + 1) > _CELLS:
            groups.append([])
            longest = (length + 1) ** 2
        groups[-1].append(index)
    return groups
