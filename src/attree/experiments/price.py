"""What trees cost that reach a given F1: chosen ones beside those drawn at random."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from attree.errors import AttreeError
from attree.experiments.cells import Cell
from attree.figures import BRACKETS, COMPUTED
from attree.plan import nearest
from attree.tables.render import Table, number

#: What choosing must save of the brackets to be worth a parser that chooses.
LEAST_SAVED = 0.25

_F1 = "corpus_f1"

#: Brackets and F1 of each number of trees, the fewest brackets first.
Curve = Sequence[tuple[float, float]]


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
    panels = _curves(found)
    others = list(dict.fromkeys(label for curves in panels.values() for label in curves))
    if line not in others:
        raise AttreeError(f"price: no line {line} in this table", fix=nearest(line, others))
    panels = {panel: curves for panel, curves in panels.items() if line in curves}
    others.remove(line)
    headings = ["trees", *(panel or "brackets" for panel in panels)]
    goals = [curves[line][-1] for curves in panels.values()]
    rows = [[line, *(f"{cost:,.0f} (F1 {number(f1)})" for cost, f1 in goals)]]
    rows += [[one, *(_cell(curves, one, line) for curves in panels.values())] for one in others]
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
    "Means of all draws; between two points F1 is taken to grow with the logarithm of the brackets."
)


def _curves(found: Sequence[Cell]) -> dict[str, dict[str, Curve]]:
    """Return panel → line → its curve."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for cell in found:
        cost, f1 = cell.mean(BRACKETS), cell.mean(_F1)
        if cell.source == COMPUTED and cost is not None and f1 is not None:
            panels.setdefault(cell.panel, {}).setdefault(cell.label, []).append((cost, f1))
    return {
        panel: {label: sorted(set(curve)) for label, curve in curves.items()}
        for panel, curves in panels.items()
    }


def _saved(curves: Mapping[str, Curve], one: str, line: str) -> float | None:
    """Return the share of the brackets of ``line`` that another line does without."""
    cost, f1 = curves[line][-1]
    found = price(curves[one], f1) if one in curves else None
    return None if found is None else 1 - found / cost


def _cell(curves: Mapping[str, Curve], one: str, line: str) -> str:
    if one not in curves:
        return "–"
    saved = _saved(curves, one, line)
    if saved is None:
        cost, f1 = max(curves[one], key=lambda point: point[1])
        return f"not with {cost:,.0f} (F1 {number(f1)})"
    return f"{(1 - saved) * curves[line][-1][0]:,.0f} ({-100 * saved:+.0f} %)"


def _verdict(panels: Mapping[str, Mapping[str, Curve]], line: str, others: Sequence[str]) -> str:
    """Say which lines save enough everywhere, and what the default is therefore."""
    counts = []
    kept = []
    for one in others:
        saved = [_saved(curves, one, line) for curves in panels.values()]
        enough = sum(share is not None and share >= LEAST_SAVED for share in saved)
        counts.append(f"{one} in {enough} of {len(panels)}")
        kept += [one] if enough == len(panels) else []
    least = f"At least {100 * LEAST_SAVED:.0f} % fewer brackets than {line}"
    result = f"{' and '.join(kept)} can be the default" if kept else f"{line} stays the default"
    return f"{least}: {', '.join(counts)}. So {result}."
