"""What people give for sentences: tables stay, treebank files are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from attree.base.schemas import SENTENCES_SCHEMA, read_table
from attree.cli.main import app
from attree.treebank.as_table import Treebank, as_table, as_tables
from attree.treebank.formats import resolve, together
from attree.treebank.sentence import SplitSettings
from tests.command_line import CliRunner
from tests.refusals import refused

TREE = "(S (NP (DT the) (NN cat)) (VP (VBD sat)) (. .))\n"


def test_a_treebank_file_becomes_the_table_that_attree_treebank_writes(tmp_path: Path) -> None:
    mine = tmp_path / "mine.mrg"
    mine.write_text(TREE * 3)
    table = tmp_path / "mine.parquet"
    CliRunner().invoke(app, ["treebank", str(mine), "--output", str(table)])
    with as_tables([mine, table]) as (made, kept):
        assert kept == table
        read, about = read_table(made, schema=SENTENCES_SCHEMA)
        wanted, other = read_table(table, schema=SENTENCES_SCHEMA)
        assert read.equals(wanted)
        assert about["punctuation"] == other["punctuation"] == "ptb"
    assert not made.exists()
    assert table.exists()


def test_sentences_that_are_not_read_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.mrg"
    mine.write_text(TREE * 20 + "(S (NP\n")
    with as_tables([mine]) as (made,):
        assert read_table(made)[0].num_rows == 20
    assert capsys.readouterr().err.startswith(f"{mine}:21: ")


def test_a_table_without_its_suffix_is_a_table(tmp_path: Path) -> None:
    mine = tmp_path / "mine.mrg"
    mine.write_text(TREE)
    with as_tables([mine]) as (made,):
        bare = made.rename(tmp_path / "table")
    with as_tables([bare]) as (kept,):
        assert kept == bare


def test_what_is_neither_is_told(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("no trees")
    with refused("unknown-format", file="notes.txt"), as_tables([other]):
        pass


@pytest.mark.parametrize("given", ["{}/*.mrg", "{}/{{a,b}}.mrg", "{}", "{}/[ab].mrg"])
def test_files_patterns_and_folders_are_one_treebank(tmp_path: Path, given: str) -> None:
    for name, count in (("a.mrg", 3), ("b.mrg", 2)):
        (tmp_path / name).write_text(TREE * count)
    found = Treebank.read_all([Path(given.format(tmp_path))], SplitSettings())
    assert found.table["sentence"].to_pylist() == [0, 1, 2, 3, 4]
    assert len(set(found.table["file"].to_pylist())) == 2
    table = tmp_path / "all.parquet"
    found.write(table, language="x", split="")
    mine = [Path(given.format(tmp_path)), tmp_path / "a.mrg", table]
    with as_table(mine[1:]) as joined:
        assert read_table(joined)[0]["sentence"].to_pylist() == list(range(8))
    with as_tables(mine) as tables:  # the folder now holds the table as well
        counts = [read_table(one)[0].num_rows for one in tables]
    assert counts == [10 if given == "{}" else 5, 3, 5]


@pytest.mark.parametrize("name", ["README.md", "notes.md", "readme", "Readme.txt"])
def test_an_example_in_a_document_is_no_treebank(tmp_path: Path, name: str) -> None:
    word = "1\tAh\tah\tINTJ\t_\t_\t0\troot\t_\t_\n\n"
    (tmp_path / name).write_text(f"# Format\n\n{word}")
    with refused("no-treebank"):
        together(tmp_path)
    # a treebank may have any other extension, and another one beside it
    treebanks = [tmp_path / "dev.conllu", tmp_path / "more.dat"]
    for treebank in treebanks:
        treebank.write_text(word)
    assert together(tmp_path) == [treebanks]
    assert resolve(SplitSettings(), treebanks).format == "conllu"


def test_folders_without_a_treebank_and_other_policies_are_told(tmp_path: Path) -> None:
    with refused("no-treebank"):
        Treebank.read_all([tmp_path], SplitSettings())
    (tmp_path / "a.mrg").write_text(TREE)
    found = Treebank.read_all([tmp_path / "a.mrg"], SplitSettings(punctuation="keep"))
    found.write(tmp_path / "b.parquet", language="x", split="")
    with refused("mixed-punctuation", file="a.mrg"):
        Treebank.read_all([tmp_path / "a.mrg", tmp_path / "b.parquet"], SplitSettings())


@pytest.mark.parametrize("names", ["a.mrg b.mrg", "a.mrg b.parquet", "a.parquet b.parquet"])
def test_treebanks_of_several_policies_are_not_joined(tmp_path: Path, names: str) -> None:
    other = TREE.replace("(DT the)", "(ART the)")  # no tag of ptb
    for name, text, policy in (("a", TREE, "ptb"), ("b", other, "keep")):
        (tmp_path / f"{name}.mrg").write_text(text)
        found = Treebank.read_all([tmp_path / f"{name}.mrg"], SplitSettings())
        assert found.punctuation == policy
        found.write(tmp_path / f"{name}.parquet", language="x", split="")
    first, second = (tmp_path / name for name in names.split())
    with refused("mixed-punctuation", "ptb", "keep", file=first), as_table([first, second]):
        pass
    for one in ("a", "b"):
        with as_table([tmp_path / f"{one}.mrg", tmp_path / f"{one}.parquet"]) as joined:
            assert read_table(joined)[0].num_rows == 2


def test_what_tables_say_of_themselves_holds_when_they_are_read_again(tmp_path: Path) -> None:
    row = "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n2\tb\t_\tX\t_\t_\t1\tdep\t_\t_\n\n"
    (tmp_path / "u.conllu").write_text(row)
    (tmp_path / "a.mrg").write_text(TREE)
    made = {name: tmp_path / f"{name}.parquet" for name in ("u", "a", "u2", "a2", "both")}
    files = [("u.conllu", "u"), ("a.mrg", "a"), ("u.parquet", "u2"), ("a.parquet", "a2")]
    for name, output in files:
        given = ["treebank", str(tmp_path / name), "--output", str(made[output])]
        assert CliRunner().invoke(app, given).exit_code == 0
    for name, derived, policy in (("u", "dependency", "keep"), ("a", "constituency", "ptb")):
        with as_table([tmp_path / files[name == "a"][0]]) as read:
            for path in (read, made[name], made[f"{name}2"]):
                about = read_table(path)[1]
                assert (about["derived"], about["punctuation"]) == (derived, policy)
    given = ["treebank", str(made["u"]), str(made["a"]), "--output", str(made["both"])]
    with refused("mixed-punctuation"):
        raise CliRunner().invoke(app, given).exception or AssertionError
    with as_table([tmp_path / "u.conllu", made["u"]]) as joined:
        assert read_table(joined)[1]["derived"] == "dependency"


def test_counts_of_one_table_are_not_those_of_several(tmp_path: Path) -> None:
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for number, path in enumerate(paths):
        (tmp_path / "x.mrg").write_text(TREE * (number + 1))
        found = Treebank.read_all([tmp_path / "x.mrg"], SplitSettings())
        found.write(path, language=path.stem, split="test", counts={"read": number + 1})
    with as_table(paths) as joined:
        about = read_table(joined)[1]
        assert (about["language"], about["counts"], about["split"]) == (None, None, "test")
    with as_table(paths[1:]) as alone:
        assert read_table(alone)[1]["counts"] == {"read": 2}


@pytest.mark.parametrize("other", ["{}/a.mrg", "{}/../{}/a.mrg", "{}/*.mrg"])
def test_a_file_that_two_paths_name_is_refused(tmp_path: Path, other: str) -> None:
    (folder := tmp_path / "t").mkdir()
    (folder / "a.mrg").write_text(TREE)
    second = Path(other.format(folder, folder.name))
    with refused("file-twice"), as_table([folder, second]):
        pass
    given = ["train", "--sentences", folder, "--structure", second, "--output", tmp_path / "p"]
    with refused("file-twice"):
        raise CliRunner().invoke(app, list(map(str, given))).exception or AssertionError
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("name", ["absent.mrg", "absent"])
def test_a_file_that_is_not_there_is_told_whatever_its_name(tmp_path: Path, name: str) -> None:
    with refused("missing-file", file=name):
        Treebank.read_all([tmp_path / name], SplitSettings())
