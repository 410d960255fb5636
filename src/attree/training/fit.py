"""Train a parser on trees and an encoder; choose its settings and threshold on other trees."""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from attree.base.errors import AttreeError
from attree.base.provenance import digest, versions
from attree.base.terminal import Progress, say, silent
from attree.encoder.load import Encoder
from attree.evaluation.metrics import count_each
from attree.training import parts
from attree.training.features import Features, Layout, features_of
from attree.training.gold import GoldTree, GoldTrees, with_classes
from attree.training.label_fit import align_labels, fit_aside, sample, structure
from attree.training.objectives import Report, train
from attree.training.parser import TrainedParser, gold_spans, right_branching_f1
from attree.training.recipes import TRUST, TrainingPlan, for_trees
from attree.training.start import carry_over
from attree.trees.sampling import fingerprints

#: What was trained together with an encoder: the scorer's weights, and the record.
Learned = tuple[dict[str, Tensor], Report]


def build_scorer(encoder: Encoder, plan: TrainingPlan, n_trees: int) -> parts.SpanScorer:
    """Build the scorer of a plan for this encoder, before its first weights are set.

    Args:
        encoder: a loaded encoder.
        plan: of the training.
        n_trees: number of trees to train on, which decides what labels read.

    Raises:
        AttreeError: a layer that the encoder does not have.
    """
    plan = replace(plan, recipe=for_trees(plan.recipe, n_trees, encoder.n_layers))
    encoder.check(states=(*plan.layers, *plan.boundary, *plan.recipe.label_layers))
    shapes = {name: parts.PARTS[name].shape(plan, encoder) for name in plan.recipe.parts}
    return parts.SpanScorer(plan.recipe, shapes)


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
    layout = parser.scorer.layout()
    features = features or features_of(encoder, words, layout, folder=folder, progress=progress)
    if first is not None and (unknown := align_labels(parser, first, features, trees.gold)):
        names = ", ".join(unknown)
        say(f"attree: no phrases of the first parser are like {names}: learned from nothing")
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
        weights, report = learned
        learner.scorer.load_state_dict(weights)
        report.checks += [] if check is None else [(report.best_step, check())]
    if first is not None and plan.to_learn is not None:
        _average(learner.scorer, before, first, plan.to_learn)
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
        parser.about["threshold"] = choose_threshold(learner, check_source, held_out.gold)
    return parser


@torch.no_grad()
def _average(
    scorer: parts.SpanScorer, before: Mapping[str, Tensor], first: TrainedParser, to_learn: float
) -> None:
    """Set weights between those before and after training.

    A few trees are of one kind of text: part of the way, what they teach is kept, and little is
    lost of what the parser to start from knows of others (Wortsman et al. 2022). Labels that it
    knows go as far as ``to_learn``, the structure half as far; new labels stay as they are trained.
    """
    for name, after in scorer.state_dict().items():
        part = scorer.each()[kind := name.split(".")[1]]
        if isinstance(part, parts.NameReader):
            theirs = first.shape.get(kind, {}).get("names", ())
            known = [column for column, label in enumerate(part.names) if label in theirs]
            after[..., known] = torch.lerp(before[name], after, to_learn)[..., known]
        else:
            after.lerp_(before[name], 1.0 - to_learn / 2)


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
    plan = replace(plan, recipe=for_trees(plan.recipe, len(trees.gold), encoder.n_layers))
    if "labels" in plan.recipe.parts:
        trees = with_classes(trees)
        labels = {label for tree in trees.gold for _, _, label in tree.labels if label}
        if not labels:
            fix = "train a parser without labels, such as tree-crf-full"
            raise AttreeError("no-labels", "these trees have no labels", fix=fix)
        tags = {*plan.tags, *(tag for tree in trees.gold for tag in tree.tags)}
        labels |= {*plan.labels}
        plan = replace(plan, labels=tuple(sorted(labels)), tags=tuple(sorted(tags)))
    scorer = build_scorer(encoder, plan, len(trees.gold))
    for part in scorer.each().values():
        part.start(encoder, plan)
    scorer = scorer.to(encoder.device)
    identity = {"slug": encoder.slug, "fingerprint": encoder.fingerprint}
    parser = TrainedParser(plan.recipe, scorer, identity, adapter=encoder.adapter)
    if first is not None:
        first.scorer.to(encoder.device)
        carry_over(first, parser)
    return parser, trees, plan


#: Thresholds of span marginals tried; 0 leaves trees binary.
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(13))


def choose_threshold(
    parser: TrainedParser, source: parts.BatchSource, gold: Sequence[GoldTree]
) -> float:
    """Return the threshold of span marginals with the best F1, the least of equal ones.

    Args:
        parser: one trained with ``tree_crf``, so that its marginals are probabilities.
        source: features of trees that were not trained on.
        gold: these trees.
    """
    trees, likely = parser.decode_with_marginals(source)
    right = gold_spans(gold)

    return max(THRESHOLDS, key=lambda x: count_each(right, trees.keep(likely >= x)).corpus_f1[0])


def choose(
    encoder: Encoder,
    trees: GoldTrees,
    tuning: GoldTrees,
    plans: Sequence[TrainingPlan],
    *,
    first: TrainedParser | None = None,
) -> TrainingPlan:
    """Train a parser by every plan on ``trees`` and return the plan with the best F1 on ``tuning``.

    Ties go to the earlier plan. ``tuning`` is used for scoring alone, not for training or early
    stopping. The encoder runs once, whatever the number of plans. ``first`` is as for :func:`fit`.
    """
    layouts = [build_scorer(encoder, plan, len(trees.gold)).layout() for plan in plans]
    layers = {layer for layout in layouts for layer in layout.layers}
    layout = Layout(tuple(sorted(layers)), max(layout.heads for layout in layouts))
    features, others = (features_of(encoder, part.words, layout) for part in (trees, tuning))

    def f1(plan: TrainingPlan) -> float:
        parser = fit(encoder, trees, plan, first=first, features=features)
        return parser.f1(parts.BatchSource(others, parser.scorer), tuning.gold)

    return max(plans, key=f1)
