"""Heat maps as tables of coloured cells: of heads, of labels, of weights, of a sentence's words.

A table needs no script, is read by a screen reader cell by cell, and follows the page's colours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from attree.evaluation.confusion import OTHERS, Confusion
from attree.results import SENTENCES, path_of
from attree.schemas import HEADS, read_table


class Cell(NamedTuple):
    """A cell: its text, its colour in percent of the strongest, and what it says when pointed at.

    ``frame`` is what a frame around it means, empty for none.
    """

    text: str
    shade: int
    tip: str
    frame: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A heat map.

    Attributes:
        title: above it.
        corner: what its lines are.
        columns: headings.
        lines: heading and cells of each; None where there is no value.
        kind: ``words`` where those of a sentence stand along both sides, which hide figures;
            ``names`` where other names do; else numbers do.
    """

    title: str
    corner: str
    columns: Sequence[str]
    lines: Sequence[tuple[str, Sequence[Cell | None]]]
    kind: Literal["", "words", "names"] = ""


def heads(path: Path, results: Path) -> Grid:
    """Return the F1 of every head of a ranking, layers down and heads across."""
    table, _ = read_table(path, schema=HEADS)
    encoder, parser, name, split = path.relative_to(results / "heads").with_suffix("").parts
    rows = table.to_pylist()
    shade = _shades([row["corpus_f1"] for row in rows])
    cells = {}
    for row, strength in zip(rows, shade, strict=True):
        place, f1 = (row["layer"], row["head"]), row["corpus_f1"]
        frame = "selected" * row["selected"]
        tip = ", ".join(filter(None, (f"layer {place[0]}, head {place[1]}: {f1:.2f}", frame)))
        cells[place] = Cell(f"{f1:.0f}", strength, tip, frame)
    selected = sum(row["selected"] for row in rows)
    title = f"{parser} with {encoder}, ranked on {name} {split}: {selected} selected heads"
    return _grid(title, "layer", cells)


def labels(found: Confusion, title: str) -> Grid:
    """Return which label is taken for which, gold down, in percent of the spans of a gold label."""
    names = found.headings
    lines: list[tuple[str, Sequence[Cell | None]]] = []
    for name, counts in zip(names, found.counts.tolist(), strict=True):
        if total := sum(counts):
            cells = [
                _taken(name, other, count, total)
                for other, count in zip(names, counts, strict=True)
            ]
            lines.append((f"{name} ({total:,})", cells))
    return Grid(title, "gold", names, lines, "names")


def _taken(gold: str, predicted: str, count: int, total: int) -> Cell | None:
    """Return the cell of spans of a gold label that have a predicted one, None where none has."""
    if not count:
        return None
    share = 100 * count / total
    tip = f"gold {gold}, predicted {predicted}: {count:,} of {total:,}"
    frame = "right" if gold == predicted != OTHERS else ""
    return Cell("<1" if share < 0.5 else f"{share:.0f}", round(share), tip, frame)


def maps(path: Path, results: Path) -> list[Grid]:
    """Return the heat maps that an experiment left as numbers (see ``attree.experiments.maps``)."""
    table, about = read_table(path)
    _, down, across, _ = table.column_names
    words = []
    if (down, across) == ("from", "to"):
        words = _words(about, results)
        words += [f"{1 + at}" for at in range(len(words), 1 + max(table["from"].to_pylist()))]
    by_map: dict[str, list[Mapping[str, Any]]] = {}
    for row in table.to_pylist():
        by_map.setdefault(row["map"], []).append(row)
    found = []
    for title, rows in by_map.items():
        cells = {}
        for row, strength in zip(rows, _shades([row["value"] for row in rows]), strict=True):
            place = (row[down], row[across])
            tip = f"{down} {place[0]}, {across} {place[1]}"
            if words:
                tip = " → ".join(words[at] for at in place)
            cells[place] = Cell(f"{row['value']:.2f}", strength, f"{tip}: {row['value']:.3f}")
        found.append(_grid(title, down, cells, words))
    return found


def _words(about: Mapping[str, Any], results: Path) -> list[str]:
    """Return the words of the sentence that a map's title names, none where it is not there."""
    title = about.get("settings", {}).get("title", "")
    named = re.fullmatch(r"(\S+/\S+), sentence (\d+)", title)
    if named is None:
        return []
    path = Path(path_of(SENTENCES, named[1], results=results))
    rows = read_table(path)[0].to_pylist() if path.is_file() else []
    return next((row["words"] for row in rows if row["sentence"] + 1 == int(named[2])), [])


def _shades(values: Iterable[float]) -> list[int]:
    values = list(values)
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [round(100 * (value - low) / max(high - low, 1e-9)) for value in values]


def _grid(
    title: str, corner: str, cells: Mapping[tuple[int, int], Cell], words: Sequence[str] = ()
) -> Grid:
    down, across = (sorted({place[side] for place in cells}) for side in (0, 1))
    names = dict(enumerate(words))
    lines = [(names.get(y, f"{y}"), [cells.get((y, x)) for x in across]) for y in down]
    columns = [names.get(x, f"{x}") for x in across]
    return Grid(title, corner, columns, lines, "words" if words else "")
