"""Sentences to annotate: which are drawn, in which order, and what they cost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.annotate.choosing import (
    RANDOM,
    WAYS,
    SentenceMeasures,
    at_random,
    check_lengths,
    diverse,
    measure,
    most_uncertain,
    read_pool,
)
from attree.base.schemas import read_table
from attree.cli.main import app
from attree.encoder.load import load_encoder
from attree.encoder.source import find_encoder
from attree.parsers.parser import Parser
from attree.raw_text.words import tokeniser
from attree.training.fit import fit
from attree.training.gold import read_trees
from attree.training.inside import entropy
from attree.training.parser import TrainedChart, TrainedModel
from attree.training.recipes import RECIPES, TrainingPlan
from tests.bulk.test_trained import run
from tests.command_line import CliRunner
from tests.refusals import refused
from tests.training.conftest import encoder, resolved, treebank

__all__ = ["encoder", "resolved", "treebank"]  # fixtures

SPLIT = tokeniser("whitespace", split=False)


def text(tmp_path: Path, lines: list[str], name: str = "a.txt") -> Path:
    (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path / name


@given(seed=st.integers(0, 1000), n=st.integers(1, 40), count=st.integers(1, 45))
def test_orders(seed: int, n: int, count: int):
    generator = np.random.default_rng(seed)
    unsure = np.where(generator.random(n) < 0.1, np.nan, generator.random(n))
    vectors = generator.normal(size=(n, 3)).astype(np.float32)
    measured = SentenceMeasures(unsure, vectors, np.ones(n, np.int64))
    known = int(np.isfinite(unsure).sum())
    by_entropy = most_uncertain(measured, count)
    assert unsure[by_entropy].tolist() == sorted(unsure[~np.isnan(unsure)], reverse=True)[:count]
    for found, most in ((by_entropy, known), (diverse(measured, count), known)):
        assert len(set(found.tolist())) == len(found) == min(count, most)
    assert at_random(measured, count).tolist() == list(range(min(n, count)))


def test_diverse_sentences_are_unlike_each_other():
    """Two heaps: the second taken is of the other heap, however uncertain the first one is."""
    vectors = np.array([[1, 0], [1, 0.01], [1, 0.02], [-1, 0]], np.float32)
    measured = SentenceMeasures(np.array([0.9, 0.8, 0.7, 0.1]), vectors, np.ones(4, np.int64))
    assert diverse(measured, 2).tolist() == [0, 3]
    assert most_uncertain(measured, 2).tolist() == [0, 1]


def test_a_pool_is_drawn_evenly_and_holds_each_sentence_once(tmp_path: Path):
    lines = [f"a b c d w{place}" for place in range(60)]
    file = text(tmp_path, [*lines, *lines, "too short", ""])
    counts = np.zeros(60)
    for seed in range(200):
        pool, seen = read_pool([file], SPLIT, (5, 9), size=12, seed=seed)
        assert seen == 60 and len({" ".join(one) for one in pool}) == 12
        counts[[int(words[-1][1:]) for words in pool]] += 1
    assert counts.min() > 15 and counts.max() < 70  # 40 each
    again, _ = read_pool([file], SPLIT, (5, 9), size=12, seed=199)
    assert again == pool


def test_other_inputs_and_damaged_lines(tmp_path: Path):
    rows = [{"text": "the old man lived here"}, {"text": ["a", "b", "c", "d", "e"]}, {"other": 1}]
    file = text(tmp_path, [json.dumps(row) for row in rows], "a.jsonl")
    pool, _ = read_pool([file], SPLIT, (5, 9), size=9, seed=0)
    assert sorted(words[0] for words in pool) == ["a", "the"]
    rows = [{"text": "a b"}, {"other": 1}, {"text": "c d"}]
    file = text(tmp_path, [json.dumps(row) for row in rows], "b.jsonl")
    with refused("no-sentences", "2 too short or too long", "1 lines malformed", file="b.jsonl"):
        read_pool([file], SPLIT, (5, 9), size=9, seed=0)


@pytest.mark.parametrize(("least", "most"), [(30, 5), (1, 4), (0, 0)])
def test_lengths_have_a_sentence(least: int, most: int) -> None:
    check_lengths(2, 2)
    with refused("bad-words"):
        check_lengths(least, most)


@pytest.fixture
def words(treebank: Path) -> list[list[str]]:
    return [one for one in read_table(treebank)[0]["words"].to_pylist() if len(one) > 1]


@pytest.fixture
def fitted(encoder, treebank: Path):
    trees = read_trees(read_table(treebank)[0], range(12))
    return fit(encoder, trees, TrainingPlan(RECIPES["tree-crf-full"], (1, 2), steps=5))


def test_what_is_measured_is_that_of_each_sentence_alone(encoder, fitted, words: list[list[str]]):
    parser = Parser(TrainedModel(fitted, encoder))
    found = measure(parser, [*words, ["cat"] * 900])
    alone = []
    for sentence in words:
        scores = parser.chart(sentence).scores
        assert isinstance(scores, TrainedChart)
        alone.append(entropy(*scores._arrays())[0] / len(sentence))
    np.testing.assert_allclose(found.unsure[:-1], alone, atol=1e-4)
    assert np.isnan(found.unsure[-1])
    assert found.brackets[:-1].tolist() == [len(sentence) - 1 for sentence in words]
    assert found.vectors.shape == (len(words) + 1, encoder.hidden_size)
    same = measure(parser, [words[0], words[0]]).vectors
    np.testing.assert_allclose(same[0], same[1])


def test_an_encoder_in_bfloat16_is_measured_too(encoder, resolved: Path, fitted, words):
    partial = load_encoder(replace(find_encoder(resolved), dtype="bfloat16"), device="cpu")
    found, exact = (measure(Parser(TrainedModel(fitted, one)), words) for one in (partial, encoder))
    assert found.vectors.dtype == np.float32 and np.isfinite(found.unsure).all()
    np.testing.assert_allclose(found.vectors, exact.vectors, atol=0.1)


def test_the_command(resolved: Path, treebank: Path, tmp_path: Path):
    folder, output = tmp_path / "parser", tmp_path / "chosen.jsonl"
    run("train", "--sentences", treebank, "--encoder", resolved, "--parser", "tree-crf-labelled",
        "--trees", 5, "--steps", 3, "--output", folder, "--device", "cpu")  # fmt: skip
    words = read_table(treebank)[0]["words"].to_pylist()
    file = text(tmp_path, [" ".join(one) for one in words])
    options = "--tokenizer whitespace --min-words 4 --max-words 8 --number 3"
    given = ("choose", file, *options.split())
    told = run(*given, "--by", "diverse", "--parser", folder, "--encoder", resolved,
               "--output", output, "--device", "cpu")  # fmt: skip
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [4 <= len(row["words"]) <= 8 and row["words"] in words for row in rows] == [True] * 3
    assert f"by diverse; their trees: {sum(row['brackets'] for row in rows)} brackets" in told
    assert "--column words" in told and "--tokenizer whitespace" in run(*given)
    assert all(row["entropy_per_word"] > 0 for row in rows)
    assert len(run(*given).splitlines()) == 4  # three sentences, and what they cost
    assert len(run(*given, "--pool", 2).splitlines()) == 4


def test_the_ready_parser_says_what_it_is_unsure_of_where_none_is_named(tmp_path: Path):
    rows = ["The old man saw the dog with the telescope .", "The old man went home ."]
    file = text(tmp_path, rows)
    told = run("choose", file, "--by", "uncertain", "--number", 1, "--device", "cpu")
    assert told.splitlines()[0] == rows[0]


def test_wrong_choices_are_told(tmp_path: Path):
    file = text(tmp_path, ["a b c d e f"])
    for arguments, problem in (
        (("--by", "best"), f"choose one of {', '.join(WAYS)}"),
        (("--output", str(file)), "this output is also an input"),
        (("--by", "diverse", "--parser", "upio"), "no distribution over trees"),
    ):
        done = CliRunner().invoke(app, ["choose", str(file), *arguments])
        assert done.exit_code == 1 and problem in str(done.exception)
    trees = text(tmp_path, ["(S (NP (D the) (N cat)) (VP (V sat)))"], "trees.mrg")
    done = CliRunner().invoke(app, ["choose", str(trees)])
    assert done.exit_code == 1 and "this is trees in brackets, not text" in str(done.exception)
    assert next(iter(WAYS)) == RANDOM
