"""Parsing a treebank with a trained parser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attree.base.schemas import (
    ASSOCIATIONS_SCHEMA,
    PARSES_SCHEMA,
    SENTENCES_SCHEMA,
    WORDS_SHOWN,
    read_table,
    write_table,
)
from attree.cli.main import app
from attree.parsers.parser import Parser
from attree.stages.from_parser import write_parses
from attree.training.fit import fit
from attree.training.gold import read_trees
from attree.training.parser import TrainedModel, TrainedParser, save_parser
from attree.training.parts import BatchSource
from attree.training.recipes import RECIPES, TrainingPlan
from attree.trees.parses import Parses
from tests.command_line import CliRunner
from tests.refusals import refused
from tests.training.conftest import table


@pytest.fixture(scope="module")
def parser(encoder, treebank: Path) -> TrainedParser:
    rows, _ = read_table(treebank)
    trees = read_trees(rows, range(3, 13))
    return fit(encoder, trees, TrainingPlan(RECIPES["tree-crf-full"], layers=(1, 2), steps=20))


@pytest.fixture
def model(parser: TrainedParser, encoder) -> TrainedModel:
    return TrainedModel(parser, encoder)


@pytest.fixture(scope="module")
def test_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return table(tmp_path_factory.mktemp("toy") / "test.parquet", 30, 77)


def test_every_sentence_has_the_tree_of_the_batched_decoder(
    model, parser, encoder, test_set, tmp_path
):
    parses = write_parses(model, test_set, tmp_path / "p.parquet")
    read, metadata = read_table(tmp_path / "p.parquet", schema=PARSES_SCHEMA)
    assert read.equals(parses.replace_schema_metadata(read.schema.metadata))
    assert metadata["selection"] == "(10 trees, seed 0)"
    words = read_table(test_set)[0].column("words").to_pylist()
    trees = parser.decode(BatchSource.of(encoder, words, parser.scorer))
    assert Parses.of_table(parses).trees == trees
    assert [len(s) for s in parses["starts"].to_pylist()] == [max(len(w) - 1, 0) for w in words]


def test_a_threshold_leaves_fewer_spans_and_the_whole_sentence(
    model, parser, encoder, test_set, tmp_path
):
    binary = write_parses(model, test_set, tmp_path / "a.parquet").to_pylist()
    pruned = write_parses(
        TrainedModel(parser, encoder, 0.5), test_set, tmp_path / "b.parquet"
    ).to_pylist()
    for full, part in zip(binary, pruned, strict=True):
        spans = set(zip(part["starts"], part["ends"], strict=True))
        assert spans <= set(zip(full["starts"], full["ends"], strict=True))
        assert part["n_words"] < 2 or (0, part["n_words"]) in spans
    assert sum(len(p["starts"]) for p in pruned) < sum(len(p["starts"]) for p in binary)
    without = replace(parser, recipe=replace(parser.recipe, objective="likelihood"))
    with refused("no-distribution"):
        TrainedModel(without, encoder, 0.5)


def test_of_several_treebanks_it_is_said_how_many_were_trained_on(model, test_set, tmp_path):
    about = {**model.trained.about, "sources": [4, 6], "table": {"language": "toy", "split": "dev"}}
    several = TrainedModel(replace(model.trained, about=about), model.encoder)
    write_parses(several, test_set, tmp_path / "p.parquet")
    _, metadata = read_table(tmp_path / "p.parquet", schema=PARSES_SCHEMA)
    assert metadata["selection"] == "2 treebanks (10 trees, seed 0)"


def test_sentences_that_were_trained_on_are_refused(model, treebank, tmp_path):
    with refused("overlap", "10"):
        write_parses(model, treebank, tmp_path / "p.parquet")
    write_parses(model, treebank, tmp_path / "p.parquet", allow_overlap=True)


@pytest.mark.parametrize("policy", ["right_branching", "skip", "error"])
def test_sentences_past_the_limit_follow_the_policy(policy, model, test_set, tmp_path):
    rows = read_table(test_set)[0].slice(0, 3).to_pylist()
    rows[1].update(words=["harbour"] * 70, tags=["X"] * 70)
    made = pa.Table.from_pylist(rows, schema=SENTENCES_SCHEMA)
    write_table(tmp_path / "s.parquet", made, schema=SENTENCES_SCHEMA, metadata={})

    def parse():
        out = tmp_path / "p.parquet"
        return write_parses(model, tmp_path / "s.parquet", out, too_long=policy)

    if policy == "error":
        with refused("too-many-pieces", "harbour harbour"):
            parse()
        return
    row = parse().to_pylist()[1]
    expected = {"right_branching": ("right_branching", 69), "skip": ("skipped", 0)}[policy]
    assert (row["status"], len(row["starts"])) == expected


def test_the_command(parser, resolved, test_set, tmp_path):
    save_parser(parser, tmp_path / "parser")
    output = tmp_path / "p.parquet"
    files = ["--parser", tmp_path / "parser", "--encoder", resolved, "--output", output]
    options = [str(file) for file in (test_set, *files)]
    result = CliRunner().invoke(app, ["apply", *options, "--decoder", "chart", "--device", "cpu"])
    assert result.exit_code == 0, result.output
    assert read_table(output, schema=PARSES_SCHEMA)[0].num_rows == 30


def test_associations_are_those_of_each_sentence_by_itself(
    model: TrainedModel, test_set: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    parses = write_parses(model, test_set, tmp_path / "p.parquet", associations=path).to_pylist()
    said, _ = read_table(path, schema=ASSOCIATIONS_SCHEMA)
    words = read_table(test_set)[0].column("words").to_pylist()
    parser = Parser(model)
    for one, parse, sentence in zip(said.to_pylist(), parses, words, strict=True):
        assert one["sentence"] == parse["sentence"]
        if len(sentence) < 2:
            assert (one["marginals"], one["association"]) == ([], None)
            continue
        expected = parser.association(sentence).ravel()
        np.testing.assert_allclose(one["association"], expected, rtol=1e-3, atol=1e-5)
        likely = parser.chart(sentence).marginals()[parse["starts"], parse["ends"]]
        np.testing.assert_allclose(one["marginals"], likely, atol=1e-3)


def test_long_sentences_have_no_association_and_some_parsers_have_none(
    model: TrainedModel, encoder: Any, treebank: Path, tmp_path: Path
) -> None:
    words = ["w"] * (WORDS_SHOWN + 1)
    rows = [
        {
            **read_table(treebank)[0].slice(0, 1).to_pylist()[0],
            "words": words[:n],
            "tags": ["X"] * n,
            "starts": [0],
            "ends": [n],
            "labels": ["S"],
            "sentence": n,
        }
        for n in (WORDS_SHOWN, WORDS_SHOWN + 1)
    ]
    given, path = tmp_path / "long.parquet", tmp_path / "a.parquet"
    write_table(
        given, pa.Table.from_pylist(rows, SENTENCES_SCHEMA), schema=SENTENCES_SCHEMA, metadata={}
    )
    write_parses(model, given, tmp_path / "p.parquet", associations=path)
    short, long = read_table(path)[0].to_pylist()
    assert len(short["association"]) == WORDS_SHOWN**2 and long["association"] is None
    trees = read_trees(read_table(treebank)[0], range(3, 13))
    heads = fit(encoder, trees, TrainingPlan(RECIPES["head-weights-article"], steps=2))
    write_parses(TrainedModel(heads, encoder), given, tmp_path / "p.parquet", associations=path)
    assert read_table(path)[0].to_pylist() == [
        {"sentence": row["sentence"], "marginals": None, "association": None} for row in rows
    ]
