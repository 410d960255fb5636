"""Raw text as people give it: words, sentences, ids, rows that are too long, standard input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import nltk
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attree.base.options import TextOptions
from attree.bulk.output import read_trees
from attree.bulk.run import how_split
from attree.cli.main import app
from attree.parsers.find import TrainedFolder
from tests.command_line import CliRunner, Result
from tests.encoder.checkpoints import save
from tests.refusals import refused

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("encoder")
    save("bert", folder)
    fixed = ["--encoder", folder, "--heads", "list:0.1", "--device", "cpu", "--threads", 1]

    def parse(*arguments: object, **more: str) -> Result:
        given = ["parse", *arguments, *fixed]
        return CliRunner().invoke(app, list(map(str, given)), catch_exceptions=False, **more)

    return parse


def test_text_json_ids_and_rows_that_are_too_long(run: Run, tmp_path: Path) -> None:
    long = "cat " * 70
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.txt").write_text(f"The cat sat. It slept!\n\n{long}\n")
    lines = [{"id": "x7", "text": "A dog."}, {"id": 8, "body": "?"}, {"text": ["a", "b", "c"]}]
    (tmp_path / "in/b.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    ran = run(tmp_path / "in", "--output", tmp_path / "out", "--language", "english")
    assert "words and sentences are split by the rules for en\n" in ran.stderr
    assert "malformed lines, the first of them: b.jsonl: line 2: no field 'text'" in ran.stdout
    rows = list(read_trees(tmp_path / "out"))
    assert [(row["file"], row["line"], row["sentence"], row["status"]) for row in rows] == [
        ("a.txt", 1, 0, "ok"),
        ("a.txt", 1, 1, "ok"),
        ("a.txt", 2, 0, "empty"),
        ("a.txt", 3, 0, "too_long"),
        ("b.jsonl", 1, 0, "ok"),
        ("b.jsonl", 2, 0, "malformed"),
        ("b.jsonl", 3, 0, "ok"),
    ]
    assert [row["id"] for row in rows] == [None, None, None, None, "x7", None, None]
    assert [row["words"] for row in rows] == [
        ["The", "cat", "sat", "."],
        ["It", "slept", "!"],
        [],
        long.split(),
        ["A", "dog", "."],
        [],
        ["a", "b", "c"],
    ]
    assert rows[3]["spans"] == [(start, 70) for start in range(69)]
    assert rows[3]["score"] is None
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["malformed"] == ["b.jsonl: line 2: no field 'text'"]
    assert summary["sentences"] == summary["run"]["sentences"] == 5  # a bad line is none
    refused = run(tmp_path / "in", "--output", tmp_path / "no", "--too-long", "error")
    assert refused.exit_code == 1
    assert "a.txt:3: a sentence of 70 words is too long" in refused.stdout


@pytest.mark.parametrize("options", [["--tokenizer", "whitespace"], ["--language", "en"]])
@pytest.mark.parametrize("name", ["in.jsonl", "in.parquet"])
def test_words_that_are_given_come_back_without_white_space_at_their_ends(
    run: Run, tmp_path: Path, name: str, options: list[str]
) -> None:
    given = [["the ", "cat", "\u00a0sat"], ["\ta", " ", "dog\n"], ["b", "c d"], ["e\u2003"]]
    if name.endswith("jsonl"):
        lines = "".join(json.dumps({"text": words}) + "\n" for words in given)
        (tmp_path / name).write_text(lines)
    else:
        pq.write_table(pa.table({"text": given}), tmp_path / name)
    assert run(tmp_path / name, "--output", tmp_path / "out", *options).exit_code == 0
    rows = list(read_trees(tmp_path / "out"))
    assert [row["status"] for row in rows] == ["ok", "ok", "malformed", "ok"]
    assert [row["words"] for row in rows] == [["the", "cat", "sat"], ["a", "dog"], [], ["e"]]
    assert [len(row["spans"]) for row in rows] == [2, 1, 0, 0]


def test_standard_input_comes_back_in_brackets(run: Run) -> None:
    text = "The cat sat. It slept!\n\nthe old man\n"
    ran = run("-", "--to", "brackets", input=text)
    trees = [line and nltk.Tree.fromstring(line) for line in ran.stdout.split("\n")]
    assert [tree and " ".join(tree.leaves()) for tree in trees] == [
        "The cat sat .",
        "It slept !",
        "",
        "the old man",
        "",
    ]
    same = run("-", "--tokenizer", "whitespace", input="a b c\nd\n").stdout.splitlines()
    assert [len(nltk.Tree.fromstring(line).leaves()) for line in same] == [3, 1]
    with refused("stdin-to-folder"):
        run("-", "--to", "parquet", input=text)
    for more in ([], ["--output", "-"]):
        with refused("no-output", "--output"):
            run("some.txt", *more)


def test_a_language_is_told_from_as_many_lines_of_either(run: Run, tmp_path: Path) -> None:
    text = "\n" * 70 + "La niña come pan, pero el niño bebe leche en la cocina.\n" * 50
    (tmp_path / "in.txt").write_text(text)
    piped = run("-", input=text).stderr
    told = [piped, run(tmp_path / "in.txt", "--output", tmp_path / "out").stderr]
    rules = [re.findall(r"rules for (\w+)", one) for one in told]
    assert rules == [["es"], ["es"]]


@pytest.mark.parametrize(
    "option",
    [
        *("--limit 3", "--workers 2", "--too-long skip", "--tokens-per-batch 64", "--id name"),
        *("--shard-lines 9", "--restart", "--unlock", "--scheduler tls://127.0.0.1:1"),
        *("--slurm queue=a", "--column words"),
    ],
)
def test_options_without_effect_on_standard_input_are_refused(run: Run, option: str) -> None:
    with refused("option-without-effect", option.split()[0]):
        run("-", *option.split(), input="the cat sat\n")


def test_standard_input_heeds_the_most_words_and_brackets(run: Run) -> None:
    text = "the old man who lived near the harbour\nthe cat\n"
    options = ("--tokenizer", "whitespace", "--to", "brackets", "--max-words")
    few, many = (run("-", *options, most, input=text).stdout.splitlines() for most in (3, 9))
    assert few[0] != many[0] and few[1] == many[1]
    for lines in (few, many):
        trees = map(nltk.Tree.fromstring, lines)
        assert [" ".join(tree.leaves()) for tree in trees] == text.splitlines()


def test_lines_that_a_file_has_no_trees_of_have_none_on_standard_input(
    run: Run, tmp_path: Path
) -> None:
    path, options = tmp_path / "a.txt", ["--tokenizer", "whitespace", "--max-words", 3]
    path.write_bytes(
        b"a cat\na\rb\n\xff c\nd\x07 e\n\xe2\x80\xaba b\xe2\x80\xac\nf g h i\nj \xe2\x80\xabk\r\n"
    )
    piped = run("-", *options, input=path.read_bytes().decode("utf-8", "surrogateescape"))
    run(path, *options, "--to", "brackets", "--output", tmp_path / "out")
    written = (tmp_path / "out/brackets/shard-00000.txt").read_text().replace("()\n", "\n")
    assert piped.stdout == written and "\u202bk" in written and "\n\n\n\n" in written
    assert "2 control, 1 undecodable, 1 too_long" in piped.stderr
    assert not run("-", *options, input="a b\n\n").stderr


@pytest.mark.parametrize("name", ["a.parquet", "a.txt", "a.jsonl"])
def test_an_id_that_no_input_has_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "a.parquet":
        pq.write_table(pa.table({"text": ["a cat"], "doc": ["x7"]}), path)
    else:
        path.write_text('{"doc": "x7", "text": "a cat"}\n' if name == "a.jsonl" else "a cat\n")
    options = ("--tokenizer", "whitespace", "--id", "doc", "--output", tmp_path / "out")
    if name == "a.jsonl":
        run(path, *options)
        assert [row["id"] for row in read_trees(tmp_path / "out")] == ["x7"]
        return
    with refused("option-without-effect", "--id", file=name):
        run(path, *options)
    assert not (tmp_path / "out/manifest.json").exists()


def test_a_run_goes_on_whose_output_is_below_its_input(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/text.txt").write_text("The cat sat on the mat, and the dog slept all day.\n")
    monkeypatch.chdir(tmp_path)
    output = Path("in/out")  # its shards and brackets come before the text
    for inputs in ("in", tmp_path / "in", "in/../in"):
        ran = run(inputs, "--output", output, "--to", "parquet,brackets")
        assert ran.exit_code == 0 and "rules for en," in ran.stderr
    assert [row["file"] for row in read_trees(output)] == ["text.txt"]


def test_a_byte_order_mark_of_standard_input_is_no_text(run: Run) -> None:
    text = "the cat\n\ufeffsat\n"
    for options in (["--tokenizer", "whitespace"], ["--language", "en"]):
        plain, marked = (run("-", *options, input=mark + text).stdout for mark in ("", "\ufeff"))
        assert marked == plain and len(plain.splitlines()) == 2


def test_a_parser_trained_without_punctuation_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    made: TrainedFolder = TrainedFolder(None, "p", "f", "de", "ptb")  # type: ignore[arg-type]
    assert how_split(made, TextOptions(), []).name == "de"
    said = capsys.readouterr().err
    assert "for de, the language that the parser was trained on" in said
    assert "was trained on trees without punctuation (ptb)" in said


def test_the_language_of_words_that_are_given_is_in_no_doubt(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = TrainedFolder(None, "p", "f", languages={"en": {"headed_precision": 50.0}})  # type: ignore[arg-type]
    for options, first, is_told in (
        (TextOptions(), [["a", "b"]], False),
        (TextOptions(language="en"), [["a", "b"]], True),
        (TextOptions(), ["0 1"], True),
        (TextOptions(tokenizer="whitespace"), ["0 1"], False),
    ):
        how_split(made, options, first)
        assert bool(capsys.readouterr().err) == is_told
