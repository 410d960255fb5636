"""Keep the state of a long training in a file, so that a training that was killed goes on."""

import time
from dataclasses import dataclass, field
from pathlib import Path

import torch

from attree.base.runs import read_state, write_state
from attree.base.terminal import say

#: Seconds between two writings, each of which takes less than a second.
_SECONDS = 300.0


@dataclass(slots=True)
class TrainingState:
    """All that the next step of a training depends on besides its trees and its plan.

    Attributes:
        file: where it is kept; nowhere if None.
        optimiser: with the weights.
        noise: the generator of dropout.
        losses: of the steps so far.
        written: when the file was.
    """

    file: Path | None
    optimiser: torch.optim.Optimizer
    noise: torch.Generator
    losses: list[float]
    written: float = field(default_factory=time.monotonic)

    @property
    def _weights(self) -> list[torch.Tensor]:
        return [weight for group in self.optimiser.param_groups for weight in group["params"]]

    def restore(self) -> None:
        """Set weights, optimiser, generator and losses to what the file holds, if there is one.

        Raises:
            AttreeError: the file is damaged.
        """
        if self.file is None or (state := read_state(self.file)) is None:
            return
        for weight, kept in zip(self._weights, state["weights"], strict=True):
            weight.data.copy_(kept)
        self.optimiser.load_state_dict(state["optimiser"])
        self.noise.set_state(state["noise"])
        self.losses += state["losses"]
        say(f"attree: continuing after step {len(self.losses):,}")

    def keep(self) -> None:
        """Write the file if the last one is some minutes old."""
        if self.file is not None and time.monotonic() - self.written >= _SECONDS:
            state = {"weights": self._weights, "optimiser": self.optimiser.state_dict()}
            more = {"noise": self.noise.get_state(), "losses": self.losses}
            write_state(self.file, {**state, **more})
            self.written = time.monotonic()
