"""Which trees are drawn, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attree.base.schemas import SENTENCES_SCHEMA, read_table, write_table
from attree.training.choice import choose_trees
from attree.training.options import Choice
from attree.trees.sampling import draw_trees, fingerprints, refuse_overlap
from tests.refusals import refused
from tests.training.conftest import table


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
    with refused("too-few-trees", "400"):
        draw_trees(rows, 400, seed=0)
    short, _ = read_table(table(tmp_path / "short.parquet", 5, 0, longest=2))
    with refused("short-trees", "5"):
        draw_trees(short, 2, seed=0)


def test_training_and_held_out_trees_are_apart(treebank: Path):
    chosen = choose_trees(treebank, Choice(["8"], 5, held_out=4), [])
    parts = [chosen.trees, chosen.held_out]
    numbers = [number for part in parts for number in part.sentence]
    assert [len(part.sentence) for part in parts] == [8, 4]
    assert len(set(numbers)) == 12


def test_what_cannot_be_filled_is_dropped_and_said(
    treebank: Path, capsys: pytest.CaptureFixture[str]
):
    rows, _ = read_table(treebank)
    there = draw_trees(rows, None, seed=0)
    for asked in (None, ["all"], ["400"]):
        chosen = choose_trees(treebank, Choice(asked), [])
        assert sorted(chosen.trees.sentence) == there
    lost = len(rows) - len(there)
    short = f"attree: {lost} of {len(rows)} trees have one or two words: not trained on\n"
    said = capsys.readouterr().err
    assert said == 3 * short + (
        f"attree: 400 trees were asked for, there are {len(there)} of three words and more: "
        f"training on {len(there)}\n"
    )
    for asked in (None, ["400"]):  # trees set apart come first
        chosen = choose_trees(treebank, Choice(asked, held_out=5), [])
        parts = [chosen.trees, chosen.held_out]
        numbers = [number for part in parts for number in part.sentence]
        assert len(chosen.held_out.sentence) == 5
        assert sorted(numbers) == there
    capsys.readouterr()
    chosen = choose_trees(treebank, Choice(held_out=400), [])
    assert len(chosen.trees.sentence) == 1 and len(chosen.held_out.sentence) == len(there) - 1
    assert capsys.readouterr().err == (
        f"attree: --held-out 400: {len(there) - 1} trees are left for it\n"
    )


def test_no_more_than_80_are_taken_unless_asked_for(tmp_path: Path):
    many = table(tmp_path / "many.parquet", 150, 3)
    every = draw_trees(read_table(many)[0], None, seed=0)
    sizes = [len(choose_trees(many, Choice(n), []).trees.sentence) for n in (None, ["90"], ["all"])]
    assert sizes == [80, 90, len(every)]


def test_sentences_to_be_evaluated_are_left_out_and_said(
    treebank: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    other, rows = table(tmp_path / "test.parquet", 10, 9), read_table(treebank)[0]
    plain = choose_trees(treebank, Choice(["8"], 1), [other]).trees.sentence
    assert plain == choose_trees(treebank, Choice(["8"], 1), []).trees.sentence
    assert capsys.readouterr().err == ""
    one = tmp_path / "one.parquet"  # a single sentence costs no more than itself
    write_table(one, rows.slice(plain[0], 1), schema=SENTENCES_SCHEMA, metadata={})
    chosen = choose_trees(treebank, Choice(["8"], 1), [one])
    assert chosen.trees.sentence[:7] == plain[1:] and len(chosen.trees.sentence) == 8
    assert chosen.provenance["overlap"] == 0
    assert "1 of 40 sentences are among those to be evaluated on" in capsys.readouterr().err
    with refused("all-evaluated-on"):
        choose_trees(treebank, Choice(["8"], 1), [treebank])
    chosen = choose_trees(treebank, Choice(["8"], 1), [treebank], allow_overlap=True)
    assert chosen.provenance["overlap"] == 8 and chosen.trees.sentence == plain


def test_the_same_words_are_the_same_sentence():
    first = fingerprints([["a", "b"], ["ab"], ["a", "b"]])
    assert first[0] == first[2] != first[1]
    assert refuse_overlap(np.empty(0, np.uint64), [["a"]], allow=False) == 0


@pytest.mark.parametrize("text", ["many", "-3", "²"])
def test_numbers_are_numbers(treebank: Path, text: str):
    with refused("not-a-number"):
        choose_trees(treebank, Choice([text], 0), [])


def two(treebank: Path, tmp_path: Path) -> Path:
    return table(tmp_path / "other.parquet", 12, 9)


def test_trees_are_drawn_of_each_treebank_where_they_have_shares(treebank: Path, tmp_path: Path):
    other = two(treebank, tmp_path)
    chosen = choose_trees(treebank, Choice(["5"], 5, shares=["even"]), [], also=[other])
    assert (chosen.trees.sources, chosen.shares) == ((5, 5), (1.0, 1.0))
    alone, _ = read_table(other)
    assert [number - 40 for number in chosen.trees.sentence[5:]] == draw_trees(alone, 5, seed=5)
    chosen = choose_trees(treebank, Choice(["5", "all"], 5, shares=["2", "0.5"]), [], also=[other])
    every = draw_trees(alone, None, seed=5)
    assert (chosen.trees.sources, chosen.shares) == ((5, len(every)), (2.0, 0.5))
    together = choose_trees(treebank, Choice(["10"], 5), [], also=[other])
    assert (together.trees.sources, together.shares) == ((10,), ())
    apart = choose_trees(treebank, Choice(["5", "3"], 5), [], also=[other])
    assert (apart.trees.sources, apart.shares) == ((5, 3), ())


def test_a_treebank_of_fewer_trees_gives_all_and_says_so(
    treebank: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    other = two(treebank, tmp_path)
    count = len(draw_trees(read_table(other)[0], None, seed=0))
    chosen = choose_trees(treebank, Choice(["20"], 5, shares=["even"]), [], also=[other])
    assert chosen.trees.sources == (20, count)
    said = f"other.mrg: 20 trees were asked for, there are {count} of three words and more"
    assert said in capsys.readouterr().err


def test_of_trees_for_structure_labels_and_tags_are_not_taken(treebank: Path, tmp_path: Path):
    other = two(treebank, tmp_path)
    for choice in (Choice(["5"], 5, shares=["3", "1"]), Choice(["30"], 5)):
        chosen = choose_trees(treebank, choice, [], structure=[other])
        own = [number < 40 for number in chosen.trees.sentence]
        assert {*own} == {True, False}
        assert [bool(tree.labels and tree.tags) for tree in chosen.trees.gold] == own


def test_treebanks_of_several_policies_have_none(treebank: Path, tmp_path: Path):
    rows, (ptb, keep) = read_table(treebank)[0], (tmp_path / "ptb", tmp_path / "keep")
    for path in (ptb, keep):
        facts = {"punctuation": path.name}
        write_table(path, rows, schema=SENTENCES_SCHEMA, metadata=facts)
    for more, policy in (([], "ptb"), ([ptb], "ptb"), ([keep], None), ([ptb, keep], None)):
        for role in ("also", "structure"):
            chosen = choose_trees(ptb, Choice(["5"], 1), [], **{role: more})
            assert chosen.provenance["punctuation"] == policy


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        ({"shares": ["1"]}, "bad-shares 2 1,1"),
        ({"shares": ["1", "0"]}, "bad-shares"),
        ({"shares": ["1", "x"]}, "bad-shares"),
        ({"shares": ["1", "inf"]}, "bad-shares"),
        ({"trees": ["1", "2", "3"]}, "tree-counts 3 2"),
    ],
)
def test_shares_and_numbers_are_of_each_treebank(
    choice: dict[str, list[str]], problem: str, treebank: Path, tmp_path: Path
):
    with refused(*problem.split()):
        asked = Choice(choice.get("trees", ["3"]), 0, shares=choice.get("shares"))
        choose_trees(treebank, asked, [], also=[two(treebank, tmp_path)])
