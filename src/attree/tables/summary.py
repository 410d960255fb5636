"""The summary of ``attree score`` or ``attree baselines``, as people read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attree.errors import AttreeError
from attree.evaluation import METRICS
from attree.tables.render import Table, number


def summary_table(summary: Mapping[str, Any]) -> Table:
    """Return what ``attree score`` or ``attree baselines`` found, as people read it.

    Raises:
        AttreeError: this is no such summary.
    """
    if not isinstance(summary.get("protocol"), Mapping) or "sentences" not in summary["protocol"]:
        raise AttreeError("this is no summary of scores", fix="name one of `attree score`")
    name = summary.get("parser") or "parses"
    rows = summary.get("baselines") or {name: summary}
    shown = [one for one in METRICS if any(row.get(one) is not None for row in rows.values())]
    shown = shown or ["corpus_f1"]
    counted = summary["protocol"]["sentences"]
    note = f"{counted['scored']:,} of {counted['total']:,} sentences are scored"
    skipped = f", {counted['skipped']:,} have no tree" if counted["skipped"] else ""
    cells = [[name, *(number(row.get(one)) for one in shown)] for name, row in rows.items()]
    title = " ".join(filter(None, (summary.get("language"), summary.get("split")))) or "Scores"
    headings = ["", *(METRICS[one].heading for one in shown)]
    return Table(title, headings, cells, f"{note}{skipped}; {summary['protocol']['metric']}.")
