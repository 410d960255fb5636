"""Train a parser on trees and an encoder; choose its settings and threshold on other trees.

Training starts from the encoder's own weights, random ones, or those of a parser (:class:`Start`).

Self-training (:func:`fit_in_rounds`) is the row FSS of the article's few-shot table, after Shi,
Livescu and Gimpel (2020, *On the Role of Supervision in Unsupervised Constituency Parsing*), who
train a span parser on a few trees, then also on raw sentences that it parsed itself with
confidence. The confidence in a tree is the mean score of its phrases::

    sure(x) = mean of s(i, j) over the phrases of the tree of x, without the whole sentence

A score of 0 means no phrase. The more confident half of the raw sentences is added to the given
trees; each batch is half given trees, half parsed ones. Training starts anew each round.

Differences from the published method: the span parser is that of :mod:`attree.training.parts`, on a
frozen encoder; the raw sentences are the remaining ones of the treebank, without their trees; there
is one round; and no augmentation by swapped subtrees, which needs labels.
"""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attree.base.errors import AttreeError
from attree.base.provenance import digest, versions
from attree.base.terminal import Progress, say, silent
from attree.encoder.load import Encoder
from attree.evaluation.metrics import count_each
from attree.ready import DEFAULT, folder_of_start
from attree.training import parts
from attree.training.features import Features, Layout, features_of
from attree.training.gold import GoldTree, GoldTrees, gold_tree, with_classes
from attree.training.label_fit import align_labels, fit_aside, sample, structure
from attree.training.objectives import Report, train
from attree.training.parser import TrainedParser, gold_spans, load_parser, right_branching_f1
from attree.training.parts import BatchSource
from attree.training.recipes import (
    MANY_TREES,
    RECIPES,
    STARTS,
    TRUST,
    TrainingPlan,
    for_trees,
    with_least_threshold,
)
from attree.trees.sampling import fingerprints
from attree.trees.trees import Trees

#: Adam's learning rate for training that starts from a parser, low since good weights are soon
#: unlearned.
_RATE = 1e-4


@dataclass(frozen=True, slots=True)
class Start:
    """First weights of a parser to be trained.

    Attributes:
        name: ``encoder`` (its query and key), ``random``, or the name or folder of a parser.
        parser: the parser of this name, whose training goes on.
    """

    name: str = STARTS[0]
    parser: TrainedParser | None = None

    @classmethod
    def named(cls, name: str | None) -> Start:
        """Load the parser that has this name or folder, if there is one; None is ``encoder``."""
        folder = folder_of_start(name)
        return cls(name or STARTS[0], load_parser(folder) if folder else None)

    @classmethod
    def chosen(cls, name: str | None, scored: Sequence[Sequence[str]]) -> Start:
        """Return the start of this name, or by default that of the default parser.

        If the parser was trained on sentences to be scored, a message on stderr says so, and the
        default is ``encoder``.

        Args:
            name: as for :meth:`named`; None for the default.
            scored: words of the sentences that the new parser is to be scored on.
        """
        start = cls.named(name or DEFAULT)
        shared = int(np.isin(fingerprints(scored), start.trained_on).sum())
        if not shared:
            return start
        then = "their F1 is too high" if name else "training starts from the encoder"
        say(
            f"attree: {start.name} was trained on {shared:,} of the {len(scored):,} sentences to "
            f"be scored: {then}"
        )
        return start if name else cls()

    @property
    def trained_on(self) -> NDArray[np.uint64]:
        """Fingerprints of the sentences that the parser was trained on."""
        return np.empty(0, np.uint64) if self.parser is None else self.parser.trained_on

    def plan(
        self, plan: TrainingPlan, n_layers: int, n_trees: int, *, rate_given: bool = False
    ) -> TrainingPlan:
        """Return a plan for training from here.

        If the plan names no layers, they are those around the encoder's middle; from a parser its
        layers, sizes and dependencies, and no attention if that one reads none.

        Training from a parser has a low learning rate. Few trees train labels together with the
        structure, as that parser did; from `MANY_TREES` trees on, labels that are fitted to a
        trained structure are better.

        Args:
            plan: the settings that were asked for.
            n_layers: number of layers of the encoder.
            n_trees: number of trees to train on.
            rate_given: whether the learning rate was asked for, and stays.
        """
        recipe, middle = plan.recipe, n_layers // 2
        first, last = max(middle - recipe.spread, 0), min(middle + recipe.spread, n_layers)
        layers = plan.layers or tuple(range(first, last + 1))
        named, plan = bool(plan.layers), replace(plan, layers=layers, start=STARTS[0])
        if self.parser is None:
            return replace(plan, start=self.name)
        if "labels" in recipe.parts and recipe.objective == "tree_crf" and n_trees < MANY_TREES:
            joint = RECIPES["tree-crf-joint"]
            names = ("objective", "threshold", "unlabelled")
            recipe = replace(recipe, **{name: getattr(joint, name) for name in names})
        rate = recipe.learning_rate if rate_given else _RATE
        recipe = replace(with_least_threshold(recipe), learning_rate=rate)
        if named:
            return replace(plan, recipe=recipe)
        shape = self.parser.shape
        projection, boundary, labels = (
            shape.get(part, {}) for part in ("projection", "boundary", "labels")
        )
        # attention is not read where it was not: it would take the encoder's upper half
        kept = [name for name in recipe.parts if name != "heads" or name in shape]
        kept += [name for name in ("dependencies",) if name in shape and name not in kept]
        label_layers = tuple(labels.get("layers", recipe.label_layers))
        return replace(
            plan,
            recipe=replace(recipe, parts=tuple(kept), label_layers=label_layers),
            layers=tuple(projection.get("layers", layers)),
            boundary=tuple(boundary.get("layers", ())),
            size=projection.get("size", plan.size),
            specials=bool(projection.get("specials", plan.specials)),
        )


def carry_over(first: TrainedParser, parser: TrainedParser) -> None:
    """Copy weights from ``first`` to ``parser``; for labels and tags, those that both have.

    Parts that ``first`` lacks keep their weights.

    Raises:
        AttreeError: ``first`` has another encoder, other sizes, or no part in common.
    """
    theirs, ours = first.scorer.each(), parser.scorer.each()
    shared = [name for name in ours if name in theirs]
    same = first.encoder["fingerprint"] == parser.encoder["fingerprint"]
    fixed = [name for name in shared if not isinstance(ours[name], parts.NameReader)]
    if not same or not shared or any(first.shape[name] != parser.shape[name] for name in fixed):
        problem = "the parser to start from has another encoder, or other parts or sizes"
        fix = "train it with the same --encoder, --parser, --layer and --size"
        raise AttreeError("other-parts", problem, fix=fix)
    for name in shared:
        part, other = ours[name], theirs[name]
        if isinstance(part, parts.NameReader) and isinstance(other, parts.NameReader):
            part.carry(other)
        else:
            part.load_state_dict(other.state_dict())


@dataclass(frozen=True, slots=True)
class Learned:
    """What was trained together with an encoder: the scorer's weights, and the record."""

    weights: dict[str, Tensor]
    report: Report


def build_scorer(encoder: Encoder, plan: TrainingPlan, n_trees: int) -> parts.SpanScorer:
    """Build the scorer of a plan for this encoder, before its first weights are set.

    Args:
        encoder: a loaded encoder.
        plan: of the training.
        n_trees: number of trees to train on, which decides what labels read.

    Raises:
        AttreeError: a layer that the encoder does not have.
    """
    plan = _for_trees(encoder, plan, n_trees)
    encoder.check(states=(*plan.layers, *plan.boundary, *plan.recipe.label_layers))
    return parts.SpanScorer(plan.recipe, _shapes(encoder, plan))


def _for_trees(encoder: Encoder, plan: TrainingPlan, n_trees: int) -> TrainingPlan:
    return replace(plan, recipe=for_trees(plan.recipe, n_trees, encoder.n_layers))


def _shapes(encoder: Encoder, plan: TrainingPlan) -> dict[str, dict[str, Any]]:
    return {name: parts.PARTS[name].shape(plan, encoder) for name in plan.recipe.parts}


def fit(
    encoder: Encoder,
    trees: GoldTrees,
    plan: TrainingPlan,
    *,
    held_out: GoldTrees | None = None,
    first: TrainedParser | None = None,
    features: Features | None = None,
    folder: Path | None = None,
    learned: Learned | None = None,
    progress: Progress = silent,
) -> TrainedParser:
    """Train a parser.

    Args:
        encoder: a loaded encoder.
        trees: to train on, from one treebank or several. Structure is learned from all of them,
            labels and tags from those that have some.
        plan: of the training.
        held_out: trees for early stopping and the dev score, disjoint from ``trees``.
        first: a trained parser whose weights to start from.
        features: of ``trees``, if computed already.
        folder: for features that do not fit in memory.
        learned: what was trained together with the encoder, so that the rest is fitted alone.
        progress: shows how far each stage is.

    Raises:
        AttreeError: see :func:`attree.training.objectives.train`; a layer that does not exist; a
            first parser of other parts or sizes; a partly bracketed tree for a parser that
            learns from splits.
    """
    if plan.recipe.rank and not encoder.adapter:
        problem = "this recipe needs an encoder that has been adapted to the trees"
        fix = "train it with `attree train`, or take tree-crf-joint"
        raise AttreeError("adapted-already", problem, fix=fix)
    parser, trees, plan = start_parser(encoder, trees, plan, first)
    rows = range(len(trees.gold)) if learned is None else sample(trees.gold, len(plan.tags))
    words, gold = [trees.words[row] for row in rows], [trees.gold[row] for row in rows]
    features = features or features_of(
        encoder, words, parser.scorer.layout(), folder=folder, progress=progress
    )
    if first is not None and {"labels"} <= first.shape.keys() & parser.shape.keys():
        _align(parser, first, features, trees)
    learner = structure(parser)
    source = parts.BatchSource(features, learner.scorer)
    check: Callable[[], float] | None = None
    if held_out is not None:
        check_source = parts.BatchSource.of(encoder, held_out.words, learner.scorer)
        check = functools.partial(learner.f1, check_source, held_out.gold)
    began = time.perf_counter()
    before = copy.deepcopy(learner.scorer.state_dict())
    if learned is None:
        with progress("training", total=plan.steps, unit="steps") as advance:
            report = train(learner.scorer, source, trees, plan, held_out=check, advance=advance)
    else:
        learner.scorer.load_state_dict(learned.weights)
        report = learned.report
        report.checks += [] if check is None else [(report.best_step, check())]
    if first is not None and len(trees.gold) < MANY_TREES:
        _average(learner.scorer, before, first, _to_learn(first, features, trees.gold))
    dependencies = parser.scorer.each().get("dependencies")
    if first is None and isinstance(dependencies, parts.DependencyPart):
        dependencies.trust.fill_(TRUST)
    fit_aside(parser, learner, features, gold, progress=progress)
    earlier = [] if first is None else [first.trained_on]
    parser.trained_on = np.concatenate([fingerprints(trees.words), *earlier])
    # a partly bracketed tree is more than its brackets
    constraints = [[tree.known.required, tree.known.forbidden] for tree in trees.gold if tree.known]
    data = [trees.words, [tree.brackets.tolist() for tree in trees.gold], constraints]
    parser.about = {
        "plan": asdict(plan),
        "seed": plan.seed,
        "trees": len(trees.gold),
        "sources": list(trees.sources),
        "sentences": trees.sentence if len(trees.sentence) <= 1000 else None,
        "data": digest(data if constraints else data[:2]),
        "first": None if first is None else {key: first.about[key] for key in ("trees", "data")},
        "dev_right_branching": None if held_out is None else right_branching_f1(held_out.gold),
        "dev_trees": 0 if held_out is None else len(held_out.gold),
        "versions": versions("torch", "transformers", "numpy"),
        "steps": report.best_step,
        "loss": {"first": report.losses[0], "last": report.losses[-1]},
        "checks": report.checks,
        "dev_f1": None if check is None else max(f1 for _, f1 in report.checks),
        "seconds": round(time.perf_counter() - began, 3),
    }
    if held_out is not None and learner.recipe.objective == "tree_crf":
        parser.about["threshold"], _ = choose_threshold(learner, check_source, held_out.gold)
    return parser


def _to_learn(first: TrainedParser, features: Features, gold: Sequence[GoldTree]) -> float:
    """Return how much few trees can teach the parser to start from, from 0 to 1.

    Where it has an F1 of 90 they teach nothing that lasts; from 73 down, all that they can.
    """
    rows = [index for index, tree in enumerate(gold) if tree.known is None]
    if not rows:
        return 1.0
    f1 = first.f1(parts.BatchSource(features, first.scorer, rows), [gold[row] for row in rows])
    return min(max((_TAUGHT - f1) / (_TAUGHT - _UNTAUGHT), 0.0), 1.0)


#: F1 of the parser to start from, on the trees to train on, that leave nothing or all to learn.
_TAUGHT, _UNTAUGHT = 90.0, 73.0


@torch.no_grad()
def _average(
    scorer: parts.SpanScorer, before: Mapping[str, Tensor], first: TrainedParser, share: float
) -> None:
    """Set weights between those before and after training.

    A few trees are of one kind of text: part of the way, what they teach is kept, and little is
    lost of what the parser to start from knows of others (Wortsman et al. 2022). Labels that it
    knows go as far as ``share``, the structure half as far; new labels stay as they are trained.
    """
    for name, after in scorer.state_dict().items():
        part = scorer.each()[kind := name.split(".")[1]]
        if isinstance(part, parts.NameReader):
            theirs = first.shape.get(kind, {}).get("names", ())
            known = [column for column, label in enumerate(part.names) if label in theirs]
            after[..., known] = torch.lerp(before[name], after, share)[..., known]
        else:
            after.lerp_(before[name], 1.0 - share / 2)


def _align(
    parser: TrainedParser, first: TrainedParser, features: Features, trees: GoldTrees
) -> None:
    """Start the parser's labels from those of the parser to start from."""
    part = parser.scorer.each()["labels"]
    assert isinstance(part, parts.LabelPart)
    rows = [index for index, tree in enumerate(trees.gold) if tree.labels]
    gold = [trees.gold[index] for index in rows]
    source = parts.BatchSource(features, first.scorer, rows)
    if unknown := align_labels(part, first.scorer, source, gold):
        say(
            f"attree: the parser to start from takes phrases {', '.join(unknown)} for none: these "
            "labels start from nothing"
        )


def start_parser(
    encoder: Encoder, trees: GoldTrees, plan: TrainingPlan, first: TrainedParser | None = None
) -> tuple[TrainedParser, GoldTrees, TrainingPlan]:
    """Return a parser with its first weights, and trees and plan with their labels and tags set.

    Arguments and errors are those of :func:`fit`.
    """
    partial = next((tree for tree in trees.gold if tree.known is not None), None)
    if partial is not None and not plan.recipe.has_distribution:
        problem = f"tree {partial.name} is partly bracketed: not for {plan.recipe.objective}"
        fix = "train a tree CRF, such as --parser tree-crf-full"
        raise AttreeError("partly-bracketed", problem, fix=fix)
    plan = _for_trees(encoder, plan, len(trees.gold))
    if "labels" in plan.recipe.parts:
        trees = with_classes(trees)
        labels = {*plan.labels, *label_names(trees)}
        tags = {*plan.tags, *(tag for tree in trees.gold for tag in tree.tags)}
        plan = replace(plan, labels=tuple(sorted(labels)), tags=tuple(sorted(tags)))
    scorer = build_scorer(encoder, plan, len(trees.gold))
    for part in scorer.each().values():
        part.start(encoder, plan)
    scorer = scorer.to(encoder.device)
    identity = {"slug": encoder.slug, "fingerprint": encoder.fingerprint}
    shapes = _shapes(encoder, plan)
    parser = TrainedParser(plan.recipe, shapes, scorer, identity, adapter=encoder.adapter)
    if first is not None:
        first.scorer.to(encoder.device)
        carry_over(first, parser)
    return parser, trees, plan


def label_names(trees: GoldTrees) -> tuple[str, ...]:
    """Return the sorted labels of some trees, unary chains joined."""
    names = sorted({label for tree in trees.gold for _, _, label in tree.labels if label})
    if not names:
        fix = "train a parser without labels, such as tree-crf-full"
        raise AttreeError("no-labels", "these trees have no labels", fix=fix)
    return tuple(names)


#: Thresholds of span marginals tried; 0 leaves trees binary.
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(13))


def choose_threshold(
    parser: TrainedParser, source: parts.BatchSource, gold: Sequence[GoldTree]
) -> tuple[float, dict[str, float]]:
    """Return the threshold of span marginals with the best F1, and the F1 of every threshold.

    Args:
        parser: one trained with ``tree_crf``, so that its marginals are probabilities.
        source: features of trees that were not trained on.
        gold: these trees.
    """
    trees, likely = parser.decode_with_marginals(source)
    right = gold_spans(gold)
    f1 = {}
    for threshold in THRESHOLDS:
        pruned = count_each(right, trees.keep(likely >= threshold))
        f1[threshold] = float(pruned.corpus_f1[0])
    # the least of equal ones
    return max(f1, key=f1.__getitem__), {str(threshold): value for threshold, value in f1.items()}


def choose(
    encoder: Encoder,
    trees: GoldTrees,
    tuning: GoldTrees,
    plans: Sequence[TrainingPlan],
    *,
    first: TrainedParser | None = None,
) -> tuple[TrainingPlan, list[dict[str, Any]]]:
    """Train a parser by every plan on ``trees`` and return the plan with the best F1 on ``tuning``.

    Ties go to the earlier plan. ``tuning`` is used for scoring alone, not for training or early
    stopping. The encoder runs once, whatever the number of plans. ``first`` is as for :func:`fit`.

    Returns:
        the plan, and the settings and F1 of each plan.
    """
    layouts = [build_scorer(encoder, plan, len(trees.gold)).layout() for plan in plans]
    layers = {layer for layout in layouts for layer in layout.layers}
    layout = Layout(tuple(sorted(layers)), max(layout.heads for layout in layouts))
    features, others = (features_of(encoder, part.words, layout) for part in (trees, tuning))
    tried: list[dict[str, Any]] = []
    for plan in plans:
        parser = fit(encoder, trees, plan, first=first, features=features)
        f1 = parser.f1(parts.BatchSource(others, parser.scorer), tuning.gold)
        settings = {"layers": list(plan.layers), "dropout": plan.recipe.dropout}
        tried.append({**settings, "shares": list(plan.shares), "f1": f1})
    scores = [settings["f1"] for settings in tried]
    return plans[scores.index(max(scores))], tried


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
    gold = []
    for tree in kept:
        nodes = slice(trees.offsets[tree], trees.offsets[tree + 1])
        spans = zip(trees.starts[nodes].tolist(), trees.ends[nodes].tolist(), strict=True)
        gold.append(gold_tree(len(sentences[tree]), [*spans], name=f"raw sentence {tree}"))
    return GoldTrees(kept, [sentences[tree] for tree in kept], gold)


def sureness(trees: Trees) -> NDArray[np.float64]:
    """Return the mean score of each tree's phrases without the whole sentence, −inf if none."""
    assert trees.scores is not None
    inner = trees.ends - trees.starts < trees.n_words[trees.tree_of]
    tree = trees.tree_of[inner]
    counts = np.bincount(tree, minlength=len(trees))
    sums = np.bincount(tree, trees.scores[inner], minlength=len(trees))
    return np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf)
