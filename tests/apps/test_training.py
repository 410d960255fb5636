"""``attree evaluate --train --test``: parsers trained on a few trees, and their F1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cyclopts import CycloptsError

from attree.apps.evaluate import training
from attree.apps.evaluate.training import FewShotPlan, split
from attree.base.schemas import SENTENCES_SCHEMA, write_table
from attree.cli.main import app
from attree.encoder.source import resolve
from attree.evaluation.baselines import fixed_parses
from attree.evaluation.metrics import score
from attree.parsers.parser import Parser
from attree.treebank.given import Treebank
from attree.treebank.sentence import SplitSettings
from attree.trees.parses import Parses
from attree.trees.sampling import draw_trees
from tests.command_line import CliRunner, Result
from tests.encoder.checkpoints import save
from tests.refusals import refused
from tests.training.conftest import table


def run(*arguments: object) -> Result:
    given = ["evaluate", *map(str, arguments)]
    return CliRunner().invoke(app, given, catch_exceptions=False)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return (
        table(tmp_path / "train.parquet", 12, seed=0),
        table(tmp_path / "test.parquet", 8, seed=1),
    )


def test_each_number_of_trees_is_a_row_beside_the_baselines(
    tmp_path: Path, files: tuple[Path, Path]
) -> None:
    resolve(save("bert", tmp_path / "checkpoint")).write(tmp_path / "bert.json")
    train, test = files
    how = (
        "--encoder",
        tmp_path / "bert.json",
        "--trees",
        "3,6",
        "--parser",
        "tree-crf-full",
        "--draws",
        2,
        "--steps",
        2,
    )
    shown = run("--train", train, "--test", test, *how, "--device", "cpu").stdout
    for name in ("tree-crf-full, 3 trees", "tree-crf-full, 6 trees", "balanced", "binary ceiling"):
        assert name in shown
    gold = Parses.gold(Treebank.read([test], SplitSettings()).table)
    right = score(gold, fixed_parses("right_branching", gold)).counts
    assert f"{right.corpus_f1:.2f}" in shown
    assert "Means of 2 draws of trees" in " ".join(shown.split())


def test_every_draw_starts_from_the_parser_that_is_named(
    tmp_path: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve(save("bert", tmp_path / "checkpoint")).write(tmp_path / "bert.json")
    own = ("--encoder", tmp_path / "bert.json", "--steps", 1, "--device", "cpu")
    named = ("--parser", "tree-crf-full", "--trees", 3)
    first = tmp_path / "first"
    trained = ["train", "--sentences", files[1], *named, *own, "--output", first]
    assert CliRunner().invoke(app, list(map(str, trained))).exit_code == 0
    starts = []
    train_parser = training.session.train_parser

    def seen(request: Any, output: Path) -> Any:
        starts.append(request.fitting.start)
        return train_parser(request, output)

    monkeypatch.setattr(training.session, "train_parser", seen)
    asked = ("--train", files[0], "--test", files[1], *named, *own, "--draws", 2)
    for start in (first, "encoder"):
        assert "tree-crf-full, 3 trees" in run(*asked, "--start", start).stdout
    assert starts == [str(first)] * 2 + ["encoder"] * 2


def test_trees_in_both_files_are_refused(tmp_path: Path, files: tuple[Path, Path]) -> None:
    resolve(save("bert", tmp_path / "checkpoint")).write(tmp_path / "bert.json")
    how = ("--encoder", tmp_path / "bert.json", "--trees", 3, "--steps", 1)
    with refused("all-evaluated-on", "--allow-overlap"):
        run("--train", files[0], "--test", files[0], *how)
    shown = run("--train", files[0], "--test", files[0], *how, "--allow-overlap").stdout
    assert "tree-crf-labelled, 3 trees" in shown and "upio, 3 trees" in shown


def test_trees_with_labels_train_a_parser_with_labels(tmp_path: Path) -> None:
    """Its labelled F1 has a column, which is empty for the others."""
    resolve(save("bert", tmp_path / "checkpoint")).write(tmp_path / "bert.json")
    trees = [f"( (S (NP (D a) (N w{n})) (VP (V b) (NP (D c) (N d{n})))) )\n" for n in range(9)]
    (tmp_path / "mine.mrg").write_text("".join(trees))
    how = ("--encoder", tmp_path / "bert.json", "--trees", 5, "--steps", 1, "--device", "cpu")
    shown = run(tmp_path / "mine.mrg", "--split", "6:", *how).stdout
    assert "Labelled" in shown
    assert "tree-crf-labelled, 5 trees" in shown and "upio, 5 trees" in shown


def test_numbers_that_cannot_be_filled_are_dropped_and_said(tmp_path: Path) -> None:
    resolve(save("bert", tmp_path / "checkpoint")).write(tmp_path / "bert.json")
    trees = [f"( (S (NP (D a) (N w{n})) (VP (V b) (NP (D c) (N d{n})))) )\n" for n in range(9)]
    (tmp_path / "mine.mrg").write_text("".join(trees))
    (tmp_path / "test.mrg").write_text("".join(trees[7:]))
    how = ("--encoder", tmp_path / "bert.json", "--steps", 1, "--device", "cpu")
    how = (*how, "--parser", "tree-crf-full", "--test", tmp_path / "test.mrg")
    done = run("--train", tmp_path / "mine.mrg", *how)
    assert "2 of 9 sentences are among those to be evaluated on: left out" in done.stderr
    assert "10, 20, 40 trees were asked for, there are 7 of three words and more" in done.stderr
    assert done.stdout.count("tree-crf-full, 7 trees") == done.stdout.count("balanced")


def test_what_is_evaluated_must_be_clear(files: tuple[Path, Path]) -> None:
    train, test = files
    for given in ((), ("--train", train), (train,)):
        with refused("nothing-to-evaluate"):
            run(*given)
    with pytest.raises(CycloptsError, match="--gold and --test exclude each other"):
        run(train, "--gold", test, "--test", test)
    with pytest.raises(CycloptsError, match="--steps has no effect without --train or --split"):
        run(train, "--gold", test, "--steps", 3)
    with refused("not-a-number", "--trees"):
        run("--train", train, "--test", test, "--trees", "ten")


def test_unsupervised_parsers_choose_heads_on_the_same_trees(
    tmp_path: Path, files: tuple[Path, Path]
) -> None:
    save("bert", checkpoint := tmp_path / "checkpoint")
    train, test = files
    how = ("--encoder", checkpoint, "--trees", "3,9", "--parser", "upio", "--device", "cpu")
    shown = run("--train", train, "--test", test, *how).stdout
    assert [line.split()[:3] for line in shown.splitlines() if "trees  " in line][:2] == [
        ["upio,", "3", "trees"],
        ["upio,", "9", "trees"],
    ]
    with refused("unknown-name", "upoi", "upoa"):
        run("--train", train, "--test", test, "--parser", "upoi")


def test_first_weights_are_refused_where_nothing_is_trained() -> None:
    with refused("option-without-effect", "--start"):
        FewShotPlan(["upoa", "upio"], [3], start="encoder").check()
    FewShotPlan(["upio", "tree-crf-full"], [3], start="encoder").check()


def test_the_heads_are_those_that_the_heads_stage_selects(
    tmp_path: Path, files: tuple[Path, Path]
) -> None:
    save("bert", checkpoint := tmp_path / "checkpoint")
    plan = FewShotPlan(("upio",), (5,), encoder=str(checkpoint), device="cpu")
    train, test = (Treebank.read([path], SplitSettings()) for path in files)
    bench = training._Bench(tmp_path, train, test, plan)
    found = bench.parse("upio", 5, 0)

    def to(name: str) -> list[str]:
        return ["--output", str(tmp_path / name)]

    drawn = table_of(train.table, draw_trees(train.table, 5, seed=0), tmp_path / "drawn5.parquet")
    CliRunner().invoke(
        app,
        ["attention", str(drawn), "--encoder", str(checkpoint), "--heads", "all", *to("a.json")],
        catch_exceptions=False,
    )
    for heads in ("above:30", "best:10"):  # as config.yaml has it; else the best
        result = CliRunner().invoke(
            app,
            [
                *("heads", str(tmp_path / "a.json"), "--sentences", str(drawn), "--heads", heads),
                *("--score", "inside_outside", "--decoder", "chart", *to("h.parquet")),
                *("--output-selection", str(tmp_path / "h.json")),
            ],
        )
        if result.exit_code == 0:
            break
    parser = Parser.load(str(tmp_path / "h.json"), encoder=str(checkpoint), device="cpu")
    wanted = parser.trees(test.table["words"].to_pylist())[0]
    np.testing.assert_array_equal(found.starts, wanted.starts)
    np.testing.assert_array_equal(found.ends, wanted.ends)


def table_of(table: pa.Table, rows: list[int], path: Path) -> Path:
    write_table(path, table.take(sorted(rows)), schema=SENTENCES_SCHEMA, metadata={})
    return path


@pytest.mark.parametrize(
    ("tested", "train", "test"),
    [
        ("8:", range(8), range(8, 12)),
        (":3", range(3, 12), range(3)),
        ("2:5", [0, 1, *range(5, 12)], range(2, 5)),
        ("10:99", range(10), range(10, 12)),
    ],
)
def test_one_file_is_split_by_sentences(
    files: tuple[Path, Path], tested: str, train: list[int], test: list[int]
) -> None:
    whole = Treebank.read(files[:1], SplitSettings())
    words = whole.table["words"].to_pylist()
    parts = split(whole, tested, files[0])
    for part, wanted in zip(parts, (train, test), strict=True):
        assert part.table["words"].to_pylist() == [words[place] for place in wanted]
        assert part.table["sentence"].to_pylist() == list(range(len(wanted)))


@pytest.mark.parametrize(
    ("tested", "says"),
    [
        ("12:", "empty-split 12"),
        ("100:", "empty-split test"),
        ("5:5", "empty-split test"),
        ("0:", "empty-split train"),
        (":", "empty-split train"),
        ("100", "bad-split"),
        ("-5:", "bad-split"),
        ("9" * 5000 + ":", "bad-split"),
    ],
)
def test_a_split_past_the_end_is_one_line(files: tuple[Path, Path], tested: str, says: str) -> None:
    with refused(*says.split()):
        run(files[0], "--split", tested)
    with refused(*says.split()):
        run("--train", files[0], "--split", tested)


def test_a_treebank_that_loses_much_is_refused(tmp_path: Path) -> None:
    good = "(S (NP (D the) (N cat)) (VP (V sat)))\n"
    (tmp_path / "a.mrg").write_text(good * 3 + "(S (NP\n\n" + good)
    with refused("many-removed", "--check", file="a.mrg"):
        run(tmp_path / "a.mrg", "--split", "2:")


def test_trees_of_one_word_have_nothing_to_teach(tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text("".join(f"(S (NP (N cats{n})))\n" for n in range(9)))
    with refused("short-trees", "5"):
        run(tmp_path / "a.mrg", "--split", "5:")
