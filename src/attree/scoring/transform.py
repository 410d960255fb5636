"""What is done to an association matrix before its splits are scored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.errors import AttreeError
from attree.scoring import FLOOR


def transform(values: NDArray[Any], association: str) -> NDArray[Any]:
    """Return ``values`` (float16, 32 or 64, any shape) as ``association`` asks.

    Logarithms are taken in float64. Values that have none become NaN, which decoding refuses with
    the sentence's number.
    """
    if association not in TRANSFORMS:
        known = ", ".join(TRANSFORMS)
        raise AttreeError(f"unknown association {association!r}", fix=f"choose one of {known}")
    return TRANSFORMS[association](values)


def _raw(values: NDArray[Any]) -> NDArray[Any]:
    return values


def _log(values: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log(values.astype(np.float64) + FLOOR)


#: association → what it does; the names are those of :data:`attree.scoring.ASSOCIATIONS`
TRANSFORMS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {"raw": _raw, "log": _log}
