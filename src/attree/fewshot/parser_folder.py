"""A trained parser on disk: a folder with ``parser.json`` and ``weights.safetensors``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from attree.errors import AttreeError
from attree.fewshot.parser import TrainedParser
from attree.fewshot.recipes import Recipe, adapted
from attree.fewshot.scorer import Scorer, Shape
from attree.files import read_json, whole_file, write_json

_WEIGHTS = "weights.safetensors"
_ABOUT = "parser.json"


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
    about = read_json(folder / _ABOUT, what="parser")
    recipe, shape = _recipe_and_shape(about, folder / _ABOUT)
    recipe = adapted(recipe, decoder=decoder)
    scorer = Scorer(recipe, shape)
    path = folder / _WEIGHTS
    try:
        tensors = load_file(path)
        trained_on = tensors.pop("trained_on").numpy().view(np.uint64)
        scorer.load_state_dict(tensors)
    except FileNotFoundError:
        raise AttreeError("this parser has no weights", file=path, fix="train it again") from None
    except (SafetensorError, RuntimeError, KeyError, OSError):
        raise AttreeError(
            "these weights are cut short or belong to another parser",
            file=path,
            fix="delete the folder and train again",
        ) from None
    scorer = scorer.to(device).eval()
    return TrainedParser(recipe, shape, scorer, about["encoder"], about["about"], trained_on)


def _recipe_and_shape(about: Any, path: Path) -> tuple[Recipe, Shape]:
    try:
        shape, recipe = dict(about["shape"]), dict(about["recipe"])
        shape["layers"], shape["boundary"] = tuple(shape["layers"]), tuple(shape["boundary"])
        recipe["parts"] = tuple(recipe["parts"])
        return Recipe(**recipe), Shape(**shape)
    except (TypeError, KeyError):
        raise AttreeError(
            "this is not the description of a trained parser", file=path, fix="train it again"
        ) from None
