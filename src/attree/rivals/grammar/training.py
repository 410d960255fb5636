"""Training a compound PCFG: an epoch after the other, each kept, so that a killed run continues.

What happens in an epoch is a function of the seed and its number alone, never of a generator's
state. The weights that are kept in the end are those of the epoch with the lowest perplexity on
the sentences held out.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attree.base.errors import AttreeError
from attree.base.files import whole_file
from attree.base.progress import progress
from attree.base.text import say
from attree.rivals.grammar.model import CompoundPCFG
from attree.rivals.grammar.options import GrammarRecipe

#: What a generator is for, so that no two draw the same numbers.
_ORDER, _NOISE, _HELD_OUT = range(3)
#: Of Adam, and of the gradient's norm, as Kim, Dyer and Rush (2019) took them.
_BETAS, _CLIP = (0.75, 0.999), 3.0

#: The numbers of a sentence's words.
Numbers = NDArray[np.int64]


@dataclass(slots=True)
class Epoch:
    """What an epoch came to; perplexities are by word.

    Attributes:
        epoch: its number, from 1.
        trained: upper bound of the perplexity of the training sentences, while weights changed.
        held_out: the same of the sentences held out, afterwards.
        reconstruction: the latter without the divergence: of words given ``z``.
        divergence: KL divergence of a sentence held out, in nats.
        seconds: that the epoch took.
    """

    epoch: int
    trained: float
    held_out: float
    reconstruction: float
    divergence: float
    seconds: float

    def __str__(self) -> str:
        """Say it in a line."""
        return (
            f"epoch {self.epoch}: perplexity at most {self.held_out:,.1f} on sentences held out "
            f"({self.reconstruction:,.1f} and {self.divergence:.2f} nats of KL a sentence), "
            f"{self.trained:,.1f} in training; {self.seconds:.0f} s"
        )


@dataclass(slots=True)
class _Sums:
    """Bounds added up over sentences."""

    likelihood: float = 0.0
    divergence: float = 0.0
    words: int = 0
    sentences: int = 0

    def add(self, likelihood: Tensor, divergence: Tensor, words: Tensor) -> None:
        self.likelihood += float(likelihood.detach().sum())
        self.divergence += float(divergence.detach().sum())
        self.words += words.numel()
        self.sentences += len(words)

    def perplexity(self, *, bound: bool = True) -> float:
        lost = self.divergence if bound else 0.0
        return _exp((lost - self.likelihood) / max(self.words, 1))


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0)) if value == value else math.nan


@dataclass(slots=True)
class GrammarRun:
    """A training run.

    Attributes:
        model: trained in place.
        recipe: how.
        seed: of order and noise.
        folder: of its checkpoints.
        best: the weights of the best epoch so far.
        curve: all epochs so far.
    """

    model: CompoundPCFG
    recipe: GrammarRecipe
    seed: int
    folder: Path
    best: dict[str, Tensor] = field(default_factory=dict)
    curve: list[Epoch] = field(default_factory=list)
    adam: torch.optim.Adam = field(init=False)

    def __post_init__(self) -> None:
        """Make the optimiser."""
        settings: dict[str, Any] = {"lr": self.recipe.learning_rate, "betas": _BETAS}
        self.adam = torch.optim.Adam(self.model.parameters(), **settings, fused=True)

    @property
    def best_epoch(self) -> int:
        """The number of the epoch whose weights are kept."""
        return min(self.curve, key=lambda epoch: epoch.held_out).epoch

    def train(self, sentences: Sequence[Numbers], held_out: Sequence[Numbers]) -> None:
        """Train to the end, from the last checkpoint where there is one; keep the best.

        Raises:
            AttreeError: a perplexity is not a number.
        """
        if self._checkpoint.is_file():
            self._resume()
            say(f"continuing after epoch {len(self.curve)}")
        for number in range(len(self.curve) + 1, self.recipe.epochs + 1):
            began = time.monotonic()
            trained = self._epoch(number, sentences)
            measured = bound(self.model, held_out)
            epoch = Epoch(
                number,
                trained.perplexity(),
                measured.perplexity(),
                measured.perplexity(bound=False),
                measured.divergence / max(measured.sentences, 1),
                time.monotonic() - began,
            )
            self._check(epoch)
            say(str(epoch))
            if all(epoch.held_out < before.held_out for before in self.curve):
                self.best = copy.deepcopy(self.model.state_dict())
            self.curve.append(epoch)
            self._save()
        self.model.load_state_dict(self.best)

    def _epoch(self, number: int, sentences: Sequence[Numbers]) -> _Sums:
        generator = _generator(self.seed, number, _ORDER)
        drawn = _generator(self.seed, number, _NOISE)
        sums = _Sums()
        with progress(f"epoch {number}", total=len(sentences)) as advance:
            for words in batches(sentences, self.recipe.batch, generator):
                likelihood, divergence = self.model(words, _noise(self.model, words, drawn))
                self.adam.zero_grad()
                (divergence - likelihood).mean().backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), _CLIP)
                self.adam.step()
                sums.add(likelihood, divergence, words)
                advance(len(words))
        return sums

    def _check(self, epoch: Epoch) -> None:
        if not math.isfinite(epoch.trained + epoch.held_out):
            raise AttreeError(
                "loss-not-finite",
                f"the perplexity is not a number in epoch {epoch.epoch}",
                file=self.folder.parent,
                fix="run again with a lower --learning-rate",
            )

    def _save(self) -> None:
        """Write the checkpoint, whole or not at all, in place of the one before."""
        state = {"best": self.best, "now": self.model.state_dict(), "adam": self.adam.state_dict()}
        with whole_file(self._checkpoint) as part:
            torch.save({**state, "curve": [asdict(epoch) for epoch in self.curve]}, part)

    @property
    def _checkpoint(self) -> Path:
        return self.folder / "checkpoint.pt"

    def _resume(self) -> None:
        try:  # what is only weights runs no code
            state = torch.load(self._checkpoint, weights_only=True)
        except (RuntimeError, EOFError, UnpicklingError):
            fix = "learn the grammar anew with --restart"
            raise AttreeError(
                "damaged-checkpoint", "a damaged checkpoint", file=self._checkpoint, fix=fix
            ) from None
        self.curve = [Epoch(**epoch) for epoch in state["curve"]]
        self.best = state["best"]
        self.model.load_state_dict(state["now"])
        self.adam.load_state_dict(state["adam"])


@torch.no_grad()
def bound(model: CompoundPCFG, sentences: Sequence[Numbers]) -> _Sums:
    """Add up the bound of sentences, with the same noise each time."""
    sums, generator = _Sums(), _generator(0, 0, _HELD_OUT)
    for words in batches(sentences, 16):
        likelihood, divergence = model(words, _noise(model, words, generator))
        sums.add(likelihood, divergence, words)
    return sums


def batches(
    sentences: Sequence[Numbers], size: int, generator: torch.Generator | None = None
) -> Iterator[Tensor]:
    """Yield batches of sentences of one length, int64 (batch, n); shuffled by a generator."""
    places = _shuffled(len(sentences), generator)
    by_length: dict[int, list[int]] = {}
    for place in places:
        by_length.setdefault(len(sentences[place]), []).append(place)
    groups = [
        own[first : first + size]
        for own in by_length.values()
        for first in range(0, len(own), size)
    ]
    for group in _shuffled(len(groups), generator):
        yield torch.from_numpy(np.stack([sentences[place] for place in groups[group]]))


def _shuffled(count: int, generator: torch.Generator | None) -> list[int]:
    if generator is None:
        return list(range(count))
    order: list[int] = torch.randperm(count, generator=generator).tolist()
    return order


def _noise(model: CompoundPCFG, words: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(len(words), model.sizes.latent, generator=generator)


def _generator(*seeds: int) -> torch.Generator:
    mixed = int(np.random.SeedSequence(seeds).generate_state(1, np.uint64)[0] >> np.uint64(1))
    return torch.Generator().manual_seed(mixed)
