"""Trees of any input, some at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from attree.apps.reading import Reading
from attree.bulk.manifest import Manifest, ManifestPart, Shard
from attree.bulk.options import RowSettings
from attree.bulk.output import Rows, Statistics, make_folders, write_shard
from attree.raw_text.inputs import InputFile
from attree.treebank.sentence import SplitSettings
from attree.trees.trees import Trees
from tests.apps.conftest import TREES, write
from tests.refusals import refused


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


def test_a_run_and_its_folder_of_trees_are_one_input_and_tell_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = Path("trees")  # a run that was given this name has a folder of this name
    make_folders(run, RowSettings())
    row = Rows(["a.txt"], [1], [0], ["ok"], [["x", "y"]], Trees.from_spans([2], [[(0, 2)]]))
    write_shard(run, 0, row, Statistics(), RowSettings())
    shards = (Shard(number, (ManifestPart(0, 1, 3, 0),), "") for number in range(2))
    file = InputFile("/a.txt", "a.txt", "text", 9, 9)
    Manifest({}, (file,), tuple(shards)).write(run / "manifest.json")
    for inputs in ([run], [run / "trees"], [run, run / "trees"], [run / "trees", run]):
        assert [some.words for some in Reading().all(inputs)] == [row.words]
        assert "trees: 3 of 6 lines" in capsys.readouterr().err
    with refused("option-without-effect", "--punctuation", file=run):
        list(Reading(SplitSettings(punctuation="ptb")).all([run / "trees"]))
