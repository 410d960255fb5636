"""Settings chosen on a few trees that are not trained on: layers and dropout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from attree.encoder.load import Encoder
from attree.errors import AttreeError
from attree.fewshot.draw import Trees
from attree.fewshot.features import Layout, in_memory
from attree.fewshot.fit import Plan, fit, shape_of
from attree.fewshot.scorer import Source


def grid(
    plan: Plan, *, layers: Sequence[tuple[int, ...]], dropouts: Sequence[float] = ()
) -> list[Plan]:
    """Vary a plan over layers and dropout rates."""
    rates = dropouts or [plan.recipe.dropout]
    return [
        replace(plan, layers=chosen, recipe=replace(plan.recipe, dropout=rate))
        for chosen in layers
        for rate in rates
    ]


def choose(
    encoder: Encoder, trees: Trees, tuning: Trees, plans: Sequence[Plan]
) -> tuple[Plan, list[dict[str, Any]]]:
    """Train by every plan on ``trees`` and return the one that parses ``tuning`` best.

    Ties go to the earlier plan. Trees of ``tuning`` are scored and never trained on, and nothing
    is stopped early on them. The encoder runs once, whatever the number of plans.

    Returns:
        the plan, and each plan's settings with its F1.
    """
    if not plans:
        raise AttreeError("no settings to choose from", fix="name some layers")
    shapes = [shape_of(encoder, plan) for plan in plans]
    layers = {layer for shape in shapes for layer in (*shape.layers, *shape.boundary)}
    heads = max(shape.encoder_heads for shape in shapes)
    layout = Layout(tuple(sorted(layers)), heads, encoder.hidden_size)
    stores = [in_memory(encoder, part.words, layout) for part in (trees, tuning)]
    tried = []
    for plan, shape in zip(plans, shapes, strict=True):
        sources = [Source(store, shape, device=str(encoder.device)) for store in stores]
        parser = fit(encoder, trees, plan, sources=(sources[0], None))
        tried.append(
            {
                "layers": list(plan.layers),
                "dropout": plan.recipe.dropout,
                "f1": parser.f1(sources[1], tuning.gold),
            }
        )
    best = max(range(len(plans)), key=lambda place: (tried[place]["f1"], -place))
    return plans[best], tried
