"""What trees cost that reach a given F1: chosen ones beside those drawn at random."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Mapping, Sequence

from attree.base.registry import check_name
from attree.base.tables import Table, number
from attree.experiments.cells import Cell
from attree.reports.figures import BRACKETS, COMPUTED

#: What choosing must save of the brackets to be worth a parser that chooses.
LEAST_SAVED = 0.25

_F1 = "corpus_f1"

#: Brackets and F1 of each number of trees, the fewest brackets first.
Curve = Sequence[tuple[float, float]]

#: The cells of each line of one part of a table.
Lines = Mapping[str, Sequence[Cell]]

_RESAMPLES = 1000


def prices(found: Sequence[Cell], line: str, title: str) -> Table:
    """Put the brackets with which each line reaches the last F1 of ``line`` side by side.

    The last F1 of a line is that of its most brackets. The note says whether another line needs at
    least :data:`LEAST_SAVED` fewer in every part of the table.

    Args:
        found: cells of the experiment.
        line: the label of the trees that are drawn at random.
        title: of the experiment.

    Raises:
        AttreeError: no such line.
    """
    panels = _lines(found)
    others = list(dict.fromkeys(label for lines in panels.values() for label in lines))
    check_name(line, others, f"price: no line {line} in this table", near=True)
    panels = {panel: lines for panel, lines in panels.items() if line in lines}
    others.remove(line)
    headings = ["trees", *(panel or "brackets" for panel in panels)]
    goals = [_curve(lines[line])[-1] for lines in panels.values()]
    rows = [[line, *(f"{cost:,.0f} (F1 {number(f1)})" for cost, f1 in goals)]]
    rows += [[one, *(_cell(lines, one, line) for lines in panels.values())] for one in others]
    note = f"{_HOW} {_verdict(panels, line, others)}"
    return Table(f"{title}: brackets for the last F1 of {line}", headings, rows, note)


def price(curve: Curve, f1: float) -> float | None:
    """Return the brackets with which a line first has an F1, or None if it never has it.

    Between two points F1 is taken to grow with the logarithm of the brackets. A line whose first
    point is above the F1 has that point's price: it may need fewer.
    """
    if curve[0][1] >= f1:
        return curve[0][0]
    for (low, below), (high, above) in itertools.pairwise(curve):
        if above >= f1:
            share = (f1 - below) / (above - below)
            return float(math.exp(math.log(low) + share * (math.log(high) - math.log(low))))
    return None


_HOW = (
    "Means of all draws; between two points F1 is taken to grow with the logarithm of the price. "
    "In parentheses the difference, and its range in 95 % of resamples of the draws."
)


def _lines(found: Sequence[Cell]) -> dict[str, Lines]:
    """Return panel → line → its cells that have a price."""
    panels: dict[str, dict[str, list[Cell]]] = {}
    for cell in found:
        if cell.source == COMPUTED and cell.values.get(BRACKETS) and cell.values.get(_F1):
            panels.setdefault(cell.panel, {}).setdefault(cell.label, []).append(cell)
    return dict(panels)


def _curve(cells: Sequence[Cell], draws: Sequence[int] | None = None) -> Curve:
    """Return the means of all draws, or of some, a draw as often as it is named."""

    def mean(values: Sequence[float]) -> float:
        return statistics.fmean(values if draws is None else [values[draw] for draw in draws])

    return sorted({(mean(cell.values[BRACKETS]), mean(cell.values[_F1])) for cell in cells})


def _saved(lines: Lines, one: str, line: str, draws: Sequence[int] | None = None) -> float | None:
    """Return the share of the brackets of ``line`` that another line does without."""
    cost, f1 = _curve(lines[line], draws)[-1]
    found = price(_curve(lines[one], draws), f1) if one in lines else None
    return None if found is None else 1 - found / cost


def _cell(lines: Lines, one: str, line: str) -> str:
    if one not in lines:
        return "–"
    saved = _saved(lines, one, line)
    if saved is None:
        cost, f1 = max(_curve(lines[one]), key=lambda point: point[1])
        return f"not with {cost:,.0f} (F1 {number(f1)})"
    cost = (1 - saved) * _curve(lines[line])[-1][0]
    return f"{cost:,.0f} ({', '.join([_percent(saved), *_interval(lines, one, line)])})"


def _interval(lines: Lines, one: str, line: str) -> list[str]:
    """Return how far the difference goes when draws are drawn again, the same ones of each line."""
    draws = {cell.draws for cell in (*lines[one], *lines[line])}
    if len(draws) > 1 or draws == {1}:
        return []
    (count,), generator = draws, random.Random(0)
    again = [generator.choices(range(count), k=count) for _ in range(_RESAMPLES)]
    found = (_saved(lines, one, line, some) for some in again)
    saved = sorted(-math.inf if each is None else each for each in found)
    cut = round(0.025 * _RESAMPLES)
    return [f"{_percent(saved[-1 - cut])} to {_percent(saved[cut])}"]


def _percent(saved: float) -> str:
    return "never" if math.isinf(saved) else f"{-100 * saved:+.0f} %"


def _verdict(panels: Mapping[str, Lines], line: str, others: Sequence[str]) -> str:
    """Say which lines save enough everywhere, and what the default is therefore."""
    counts = []
    kept = []
    for one in others:
        saved = [_saved(lines, one, line) for lines in panels.values()]
        enough = sum(share is not None and share >= LEAST_SAVED for share in saved)
        counts.append(f"{one} in {enough} of {len(panels)}")
        kept += [one] if enough == len(panels) else []
    least = f"At least {100 * LEAST_SAVED:.0f} % fewer brackets than {line}"
    result = f"{' and '.join(kept)} can be the default" if kept else f"{line} stays the default"
    return f"{least}: {', '.join(counts)}. So {result}."
