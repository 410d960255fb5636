"""Globs, brace lists and ranges, alternatives."""

from __future__ import annotations

from pathlib import Path

import pytest

from attree.base.patterns import expand, find
from tests.refusals import refused


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ["00/a.mrg", "00/b.mrg", "01/c.MRG", "03/d.mrg", "x[1].mrg", "sv.ptb", "00/sub/e"]:
        file = tmp_path / "top [x]" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path / "top [x]"


def names(folder: Path, *patterns: str) -> list[str]:
    return [str(file.relative_to(folder)) for file in find(patterns, folder).files]


def test_ranges_lists_and_globs(folder: Path) -> None:
    assert names(folder, "{00..03}/*.{mrg,MRG}") == ["00/a.mrg", "00/b.mrg", "01/c.MRG", "03/d.mrg"]
    assert find(["{00..03}/*.{mrg,MRG}"], folder).missing == ("02/*.{mrg,MRG}",)
    assert names(folder, "**/*.mrg", "00/a.mrg")[0] == "00/a.mrg"
    assert len(names(folder, "**/*.mrg", "00/a.mrg")) == 4


def test_alternatives(folder: Path) -> None:
    assert names(folder, "no.ptb | sv.ptb | 00/a.mrg") == ["sv.ptb"]
    assert names(folder, "no.ptb | neither") == []


def test_names_with_special_characters_stand_for_themselves(folder: Path) -> None:
    assert names(folder, "x[1].mrg") == ["x[1].mrg"]
    assert find([str(folder / "x[1].mrg")]).files == (folder / "x[1].mrg",)


def test_patterns_found_find_the_same_again(folder: Path) -> None:
    found = find(["no/* | {00..01}/*.{mrg,MRG}", "x[1].mrg"], folder)
    assert find(found.patterns).files == found.files


def test_folders_are_no_files(folder: Path) -> None:
    assert names(folder, "00/*") == ["00/a.mrg", "00/b.mrg"]


def test_expansion() -> None:
    assert expand("a{b,c{d,e}}f") == ["abf", "acdf", "abf", "acef"]
    assert expand("{plain}") == ["{plain}"]


@pytest.mark.parametrize(
    ("pattern", "code"),
    [("{0..99999999}", "range-too-long"), ("{000..999}{000..999}", "too-many-names")],
)
def test_no_pattern_fills_the_memory(pattern: str, code: str) -> None:
    with refused(code, "100,000"):
        find([pattern])
