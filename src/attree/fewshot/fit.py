"""From trees and an encoder to a trained parser."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from attree.encoder.load import Encoder
from attree.fewshot.draw import Trees, fingerprints
from attree.fewshot.features import Store, in_memory, on_disk
from attree.fewshot.parser import TrainedParser
from attree.fewshot.parts import ProjectionPart
from attree.fewshot.projection import initialise
from attree.fewshot.recipes import Recipe
from attree.fewshot.scorer import Scorer, Shape, Source
from attree.fewshot.threshold import choose_threshold
from attree.fewshot.training import MARGINS, Training, train
from attree.provenance import digest, versions

#: sentences whose states are kept in memory; more of them go to disk
IN_MEMORY = 8192


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is asked of one training run.

    Attributes:
        recipe: the parser.
        layers: hidden states that the projection reads.
        boundary: those that the boundary part reads; by default the middle one of ``layers``.
        size: of the projection; 0 for the encoder's own.
        start: ``encoder`` (its query and key) or ``random``.
        specials: keep ``[CLS]`` and ``[SEP]`` in the softmax.
        steps, batch, seed, weight_decay: of the training.
    """

    recipe: Recipe
    layers: tuple[int, ...] = ()
    boundary: tuple[int, ...] = ()
    size: int = 0
    start: str = "encoder"
    specials: bool = False
    steps: int = 200
    batch: int = 10
    seed: int = 0
    weight_decay: float = 0.0


def shape_of(encoder: Encoder, plan: Plan) -> Shape:
    """Return the shape of a plan's weights with this encoder.

    Raises:
        AttreeError: a layer that the encoder does not have.
    """
    parts = plan.recipe.parts
    encoder.check(states=(*plan.layers, *plan.boundary))
    return Shape(
        layers=plan.layers if "projection" in parts else (),
        boundary=(plan.boundary or plan.layers[len(plan.layers) // 2 :][:1])
        if "boundary" in parts
        else (),
        encoder_heads=encoder.n_layers * encoder.n_heads if "heads" in parts else 0,
        hidden=encoder.hidden_size,
        size=plan.size or encoder.hidden_size,
        heads=plan.recipe.heads or encoder.n_heads,
        specials=plan.specials,
    )


def store_of(
    encoder: Encoder,
    sentences: Sequence[Sequence[str]],
    shape: Shape,
    *,
    folder: Path | None = None,
) -> Store:
    """Run the encoder once over sentences and keep what a parser of this shape reads.

    Args:
        encoder: a loaded encoder.
        sentences: their words.
        shape: which features.
        folder: where they go if there are more than :data:`IN_MEMORY` sentences.
    """
    if len(sentences) > IN_MEMORY and folder is not None:
        return on_disk(encoder, sentences, shape.layout(), folder)
    return in_memory(encoder, sentences, shape.layout())


def source_of(
    encoder: Encoder, sentences: Sequence[Sequence[str]], shape: Shape, **where: Any
) -> Source:
    """Run the encoder over sentences and return the batches that a parser of this shape reads."""
    return Source(store_of(encoder, sentences, shape, **where), shape, device=str(encoder.device))


def fit(
    encoder: Encoder,
    trees: Trees,
    plan: Plan,
    *,
    held_out: Trees | None = None,
    sources: tuple[Source, Source | None] | None = None,
    folder: Path | None = None,
) -> TrainedParser:
    """Train a parser.

    Args:
        encoder: a loaded encoder.
        trees: to train on.
        plan: how.
        held_out: trees for early stopping and the dev score, none of them trained on.
        sources: features of ``trees`` and ``held_out`` if they are there already.
        folder: for hidden states that do not fit in memory.

    Raises:
        AttreeError: see :func:`attree.fewshot.training.train`; a layer that does not exist.
    """
    shape = shape_of(encoder, plan)
    scorer = _started(encoder, shape, plan)
    parser = TrainedParser(plan.recipe, shape, scorer, _identity(encoder))
    source, check_source = sources or (
        source_of(encoder, trees.words, shape, folder=folder),
        None if held_out is None else source_of(encoder, held_out.words, shape),
    )
    check: Callable[[], float] | None = None
    if held_out is not None and check_source is not None:
        check = functools.partial(parser.f1, check_source, held_out.gold)
    began = time.perf_counter()
    report = train(
        scorer, source, trees.gold, _training(plan), held_out=check, device=str(encoder.device)
    )
    parser.trained_on = fingerprints(trees.words)
    parser.about = {
        "plan": asdict(plan),
        "seed": plan.seed,
        "trees": len(trees.gold),
        "sentences": trees.sentence if len(trees.sentence) <= 1000 else None,
        "data": digest([trees.words, [tree.brackets.tolist() for tree in trees.gold]]),
        "versions": versions("torch", "transformers", "numpy"),
        "steps": report.best_step,
        "loss": {"first": report.losses[0], "last": report.losses[-1]},
        "checks": report.checks,
        "dev_f1": None if check is None else max(f1 for _, f1 in report.checks),
        "dev_trees": 0 if held_out is None else len(held_out.gold),
        "seconds": round(time.perf_counter() - began, 3),
    }
    if check_source is not None and held_out is not None and plan.recipe.objective == "tree_crf":
        parser.about["threshold"], _ = choose_threshold(parser, check_source, held_out.gold)
    return parser


def _started(encoder: Encoder, shape: Shape, plan: Plan) -> Scorer:
    """Make the scorer, its projection started from the encoder's query and key or at random."""
    scorer = Scorer(plan.recipe, shape)
    if shape.layers:
        part = scorer.parts["projection"]
        assert isinstance(part, ProjectionPart)
        generator = torch.Generator().manual_seed(plan.seed)
        weights = [encoder.query_key(number) for number in shape.layers]
        initialise(part.projection, weights, how=plan.start, generator=generator)
    return scorer.to(encoder.device)


def _training(plan: Plan) -> Training:
    recipe = plan.recipe
    return Training(
        objective=recipe.objective,
        score=recipe.score,
        margin=MARGINS["raw" if recipe.association == "raw" else "log"],
        steps=plan.steps,
        batch=plan.batch,
        weight_decay=plan.weight_decay,
        seed=plan.seed,
    )


def _identity(encoder: Encoder) -> dict[str, Any]:
    return {"slug": encoder.slug, "fingerprint": encoder.fingerprint}
