"""Tables of what labels are found, and which are taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attree.evaluation.confusion import NO_SPAN, Confusion
from attree.tables.render import Table, number

if TYPE_CHECKING:
    from attree.tables.build import ScoreRow

#: Labels that have a row and a column of their own.
SHOWN = 12


def recall_tables(rows: Sequence[ScoreRow], title: str) -> list[Table]:
    """Build the table of recall by label of one split; none where there is no gold label."""
    labels = {
        label: int(entry["count"] or 0)
        for label, entry in rows[0].label_recall.items()
        if entry["count"]
    }
    if not labels:
        return []
    headings = ["parser", *(f"{label} ({count:,})" for label, count in labels.items())]
    lines = [
        [row.heading] + [number(row.label_recall.get(label, {}).get("recall")) for label in labels]
        for row in rows
    ]
    note = "Share of the gold constituents with this label that were found, in percent."
    return [Table(f"{title}: recall by label", headings, lines, note)]


def confusion_table(found: Confusion, title: str) -> Table:
    """Build the table of how often each gold label has been given each predicted one."""
    shown = found.most_frequent(SHOWN)
    lines = [
        [name, *(f"{count:,}" if count else "·" for count in row)]
        for name, row in zip(shown.headings, shown.counts.tolist(), strict=True)
    ]
    note = (
        "Gold labels down, predicted ones of the same spans across, counted as EVALB counts "
        f"brackets; {NO_SPAN}: the other tree has no such span, or it has fewer labels there."
    )
    if foreign := found.foreign:
        note += f" Predicted labels that the treebank does not have: {', '.join(foreign)}."
    return Table(title, ["gold", *shown.headings], lines, note)
