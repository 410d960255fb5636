"""Ratios of attree's speed to something plain, measured side by side."""

from __future__ import annotations

import operator
from dataclasses import dataclass

_COMPARE = {"<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True)
class Row:
    """A line that a benchmark prints.

    Args:
        name: what is measured ÷ what it is compared with.
        goal: what the ratio shall be, such as ``<= 1.0`` or ``>= 0.9``.
        unit: of ``ours`` and ``baseline``, which are printed for information.
        ours: the figure that is measured.
        baseline: the figure that it is compared with.
        median: of the ratios of single runs, where that is taken; else ours ÷ baseline counts.
    """

    name: str
    goal: str
    unit: str
    ours: float
    baseline: float
    median: float | None = None

    @property
    def ratio(self) -> float:
        """What the goal is about."""
        return self.ours / self.baseline if self.median is None else self.median

    @property
    def reached(self) -> bool:
        """Whether the ratio meets its goal."""
        sign, bound = self.goal.split()
        return bool(_COMPARE[sign](self.ratio, float(bound)))
