"""Rows run for real on a tiny encoder; finished ones are not run again."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attree.association.ranking import Recipe, rank
from attree.base.provenance import digest
from attree.cli.main import app
from attree.experiments import trained
from attree.experiments.data import SentenceSet, drawn, set_apart
from attree.experiments.job import run_job
from attree.experiments.pictures import write_reliability
from attree.experiments.tables import cells, tables
from attree.plan.rows import ExperimentRow
from attree.training.calibration import TEMPERATURES
from attree.training.fit import THRESHOLDS
from attree.training.recipes import WEIGHTS
from tests.command_line import CliRunner
from tests.experiments.conftest import table
from tests.refusals import refused

FPIO = {"recipe": "fpio", "steps": 3}
SETS = ("toy/dev", "toy/test", "other/dev")
UPIO = {"association": "raw", "score": "inside_outside", "decoder": "chart", "heads": "best:2"}


def row(**changes: Any) -> ExperimentRow:
    """A row of few-shot parsing of the toy sets."""
    given = {"trees": 5, "seed": 0, "train": "toy/dev", "test": "toy/test", "settings": FPIO}
    return ExperimentRow(
        **{"kind": "trained", "encoder": "bert", "parser": "fpio", **given, **changes}
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, resolved: Path) -> Path:
    """Toy sets and the attention of every head over them, as the workflow lays them out."""
    folder = tmp_path_factory.mktemp("results")
    table(folder / "treebanks/other/dev.parquet", 20, 2)
    for split, seed in (("dev", 0), ("test", 1)):
        table(folder / f"treebanks/toy/{split}.parquet", 30, seed)
        arguments = ["--encoder", str(resolved), "--heads", "all", "--workers", "1"]
        output = folder / f"attention/toy/{split}.json"
        source = folder / f"treebanks/toy/{split}.parquet"
        done = CliRunner().invoke(
            app, ["attention", str(source), *arguments, "--output", str(output)]
        )
        assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def run(folder: Path, resolved: Path, tmp_path: Path) -> Any:
    """Run rows as one job; return the records, in the order of the rows."""

    def run(*rows: ExperimentRow) -> list[dict[str, Any]]:
        sets = {name: folder / f"treebanks/{name}.parquet" for name in SETS}
        manifests = {name: folder / f"attention/{name}.json" for name in SETS[:2]}
        output = tmp_path / "job.json"
        run_job(
            rows,
            encoder=resolved,
            sets=sets,
            manifests=manifests,
            records=tmp_path / "records",
            output=output,
            device="cpu",
        )
        listed = json.loads(output.read_text())["rows"]
        assert [one["row"] for one in listed] == [digest(asdict(one)) for one in rows]
        paths = [tmp_path / "records" / f"{one['record']}.json" for one in listed]
        return [json.loads(path.read_text()) for path in paths]

    run.records = tmp_path / "records"  # type: ignore[attr-defined]
    return run


def dev(folder: Path) -> SentenceSet:
    return SentenceSet.read("toy/dev", folder / "treebanks/toy/dev.parquet")


def test_draws_are_nested_and_never_hold_the_trees_set_apart(folder: Path) -> None:
    small, large = row(apart=4), row(apart=4, trees=9)
    assert drawn(large, dev(folder))[:5] == drawn(small, dev(folder))
    apart = set_apart(small, dev(folder))
    assert apart == set_apart(replace(small, seed=3), dev(folder))
    assert drawn(row(apart=4, trees="apart"), dev(folder)) == apart
    assert not set(apart) & set(drawn(row(apart=4, trees="all"), dev(folder)))


def test_more_trees_than_there_are_is_all_of_them_and_said(folder: Path, run: Any) -> None:
    lengths = [len(words) for words in dev(folder).words]
    (record,) = run(row(trees=1000))
    assert record["used"] == sum(length > 2 for length in lengths)


def test_a_row_of_heads_is_the_selection_of_attree_heads(folder: Path, run: Any) -> None:
    whole = row(kind="heads", parser="upio", settings=UPIO, trees="all")
    (record,) = run(whole)
    sentences = dev(folder)
    numbers = sentences.gold.sentence[sentences.gold.n_words > 2]
    manifest = folder / "attention/toy/dev.json"
    recipe = Recipe("raw", "inside_outside", "chart")
    ranking = rank(manifest, sentences.gold, recipe, only=numbers)
    best = sorted(range(len(ranking.heads)), key=lambda head: -ranking.f1.corpus_f1[head])[:2]
    assert sorted(map(tuple, record["heads"])) == sorted(ranking.heads[head] for head in best)
    assert 0 < record["corpus_f1"] < 100


def test_a_timed_row_has_a_speed_and_a_short_one_fewer_sentences(run: Any) -> None:
    heads = row(kind="heads", parser="upio", settings=UPIO)
    timed, short = run(replace(heads, timed=True), replace(heads, max_words=5))
    assert timed["sentences_a_second"] > 0
    assert 0 < short["sentences"] < timed["sentences"]


def test_one_training_serves_several_decoders(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fits = spy(monkeypatch)
    normalised, greedy = run(row(), row(settings={**FPIO, "decoder": "greedy"}))
    assert len(fits) == 1
    assert normalised["loss"] == greedy["loss"]


def test_unlikely_spans_are_dropped_by_a_threshold_chosen_on_trees_not_drawn(
    folder: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = spy(monkeypatch)
    crf = {"recipe": "tree-crf", "steps": 3}
    settings = [crf, *({**crf, "threshold": threshold} for threshold in (0, 0.6, "chosen"))]
    binary, none, some, chosen = run(*(row(settings=one, apart=4) for one in settings))
    assert len(fits) == 1
    assert none["corpus_f1"] == binary["corpus_f1"] and none["threshold"] == 0
    assert some["precision"] > binary["precision"] and some["recall"] < binary["recall"]
    assert chosen["threshold"] in THRESHOLDS
    lengths = np.array([len(words) for words in dev(folder).words])
    assert chosen["threshold_trees"] == (lengths > 2).sum() - 5 - 4
    with refused("no-trees", "toy/dev"):
        run(row(settings=settings[-1], trees="all"))


def test_finished_rows_are_not_run_again(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fits = spy(monkeypatch)
    first = run(row(), row(seed=1))
    assert len(fits) == 2
    again = run(row(), row(seed=1), row(seed=2))
    assert len(fits) == 3
    assert again[:2] == first


def test_layer_and_dropout_are_chosen_once_for_all_draws(run: Any) -> None:
    tuned = row(apart=4, layer="tuned", candidates=("0", "2"), dropouts=(0.2, 0.4))
    found = run(tuned, replace(tuned, seed=1))
    assert found[0]["layers"] == found[1]["layers"]
    assert found[0]["layers"][0] in (0, 2)
    assert found[0]["dropout"] == found[1]["dropout"]
    assert found[0]["dropout"] in (0.2, 0.4)


def test_training_on_the_test_set_is_refused(run: Any) -> None:
    with refused("overlap"):
        run(row(train="toy/test"))
    with refused("overlap", "toy/test"):
        run(row(beside=beside("batches", train="toy/test")))


def beside(how: str, **changes: Any) -> dict[str, Any]:
    given = {"train": "other/dev", "trees": 4, "how": how, "shares": [0.3], "steps": None}
    return {**given, **changes}


def test_a_row_is_trained_on_its_own_trees_and_those_beside(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = spy(monkeypatch)
    alone, both = run(row(apart=3), row(apart=3, beside=beside("batches")))
    assert (alone["beside"], both["beside"], both["used"]) == (None, 4, 5)
    assert (alone["share"], both["share"]) == (None, 0.3)
    assert both["loss"] != alone["loss"]
    (_, own, _), (_, trees, _) = fits
    assert trees.words[:5] == own.words and trees.sources == (5, 4)
    assert all(tree.labels for tree in trees.gold[:5])
    assert not any(tree.labels or tree.tags for tree in trees.gold[5:])
    shorter = [{"steps": 2, "recipe": "fpio"}, FPIO]
    run(*(row(settings=one, beside=beside("batches")) for one in shorter))
    assert fits[-1][1].words[5:] == trees.words[5:]


def test_a_row_starts_from_the_parser_of_the_set_beside(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = spy(monkeypatch)
    english = row(train="other/dev", trees=4)
    alone, alike, both, more = run(
        row(), english, row(beside=beside("start")), row(trees=8, beside=beside("start"))
    )
    assert len(fits) == 4, "the parser of the set beside is trained for all rows that start from it"
    source = next(parser for parser, trees, _ in fits if len(trees.words) == 4)
    for _, _, others in fits[2:]:
        given = others["first"].scorer.state_dict()
        assert all(torch.equal(given[name], one) for name, one in source.items())
    assert len(list((tmp_path / "records/parsers").iterdir())) == 1
    assert (both["beside"], more["beside"], alone["beside"]) == (4, 4, None)
    assert both["loss"]["first"] != alone["loss"]["first"]
    assert alike["used"] == 4


def test_a_row_starts_from_a_parser_in_a_folder(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = spy(monkeypatch)
    run(row(train="other/dev", beside=beside("start", train="toy/dev")))
    folder = next((tmp_path / "records/parsers").iterdir())
    here = {"settings": {**FPIO, "start": str(folder)}, "train": "other/dev"}
    apart, alike = run(row(**here), row(**here, test="toy/dev"))
    given = fits[-1][2]["first"].scorer.state_dict()
    assert all(torch.equal(given[name], one) for name, one in fits[0][0].items())
    assert (apart["overlap"], alike["overlap"]) == (0, 4), "it was trained on four trees of toy/dev"
    before = len(fits)
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes() + b" ")
    with refused("damaged-weights", file="weights.safetensors"):
        run(row(**here))
    assert len(fits) == before


def test_the_share_is_chosen_once_on_the_trees_set_apart(folder: Path, run: Any) -> None:
    asked = row(apart=4, beside=beside("batches", shares=[0.2, 0.8]))
    found = run(asked, replace(asked, seed=1))
    assert found[0]["share"] == found[1]["share"]
    (choice,) = (folder for folder in run.records.glob("choice-*.json"))
    tried = json.loads(choice.read_text())
    assert [one["shares"] for one in tried["tried"]] == [[0.2, 0.8], [0.8, 1.0 - 0.8]]
    numbers = dev(folder).table["sentence"].to_numpy()
    assert tried["trees"] == numbers[set_apart(asked, dev(folder))].tolist()
    f1 = [one["f1"] for one in tried["tried"]]
    assert found[0]["share"] == (0.2 if f1[0] >= f1[1] else 0.8)


def test_probabilities_are_calibrated_on_the_trees_set_apart(run: Any, tmp_path: Path) -> None:
    crf = {"recipe": "tree-crf", "steps": 20}
    asked = row(settings=crf, apart=6, calibrated=True)
    plain, one, other = run(replace(asked, calibrated=False), asked, replace(asked, seed=1))
    assert plain["loss"] == one["loss"] and "temperature" not in plain
    assert one["temperature"] in TEMPERATURES and one["temperature_trees"] == 6
    for record, bins in ((one, "bins"), (one, "bins_scaled"), (other, "bins")):
        spans = sum(each["spans"] for each in record[bins])
        off = sum(each["spans"] * abs(each["likely"] - each["right"]) for each in record[bins])
        name = bins.replace("bins", "calibration_error")
        assert record[name] == pytest.approx(100 * off / spans)
    places = [[digest(asdict(each)), "ours", "5", ""] for each in (asked, replace(asked, seed=1))]
    layout = {"title": "T", "axis": "trees", "metrics": ["calibration_error", "temperature"],
              "labels": False, "places": places, "published": {}}  # fmt: skip
    job, prefix = tmp_path / "job.json", str(tmp_path / "drawn")
    first, second = tables(cells([job], tmp_path / "records", layout, None), layout)
    assert first.title == "T: calibration error" and "±" in first.rows[0][1]
    assert second.rows[0][0] == "ours"
    drawn = write_reliability([job], tmp_path / "records", layout, prefix)
    spans = sum(each["spans"] for record in (one, other) for each in record["bins"])
    assert sum(each["spans"] for each in drawn if each["kind"] == "as trained") == spans
    assert all((tmp_path / f"drawn.{kind}").is_file() for kind in ("png", "csv", "parquet"))
    for wrong in (replace(asked, apart=0), replace(asked, settings=FPIO)):
        with refused("not-calibrated"):
            run(wrong)


def test_the_encoder_runs_once_over_a_small_set(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    once = trained.features_of

    def counted(encoder: Any, sentences: Any, layout: Any, **how: Any) -> Any:
        ran.append(len(sentences))
        return once(encoder, sentences, layout, **how)

    monkeypatch.setattr(trained, "features_of", counted)
    first = run(*(row(seed=seed, beside=beside("batches")) for seed in range(3)))
    assert ran == [30, 20]
    monkeypatch.setattr(trained, "_SMALL", 0)
    again = run(*(row(seed=seed, trees=6, beside=beside("batches")) for seed in range(3)))
    assert ran == [30, 20, 0, 0, 10, 10, 10]
    assert all(one["used"] == 6 for one in again) and all(one["used"] == 5 for one in first)


def spy(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any, dict[str, Any]]]:
    """Return a list of the trainings: weights, trees, and what else was given."""
    fits: list[tuple[Any, Any, dict[str, Any]]] = []
    fit = trained.fit_in_rounds

    def seen(encoder: Any, trees: Any, plan: Any, raw: Any, **others: Any) -> Any:
        parser = fit(encoder, trees, plan, raw, **others)
        weights = {key: one.clone() for key, one in parser.scorer.state_dict().items()}
        fits.append((weights, trees, others))
        return parser

    monkeypatch.setattr(trained, "fit_in_rounds", seen)
    return fits


def test_labels_are_read_from_the_layers_that_a_row_names(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled = {"recipe": "tree-crf-labelled", "steps": 1}
    fits = spy(monkeypatch)
    run(*(row(settings={**labelled, "label_layers": layers}) for layers in ([0], [0, 1])))
    (one, *_), (two, *_) = fits
    for part in ("labels", "tags"):
        weights = f"parts.{part}.weights"
        assert two[weights].shape[1] == 2 * one[weights].shape[1]
    with refused("no-such-layer"):
        run(row(settings={**labelled, "label_layers": [9]}))


def test_weights_over_heads_are_kept_by_layer_and_head(run: Any) -> None:
    (record,) = run(row(parser="head-weights", settings={"recipe": "head-weights", "steps": 2}))
    assert np.shape(record["weights"]) == (2, 3, 4)


def test_the_table_says_mean_deviation_and_maximum(run: Any, tmp_path: Path) -> None:
    rows = [row(), row(seed=1), row(trees=1000)]
    records = run(*rows)
    places = [[digest(asdict(one)), "fpio", str(one.trees), ""] for one in rows]
    layout = {
        "title": "T", "axis": "trees", "metrics": ["corpus_f1"], "labels": True,
        "places": places, "published": {"*": "few"},
    }  # fmt: skip
    article = tmp_path / "article.csv"
    article.write_text(
        "table,row,language,metric,value,source\nfew,fss,toy,corpus_f1_max@5,61.2,x\n"
    )
    found = cells([tmp_path / "job.json"], tmp_path / "records", layout, article)
    values = [record["corpus_f1"] for record in records[:2]]
    flat = found[0].flat()
    assert flat["corpus_f1"] == pytest.approx(np.mean(values))
    assert flat["corpus_f1_std"] == pytest.approx(np.std(values, ddof=1))
    assert flat["corpus_f1_max"] == max(values)
    lines = tables(found, layout)[0].markdown()
    assert f"[{records[2]['used']} trees]" in lines
    assert "| fss (article) | (61.20) | – |" in lines
