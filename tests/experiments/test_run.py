"""Rows run for real on a tiny encoder; finished ones are not run again."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from attree.association.ranking import Recipe, rank
from attree.association.sources import load_source
from attree.base.provenance import digest
from attree.base.schemas import SENTENCES_SCHEMA, read_table, write_table
from attree.cli.main import app
from attree.encoder.load import Encoder
from attree.experiments import heads, trained
from attree.experiments.data import SentenceSet, drawn, set_apart
from attree.experiments.job import run_job
from attree.experiments.pictures import write_sentence
from attree.experiments.tables import cells, tables
from attree.plan.rows import ExperimentRow
from attree.training.fit import THRESHOLDS, fit
from attree.training.gold import read_trees
from attree.training.parser import save_parser
from attree.training.recipes import WEIGHTS, TrainingPlan, recipe
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


def test_a_set_of_other_words_or_tags_is_another(tmp_path: Path) -> None:
    """Punctuation and escapes among them, which the encoder reads."""
    whole, about = read_table(table(tmp_path / "dev.parquet", 3, 0), schema=SENTENCES_SCHEMA)
    sets = [whole]
    for column, item in (("words", "-LRB-"), ("words", "("), ("tags", "X"), ("file", "f")):
        changed = [[item, *row[1:]] for row in whole[column].to_pylist()]
        values = [item] * len(whole) if column == "file" else changed
        place, field = whole.schema.names.index(column), SENTENCES_SCHEMA.field(column)
        sets.append(whole.set_column(place, field, pa.array(values, field.type)))
    for number, rows in enumerate(sets):
        file = tmp_path / f"{number}.parquet"
        write_table(file, rows, schema=SENTENCES_SCHEMA, metadata=about)
    hashes = [SentenceSet.read("toy/dev", tmp_path / f"{n}.parquet").hash for n in range(5)]
    assert len(set(hashes)) == 4 and hashes[0] == hashes[4], "a file of another name is the same"


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


def test_heads_are_ranked_on_the_set_that_a_row_names(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where another row draws sentences of the same numbers from another set."""
    monkeypatch.setattr(heads, "drawn", lambda row, sentences: [2, 5, 9, 11])
    whole = row(kind="heads", parser="upio", settings=UPIO, trees="all")
    both = run(whole, replace(whole, train="toy/test", test="toy/dev"))
    for path in run.records.iterdir():
        path.unlink()
    (alone,) = run(replace(whole, train="toy/test", test="toy/dev"))
    assert both[1]["heads"] == alone["heads"] != both[0]["heads"]


def test_the_picture_of_a_sentence_shows_means_of_heads_and_a_trained_association(
    folder: Path, encoder: Encoder, tmp_path: Path
) -> None:
    rows = row(kind="heads", parser="upio", settings={**UPIO, "heads": "list:0.1,2.3"}), row()
    sets = {name: folder / f"treebanks/{name}.parquet" for name in SETS[:2]}
    manifests = {name: folder / f"attention/{name}.json" for name in SETS[:2]}
    files = {"sets": sets, "manifests": manifests, "records": tmp_path / "records"}
    write_sentence(rows, number=2, encoder=encoder, prefix=f"{tmp_path}/drawn", **files)
    (words,) = SentenceSet.read("toy/test", sets["toy/test"]).words[1:2]
    drawn = read_table(tmp_path / "drawn.parquet")[0].to_pylist()
    maps = {one["map"]: np.zeros((len(words), len(words))) for one in drawn}
    for one in drawn:
        maps[one["map"]][one["from"], one["to"]] = one["value"]
    random, heads, trained_one = maps
    assert random.startswith("random head ") and trained_one == "fpio, 5 trees"
    assert heads == "upio, 0.1+2.3"
    pieces, two = encoder.tokenise([words]), [(0, 1), (2, 3)]
    mean = load_source("heads").matrices(encoder, pieces, two)[0].mean(0).cpu().numpy()
    assert np.array_equal(maps[heads], mean)
    assert np.isfinite(maps[trained_one]).all() and maps[trained_one].any()


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


def test_a_row_starts_from_a_parser_in_a_folder(
    folder: Path, encoder: Encoder, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn_trees = read_trees(dev(folder).table, drawn(row(trees=4), dev(folder)))
    first = fit(encoder, drawn_trees, TrainingPlan(recipe("fpio"), (1,), steps=3))
    start = tmp_path / "first"
    save_parser(first, start)
    fits = spy(monkeypatch)
    here = {"settings": {**FPIO, "start": str(start)}, "train": "other/dev"}
    apart, alike = run(row(**here), row(**here, test="toy/dev"))
    given = fits[-1][2]["first"].scorer.state_dict()
    weights = first.scorer.state_dict()
    assert all(torch.equal(given[name], one) for name, one in weights.items())
    assert (apart["overlap"], alike["overlap"]) == (0, 4), "it was trained on four trees of toy/dev"
    before = len(fits)
    (start / WEIGHTS).write_bytes((start / WEIGHTS).read_bytes() + b" ")
    with refused("damaged-weights", file="weights.safetensors"):
        run(row(**here))
    assert len(fits) == before


def test_the_encoder_runs_once_over_a_small_set(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    once = trained.features_of

    def counted(encoder: Any, sentences: Any, layout: Any, **how: Any) -> Any:
        ran.append(len(sentences))
        return once(encoder, sentences, layout, **how)

    monkeypatch.setattr(trained, "features_of", counted)
    first = run(*(row(seed=seed) for seed in range(3)))
    assert ran == [30]
    monkeypatch.setattr(trained, "_SMALL", 0)
    again = run(*(row(seed=seed, trees=6) for seed in range(3)))
    assert ran == [30, 0, 6, 6, 6]
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
