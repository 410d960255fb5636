"""Languages as data: what is found, what overrides what, and mistakes in settings."""

from __future__ import annotations

import dataclasses
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from attree.base.errors import AttreeError
from attree.base.schemas import read_table
from attree.base.settings import form_of, hints_of, meanings
from attree.cli.main import app
from attree.treebank.cleaning import POLICIES, policies
from attree.treebank.formats import FORMATS
from attree.treebank.language import Language, discover
from attree.treebank.language_file import LAYOUTS, LanguageKeys, SplitKeys, check_settings
from attree.treebank.sentence import SplitSettings
from tests.command_line import declared
from tests.refusals import refused

TREE = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))\n"


def put(folder: Path, *names: str, text: str = TREE) -> Path:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def only(folder: Path, name: str = "klingon", **overrides: Any) -> Language:
    return discover([folder], {name: overrides} if overrides else {})[name]


class TestFolders:
    def test_dropping_files_in_is_enough(self, tmp_path: Path) -> None:
        put(tmp_path / "klingon", "train.mrg", "dev.ptb", "test.conllu", "notes.txt", ".test.mrg")
        found = only(tmp_path)
        names = ["train.mrg", "dev.ptb", "test.conllu"]
        files = [split.files for split in found.splits.values()]
        assert files == [(tmp_path / "klingon" / name,) for name in names]
        settings = [found.split(name).settings for name in ("train", "dev", "test")]
        assert [one.format for one in settings] == ["ptb", "spmrl", "conllu"]
        assert [one.punctuation for one in settings] == ["auto", "keep", "keep"]
        assert settings[2].derived == "dependency"

    def test_folders_and_several_files_a_split(self, tmp_path: Path) -> None:
        put(tmp_path / "klingon", "train/b.ptb", "train/a.ptb", "train/readme.md")
        put(tmp_path / "klingon", "dev.1.ptb", "dev.2.ptb")
        found = only(tmp_path)
        assert [file.name for file in found.files("train")] == ["a.ptb", "b.ptb"]
        assert [file.name for file in found.files("dev")] == ["dev.1.ptb", "dev.2.ptb"]

    def test_a_split_has_no_earlier_versions_and_documents_whatever_their_format(
        self, tmp_path: Path
    ) -> None:
        put(tmp_path / "klingon", "train/a.mrg", "train/_a.mrg", "train/README", "train/b")
        put(tmp_path / "klingon", "test.mrg", "test.mrg~", "test.mrg.bak", "dev.orig")
        put(tmp_path / "klingon", "language.yaml", text="format: ptb\n")
        found = only(tmp_path)
        files = [file.name for split in found.splits.values() for file in split.files]
        assert files == ["a.mrg", "b", "test.mrg"]
        excluded = shlex.split(found.arguments("train"))
        assert sum(word.endswith(("/_a.mrg", "/README")) for word in excluded) == 2

    def test_files_that_a_split_s_folder_does_not_give_are_told(self, tmp_path: Path) -> None:
        put(tmp_path / "klingon", "train/a.mrg", "train/00/b.mrg", "train/c.mrg.gz", "train/d.txt")
        (tmp_path / "klingon/train/e.mrg").symlink_to("gone")
        (tmp_path / "klingon/train/f.mrg").symlink_to("a.mrg")
        names = [str(file.relative_to(tmp_path)) for file in only(tmp_path).unused]
        assert names == [f"klingon/train/{name}" for name in ("00/b.mrg", "c.mrg.gz", "e.mrg")]

    def test_a_folder_that_is_no_language(self, tmp_path: Path) -> None:
        put(tmp_path / "klingon", "test.mrg")
        put(tmp_path / "scripts", "run.sh")
        catalogue = discover([tmp_path, tmp_path / "absent"])
        assert list(catalogue) == ["klingon"]
        assert len(catalogue.warnings) == 1
        assert "no train, dev or test" in catalogue.warnings[0]
        with refused("no-splits", file="scripts"):
            catalogue["scripts"]

    def test_later_folders_replace_earlier_ones(self, tmp_path: Path) -> None:
        put(tmp_path / "a/klingon", "test.mrg")
        put(tmp_path / "b/klingon", "dev.mrg")
        catalogue = discover([tmp_path / "a", tmp_path / "b"])
        assert list(catalogue["klingon"].splits) == ["dev"]
        assert "instead of" in catalogue.warnings[0]

    def test_unknown_extension(self, tmp_path: Path) -> None:
        put(tmp_path / "klingon", "test.txt")
        with refused("unknown-format", file="test.txt"):
            only(tmp_path)
        put(tmp_path / "klingon", "language.yaml", text="format: ptb\n")
        assert only(tmp_path).split("test").settings.format == "ptb"

    def test_missing_split_and_unknown_language(self, tmp_path: Path) -> None:
        put(tmp_path / "klingon", "train.mrg")
        catalogue = discover([tmp_path])
        with refused("unknown-split", file="klingon"):
            catalogue["klingon"].files("test")
        with refused("unknown-language", "klingon"):
            catalogue["klingonn"]


class TestSettings:
    def test_language_yaml_and_overrides(self, tmp_path: Path) -> None:
        put(tmp_path / "klingon", "train.mrg", "rest.mrg")
        text = "punctuation: keep\nmax_words: 9\nsplits: {test: rest.mrg}\n"
        put(tmp_path / "klingon", "language.yaml", text=text)
        found = only(tmp_path, max_words=7, dummy_roots=["X", ""])
        assert set(found.splits) == {"train", "test"}
        settings = found.split("test").settings
        assert (settings.punctuation, settings.max_words) == ("keep", 7)
        assert settings.dummy_roots == ("X", "")

    def test_a_folder_of_a_variable_that_is_not_there_is_said(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KLINGON_HOME", str(tmp_path))
        found = discover(["$KLINGON_HOME/trees", tmp_path / "absent"])
        missing = f"{tmp_path}/trees: this folder ($KLINGON_HOME/trees) does not exist"
        assert found.warnings == [missing]

    def test_folder_with_a_variable(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        put(tmp_path / "elsewhere", "wsj_0001.mrg", "wsj_0002.mrg", "wsj_0003.mrg")
        monkeypatch.setenv("KLINGON_HOME", str(tmp_path))
        inline = {"folder": "$KLINGON_HOME/elsewhere", "splits": {"dev": "wsj_{0001..0002}.mrg"}}
        assert len(discover([], {"klingon": inline})["klingon"].files("dev")) == 2
        monkeypatch.delenv("KLINGON_HOME")
        with refused("unset-variable", "KLINGON_HOME"):
            discover([], {"klingon": inline})["klingon"]

    def test_derived_splits(self, tmp_path: Path) -> None:
        put(tmp_path / "klingon", "train.mrg", "dev.mrg", "a/1.mrg", "a/2.mrg")
        splits = {
            "short": {"from": ["train", "dev"], "max_words": 10},
            "some": {"files": "a/*.mrg", "exclude": ["a/1.mrg"], "first": 3},
        }
        found = only(tmp_path, splits=splits)
        assert found.files("short") == found.files("train") + found.files("dev")
        assert found.split("short").settings.max_words == 10
        assert found.split("train").settings.max_words is None
        assert [file.name for file in found.files("some")] == ["2.mrg"]
        assert found.split("some").settings.first == 3

    def test_what_a_split_leaves_out_does_not_come_back_in_one_made_from_it(
        self, attree: Any, tmp_path: Path
    ) -> None:
        put(tmp_path / "klingon", "a1.mrg", "a2.mrg", "a3.mrg")
        splits = {
            "train": {"files": "*.mrg", "exclude": "a2.mrg"},
            "test": "a2.mrg",
            "half": {"from": "train", "exclude": "a3.mrg"},
            "all": {"from": ["train", "test"]},
        }
        found, output = only(tmp_path, splits=splits), tmp_path / "out.parquet"
        for split, numbers in {"train": "13", "half": "1", "all": "123"}.items():
            names = [f"{tmp_path}/klingon/a{number}.mrg" for number in numbers]
            assert list(map(str, found.files(split))) == names
            parts = shlex.split(found.arguments(split))
            assert attree(*parts, "--output", str(output), "--overwrite").status == 0
            assert read_table(output)[0]["file"].unique().to_pylist() == names

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("punctuatoin: keep", "unknown key punctuatoin — did you mean punctuation"),
            ("splits: {test: {file: x}}", "splits.test: unknown key file — did you mean files"),
            ("splits: {test: {max_words: 3}}", "it takes exactly one of files, from"),
            ("splits: {t: {from: dev}}", "splits.t.from: there is no split dev"),
            ("splits: {test: 3}", "splits.test: 3 does not fit — it takes split → its files"),
            ("max_words: -3", "max_words: -3 does not fit — it takes a whole number above 0"),
            ("max_words: true", "max_words: true does not fit — it takes a whole number"),
            ("format: xml", 'format: "xml" is not one of its values — there are alpino, cess'),
            ("encoding: klingon-8", "does not fit — it takes the name of an encoding"),
            ("punctuation: drop", "does not fit — it takes auto, keep, ptb, unicode"),
            ("drop_labels: [NO]", "drop_labels[0]: false does not fit — it takes a list of texts"),
            ("layout: ctb", "is not one of its values — did you mean ptb?"),
            ("dependencies: inner_flt", "is not one of its values — did you mean inner_flat?"),
            ("final_punctuation: out", "is not one of its values — did you mean outside?"),
            ("- a", "expected keys and values"),
            ("a: [", "this is not YAML"),
            ("format: ptb\nformat: ptb", "yaml:2: this is not YAML (the key format comes twice)"),
            ("folder: x", "folder can be set in the workflow's configuration only"),
            ("1: 2", "unknown key 1"),
            ("max_words: " + "9" * 5000, "this is not YAML (a number or a date that cannot"),
            ("max_words: 0x" + "f" * 5000, "max_words: a number of too many digits does not fit"),
            ("? 0x" + "f" * 5000 + "\n: 1", "does not fit — it takes the settings that a language"),
        ],
    )
    def test_mistakes_cost_no_other_language(self, tmp_path: Path, text: str, problem: str) -> None:
        put(tmp_path / "good", "test.mrg")
        put(tmp_path / "klingon", "test.mrg")
        put(tmp_path / "klingon", "language.yaml", text=text)
        catalogue = discover([tmp_path])
        assert list(catalogue) == ["good"]
        with pytest.raises(AttreeError) as raised:
            catalogue["klingon"]
        assert problem in str(raised.value)
        assert "\n" not in str(raised.value)

    def test_a_language_file_that_is_not_utf8(self, tmp_path: Path) -> None:
        put(tmp_path / "klingon", "test.mrg")
        (tmp_path / "klingon/language.yaml").write_bytes(b"encoding: \xe9\n")
        assert "not UTF-8" in discover([tmp_path]).warnings[0]


class TestLayouts:
    def test_penn_treebank(self, tmp_path: Path) -> None:
        for section in range(25):
            base = tmp_path / f"treebank_3/parsed/mrg/wsj/{section:02d}"
            put(base, f"wsj_{section:02d}01.mrg", f"wsj_{section:02d}00.mrg")
        found = discover([], {"english": {"folder": str(tmp_path), "layout": "ptb"}})["english"]
        sizes = {name: len(split.files) for name, split in found.splits.items()}
        assert sizes == {"train": 46, "train_standard": 40, "dev": 2, "test": 2, "wsj10": 50}
        assert [file.name for file in found.files("test")] == ["wsj_2300.mrg", "wsj_2301.mrg"]
        assert found.split("wsj10").settings.max_words == 10
        assert found.split("train").settings.punctuation == "ptb"

    def test_a_missing_section_is_told(self, tmp_path: Path) -> None:
        for section in (0, 1, 22, 23, 24):
            put(tmp_path / f"wsj/{section:02d}", "a.mrg")
        catalogue = discover([], {"english": {"folder": str(tmp_path), "layout": "ptb"}})
        assert "split train: 20 numbered patterns match no file" in catalogue.warnings[0]

    def test_spmrl(self, tmp_path: Path) -> None:
        base = tmp_path / "BASQUE_SPMRL/gold/ptb"
        for kind in ("train", "train5k", "dev", "test"):
            put(base / kind, f"{kind}.Basque.gold.ptb")
        base = tmp_path / "SWEDISH_SPMRL/gold/ptb"
        for kind in ("train5k", "dev", "test"):
            put(base / kind, f"{kind}.swedish.gold.ptb")
        inline = {"folder": str(tmp_path), "layout": "spmrl"}
        catalogue = discover([], {"basque": inline, "swedish": inline, "polish": inline})
        basque, swedish = catalogue["basque"], catalogue["swedish"]
        assert basque.files("train")[0].name == "train.Basque.gold.ptb"
        assert swedish.files("train")[0].name == "train5k.swedish.gold.ptb"
        assert swedish.split("test").settings.punctuation == "keep"
        assert catalogue["polish"].splits == {}
        with refused("no-files"):
            catalogue["polish"].files("test")


class TestCommandLine:
    def test_options_read_back_to_the_same_settings(self, attree: Any, tmp_path: Path) -> None:
        put(tmp_path / "my [trees]/klingon", "a_00.mrg", "a_01.mrg", "b.mrg")
        found = only(
            tmp_path / "my [trees]",
            punctuation="drop:$, $(",
            dummy_roots=["TOP", ""],
            drop_labels=[],
            max_words=3,
            splits={"test": {"files": ["a_{00..01}.mrg", "b.mrg"], "exclude": "a_00.mrg"}},
        )
        parts = shlex.split(found.arguments("test"))
        assert parts[:4] == ["--language", "klingon", "--split-name", "test"]
        assert "--derived" not in parts
        output = tmp_path / "out.parquet"
        assert attree(*parts, "--output", str(output)).status == 0
        table, metadata = read_table(output)
        assert metadata["counts"]["read"] == 2
        assert metadata["settings"]["dummy_roots"] == ["TOP", ""]
        assert metadata["settings"]["drop_labels"] == []
        assert metadata["punctuation"] == "drop:$, $("
        assert set(table["file"].to_pylist()) == {str(file) for file in found.files("test")}

    def test_imports_nothing_heavy(self) -> None:
        code = (
            "import sys, attree.treebank.language, attree.cli.treebank;"
            "print([m for m in ('torch', 'numpy', 'pyarrow', 'numba') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.strip() == "[]"


_SOME = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 3), st.floats(0, 2), st.sampled_from(
        ["", " ", "ptb", "keep", "drop:", "drop:X", "drop: ", "undo", "lift", "dependency", "utf-8",
         "spmrl", "conllu", *FORMATS, *LAYOUTS, *POLICIES]
    ), st.lists(st.sampled_from(["a", "", 1]), max_size=2),
    st.dictionaries(st.sampled_from(["files", "from", "max_words", "x"]), st.just("a"), max_size=2),
)  # fmt: skip


def accepted(settings: dict[str, Any]) -> bool:
    try:
        check_settings(settings, "here")
    except AttreeError as error:
        assert "\n" not in str(error)
        return False
    return True


def _is_valid(settings: dict[str, Any]) -> bool:
    return Draft202012Validator(msgspec.json.schema(LanguageKeys)).is_valid(settings)


@given(
    st.sampled_from(
        [
            key
            for key in hints_of(LanguageKeys)
            if key not in ("encoding", "splits", "traces", "accept_loss", "format", "layout")
        ]
    ),
    _SOME,
)
def test_the_json_schema_and_the_check_accept_the_same_values(key: str, value: Any) -> None:
    if isinstance(value, float):  # JSON knows no difference between 1 and 1.0
        value += 0.25
    assert accepted({key: value}) == _is_valid({key: value})


@given(_SOME)
def test_what_the_check_accepts_of_splits_is_valid(value: Any) -> None:
    """It also wants exactly one of files and from."""
    if isinstance(value, dict) and "max_words" in value:
        value["max_words"] = 7
    one = not isinstance(value, dict) or ("files" in value) != ("from" in value)
    assert accepted({"splits": {"dev": value}}) == (one and _is_valid({"splits": {"dev": value}}))


def test_every_key_is_described() -> None:
    for kind in (LanguageKeys, SplitKeys):
        assert set(hints_of(kind)) <= set(meanings(kind))


def test_choices_come_from_their_registries() -> None:
    assert form_of(LanguageKeys, "format") == ", ".join(FORMATS)
    assert form_of(LanguageKeys, "layout") == ", ".join(LAYOUTS)
    for name, takes in POLICIES.items():
        assert (f"{name}:{takes}" if takes else name) in policies()


def test_every_setting_is_a_key_and_an_option() -> None:
    settings = {one.name for one in dataclasses.fields(SplitSettings)}
    assert settings == set(hints_of(LanguageKeys)) - {"folder", "layout", "splits"}
    options = {one.name for one in declared(app) if one.command == "treebank read"}
    keys = {
        key.removesuffix("s") if key.endswith(("_roots", "_labels")) else key for key in settings
    }
    assert {f"--{key.replace('_', '-')}" for key in keys} <= options


@pytest.mark.parametrize("key", sorted(hints_of(LanguageKeys)))
def test_help_is_one_phrase_in_plain_words(key: str) -> None:
    assert meanings(LanguageKeys)[key][-1] != "."
