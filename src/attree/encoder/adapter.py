"""Weights that adapt an encoder to trees, as they lie in a trained parser's file of weights."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from attree.base.errors import AttreeError
from attree.base.files import check_regular

#: What the names of such weights begin with; the other names of the file begin otherwise.
PREFIX = "encoder."


def read_adapter(path: str | Path) -> dict[str, NDArray[Any]]:
    """Read the weights of a parser's file that adapt its encoder, by name; none if it has none.

    Raises:
        AttreeError: no such file, it is cut short, or these weights are no finite float16 numbers.
    """
    check_regular(Path(path), what="file of weights")
    try:
        with safe_open(path, framework="numpy") as file:
            found = {x: file.get_tensor(x) for x in file.keys() if x.startswith(PREFIX)}  # noqa: SIM118
    except (SafetensorError, OSError, TypeError, AttributeError):
        problem = "these weights are cut short or belong to another parser"
        raise AttreeError("damaged-weights", problem, file=path, fix="train it again") from None
    for name, one in found.items():
        if one.dtype != np.float16 or not np.isfinite(one).all():
            problem = f"the weights {name} are no finite numbers of 16 bits"
            raise AttreeError("damaged-weights", problem, file=path, fix="train it again")
    return found


def adapted_fingerprint(encoder: str, weights: Mapping[str, NDArray[Any]]) -> str:
    """Return what identifies an encoder with such weights: a hash of both.

    Args:
        encoder: the fingerprint of the encoder without them.
        weights: by name.
    """
    found = hashlib.sha256(encoder.encode())
    for name, one in sorted(weights.items()):
        found.update(f" {name} {one.shape} ".encode())
        found.update(np.ascontiguousarray(one).tobytes())
    return found.hexdigest()[:32]
