"""Small runs for real, and what is run again when something has changed."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from attree.base.reading import read_json
from tests.bulk.conftest import wait_until
from tests.workflow.conftest import TREES, Checkout, add, put

SCORE = "results/scores/tiny/{parser}/{language}/test.json"


def shards(checkout: Checkout) -> dict[str, int]:
    """Return every shard of attention and when it was written."""
    folder = checkout.folder / "results/attention"
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path} has no {old!r}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def columns(path: Path, key: str) -> dict[str, dict[str, str]]:
    """Return the rows of a table, by a column of it."""
    with path.open(encoding="utf-8", newline="") as file:
        return {row[key]: row for row in csv.DictReader(file)}


def test_every_file_is_there(finished: Checkout) -> None:
    results = finished.folder / "results"
    for name in ("crosslingual", "sizes", "languages/english", "languages/other"):
        for extension in ("csv", "md", "parquet"):
            assert (results / f"tables/{name}.{extension}").is_file()
    for parser in ("upoa", "upio"):
        assert (results / f"figures/heads/tiny/{parser}/english/dev.png").stat().st_size > 1000
        assert len(read_json(results / f"heads/tiny/{parser}/english/dev.json")["heads"]) == 2
    folders = "treebanks encoders attention heads parses scores tables figures report"
    folders += " corpus fewshot grammars comparisons logs benchmarks"
    assert {path.name for path in results.iterdir()} == set(folders.split())
    corpus = read_json(results / "corpus/news/summary.json")
    assert corpus["complete"] and corpus["lines"] == 3  # a row for every line
    assert not re.search("Traceback|error", finished.logs(), re.IGNORECASE)


def test_waiting_jobs_are_looked_at_only_when_a_job_has_ended(tiny: Checkout) -> None:
    tables = [f"results/treebanks/{name}/test.parquet" for name in ("english", "other")]
    ran = tiny.snakemake("--cores", "1", "--verbose", "results/encoders/tiny.json", *tables)
    assert ran.status == 0, ran.text
    assert ran.text.count("Resources before job selection") == 3


def test_the_same_trees_get_the_same_scores_in_both_languages(finished: Checkout) -> None:
    for parser in ("upoa", "upio"):
        english, other = (
            read_json(finished.folder / SCORE.format(parser=parser, language=language))
            for language in ("english", "other")
        )
        assert 0 < english["corpus_f1"] <= 100
        assert english["corpus_f1"] == other["corpus_f1"]
        assert other["protocol"]["sentences"]["total"] == 6


def test_published_figures_stand_beside_the_computed_ones(finished: Checkout) -> None:
    tables = finished.folder / "results/tables"
    crosslingual = (tables / "crosslingual.md").read_text(encoding="utf-8")
    assert "| upoa | upoa (article) | upio |" in crosslingual
    assert "12.34" in crosslingual
    assert "| gold |" in (tables / "rivals.md").read_text(encoding="utf-8")
    rivals = columns(tables / "rivals.csv", "parser")
    assert rivals["gold"]["encoder"] == "imported" and float(rivals["gold"]["corpus_f1"]) == 100
    assert rivals["voted"]["encoder"] == "tiny"
    assert "5,678" in (tables / "sizes.md").read_text(encoding="utf-8")


@pytest.mark.full
def test_every_system_stands_side_by_side(finished: Checkout) -> None:
    folder = finished.folder / "results/comparisons"
    rows = columns(folder / "sides.csv", "system")
    kinds = {name: row["kind"] for name, row in rows.items() if row["encoder"] != "none"}
    computed = dict.fromkeys(("upoa", "voted", "span-parser"), "computed")
    assert kinds == {**computed, "gold": "imported", "others": "published"}
    assert float(rows["gold"]["corpus_f1"]) == 100 and rows["gold"]["sentences_a_second"] == ""
    assert float(rows["span-parser"]["sentences_a_second"]) > 0
    assert rows["span-parser"]["tuned_on"] == "english dev (3 trees, seed 0)"
    assert rows["upoa"]["published_corpus_f1"] == rows["others"]["corpus_f1"] == "12.34"
    assert (folder / "sides.pairs.csv").read_text().count("corpus_f1,") == 7 * 6 // 2
    text = (folder / "sides.md").read_text(encoding="utf-8")
    assert "Comparison: other, test" in text and "voted does not beat" in text


@pytest.mark.full
def test_a_grammar_stands_beside_with_a_row_for_each_seed(finished: Checkout) -> None:
    folder = finished.folder / "results/comparisons"
    rows = columns(folder / "learnt.csv", "system")
    for seed in (0, 1):
        row = rows[f"toy-{seed}"]
        assert row["encoder"] == "grammar" and row["kind"].startswith("computed")
        assert row["tuned_on"] == f"words of other test (no trees, seed {seed})"
        assert row["published_corpus_f1"] == "12.34"
        assert float(row["corpus_f1"]) > 0
    assert rows["blended"]["kind"] == "computed"
    assert "toy: mean of 2 seeds" in (folder / "learnt.md").read_text(encoding="utf-8")


def test_a_corpus_is_parsed_by_a_trained_parser(rerun: Checkout) -> None:
    (trained,) = (rerun.folder / "results/fewshot").rglob("parser.json")
    shutil.copytree(trained.parent, rerun.folder / "mine/crf")
    corpus = {"inputs": ["news.txt"], "encoder": "tiny", "parser": "mine/crf"}
    rerun.configure({"corpora": {"by-mine": corpus}})
    assert rerun.run("corpus").rules == {"parse_corpus", "corpus"}
    summary = read_json(rerun.folder / "results/corpus/by-mine/summary.json")
    assert summary["complete"] and summary["lines"] == 3
    trained = read_json(rerun.folder / "results/corpus/by-mine/manifest.json")
    assert "trained" in json.dumps(trained)
    assert rerun.run("corpus").rules == set()


def test_what_changes_no_result_runs_nothing_again(rerun: Checkout) -> None:
    """Times of treebanks, and remarks in the code."""
    for path in (rerun.folder / "treebanks").rglob("*.mrg"):
        os.utime(path)
    for path in rerun.source.rglob("*.py"):
        add(path, "# a remark")
    assert rerun.plan().jobs == []


def test_a_changed_parser_ranks_its_own_heads_and_encodes_no_tuning_set(rerun: Checkout) -> None:
    change(rerun.folder / "config.yaml", "decoder: chart", "decoder: greedy")
    ran = rerun.plan()
    assert ran.of("parser", "heads") == {"upio"}
    assert not ran.rules & {"treebank", "encoder", "attention_all", "baselines"}


def test_changed_settings_run_what_takes_them(rerun: Checkout) -> None:
    """Those too that stand beside a job's input in the options of its command."""
    assert not rerun.plan("all", "comparison").rules & {"train", "speeds", "crosslingual_table"}
    change(rerun.folder / "config.yaml", "trees: 3", "trees: 2")
    ran = rerun.plan("all", "comparison")
    assert {"train", "trained_parses", "comparison_table"} <= ran.rules
    assert not {"heads", "parse", "crosslingual_table"} & ran.rules


def test_a_file_that_an_older_one_has_replaced_is_read_again(rerun: Checkout) -> None:
    """Such as one unpacked or moved, whose time is before that of the results."""
    for name in ("treebanks/english/test.mrg", "published.csv", "news.txt"):
        add(rerun.folder / name, "")
        os.utime(rerun.folder / name, (0, 0))
    ran = rerun.plan("all", "corpus", "comparison")
    assert ran.of("language", "treebank") == {"english"}
    assert ran.rules >= {"parse_corpus", "crosslingual_table", "sizes_table", "comparison_table"}
    assert not ran.rules & {"encoder", "attention_all", "imported_parses"}


@pytest.mark.parametrize("run", [False, pytest.param(True, marks=pytest.mark.full)])
def test_changed_code_runs_what_it_decides(rerun: Checkout, run: bool) -> None:
    """What decodes changes; no encoder runs again, and no shard is written again."""
    add(rerun.source / "attree/scoring/prefix.py", "_CHANGED = 1")
    before = shards(rerun)
    ran = rerun.run() if run else rerun.plan()
    assert ran.rules >= {"heads", "parse", "score"}
    assert not ran.rules & {"attention_all", "treebank"}
    assert shards(rerun) == before


@pytest.mark.parametrize("run", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_changed_scorer_parses_a_corpus_anew_in_its_own_folder(
    rerun: Checkout, run: bool
) -> None:
    manifest = rerun.folder / "results/corpus/news/manifest.json"
    before = read_json(manifest)
    add(rerun.source / "attree/training/objectives.py", "_CHANGED = 1")
    assert rerun.plan("corpus").jobs == []
    add(rerun.source / "attree/scoring/prefix.py", "_CHANGED = 1")
    assert "parse_corpus" in (rerun.run if run else rerun.plan)("corpus").rules
    if not run:
        return
    after = read_json(manifest)
    assert after["settings"]["code"] != before["settings"]["code"]
    assert after["shards"] == before["shards"]
    assert read_json(rerun.folder / "results/corpus/news/summary.json")["complete"]
    assert "starting again" in (rerun.folder / "results/logs/corpus/news.log").read_text()


@pytest.mark.parametrize("run", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_changed_treebank_runs_its_own_language_again_though_another_is_broken(
    rerun: Checkout, run: bool
) -> None:
    broken = rerun.folder / "treebanks/other/test.mrg"
    broken.write_text(TREES, encoding="utf-16")
    change(rerun.folder / "treebanks/english/test.mrg", "(NN home)", "(NN house)")
    before = shards(rerun)
    ran = rerun.snakemake("--cores", "2", "--keep-going")
    assert ran.status == 1
    again = {rule for rule, w in ran.jobs if w.get("language") == "english"}
    assert again == {
        *("treebank", "attention_selected", "parse", "score", "baselines"),
        *("averaged_parses", "language_table"),
    }
    assert {rule for rule, w in ran.jobs if w.get("language") == "other"} == {"treebank"}
    changed = before.items() - shards(rerun).items()
    assert changed and all("english/test" in path for path, _ in changed)
    log = (rerun.folder / "results/logs/treebanks/other/test.log").read_text(encoding="utf-8")
    said = "treebanks/other/test.mrg: this file is UTF-16"
    assert log.startswith(f"attree: error: {said}")
    left = rerun.folder / "results/report/unfinished.html"
    assert f"<b>treebanks other/test</b> failed: {said}" in left.read_text(encoding="utf-8")
    assert "what there is: results/report/unfinished.html" in ran.text
    put(broken)
    ran = rerun.run() if run else rerun.plan()
    assert ran.rules >= {"imported_parses", "sizes_table", "crosslingual_table", "page", "all"}
    assert ran.of("language") == {"other"}
    assert run is not left.exists()


def test_the_page_knows_the_configuration_and_the_article(finished: Checkout) -> None:
    page = (finished.folder / "results/report/index.html").read_text(encoding="utf-8")
    assert "upoa (outside association; greedy decoding)" in page
    assert ">upoa (article)<" in page and "12.34" in page
    assert "score: inside_outside" in page and "partition_size: 3" in page
    assert "Not everything is here" not in page


def test_report(rerun: Checkout) -> None:
    rerun.snakemake("--report", "report.html")
    page = (rerun.folder / "report.html").read_text(encoding="utf-8")
    for said in ("crosslingual", "english", "Heads", "best:2", "inside_outside"):
        assert said in page, said


@pytest.mark.full
def test_a_browser_shows_the_report_s_tables_and_figures(
    finished: Checkout, browser: Any, tmp_path: Path
) -> None:
    ran = finished.snakemake("all", "--report", str(tmp_path / "report.html"))
    assert ran.status == 0, ran.text
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    page.wait_for_selector("text=Heads are ranked on")
    text = page.inner_text("body").lower()  # headings stand in capitals
    for said in ("results", "tables", "figures", "workflow", "upio"):
        assert said in text


@pytest.mark.full
def test_a_killed_snakemake_leaves_nothing_running_and_the_next_run_completes(
    tiny: Checkout,
) -> None:
    run = tiny.start("--cores", "2")
    done = tiny.folder / "results/treebanks/other/test.parquet"
    wait_until(done.is_file)
    working = tiny.is_working()
    run.kill()
    run.wait()
    assert working
    wait_until(lambda: not tiny.is_working())
    tiny.snakemake("--unlock")
    tiny.run("--rerun-incomplete")
    assert tiny.plan().jobs == []
