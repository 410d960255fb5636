"""Trees of any input, some at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from attree.apps.reading import Reading
from tests.apps.conftest import TREES, write


@pytest.mark.parametrize(
    ("inputs", "read"),
    [
        (["", "b.mrg"], "a b"),
        (["b.mrg", ""], "b a"),
        (["b.mrg", "*.mrg", ""], "b a"),
        (["", "../link.mrg", "{a,b}.mrg"], "a b"),
        (["a.mrg", "b.mrg", "../more"], "a b"),
    ],
)
def test_a_file_in_a_folder_is_read_once(tmp_path: Path, inputs: list[str], read: str) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    for name in ("a", "b"):
        write(folder / f"{name}.mrg", TREES[:2])
    (tmp_path / "link.mrg").symlink_to(folder / "a.mrg")
    rows = list(Reading().all([folder / name for name in inputs]))
    found = [(Path(file).stem, line) for some in rows
             for file, line in zip(some.file, some.line, strict=True)]  # fmt: skip
    assert found == [(name, line) for name in read.split() for line in (1, 2)]
