"""Keep the state of a long training in a file, so that a training that was killed goes on."""

import time
from pathlib import Path
from typing import Any

import torch

from attree.base.runs import read_state, write_state
from attree.base.terminal import say

#: Seconds between two writings, each of which takes less than a second.
_SECONDS = 300.0


class TrainingState:
    """All that the next step of a training depends on besides its trees and its plan.

    Args:
        file: where it is kept; nowhere if None. If it is there, the training goes on from it.

    Attributes:
        losses: of the steps so far.

    Raises:
        AttreeError: the file is damaged.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file, self._written = file, time.monotonic()
        self._kept: dict[str, Any] = {} if file is None else read_state(file) or {}
        self.losses: list[float] = self._kept.get("losses", [])

    def restore(self, optimiser: torch.optim.Optimizer, noise: torch.Generator) -> None:
        """Set an optimiser, its weights, and the generator of dropout to what the file held."""
        if not self._kept:
            return
        for weight, kept in zip(_weights(optimiser), self._kept["weights"], strict=True):
            weight.data.copy_(kept)
        optimiser.load_state_dict(self._kept["optimiser"])
        noise.set_state(self._kept["noise"])
        self._kept = {}
        say(f"attree: continuing after step {len(self.losses):,}")

    def keep(self, optimiser: torch.optim.Optimizer, noise: torch.Generator) -> None:
        """Write the file if the last one is some minutes old."""
        if self._file is not None and time.monotonic() - self._written >= _SECONDS:
            state = {"weights": _weights(optimiser), "optimiser": optimiser.state_dict()}
            write_state(self._file, {**state, "noise": noise.get_state(), "losses": self.losses})
            self._written = time.monotonic()


def _weights(optimiser: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [weight for group in optimiser.param_groups for weight in group["params"]]
