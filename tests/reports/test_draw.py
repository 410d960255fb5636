"""The heat map draws every head's F1 and frames the selected ones; lines, in parts if need be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pyarrow as pa

from attree.base.tables import BASELINE, CEILING, COMPUTED
from attree.experiments.pictures import write_maps
from attree.reports import figures
from attree.reports.page import charts


def test_another_f1_or_selection_gives_another_picture(tmp_path: Path) -> None:
    def drawn(name: str, f1: list[float], selected: list[bool]) -> bytes:
        table = pa.table(
            {"layer": [0, 0, 1, 1], "head": [0, 1, 0, 1], "corpus_f1": f1, "selected": selected}
        )
        figures.save(figures.heads(table, "tiny UPOA"), tmp_path / name)
        return matplotlib.image.imread(tmp_path / name).tobytes()

    plain = drawn("a.png", [10, 20, 30, 40], [False, False, False, True])
    assert drawn("b.png", [10, 20, 30, 40], [False, False, False, True]) == plain
    assert drawn("c.png", [10, 20, 40, 30], [False, False, False, True]) != plain
    assert drawn("d.png", [10, 20, 30, 40], [False, False, True, True]) != plain


def test_labels_are_drawn_in_percent_of_each_gold_label(tmp_path: Path) -> None:
    counts = np.array([[6, 2, 2], [0, 0, 0], [1, 0, 0]])
    figure = figures.labels(["NP", "$V_{P", "no span"], counts, "T")
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()][:2] == ["NP (10)", "$V_{P (0)"]
    assert [text.get_text() for text in axes.texts][:4] == ["60", "20", "20", "0"]
    assert "no label" in figures.labels([], counts[:0], "T").axes[0].texts[0].get_text()
    figures.save(figure, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_each_part_has_axes_of_its_own_and_its_highest_baseline() -> None:

    def row(panel: str, label: str, column: str, f1: float | None, source: str) -> dict[str, Any]:
        return {"panel": panel, "label": label, "column": column, "source": source,
                "corpus_f1": f1, "corpus_f1_std": None}  # fmt: skip

    rows = [
        row(panel, label, column, 10.0 * (1 + index) + float(column), COMPUTED)
        for index, panel in enumerate(("french", "welsh", "basque", "korean"))
        for label in ("own", "both")
        for column in ("5", "80")
        if (panel, label) != ("welsh", "own")
    ]
    rows += [row("welsh", "left", "5", 4.0, BASELINE), row("welsh", "right", "5", 9.0, BASELINE)]
    rows += [row("welsh", "ceiling", "5", 99.0, CEILING)]
    figure = figures.lines(rows, "T", "trees")
    parts = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in parts] == ["french", "welsh", "basque", "korean"]
    lines = {line.get_label(): line for line in parts[1].get_lines()}
    assert list(lines["highest baseline"].get_ydata()) == [9.0, 9.0]
    other = figures.lines([*rows, row("welsh", "right", "80", 8.0, BASELINE)], "T", "trees")
    names = {line.get_label() for axes in other.axes for line in axes.get_lines()}
    assert "highest baseline" not in names, "of two columns of different sentences"
    labels = parts[0].get_legend_handles_labels()[1]
    assert labels == ["own", "both"] and not parts[0].get_legend()
    colors = [
        next(c for c in axes.containers if c.get_label() == "both").lines[0].get_color()
        for axes in parts
    ]
    assert len(set(colors)) == 1, "a parser looks the same in every part"
    (key,) = (axes.get_legend() for axes in figure.axes if axes.get_legend())
    assert [text.get_text() for text in key.get_texts()] == ["own", "both", "highest baseline"]
    assert figure.get_suptitle() == "T"


def test_maps_of_an_experiment_say_the_words_that_they_are_of(tmp_path: Path) -> None:
    words, matrix = ["Rain", "$fell$"], np.array([[0.25, 0.5], [0.75, 1.0]])
    for name, more in (("words", {"x": "to", "y": "from", "words": words}),
                       ("heads", {"x": "head", "y": "layer"})):  # fmt: skip
        write_maps({"upio": matrix, "upoa": matrix.T}, f"{tmp_path}/{name}", more, "T")
        assert (tmp_path / f"{name}.png").stat().st_size > 1000
    first, second = charts.maps(tmp_path / "words.parquet")
    assert "Rain → $fell$: 0.500" in first and "$fell$ → Rain: 0.500" in second
    assert "layer 1, head 0: 0.750" in charts.maps(tmp_path / "heads.parquet")[0]
