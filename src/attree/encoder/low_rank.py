"""Adapt an encoder with low-rank weights: ``(W + B A) x`` for every linear part of a layer.

LoRA (Hu et al. 2022, *Low-Rank Adaptation of Large Language Models*): ``A`` (rank, in) and ``B``
(out, rank) are trained, and ``W`` is frozen. ``A`` and ``B`` are saved with a parser's weights, and
added to the encoder's own weights when it is loaded.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attree.base.errors import AttreeError
from attree.encoder.source import ADAPTER_PREFIX


class LowRank(nn.Module):
    """A linear part with additional low-rank weights, whose product is zero at first.

    Args:
        linear: the linear part, frozen.
        rank: rank of the weights.
        generator: random generator for the initial ``A``; the initial ``B`` is zero.
    """

    def __init__(self, linear: nn.Linear, rank: int, generator: torch.Generator) -> None:
        super().__init__()
        self.linear = linear
        size = (rank, linear.in_features)
        first = torch.randn(size, generator=generator) / linear.in_features**0.5
        self.a = nn.Parameter(first.to(linear.weight.device))
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank).to(linear.weight.device))

    def forward(self, x: Tensor) -> Tensor:
        """Return (…, out)."""
        a, b = self.a.to(x.dtype), self.b.to(x.dtype)  # the encoder may be in bfloat16
        return self.linear(x) + (x @ a.T) @ b.T


def adapt(layers: nn.ModuleList, count: int, rank: int, seed: int) -> dict[str, LowRank]:
    """Add low-rank weights to every linear part of the first ``count`` layers.

    Returns:
        name among the layers → the adapted part.
    """
    generator = torch.Generator().manual_seed(seed)
    linear = {
        name: part
        for name, part in layers.named_modules()
        if isinstance(part, nn.Linear) and int(name.partition(".")[0]) < count
    }
    adapted = {name: LowRank(part, rank, generator) for name, part in linear.items()}
    for name, part in adapted.items():
        above, _, last = name.rpartition(".")
        setattr(layers.get_submodule(above), last, part)
    return adapted


def weights_of(parts: Mapping[str, LowRank]) -> dict[str, NDArray[Any]]:
    """Return name in files → low-rank weights, float16."""
    return {
        f"{ADAPTER_PREFIX}{name}.{key}": weight.detach().cpu().numpy().astype(np.float16)
        for name, part in parts.items()
        for key, weight in (("a", part.a), ("b", part.b))
    }


@torch.no_grad()
def merge(layers: nn.ModuleList, weights: Mapping[str, NDArray[Any]], slug: str) -> None:
    """Add low-rank weights to the weights of the layers that they were trained for.

    Raises:
        AttreeError: they belong to an encoder with other parts or sizes.
    """
    linear = {name: part for name, part in layers.named_modules() if isinstance(part, nn.Linear)}
    for name in sorted({name.rpartition(".")[0] for name in weights}):
        part = linear.get(name.removeprefix(ADAPTER_PREFIX))
        a, b = (weights.get(f"{name}.{key}", np.empty(0)) for key in "ab")
        fits = a.ndim == b.ndim == 2 and len(a) == b.shape[1]
        if part is None or not fits or (len(b), a.shape[1]) != part.weight.shape:
            problem = f"the weights {name} do not fit the encoder {slug}"
            fix = "parse with the encoder that the parser was trained with"
            raise AttreeError("foreign-weights", problem, fix=fix)
        added = torch.from_numpy(b.astype(np.float32) @ a.astype(np.float32))
        whole = part.weight.float() + added.to(part.weight.device)
        part.weight = nn.Parameter(whole.to(part.weight.dtype), requires_grad=False)
