"""One training session: trees chosen, the encoder run, settings tuned, the parser trained."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attree.encoder.load import Encoder, load_encoder
from attree.encoder.source import ResolvedEncoder
from attree.errors import AttreeError
from attree.fewshot.choice import Choice, Chosen, choose_trees
from attree.fewshot.fit import Plan, fit
from attree.fewshot.parser import TrainedParser
from attree.fewshot.parser_folder import save_parser
from attree.fewshot.recipes import Recipe
from attree.fewshot.tune import choose, grid

Layers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """What ``attree train`` is asked for.

    Attributes:
        sentences: table that trees are chosen from.
        encoder: description of the encoder.
        recipe: the parser.
        choice: which trees.
        layers: hidden states read; the middle of the encoder if None.
        training: further settings of a :class:`~attree.fewshot.fit.Plan`.
        tune_layers: what is chosen among, where there are trees to tune on; each by default.
        tune_dropouts: dropout rates chosen among with them; the recipe's own by default.
        evaluated: tables that no tree may be in, unless ``allow_overlap``.
        device: ``cpu`` or ``cuda``.
    """

    sentences: Path
    encoder: Path
    recipe: Recipe
    choice: Choice
    layers: Layers | None = None
    training: dict[str, Any] = field(default_factory=dict)
    tune_layers: tuple[Layers, ...] = ()
    tune_dropouts: tuple[float, ...] = ()
    evaluated: Sequence[Path] = ()
    allow_overlap: bool = False
    device: str | None = None


def train_parser(request: Request, output: Path) -> TrainedParser:
    """Train a parser and write its folder."""
    chosen = choose_trees(
        request.sentences,
        request.choice,
        request.evaluated,
        allow_overlap=request.allow_overlap,
    )
    encoder = load_encoder(request.encoder, device=request.device)
    plan, tried = _plan(request, encoder, chosen)
    scratch = output.with_name(f".{output.name}.features")
    try:
        parser = fit(encoder, chosen.trees, plan, held_out=chosen.held_out, folder=scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    parser.about |= {"tuning": tried, "table": chosen.provenance}
    parser.encoder["revision"] = ResolvedEncoder.read(request.encoder).revision
    save_parser(parser, output)
    return parser


def _plan(request: Request, encoder: Encoder, chosen: Chosen) -> tuple[Plan, list[dict[str, Any]]]:
    """Settle the plan, on the tuning trees if there are any; and what was tried there."""
    recipe = request.recipe
    layers = request.layers or around_middle(encoder.n_layers, recipe.spread)
    plan = Plan(recipe, layers, seed=request.choice.seed, **request.training)
    if chosen.tuning is None:
        return plan, []
    if "projection" not in recipe.parts:
        raise AttreeError("head weights have no layer to tune", fix="leave --tune-on out")
    wanted = request.tune_layers or tuple((number,) for number in range(encoder.n_layers + 1))
    plans = grid(plan, layers=wanted, dropouts=request.tune_dropouts)
    return choose(encoder, chosen.trees, chosen.tuning, plans)


def around_middle(n_layers: int, spread: int) -> Layers:
    """Return the middle layer and ``spread`` layers on each side of it."""
    middle = n_layers // 2
    return tuple(range(max(middle - spread, 0), min(middle + spread, n_layers) + 1))


def parse_layers(text: str) -> Layers:
    """Read ``3`` or ``2,3,4``.

    Raises:
        AttreeError: not numbers.
    """
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise AttreeError(f"{text!r} is no list of layers", fix="write 3, or 2,3,4") from None


def summary(parser: TrainedParser, output: Path) -> str:
    """Say in one line what was trained."""
    about = parser.about
    dev = "" if about["dev_f1"] is None else f", F1 {about['dev_f1']:.1f} on held-out trees"
    return (
        f"{output}: {about['trees']} trees, {about['steps']} steps, {about['seconds']:.1f} s, "
        f"loss {about['loss']['first']:.2f} to {about['loss']['last']:.2f}{dev}"
    )
