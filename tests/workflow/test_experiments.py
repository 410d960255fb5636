"""A tiny grid of experiments, run for real."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
import yaml

from attree.plan.rows import NOT_RUN
from tests.workflow.conftest import (
    EXPERIMENT_OF_OUTPUT,
    Checkout,
    add,
    copied,
    make_tiny,
    run_recorded,
    with_code,
)
from tests.workflow.test_code_is_an_input import check_covered

#: Experiments of every kind, for a checkout of six trees.
GRID = """\
masked_lm:
  tuned: {encoder: tiny, text: [english/dev], seeds: 1, epochs: 1, batch: 2, head_steps: 1}
experiments:
  few:
    title: Few
    columns: trees
    picture: true
    panels: true
    sentence: 1
    runs:
      - {<<: &run {encoders: [tiny], train: english/dev, test: [english/test], trees: [2, 4]},
         languages: [english], train: "{language}/dev", test: ["{language}/test"],
         parsers: [fpio], steps: 2, draws: 2}
  heads:
    title: Heads
    columns: test
    labels: true
    baselines: true
    tables: [crosslingual]
    runs:
      - {<<: *run, encoders: [tuned], parsers: [upio], trees: [all], label: "{parser}, tuned",
         timed: true}
      - {<<: *run, parsers: [fpoa], steps: 1, trees: [3]}
  weights:
    title: Weights
    columns: trees
    weights: true
    runs: [{<<: *run, parsers: [head-weights], steps: 1}]
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Checkout:
    """A tiny checkout, with its own copy of the code, whose experiments have been run once."""
    made = with_code(make_tiny(tmp_path_factory.mktemp("experiments") / "checkout", encoder))
    made.configure(yaml.safe_load(GRID))
    run_recorded(made, "experiments")
    return made


@pytest.fixture
def again(done: Checkout, tmp_path: Path) -> Checkout:
    """A copy to change and run again."""
    return copied(done, tmp_path)


def records(checkout: Checkout) -> dict[str, float]:
    folder = checkout.folder / "results/experiments/records"
    return {path.name: path.stat().st_mtime for path in folder.glob("*.json")}


def read(checkout: Checkout, name: str) -> list[dict[str, str]]:
    path = checkout.folder / f"results/experiments/tables/{name}.csv"
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def test_tables_hold_every_row(done: Checkout) -> None:
    few = read(done, "few")
    assert [(row["label"], row["column"], row["draws"]) for row in few] == [
        ("fpio", "2", "2"),
        ("fpio", "4", "2"),
    ]
    heads = {row["label"]: row for row in read(done, "heads")}
    assert {"upio, tuned", "fpoa", "upoa", "upio", "right", "binary ceiling"} <= set(heads)
    assert heads["upio, tuned"]["notes"] == "new head"
    assert float(heads["upio, tuned"]["sentences_a_second"]) > 0


def test_every_picture_has_its_numbers_beside_it(done: Checkout) -> None:
    folder = done.folder / "results/experiments/tables"
    pictures = sorted(path.stem for path in folder.glob("*.png"))
    assert pictures == ["few", "few.sentence", "weights.weights"]
    for name in pictures:
        assert (folder / f"{name}.csv").is_file()
        assert (folder / f"{name}.parquet").is_file()


@pytest.mark.parametrize("rule", sorted(EXPERIMENT_OF_OUTPUT.values()))
def test_a_rule_covers_what_its_command_imports(rule: str, done: Checkout) -> None:
    check_covered(rule, done)


def test_rows_of_a_kind_import_nothing_that_their_hash_leaves_out(done: Checkout) -> None:
    kinds = set()
    for file in (done.source / "imports").iterdir():
        output, *modules = file.read_text(encoding="utf-8").split()
        if found := re.match(r"results/experiments/jobs/[^.]+\.(\w+)\.", output):
            kinds.add(found[1])
            assert not {*modules} & {*NOT_RUN[found[1]]}, output
    assert kinds == set(NOT_RUN)


def test_nothing_is_run_twice(again: Checkout) -> None:
    before = records(again)
    ran = again.run("experiments")
    assert {rule for rule, _ in ran.jobs} <= {"experiments"}
    assert records(again) == before


def test_another_row_is_computed_and_no_other(again: Checkout) -> None:
    before = records(again)
    config = again.config
    config["experiments"]["few"]["runs"][0]["draws"] = 3
    again.configure(config)
    again.run("experiments")
    after = records(again)
    assert {name: after[name] for name in before} == before
    new = [json.loads((again.folder / "results/experiments/records" / name).read_text())
           for name in set(after) - set(before)]  # fmt: skip
    assert {(one["row"]["trees"], one["row"]["seed"]) for one in new} == {(2, 2), (4, 2)}
    assert [row["draws"] for row in read(again, "few")] == ["3", "3"]


def forge(checkout: Checkout) -> None:
    """Make every record hold a number that no parser reaches, as if by other code."""
    for path in (checkout.folder / "results/experiments/records").glob("*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**record, "corpus_f1": 999.0}), encoding="utf-8")


def figures(checkout: Checkout) -> dict[tuple[str, str], float]:
    """Return the corpus F1 of the lines that are rows of records, by table and line."""
    found = {}
    for name in ("few", "heads"):
        for row in read(checkout, name):
            if row["label"] in ("fpio", "fpoa", "upio, tuned"):
                found[f"{row['label']} {row['column']}", name] = float(row["corpus_f1"])
    return found


@pytest.mark.full  # five runs of the experiments
def test_no_number_outlives_what_made_it(again: Checkout) -> None:
    """Module, dtype and recipe: what ran again, and that forged numbers are gone where it did."""
    true = figures(again)
    forge(again)
    add(again.source / "attree/encoder/pieces.py", "_CHANGED = 1")
    assert again.run("experiments").rules >= {"experiment_rows", "attention_all"}
    assert figures(again) == true

    forge(again)  # what reads attention depends on what computes it, and nothing else does
    add(again.source / "attree/association/compute.py", "_CHANGED = 1")
    ran = again.run("experiments")
    assert ran.of("job", "experiment_rows") == {"heads.heads.tuned-0.0"}
    assert figures(again)["upio, tuned english/test", "heads"] < 101

    forge(again)
    narrow = {**again.config["encoders"]["tiny"], "dtype": "bfloat16"}
    again.configure({"encoders": {"tiny": narrow}})
    again.run("experiments")
    assert all(value < 101 for row, value in figures(again).items() if row[1] == "few")

    forge(again)
    changed = again.config["experiments"]
    changed["few"]["runs"][0] |= {"parsers": ["slow"], "label": "fpio"}
    slow = {"slow": {"recipe": "fpio", "learning_rate": 0.5}}
    again.configure({"trained": slow, "experiments": changed})
    assert again.run("experiments").of("job", "experiment_rows") == {"few.trained.tiny.0"}
    assert all(value < 101 for row, value in figures(again).items() if row[1] == "few")


@pytest.mark.full
def test_a_table_that_was_there_outlives_a_job_that_fails(again: Checkout) -> None:
    again.run("tables")
    folder = again.folder / "results/tables"
    before = {path: path.read_bytes() for path in folder.glob("crosslingual.*")}
    assert len(before) == 3
    summary = again.folder / "results/scores/tiny/upio/english/test.json"
    whole = summary.read_bytes()
    summary.write_text("{}", encoding="utf-8")
    ran = again.snakemake("--cores", "2", "tables")
    assert ran.status == 1 and "crosslingual_table" in ran.rules
    assert {path: path.read_bytes() for path in folder.glob("crosslingual.*")} == before
    summary.write_bytes(whole)
    assert "crosslingual_table" in again.run("tables").rules
