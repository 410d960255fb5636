"""The picture of how far rows' probabilities of spans can be believed, and its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.provenance import provenance
from attree.base.tables import save
from attree.experiments.cells import placed_records, read_results
from attree.reports.figures import draw

#: Which bins of a record → what they are called.
KINDS = {"bins": "as trained", "bins_scaled": "by a temperature"}


def write_reliability(
    results: list[Path], records: Path, layout: Mapping[str, Any], prefix: str
) -> list[dict[str, Any]]:
    """Draw the share of right spans over their probability, all draws of a line together.

    Args:
        results: lists of records, as :func:`attree.experiments.cells.cells` takes them.
        records: folder of the records.
        layout: of the table; only ``title`` and ``places`` count.
        prefix: writes ``.png``, and the numbers as ``.csv`` and ``.parquet``.

    Raises:
        AttreeError: no row is calibrated.
    """
    found: dict[tuple[str, str, int], list[Mapping[str, Any]]] = {}
    for label, column, _, record in placed_records(read_results(results)[0], records, layout):
        for kind, said in KINDS.items():
            for one in record.get(kind, ()):
                place = (f"{label}, {column}", said, int(one["bin"]))
                found.setdefault(place, []).append(one)
    if not found:
        raise AttreeError("no row of this experiment is calibrated", file=prefix)
    rows = [
        {"line": line, "kind": kind, "bin": number, **_together(each)}
        for (line, kind, number), each in sorted(found.items())
    ]
    made = provenance(code=["attree.experiments.reliability"], settings={"title": layout["title"]})
    save(prefix, rows, [], made)
    draw.save(draw.reliability(rows, layout["title"]), Path(f"{prefix}.png"))
    return rows


def _together(bins: list[Mapping[str, Any]]) -> dict[str, float]:
    """Merge bins of several draws."""
    spans = sum(one["spans"] for one in bins)
    mean = {
        name: sum(one["spans"] * one[name] for one in bins) / spans for name in ("likely", "right")
    }
    return {"spans": spans, **mean}
