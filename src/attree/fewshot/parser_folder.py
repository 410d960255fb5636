"""A trained parser on disk: a folder with ``parser.json`` and ``weights.safetensors``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from attree.errors import AttreeError
from attree.fewshot.parser import TrainedParser
from attree.fewshot.recipes import CHOICES, RECIPES, Recipe, adapted
from attree.fewshot.scorer import Scorer, Shape
from attree.files import check_regular, read_described, whole_file, write_json
from attree.scoring import SCORES

_WEIGHTS = "weights.safetensors"
_ABOUT = "parser.json"
_AGAIN = "train it again"
#: No size of a parser is as large.
_LARGEST = 100_000


def save_parser(parser: TrainedParser, folder: Path) -> None:
    """Write ``parser``; ``parser.json`` comes last, so a folder that has it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _ABOUT).unlink(missing_ok=True)
    tensors = {
        name: tensor.detach().cpu().contiguous()
        for name, tensor in parser.scorer.state_dict().items()
    }
    tensors["trained_on"] = torch.from_numpy(parser.trained_on.astype("<u8").view(np.int64).copy())
    with whole_file(folder / _WEIGHTS) as part:
        save_file(tensors, part)
    write_json(folder / _ABOUT, parser.describe())


def load_parser(
    folder: str | Path, *, device: str = "cpu", decoder: str | None = None
) -> TrainedParser:
    """Read a parser that :func:`save_parser` wrote.

    Args:
        folder: where it is.
        device: where to.
        decoder: another decoder than its own.

    Raises:
        AttreeError: no parser there, weights cut short, or weights of another shape.
    """
    folder = Path(folder)
    about = _read_about(folder / _ABOUT)
    recipe, shape = adapted(about.recipe, decoder=decoder), about.shape
    path = folder / _WEIGHTS
    _check_weights(path, shape)
    scorer = Scorer(recipe, shape)
    try:
        tensors = load_file(path)
        trained_on = tensors.pop("trained_on").numpy().view(np.uint64)
        scorer.load_state_dict(tensors)
    except (SafetensorError, RuntimeError, KeyError, OSError):
        raise AttreeError(
            "these weights are cut short or belong to another parser",
            file=path,
            fix=_AGAIN,
        ) from None
    scorer = scorer.to(device).eval()
    return TrainedParser(recipe, shape, scorer, about.encoder, about.about, trained_on)


class _About(msgspec.Struct):
    """What ``parser.json`` holds."""

    recipe: Recipe
    shape: Shape
    encoder: dict[str, Any]
    about: dict[str, Any]


def _read_about(path: Path) -> _About:
    what = "description of a trained parser"
    found = read_described(path, _About, what=what, fix=_AGAIN)
    for key, value in asdict(found.shape).items():
        for number in value if isinstance(value, tuple) else (value,):
            if not 0 <= number <= _LARGEST:
                raise AttreeError(
                    f"this {what} is not valid: shape.{key}: {number}", file=path, fix=_AGAIN
                )
    parts = {part for recipe in RECIPES.values() for part in recipe.parts}
    known = {**CHOICES, "score": tuple(SCORES), "parts": tuple(sorted(parts))}
    for key, names in known.items():
        value = getattr(found.recipe, key)
        for name in value if key == "parts" else (value,):
            if name not in names:
                raise AttreeError(
                    f"this {what} is not valid: recipe.{key}: unknown {name!r}",
                    file=path,
                    fix=f"choose one of {', '.join(names)}",
                )
    if not 0 <= found.recipe.dropout < 1:
        problem = f"recipe.dropout: {found.recipe.dropout}"
        raise AttreeError(f"this {what} is not valid: {problem}", file=path, fix=_AGAIN)
    return found


def _check_weights(path: Path, shape: Shape) -> None:
    """Refuse a shape of more weights than the file holds before memory is taken for them."""
    there = check_regular(path, what="file of weights")
    least = 2 * len(shape.layers) * shape.size * shape.hidden
    if least > there:
        raise AttreeError(
            f"parser.json describes {least:,} weights or more, this file holds {there:,} bytes: "
            "they do not belong together",
            file=path,
            fix=_AGAIN,
        )
