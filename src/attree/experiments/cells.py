"""One cell of an experiment's table: the draws of one parser, in words and as a row of the CSV."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Any

from attree.experiments.rows import SHOWN
from attree.figures import COMPUTED
from attree.tables.render import number


@dataclass(slots=True)
class Cell:
    """One line and column: the draws of one parser, or one published figure.

    Attributes:
        label, column: where it stands.
        panel: the part of the table, or empty.
        source: ``computed``, ``baseline``, ``ceiling`` or ``article``.
        about: what all its draws have in common, for the CSV.
        values: metric → one value a draw.
        highest, deviation: given ones, where there are no single draws.
        recall: label → one recall a draw.
        counts: label → gold constituents.
        notes: what must be said of it.
    """

    label: str
    column: str
    source: str
    about: dict[str, Any] = field(default_factory=dict)
    values: dict[str, list[float]] = field(default_factory=dict)
    highest: dict[str, float] = field(default_factory=dict)
    deviation: dict[str, float] = field(default_factory=dict)
    recall: dict[str, list[float]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    panel: str = ""

    @property
    def draws(self) -> int:
        """How many values there are of each metric."""
        return max(map(len, self.values.values()), default=0)

    def mean(self, metric: str) -> float | None:
        """The mean over draws."""
        values = self.values.get(metric)
        return statistics.fmean(values) if values else None

    def std(self, metric: str) -> float | None:
        """The standard deviation of a sample; None of one draw."""
        values = self.values.get(metric, [])
        found = self.deviation.get(metric)
        return statistics.stdev(values) if len(values) > 1 else found

    def max(self, metric: str) -> float | None:
        """The maximum over draws."""
        values = self.values.get(metric)
        return self.highest.get(metric, max(values) if values else None)

    def text(self, metric: str) -> str:
        """What a reader sees: ``58.60 ± 1.40 (60.21) [2,794 trees]``."""
        mean, std, highest = self.mean(metric), self.std(metric), self.max(metric)
        if mean is None:
            return "–" if highest is None else f"({number(highest)})"
        parts = [number(mean)]
        if std is not None:
            parts.append(f"± {number(std)}")
        if highest is not None and (self.draws > 1 or metric in self.highest):
            parts.append(f"({number(highest)})")
        return " ".join([*parts, *(f"[{note}]" for note in self.notes)])

    def flat(self) -> dict[str, Any]:
        """Return the cell as a row of the CSV."""
        row: dict[str, Any] = {"panel": self.panel, "label": self.label, "column": self.column}
        row |= {"source": self.source, **self.about}
        row["draws"] = self.draws if self.source == COMPUTED else None
        for metric in SHOWN:
            row[metric], row[f"{metric}_std"] = self.mean(metric), self.std(metric)
            row[f"{metric}_max"] = self.max(metric)
        for label, values in self.recall.items():
            row[f"recall_{label}"] = statistics.fmean(values) if values else None
            row[f"count_{label}"] = self.counts.get(label)
        return row | {"notes": "; ".join(self.notes)}
