"""What the data card of the demo treebanks says, against the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from attree.treebank.formats import read_files, resolve
from attree.treebank.language import discover
from attree.treebank.sentence import Sentence, SplitSettings

FOLDER = Path(__file__).parents[2] / "workflow/resources/treebanks"


def sentences(file: Path) -> list[Sentence]:
    """Read a file of which no sentence is lost."""
    found = list(read_files([file], resolve(SplitSettings(), [file])))
    assert all(isinstance(one, Sentence) for one in found)
    return found  # type: ignore[return-value]


def counted(file: Path) -> list[str]:
    """Return a file's line of the card."""
    found = sentences(file)
    lengths = [len(one.words) for one in found]
    spans = [span for one in found for span in one.spans]
    phrases = sum(end - start > 1 for start, end, _ in spans)
    numbers = [len(found), sum(lengths), min(lengths), max(lengths), phrases]
    labels = len({label for _, _, label in spans})
    return [file.parent.name, file.stem, *map(str, [*numbers, labels])]


def test_every_file_is_in_the_card_with_its_sizes() -> None:
    lines = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    table = [row for row in cells if len(row) == 8 and row[2].isdigit()]
    assert sorted(table) == sorted(counted(file) for file in FOLDER.glob("*/*"))


def test_no_sentence_of_english_stands_twice() -> None:
    each = [one.words for file in FOLDER.glob("english/*") for one in sentences(file)]
    assert len(set(each)) == len(each) == 150


def test_the_card_is_no_treebank() -> None:
    found = discover([FOLDER])
    assert len(found) == 9
    assert not found.warnings and not found.problems


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*/test.*")), ids=lambda file: file.parent.name)
def test_styles_are_as_the_card_says(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    if file.parent.name == "english":
        assert file.suffix == ".mrg" and "-NONE-" in text and "(. .)" in text
    else:
        assert file.suffix == ".ptb" and len(text.splitlines()) == len(sentences(file))
