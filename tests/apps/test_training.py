"""``attree evaluate --train --test``: parsers trained on a few trees, and their F1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cyclopts import CycloptsError

from attree.apps import few_shot
from attree.apps.few_shot import FewShotPlan, split
from attree.base.errors import AttreeError
from attree.base.schemas import SENTENCES_SCHEMA, write_table
from attree.evaluation.baselines import fixed_parses
from attree.evaluation.metrics import score
from attree.parsers.parser import Parser
from attree.treebank.as_table import Treebank
from attree.treebank.sentence import SplitSettings
from attree.trees.parses import Parses
from attree.trees.sampling import draw_trees
from tests.apps.conftest import TREES, write
from tests.apps.conftest import evaluate as run
from tests.apps.conftest import run as attree
from tests.encoder.checkpoints import save
from tests.refusals import refused


def test_each_number_of_trees_is_a_row_beside_the_baselines(
    encoder: Path, files: tuple[Path, Path]
) -> None:
    train, test = files
    how = ("--encoder", encoder, "--trees", "3,6", "--parser", "tree-crf-full", "--draws", 2)
    shown = run("--train", train, "--test", test, *how, "--steps", 2, "--device", "cpu").stdout
    for name in ("tree-crf-full, 3 trees", "tree-crf-full, 6 trees", "balanced", "binary ceiling"):
        assert name in shown
    gold = Parses.gold(Treebank.read([test], SplitSettings()).table)
    right = score(gold, fixed_parses("right_branching", gold)).counts
    assert f"{right.corpus_f1:.2f}" in shown
    assert "Means of 2 draws of trees" in " ".join(shown.split())


def test_every_draw_starts_from_the_parser_that_is_named(
    tmp_path: Path, encoder: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    how = ("--parser", "tree-crf-full", "--trees", 3, "--encoder", encoder, "--steps", 1,
           "--device", "cpu")  # fmt: skip
    first = tmp_path / "first"
    attree("train", "--sentences", files[1], *how, "--output", first)
    starts = []
    train = few_shot.session.train

    def seen(request: Any, chosen: Any, start: Any) -> Any:
        starts.append(start.name)
        return train(request, chosen, start)

    monkeypatch.setattr(few_shot.session, "train", seen)
    asked = ("--train", files[0], "--test", files[1], *how, "--draws", 2)
    for start in (first, "encoder"):
        assert "tree-crf-full, 3 trees" in run(*asked, "--start", start).stdout
    assert starts == [str(first)] * 2 + ["encoder"] * 2


def test_trees_in_both_files_are_refused(encoder: Path, files: tuple[Path, Path]) -> None:
    how = ("--train", files[0], "--test", files[0], "--encoder", encoder, "--trees", 3)
    with refused("all-evaluated-on", "--allow-overlap"):
        run(*how, "--steps", 1)
    shown = run(*how, "--steps", 1, "--allow-overlap").stdout
    assert "tree-crf-labelled, 3 trees" in shown and "upio, 3 trees" in shown


def test_trees_with_labels_train_a_parser_with_labels(tmp_path: Path, encoder: Path) -> None:
    """Its labelled F1 has a column, which is empty for the others."""
    how = ("--encoder", encoder, "--trees", 5, "--steps", 1, "--device", "cpu")
    shown = run(write(tmp_path / "mine.mrg", TREES), "--split", "6:", *how).stdout
    assert "Labelled" in shown
    assert "tree-crf-labelled, 5 trees" in shown and "upio, 5 trees" in shown


def test_numbers_that_cannot_be_filled_are_dropped_and_said(tmp_path: Path, encoder: Path) -> None:
    train, test = write(tmp_path / "mine.mrg", TREES), write(tmp_path / "test.mrg", TREES[7:])
    how = ("--encoder", encoder, "--steps", 1, "--device", "cpu", "--parser", "tree-crf-full")
    done = run("--train", train, "--test", test, *how)
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
    rows = [line.split()[:3] for line in shown.splitlines() if "trees  " in line]
    assert rows[:2] == [["upio,", "3", "trees"], ["upio,", "9", "trees"]]
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
    bench = few_shot._Bench(tmp_path, train, test, plan)
    found = bench.parse("upio", 5, 0)

    drawn, attention = tmp_path / "drawn5.parquet", tmp_path / "a.json"
    table = train.table.take(sorted(draw_trees(train.table, 5, seed=0)))
    write_table(drawn, table, schema=SENTENCES_SCHEMA, metadata={})
    attree("attention", drawn, "--encoder", checkpoint, "--heads", "all", "--output", attention)
    how = ("--sentences", drawn, "--score", "inside_outside", "--decoder", "chart", "--output",
           tmp_path / "h.parquet", "--output-selection", tmp_path / "h.json")  # fmt: skip
    try:  # as config.yaml has it; else the best
        attree("heads", attention, "--heads", "above:30", *how)
    except AttreeError:
        attree("heads", attention, "--heads", "best:10", *how)
    parser = Parser.load(str(tmp_path / "h.json"), encoder=str(checkpoint), device="cpu")
    wanted = parser.trees(test.table["words"].to_pylist())[0]
    np.testing.assert_array_equal(found.starts, wanted.starts)
    np.testing.assert_array_equal(found.ends, wanted.ends)


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
    trees = write(tmp_path / "a.mrg", [f"(S (NP (N cats{n})))" for n in range(9)])
    with refused("short-trees", "5"):
        run(trees, "--split", "5:")
