"""Pictures of matrices, their numbers beside them: learned weights over heads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.errors import AttreeError
from attree.experiments.collect import record_names
from attree.experiments.records import Records
from attree.figures.experiments import heat_maps
from attree.provenance import provenance
from attree.tables.render import save

Matrices = dict[str, NDArray[np.float64]]


def write_weights(
    results: list[Path], records: Path, look: Mapping[str, Any], prefix: str
) -> Matrices:
    """Draw the weights over the encoder's heads, the mean over draws, one map a line and column.

    Args:
        results: lists of records, as :func:`attree.experiments.collect.cells` takes them.
        records: folder of the records.
        look: from the plan; only ``title`` and ``places`` count.
        prefix: writes ``.png``, and the numbers as ``.csv`` and ``.parquet``.

    Raises:
        AttreeError: no row has weights over heads.
    """
    names, store = record_names(results)[0], Records(records)
    found: dict[str, list[Any]] = {}
    for row, label, column in look["places"]:
        weights = (store.get(names[row]) or {}).get("weights")
        sides = [""] if weights is None or len(weights) == 1 else [" inside", " outside"]
        for side, grid in zip(sides, weights or [], strict=False):
            found.setdefault(f"{label}, {column}{side}", []).append(grid)
    if not found:
        raise AttreeError("no row of this experiment learns weights over heads", file=prefix)
    means = {title: np.mean(grids, axis=0) for title, grids in found.items()}
    write_maps(means, prefix, {"x": "head", "y": "layer"}, look["title"])
    return means


def write_maps(matrices: Matrices, prefix: str, labels: dict[str, Any], title: str) -> None:
    """Write ``prefix``.csv and .parquet, one row a cell of each matrix, and .png.

    Args:
        matrices: title → matrix.
        prefix: where to.
        labels: as for :func:`attree.figures.experiments.heat_maps`.
        title: for the provenance.
    """
    y, x = labels["y"], labels["x"]
    rows = [
        {"map": name, y: row, x: column, "value": float(matrix[row, column])}
        for name, matrix in matrices.items()
        for row, column in np.ndindex(matrix.shape)
    ]
    save(prefix, rows, [], provenance(code=["attree.experiments.maps"], settings={"title": title}))
    heat_maps(matrices, labels, Path(f"{prefix}.png"))
