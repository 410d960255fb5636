"""Which trees are drawn, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attree.errors import AttreeError
from attree.fewshot.session import Choice, choose_trees
from attree.sampling import by_id, draw_trees, fingerprints, refuse_overlap
from attree.schemas import read_table
from tests.fewshot.conftest import table


def test_draws_are_seeded_and_nested(treebank: Path):
    rows, _ = read_table(treebank)
    ten = draw_trees(rows, 10, seed=1)
    assert ten == draw_trees(rows, 10, seed=1)
    assert ten[:4] == draw_trees(rows, 4, seed=1)
    assert set(ten) != set(draw_trees(rows, 10, seed=2))
    lengths = [len(words) for words in rows["words"].to_pylist()]
    assert min(lengths[row] for row in ten) > 2
    assert not set(draw_trees(rows, 5, seed=1, apart_from=ten)) & set(ten)
    assert draw_trees(rows, None, seed=1) == [row for row, n in enumerate(lengths) if n > 2]


def test_too_few_trees_are_told(treebank: Path, tmp_path: Path):
    rows, _ = read_table(treebank)
    with pytest.raises(AttreeError, match=r"400 trees were asked for, there are \d+"):
        draw_trees(rows, 400, seed=0)
    short, _ = read_table(table(tmp_path / "short.parquet", 5, 0, longest=2))
    with pytest.raises(AttreeError, match="all 5 trees have one or two words"):
        draw_trees(short, 2, seed=0)


def test_ids_choose_sentences(treebank: Path):
    rows, _ = read_table(treebank)
    assert by_id(rows, [7, 3]) == [7, 3]
    with pytest.raises(AttreeError, match="no sentence 99"):
        by_id(rows, [99])
    with pytest.raises(AttreeError, match="twice"):
        by_id(rows, [3, 3])


def test_training_tuning_and_held_out_trees_are_apart(treebank: Path):
    chosen = choose_trees(treebank, Choice("8", None, 5, held_out=4, tuning=3), [])
    parts = [chosen.trees, chosen.held_out, chosen.tuning]
    numbers = [number for part in parts for number in part.sentence]
    assert [len(part.sentence) for part in parts] == [8, 4, 3]
    assert len(set(numbers)) == 15


def test_overlap_with_the_evaluation_set_is_refused(treebank: Path, tmp_path: Path):
    other = table(tmp_path / "test.parquet", 10, 9)
    choose_trees(treebank, Choice("8", None, 1), [other])
    with pytest.raises(AttreeError, match="8 of the sentences to be evaluated"):
        choose_trees(treebank, Choice("8", None, 1), [treebank])
    chosen = choose_trees(treebank, Choice("8", None, 1), [treebank], allow_overlap=True)
    assert chosen.provenance["overlap"] == 8


def test_the_same_words_are_the_same_sentence():
    first = fingerprints([["a", "b"], ["ab"], ["a", "b"]])
    assert first[0] == first[2] != first[1]
    assert refuse_overlap(np.empty(0, np.uint64), [["a"]], allow=False) == 0


def test_unknown_factors_are_told(treebank: Path):
    with pytest.raises(AttreeError, match="choose one of right, left"):
        choose_trees(treebank, Choice("3", None, 0, "middle"), [])


@pytest.mark.parametrize("text", ["many", "3,x"])
def test_numbers_are_numbers(treebank: Path, text: str):
    with pytest.raises(AttreeError, match="write it in digits"):
        choose_trees(treebank, Choice("8", text, 0), [])
