"""The experiments: what the shipped configurations plan, and a tiny grid run for real."""

from __future__ import annotations

import csv
import json
import resource
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.workflow import conftest
from tests.workflow.conftest import ROOT, Checkout, make_tiny, recorded, recording
from tests.workflow.test_code_is_an_input import check_covered
from tests.workflow.test_dry_runs import lay_out_ptb, lay_out_spmrl

OUTPUTS = {
    "results/experiments/jobs/": "experiment_rows",
    r"results/experiments/tables/.*\.weights$": "experiment_weights",
    r"results/experiments/tables/.*\.sentence$": "experiment_sentence",
    r"results/experiments/tables/.*\.reliability$": "experiment_reliability",
    r"results/experiments/tables/.*\.png$": "experiment_picture",
    "results/experiments/tables/": "experiment_table",
    "results/experiments/encoders/": "tune_encoder",
    "results/encoders/tuned-0": "tuned_encoder",
}
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
    runs:
      - &run {encoders: [tiny], train: english/dev, test: [english/test], trees: [2, 4]}
  heads:
    title: Heads
    columns: test
    labels: true
    baselines: true
    tables: [crosslingual]
    sentence: 1
    runs:
      - {<<: *run, encoders: [tuned], parsers: [upio], trees: [all], label: "{parser}, tuned",
         timed: true}
      - {<<: *run, parsers: [fpoa], steps: 1, trees: [3]}
  calibration:
    title: Calibration
    columns: trees
    reliability: true
    metrics: [calibration_error]
    runs: [{<<: *run, parsers: [tree-crf], steps: 1, trees: [2], apart: 2, calibrated: true}]
  price:
    title: Price
    columns: trees
    metrics: [brackets]
    picture: true
    price: random
    runs:
      - {<<: *run, parsers: [tree-crf], steps: 1, trees: [3, 4], first: 2,
         draw: [random, diverse], label: "{draw}"}
  weights:
    title: Weights
    columns: trees
    weights: true
    runs: [{<<: *run, parsers: [head-weights], steps: 1}]
"""
OWN = {"languages": ["english"], "train": "{language}/dev", "test": ["{language}/test"]}


def grid(**few: Any) -> dict[str, Any]:
    """Return the experiments, the rows of the first changed."""
    found: dict[str, Any] = yaml.safe_load(GRID)
    own = {"parsers": ["fpio"], "steps": 2, "draws": 2, **OWN}
    found["experiments"]["few"]["runs"] = [{**found["experiments"]["few"]["runs"][0], **own, **few}]
    return found


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> Checkout:
    """A tiny checkout, with its own copy of the code, whose experiments have been run once."""
    folder = tmp_path_factory.mktemp("experiments")
    shutil.copytree(ROOT / "src/attree", folder / "src/attree")
    checkout = Checkout(make_tiny(folder / "checkout", encoder).folder, folder / "src")
    config = grid()
    # a sentence's maps are all of one encoder
    config["experiments"]["heads"]["sentence"] = None
    config["experiments"]["few"]["sentence"] = 1
    checkout.configure(config)
    environment = recording(folder / "imports", checkout.source)
    checkout.run("experiments", **environment)
    return checkout


@pytest.fixture
def again(done: Checkout, tmp_path: Path) -> Checkout:
    """A copy to change and run again."""
    shutil.copytree(done.folder, tmp_path / "again")
    return Checkout(tmp_path / "again", done.source)


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
    assert pictures == [
        *("calibration.reliability", "few", "few.sentence", "price", "weights.weights")
    ]
    for name in pictures:
        assert (folder / f"{name}.csv").is_file()
        assert (folder / f"{name}.parquet").is_file()


@pytest.mark.parametrize("rule", sorted(OUTPUTS.values()))
def test_a_rule_covers_what_its_command_imports(
    rule: str, done: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = {**OUTPUTS, **conftest.RULE_OF_OUTPUT}
    monkeypatch.setattr(conftest, "RULE_OF_OUTPUT", every)
    check_covered(rule, recorded(done.folder.parent / "imports")[rule])


def test_nothing_is_run_twice(again: Checkout) -> None:
    before = records(again)
    ran = again.run("experiments")
    assert {rule for rule, _ in ran.jobs} <= {"experiments"}
    assert records(again) == before


def test_another_row_is_computed_and_no_other(again: Checkout) -> None:
    before = records(again)
    path = again.folder / "config.yaml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config["experiments"]["few"]["runs"][0]["draws"] = 3
    again.configure(config)
    again.run("experiments")
    after = records(again)
    assert {name: after[name] for name in before} == before
    new = [json.loads((again.folder / "results/experiments/records" / name).read_text())
           for name in set(after) - set(before)]  # fmt: skip
    assert {(one["row"]["trees"], one["row"]["seed"]) for one in new} == {(2, 2), (4, 2)}
    assert [row["draws"] for row in read(again, "few")] == ["3", "3"]


def forged(checkout: Checkout) -> None:
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
def test_no_number_outlives_what_made_it(again: Checkout, tmp_path: Path) -> None:
    """Module, dtype and recipe: what ran again, and that forged numbers are gone where it did."""
    source = tmp_path / "src"
    shutil.copytree(again.source, source)
    checkout = Checkout(again.folder, source)
    true = figures(checkout)
    forged(checkout)
    with (source / "attree/encoder/pieces.py").open("a", encoding="utf-8") as handle:
        handle.write("\n_CHANGED = 1\n")
    assert checkout.run("experiments").rules >= {"experiment_rows", "attention_all"}
    assert figures(checkout) == true

    forged(checkout)  # what reads attention depends on what computes it, and nothing else does
    with (source / "attree/association/compute.py").open("a", encoding="utf-8") as handle:
        handle.write("\n_CHANGED = 1\n")
    ran = checkout.run("experiments")
    assert {w["job"] for rule, w in ran.jobs if rule == "experiment_rows"} == {
        "heads.heads.tuned-0.0"
    }
    assert figures(checkout)["upio, tuned english/test", "heads"] < 101

    forged(checkout)
    checkout.configure({"encoders": {"tiny": {**config(checkout)["encoders"]["tiny"],
                                              "dtype": "bfloat16"}}})  # fmt: skip
    checkout.run("experiments")
    few = {place: value for place, value in figures(checkout).items() if place[1] == "few"}
    assert all(value < 101 for value in few.values())

    forged(checkout)
    changed = config(checkout)["experiments"]
    changed["few"]["runs"][0] |= {"parsers": ["slow"], "label": "fpio"}
    slow = {"slow": {"recipe": "fpio", "learning_rate": 0.5}}
    checkout.configure({"trained": slow, "experiments": changed})
    ran = checkout.run("experiments")
    jobs = {w["job"] for rule, w in ran.jobs if rule == "experiment_rows"}
    assert jobs == {"few.trained.tiny.0"}
    assert all(v < 101 for place, v in figures(checkout).items() if place[1] == "few")


def config(checkout: Checkout) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((checkout.folder / "config.yaml").read_text())
    return found


def used() -> float:
    """Return the seconds that processes waited for have computed: other work does not count."""
    of = resource.getrusage(resource.RUSAGE_CHILDREN)
    return of.ru_utime + of.ru_stime


def test_a_mistake_is_one_line(tmp_path: Path) -> None:
    checkout = make_tiny(tmp_path / "small", tmp_path / "encoder")
    checkout.configure(grid(train="english/train"))
    assert "asks for the unknown set english/train" in checkout.refused()
    checkout.configure(grid(parsers=["fpii"]))
    assert "unknown parser fpii" in checkout.refused()


def test_the_paper_is_planned_in_under_ten_seconds(checkout: Checkout, tmp_path: Path) -> None:
    ptb, spmrl = lay_out_ptb(tmp_path / "ptb"), lay_out_spmrl(tmp_path / "spmrl")
    homes = {"PTB_HOME": str(ptb), "SPMRL_HOME": str(spmrl)}
    began = used()
    paper = ("--configfile", "workflow/configs/paper.yaml")
    ran = checkout.plan("--quiet", "host", *paper, "--", "experiments", **homes)
    assert used() - began < 10
    jobs = Counter(rule for rule, _ in ran.jobs)
    assert sum(jobs.values()) < 5000
    assert jobs["tune_encoder"] == 5
    config = yaml.safe_load((checkout.folder / "workflow/configs/paper.yaml").read_text())
    assert jobs["experiment_table"] == len(config["experiments"])
    assert jobs["experiment_sentence"] == jobs["experiment_weights"] == 1


def test_open_is_planned(checkout: Checkout, data: Path) -> None:
    overlay = ("--configfile", "workflow/configs/open.yaml")
    ran = checkout.plan(*overlay, "--", "experiments", ATTREE_TREEBANKS=str(data))
    jobs = Counter(rule for rule, _ in ran.jobs)
    assert jobs["experiment_table"] == 15
    assert sum(jobs.values()) < 500


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
