"""The heat map draws every head's F1 and frames the selected ones."""

from __future__ import annotations

from pathlib import Path

import matplotlib.image
import pyarrow as pa

from attree.figures.draw import heads_map


def test_another_f1_or_selection_gives_another_picture(tmp_path: Path) -> None:
    def draw(name: str, f1: list[float], selected: list[bool]) -> bytes:
        table = pa.table(
            {"layer": [0, 0, 1, 1], "head": [0, 1, 0, 1], "corpus_f1": f1, "selected": selected}
        )
        heads_map(table, "tiny UPOA", tmp_path / name)
        return matplotlib.image.imread(tmp_path / name).tobytes()

    plain = draw("a.png", [10, 20, 30, 40], [False, False, False, True])
    assert draw("b.png", [10, 20, 30, 40], [False, False, False, True]) == plain
    assert draw("c.png", [10, 20, 40, 30], [False, False, False, True]) != plain
    assert draw("d.png", [10, 20, 30, 40], [False, False, True, True]) != plain
