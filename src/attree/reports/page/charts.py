"""Figures of ``figures.py`` as SVG inside the page: without scripts, in the page's colours.

Figures are drawn in placeholder colours, which are replaced by variables of the page's style, so
that a chart suits light and dark pages and paper. Text stays text, and every bar or cell shows its
numbers when it is pointed at.
"""

import io
import itertools
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib import pyplot
from matplotlib.figure import Figure

from attree.base.schemas import HEADS_SCHEMA, read_table
from attree.base.tables import number
from attree.base.terminal import safe
from attree.evaluation.labels import Confusion
from attree.reports import figures
from attree.reports.page.scores import CEILING, name_of
from attree.reports.tables.summaries import ScoreRow

#: placeholder colour → variable of page.css
_COLOURS = {
    "#010101": "ink",
    "#020202": "soft",
    "#030303": "line",
    "#040404": "bar",
    **{f"#0{place}0909": f"series-{place}" for place in range(1, 9)},
}
_INK, _SOFT, _LINE, _BAR = list(_COLOURS)[:4]

_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "attree",
    "text.parse_math": False,
    "font.size": 11,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _LINE,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "xtick.color": _SOFT,
    "ytick.color": _INK,
    "grid.color": _LINE,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.prop_cycle": cycler(color=list(_COLOURS)[4:]),
}

#: baseline → its mark below the bars, and its sign in text
MARKS = {
    "right_branching": (">", "▶"),
    "left_branching": ("<", "◀"),
    "balanced": ("D", "◆"),
    "random_uniform_split": ("s", "■"),
    "random_shift_reduce": ("P", "✚"),
    "random_uniform_tree": ("X", "✖"),
    CEILING: ("|", "┃"),
}
_WIDTH = 3.6
_ROW = 0.34
#: Width of a single chart in points; figures of several panels are wider.
_ONE_CHART = 500


def bars(rows: Sequence[ScoreRow], every: Sequence[ScoreRow], name: str) -> str:
    """Draw corpus F1 on one test set: a bar with interval per parser, a mark per baseline.

    Args:
        rows: rows of the test set.
        every: all rows of the run, for the names of parsers.
        name: name of the test set, for screen readers.
    """
    return as_svg(partial(_bars, rows, every), f"Corpus F1 on {name}")


def _bars(rows: Sequence[ScoreRow], every: Sequence[ScoreRow]) -> Figure:
    scored = [(row, f1) for row in rows if (f1 := row.values["corpus_f1"]) is not None]
    parsers = [(row, f1) for row, f1 in scored if not row.is_baseline]
    last = len(parsers)
    size = (_WIDTH, 0.42 + _ROW * (last + 1.6))
    figure, axes = pyplot.subplots(figsize=size, layout="constrained")
    for position, (row, f1) in enumerate(parsers):
        _bar(axes, position, row, f1)
    _baselines(axes, last, [(row, f1) for row, f1 in scored if row.parser in MARKS])
    names = [safe(name_of(row, every)) for row, _ in parsers]
    names = [name if len(name) <= 20 else f"{name[:19]}…" for name in names]
    axes.set_yticks([*range(last), last + 0.2], [*names, "no parser"])
    axes.set_ylim(last + 0.8, -0.5)
    axes.set_xlim(0, 118)
    axes.set_xticks(range(0, 101, 20))
    axes.spines["bottom"].set_bounds(0, 100)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=9, length=3)
    axes.spines["left"].set_visible(False)
    return figure


def _bar(axes: Any, row: int, parser: ScoreRow, f1: float) -> None:
    low, high = parser.intervals.get("corpus_f1", (f1, f1))
    (bar,) = axes.barh(row, f1, height=0.62, color=_BAR)
    axes.plot([low, high], [row, row], color=_INK, linewidth=1.4, marker="|", markersize=6)
    axes.text(high + 2, row, number(f1), va="center", fontsize=10)
    interval = f", 95 % interval {number(low)} to {number(high)}"
    figures.tell(bar, f"{parser.heading}: {number(f1)}{interval * ((low, high) != (f1, f1))}")


def _baselines(axes: Any, position: int, scored: Sequence[tuple[ScoreRow, float]]) -> None:
    f1s: dict[bool, list[float]] = {False: [], True: []}
    for level, (row, f1) in enumerate(sorted(scored, key=lambda pair: pair[1])):
        is_ceiling = row.parser == CEILING
        f1s[is_ceiling].append(f1)
        # marks of similar F1 would hide each other: alternate three heights
        height = position + 0.2 + (0 if is_ceiling else 0.27 * (level % 3 - 1))
        how: Any = {"color": _INK, "markersize": 11 if is_ceiling else 5.5, "clip_on": False}
        (mark,) = axes.plot(f1, height, MARKS[row.parser][0], **how)
        figures.tell(mark, f"{row.heading}: {number(f1)}")
    for is_ceiling, style in ((False, "--"), (True, ":")):
        if f1s[is_ceiling]:
            axes.axvline(max(f1s[is_ceiling]), color=_SOFT, linestyle=style, linewidth=1, zorder=3)


def lines(rows: Sequence[Mapping[str, Any]], title: str, axis: str) -> str:
    """Draw F1 over the columns of a table; arguments as for :func:`figures.lines`."""
    points = (f"{row['label']} at {row['column']}: {number(row['corpus_f1'])}" for row in rows)
    return as_svg(partial(_fitted_lines, rows, axis), title, *points)


def heads(path: Path, results: Path) -> str:
    """Draw the F1 of every head in a ranking file."""
    table, _ = read_table(path, schema=HEADS_SCHEMA)
    encoder, parser, name, split = path.relative_to(results / "heads").with_suffix("").parts
    title = f"{parser} with {encoder}, ranked on {name} {split}"
    return as_svg(partial(figures.heads, table, title), title)


def labels(confusion: Confusion, title: str) -> str:
    """Draw a confusion of labels."""
    return as_svg(partial(figures.labels, confusion.headings, confusion.counts, title), title)


def maps(path: Path) -> list[str]:
    """Draw the heat maps of an experiment (see :mod:`attree.experiments.pictures`)."""
    table, metadata = read_table(path)
    _, y, x, _ = table.column_names
    sides = {"x": x, "y": y, "words": metadata.get("settings", {}).get("words")}
    by_map: dict[str, list[tuple[Any, ...]]] = {}
    for title, *cell in zip(*table.to_pydict().values(), strict=True):
        by_map.setdefault(title, []).append(tuple(cell))
    pictures = []
    for title, cells in by_map.items():
        down, across, values = zip(*cells, strict=True)
        matrix = np.full((max(down) + 1, max(across) + 1), np.nan)
        matrix[down, across] = values
        pictures.append(as_svg(partial(figures.maps, {title: matrix}, sides), title))
    return pictures


def _fitted_lines(rows: Sequence[Mapping[str, Any]], axis: str) -> Figure:
    """Draw lines in the sizes of the page: a single chart is smaller, letters are as large."""
    figure = figures.lines(rows, "", axis)
    if len(figure.axes) == 1:
        figure.set_size_inches(5.6, 3.3)
    for axes in figure.axes:
        axes.tick_params(labelsize=10)
        legend = axes.get_legend()
        for text in legend.get_texts() if legend is not None else ():
            text.set_fontsize(10)
    return figure


def as_svg(drawn: Callable[[], Figure], title: str, *points: str) -> str:
    """Return a figure as an SVG element for the page.

    Args:
        drawn: function that draws the figure, called with placeholder colours.
        title: title for screen readers.
        points: further text for screen readers; by default the figure's tips
            (:func:`attree.reports.figures.tell`).
    """
    text = io.StringIO()
    with matplotlib.rc_context(_STYLE):
        figure = drawn()
        pyplot.close(figure)
        figures.make_safe(figure)
        tips: list[list[str]] = []
        for part in figures.told(figure):
            part.set_gid(f"told{len(tips)}")
            tips.append(part.get_label().split("\n"))
        unwritten = dict.fromkeys(["Date", "Creator", "Type", "Format"])
        figure.savefig(text, format="svg", metadata=unwritten)
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg, flags=re.S)
    svg = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), svg)
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert size is not None
    label = escape(safe(f"{title}. {'; '.join(points or itertools.chain(*tips))}"))
    kind = "parts" if float(size[1]) > _ONE_CHART else ""
    if any(len(part_tips) > 1 for part_tips in tips):
        kind = f'heat" style="max-width: {size[1]}pt'  # as large as its cells need
    head = f'<svg role="img" class="{kind}" aria-label="{label}" {size[0]}>'
    svg = re.sub(r"<svg[^>]*>", lambda _: head, svg, count=1)
    told = re.compile(r'<g id="told(\d+)">(.*?</g>)', re.S)
    svg = told.sub(lambda group: _with_tips(group[2], tips[int(group[1])]), svg)
    svg = _prefix_ids(svg, f"chart{zlib.crc32(label.encode('utf-8', 'replace')):08x}")
    for colour, variable in _COLOURS.items():
        svg = svg.replace(colour, f"var(--{variable})")
    return re.sub(r"\n\s*", "\n", svg)


def _with_tips(part: str, tips: Sequence[str]) -> str:
    """Return an SVG group, opened anew, with its tip or with one tip in each of its shapes."""
    titles = iter(f"<title>{escape(tip)}</title>" for tip in tips)
    if len(tips) == 1:
        return f"<g>{next(titles)}{part}"
    part = re.sub(r' clip-path="[^"]*"', "", part)  # no cell reaches past the edge
    part = re.sub(r"<path([^>]*)/>", lambda path: f"<path{path[1]}>{next(titles)}</path>", part)
    return f"<g>{part}"


def _prefix_ids(svg: str, prefix: str) -> str:
    """Prefix the ids that an SVG refers to, so that charts share none; drop the others."""
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))
    return re.sub(
        r'\s?id="([^"]*)"|(url\(#|href="#)([^")]+)',
        lambda m: (
            f"{m[2]}{prefix}-{m[3]}" if m[2] else f' id="{prefix}-{m[1]}"' if m[1] in used else ""
        ),
        svg,
    )
