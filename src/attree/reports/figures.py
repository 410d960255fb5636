"""Draw figures: lines with error bars, heat maps of heads and of words."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.base.files import whole_file
from attree.base.tables import ARTICLE, AXES, BASELINE, COMPUTED
from attree.base.terminal import safe

# a word such as $\frac{$ is drawn as it is
matplotlib.rcParams["text.parse_math"] = False

_MARKERS = "osD^vP*X"
_LINES_WITH_ROOM = 6
_MAPS_ACROSS = 4
_PARTS_ACROSS = 3
_BASELINE = "highest baseline"
#: More heads than any encoder has.
_MOST_HEADS = 20_000

Matrix = NDArray[np.floating[Any]]
_Rows = list[Mapping[str, Any]]


def lines(rows: Sequence[Mapping[str, Any]], title: str, axis: str) -> Figure:
    """Draw corpus F1 over the columns of a table, one line per parser, deviations as error bars.

    Each panel of the table (a language) has its own axes, with a line for its highest baseline if
    every column has the same.

    Args:
        rows: rows of the table's Parquet file: panel, label, column, source, corpus_f1,
            corpus_f1_std, and the column that ``axis`` names.
        title: title of the figure.
        axis: a name in :data:`attree.base.tables.AXES`.
    """
    shown: _Rows = [
        row for row in rows if row["source"] in (COMPUTED, ARTICLE) and row["corpus_f1"] is not None
    ]
    panels = list(dict.fromkeys(row.get("panel") or "" for row in shown)) or [""]
    labels = list(dict.fromkeys(row["label"] for row in shown))
    figure, parts, key = _parts(len(panels), len(labels))
    for axes, panel in zip(parts, panels, strict=True):
        _lines(axes, [row for row in shown if (row.get("panel") or "") == panel], labels, axis)
        if panel:
            axes.set_title(panel, fontsize=9)
            baselines = [x for x in rows if (x["source"], x.get("panel")) == (BASELINE, panel)]
            f1 = sorted((x["column"], x["corpus_f1"]) for x in baselines)
            # the last of a column is its highest; those of other sentences have no line in common
            if len(highest := set(dict(f1).values())) == 1 and axis != "max_words":
                axes.axhline(highest.pop(), color="grey", linestyle=":", label=_BASELINE)
        if not axes.get_subplotspec().is_first_col():
            axes.set_ylabel("")
    if key is not None:
        handles: dict[str, Any] = {}
        for axes in parts:
            handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        # parsers first, in the order of the table
        names = sorted(handles, key=_BASELINE.__eq__)
        key.legend([handles[name] for name in names], names, fontsize=8, loc="center")
    elif len(labels) > _LINES_WITH_ROOM:
        parts[0].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        parts[0].legend(fontsize=8)
    figure.suptitle(title, fontsize=10)
    return figure


def _parts(count: int, n_labels: int) -> tuple[Figure, list[Any], Any]:
    """Return a figure, axes for its panels, three side by side, and axes for the legend or None."""
    if count == 1:
        # a long legend would cover the lines
        size = (8.4 if n_labels > _LINES_WITH_ROOM else 6.4, 4.2)
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        return figure, [axes], None
    down = count // _PARTS_ACROSS + 1
    how: dict[str, Any] = {"layout": "constrained", "squeeze": False, "sharey": True}
    figure, grid = plt.subplots(down, _PARTS_ACROSS, figsize=(9.6, 3.0 * down), **how)
    for axes in grid.flat[count:]:
        axes.set_axis_off()
    return figure, list(grid.flat[:count]), grid.flat[count]


def _lines(axes: Any, rows: _Rows, labels: list[str], axis: str) -> None:
    """Draw a line for each parser, in the same style in every panel."""
    positions = _places(list(dict.fromkeys(row["column"] for row in rows)))
    for index, label in enumerate(labels):
        if line := _without_repeats([row for row in rows if row["label"] == label]):
            axes.errorbar(
                [positions[row["column"]] for row in line],
                [row["corpus_f1"] for row in line],
                yerr=[row["corpus_f1_std"] or 0.0 for row in line],
                label=label,
                color=f"C{index % 10}",
                marker=_MARKERS[index % len(_MARKERS)],
                linestyle="--" if line[0]["source"] == ARTICLE else "-",
                markersize=4,
                linewidth=1.2,
                capsize=3,
            )
    if axis == "trees" and min(positions.values(), default=0) > 0:
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.set_xticks(list(positions.values()), list(positions), fontsize=8)
    axes.set_xlabel(AXES[axis])
    axes.set_ylabel("corpus F1")
    axes.grid(alpha=0.3)


def _without_repeats(rows: _Rows) -> _Rows:
    """Keep one of several rows that used the same trees, as fewer exist than were asked for."""
    kept: dict[tuple[str, Any], Mapping[str, Any]] = {}
    for number, row in enumerate(rows):
        asked, used = str(row.get("trees")), row.get("trees_used")
        fewer = used is not None and asked.isdigit() and used < int(asked)
        kept.setdefault(("trees", used) if fewer else ("row", number), row)
    return list(kept.values())


def _places(columns: list[str]) -> dict[str, float]:
    """Return column → position: its number if all columns are numbers, else its index."""
    try:
        return {column: float(column) for column in columns}
    except ValueError:
        return {column: float(position) for position, column in enumerate(columns)}


def maps(matrices: Mapping[str, Matrix], sides: Mapping[str, Any]) -> Figure:
    """Draw matrices as heat maps, four side by side; lighter is higher, as in the article.

    Args:
        matrices: title → matrix.
        sides: axis titles ``x`` and ``y``, and optional ``words`` for the ticks of both axes.
    """
    words = sides.get("words")
    across = min(len(matrices), _MAPS_ACROSS)
    down = -(-len(matrices) // _MAPS_ACROSS)
    side = 3.6 if words is None else max(3.2, 0.3 * len(words))
    figure, grid = plt.subplots(
        down, across, figsize=(side * across, side * down), layout="constrained", squeeze=False
    )
    for axes in grid.flat[len(matrices) :]:
        axes.set_axis_off()
    for axes, (title, matrix) in zip(grid.flat, matrices.items(), strict=False):
        picture = _heat_map(axes, matrix, title, sides)
        tell(picture, *(
            f"{words[y]} → {words[x]}: {matrix[y, x]:.3f}" if words
            else f"{sides['y']} {y}, {sides['x']} {x}: {matrix[y, x]:.3f}"
            for y, x in np.ndindex(matrix.shape)
        ))  # fmt: skip
        figure.colorbar(picture, ax=axes, shrink=0.8)
    return figure


def heads(ranking: pa.Table, title: str) -> Figure:
    """Draw the F1 of every attention head, layers down, heads across, selected heads framed.

    Each cell shows its F1, so that the figure can be read without the table.

    Args:
        ranking: table with the columns layer, head, corpus_f1, selected.
        title: title of the figure.

    Raises:
        AttreeError: the ranking has no heads, or more than any encoder.
    """
    cells = (np.asarray(ranking["layer"]), np.asarray(ranking["head"]))
    layers, across = (int(cell.max(initial=-1)) + 1 for cell in cells)
    if not 0 < layers * across <= _MOST_HEADS:
        problem = f"this ranking is of {layers:,} layers of {across:,} heads"
        raise AttreeError("no-ranking", problem, fix="rank the heads again")
    f1, chosen = np.full((layers, across), np.nan), np.zeros((layers, across), dtype=bool)
    f1[cells], chosen[cells] = (np.asarray(ranking[name]) for name in ("corpus_f1", "selected"))
    size = (1.6 + 0.58 * across, 1.5 + 0.42 * layers)
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    heading = f"{title}\n{int(chosen.sum())} selected heads framed"
    picture = _heat_map(axes, f1, heading, {"x": "head", "y": "layer"})
    _write_values(axes, f1)
    frame: dict[str, Any] = {"fill": False, "edgecolor": "red", "linewidth": 1.8}
    for layer, head in np.argwhere(chosen):
        axes.add_patch(plt.Rectangle((head - 0.47, layer - 0.45), 0.94, 0.9, **frame))
    tell(picture, *(
        f"layer {layer}, head {head}: {value:.2f}" + ", selected" * int(chosen[layer, head])
        for (layer, head), value in np.ndenumerate(f1)
    ))  # fmt: skip
    figure.colorbar(picture, ax=axes, label="corpus F1")
    return figure


def labels(names: Sequence[str], counts: NDArray[np.int64], title: str) -> Figure:
    """Draw a confusion of labels: gold down, predicted across, in percent of each gold label.

    Args:
        names: labels of rows and columns; if there are none, the figure says so.
        counts: int64 (names, names), spans.
        title: title of the figure.
    """
    if not names:
        figure, axes = plt.subplots(figsize=(5.4, 1.2), layout="constrained")
        axes.set_axis_off()
        axes.text(0.5, 0.5, "no label of the parser is a gold label", ha="center", va="center")
        axes.set_title(title, fontsize=9)
        return figure
    size = (2.4 + 0.5 * len(names), 1.8 + 0.36 * len(names))
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    sums = counts.sum(1)
    shares = 100.0 * counts / np.maximum(sums, 1)[:, None]
    sides = {"x": "predicted", "y": "gold (spans)", "words": names}
    picture = _heat_map(axes, shares, title, sides)
    rows = [f"{name} ({count:,})" for name, count in zip(names, sums.tolist(), strict=True)]
    axes.set_yticks(range(len(names)), rows, fontsize=7)
    _write_values(axes, shares)
    tell(picture, *(
        f"gold {names[y]}, predicted {names[x]}: {counts[y, x]:,} of {sums[y]:,}"
        for y, x in np.ndindex(counts.shape)
    ))  # fmt: skip
    figure.colorbar(picture, ax=axes, label="% of the gold label")
    return figure


def _heat_map(axes: Any, matrix: Matrix, title: str, sides: Mapping[str, Any]) -> Any:
    # cell i reaches from i - 0.5 to i + 0.5
    down, across = (np.arange(count + 1) - 0.5 for count in matrix.shape)
    picture = axes.pcolormesh(across, down, matrix, cmap="viridis", edgecolors="face")
    axes.invert_yaxis()
    axes.set_title(title, fontsize=9)
    if (words := sides.get("words")) is None:
        axes.set_xticks(range(matrix.shape[1]))
        axes.set_yticks(range(matrix.shape[0]))
    else:
        axes.set_xticks(range(len(words)), words, rotation=90, fontsize=7)
        axes.set_yticks(range(len(words)), words, fontsize=7)
    axes.set_xlabel(sides["x"])
    axes.set_ylabel(sides["y"])
    return picture


def _write_values(axes: Any, matrix: Matrix) -> None:
    low, high = np.nanmin(matrix), np.nanmax(matrix)
    for (row, column), value in np.ndenumerate(matrix):
        if not np.isnan(value):
            color = "white" if value < low + 0.6 * (high - low) else "black"
            text = {"ha": "center", "va": "center", "fontsize": 8, "color": color}
            axes.text(column, row, f"{value:.0f}", **text)


def tell(part: Any, *tips: str) -> None:
    """Attach tips to a part of a figure; a heat map gets one per cell, row by row.

    The report shows a tip where the figure is pointed at (:func:`page.charts.as_svg`).
    """
    part.set_gid("told")
    part.set_label("\n".join(map(safe, tips)))


def told(figure: Figure) -> list[Any]:
    """Return the parts of a figure that have tips, in the figure's order."""
    return [part for part in figure.findobj() if part.get_gid() == "told"]


def save(figure: Figure, output: Path) -> None:
    """Write a figure to a .png, .svg or .pdf file, whole or not at all."""
    make_safe(figure)
    with whole_file(output) as part:
        figure.savefig(part, format=output.suffix[1:], dpi=150)
    plt.close(figure)


def make_safe(figure: Figure) -> None:
    """Make control characters in a figure's texts visible."""
    for text in figure.findobj(matplotlib.text.Text):
        text.set_text("\n".join(map(safe, text.get_text().split("\n"))))
