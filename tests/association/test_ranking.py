"""F1 of every head against a naive parser and scorer, agreement of heads, and their choice."""

from __future__ import annotations

import itertools
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attree.association.columns import heads_key, read_selection
from attree.association.ranking import Ranking, Recipe, agreements, rank, rank_heads
from attree.association.selection import HeadSelection
from attree.base.reading import read_json
from attree.base.schemas import HEADS_SCHEMA, read_table
from attree.decoding.batch import decode, syntactic_distances
from attree.stages.from_shards import selection_data
from attree.trees.parses import Parses
from attree.trees.sampling import draw
from attree.trees.trees import Trees
from tests.association.conftest import WORDS, Stage
from tests.refusals import refused

UPOA = Recipe("raw", "outside", "greedy")
UPIO = Recipe("raw", "inside_outside", "chart")


def greedy(a: np.ndarray, start: int, end: int) -> set[tuple[int, int]]:
    if end - start < 2:
        return set()
    best, at = -np.inf, start + 1
    for k in range(start + 1, end):
        across = a[start:k, k:end].sum() + a[k:end, start:k].sum()
        score = -across / (2 * (k - start) * (end - k))
        if score > best:
            best, at = score, k
    return {(start, end)} | greedy(a, start, at) | greedy(a, at, end)


def naive_f1(rows: list[dict[str, Any]], matrices: dict[int, np.ndarray]) -> np.ndarray:
    """Return UPOA's corpus F1 of each head over the rows of a table of sentences."""
    scores = []
    for row in rows:
        n = len(row["words"])
        if n < 2:
            continue
        spans = zip(row["starts"], row["ends"], strict=True)
        gold = {(0, n)} | {(start, end) for start, end in spans if end - start > 1}
        trees = [greedy(matrix.astype(float), 0, n) for matrix in matrices[row["sentence"]]]
        scores.append([(len(gold & tree), len(gold) + len(tree)) for tree in trees])
    hits, total = np.sum(scores, axis=0).T
    return 200 * hits / total


@pytest.fixture
def manifest(stage: Stage) -> Path:
    stage.compute(name="all")
    return stage.folder / "all.json"


def gold_of(table: Path) -> Parses:
    return Parses.gold(pq.read_table(table))


def choose(manifest: Path, sentences: Path, recipe: Recipe, select: str, **how: Any) -> Ranking:
    """Rank heads and write ``heads.parquet`` and ``heads.json`` beside the sentences."""
    written = {"table": sentences.with_name("heads.parquet")}
    written["selection"] = sentences.with_name("heads.json")
    how = {"trees": None, "seed": 0, **how}
    return rank_heads(manifest, sentences, recipe, HeadSelection.parse(select), **how, **written)


def test_every_head_is_scored(manifest: Path, stage: Stage) -> None:
    table = stage.folder / "dev.parquet"
    ranking = rank(manifest, gold_of(table), UPOA)
    expected = naive_f1(pq.read_table(table).to_pylist(), stage.matrices("all"))
    np.testing.assert_allclose(ranking.f1.corpus_f1, expected)
    assert ranking.sentences.tolist() == [0, 1, 2, 3, 4, 6, 7] and ranking.without == 0
    assert ranking.grid()[2, 1] == ranking.f1.corpus_f1[9]


def test_a_draw_of_trees(manifest: Path, stage: Stage) -> None:
    table = stage.folder / "dev.parquet"
    drawn = partial(choose, manifest, table, UPOA, "best")
    ranking = drawn(trees=3, seed=1)
    chosen = ranking.sentences.tolist()
    assert len(chosen) == 3 and 5 not in chosen, "a sentence of one word is no tree to tune on"
    rows = [row for row in pq.read_table(table).to_pylist() if row["sentence"] in chosen]
    np.testing.assert_allclose(ranking.f1.corpus_f1, naive_f1(rows, stage.matrices("all")))
    again = drawn(trees=3, seed=1)
    assert again.sentences.tolist() == chosen
    draws = {tuple(drawn(trees=3, seed=s).sentences) for s in range(8)}
    assert len(draws) > 1
    assert len(drawn(trees=100).sentences) == 7


def test_a_draw_does_not_depend_on_the_order_and_grows() -> None:
    numbers = np.array([5, 3, 9, 1], dtype=np.int32)
    assert draw(numbers, 2, 7).tolist() == draw(numbers[::-1], 2, 7).tolist()
    assert draw(numbers, 3, 7)[:2].tolist() == draw(numbers, 2, 7).tolist()


def test_the_table_and_the_selection(manifest: Path, stage: Stage) -> None:
    ranking = choose(manifest, stage.folder / "dev.parquet", UPOA, "best:2")
    table = pq.read_table(stage.folder / "heads.parquet")
    assert table.schema.names == HEADS_SCHEMA.names and table.num_rows == 12
    f1 = table["corpus_f1"].to_numpy()
    best = sorted(np.argsort(-f1, kind="stable")[:2])
    assert np.flatnonzero(table["selected"].to_numpy(zero_copy_only=False)).tolist() == best
    found = json.loads((stage.folder / "heads.json").read_text())
    assert found["heads"] == [[int(one) // 4, int(one) % 4] for one in best]
    assert found["f1"] == [f1[one] for one in best]
    assert (found["select"], found["trees"], found["language"]) == ("best:2", None, "english")
    assert found["association"] == "raw" and len(ranking.heads) == 12


def test_other_sentences_are_refused(manifest: Path, stage: Stage) -> None:
    for words in (WORDS[:-1], [*WORDS[:-1], ["three", "more", "words"]], []):
        with refused("other-sentences", file="all.json"):
            rank(manifest, gold_of(stage.make_table(words, name="other")), UPOA)


def test_nothing_to_rank_on_is_one_line(stage: Stage) -> None:
    stage.compute([["a"], ["cat"] * 70])
    with refused("no-sentences", file="dev.json"):
        rank(stage.folder / "dev.json", gold_of(stage.folder / "dev.parquet"), UPOA)


@st.composite
def head_trees(draw: st.DrawFn) -> tuple[Trees, int]:
    """The trees of 1 to 5 heads of sentences of 1 to 8 words."""
    heads = draw(st.integers(1, 5))
    n_words = draw(st.lists(st.integers(1, 8), min_size=1, max_size=4))
    seed = draw(st.integers(0, 1000))
    each = np.repeat(n_words, heads)
    values = np.random.default_rng(seed).random(int((each**2).sum()))
    return decode(values, n_words, heads, **UPIO.settings()), heads


def spans(trees: Trees, place: int) -> set[tuple[int, int]]:
    """Spans of two words and more, without the whole sentence."""
    own = slice(trees.offsets[place], trees.offsets[place + 1])
    found = set(zip(trees.starts[own].tolist(), trees.ends[own].tolist(), strict=True))
    return found - {(0, int(trees.n_words[place]))}


@given(head_trees())
def test_it_is_the_mean_f1_of_every_two_heads(drawn: tuple[Trees, int]) -> None:
    trees, heads = drawn
    f1: dict[int, list[float]] = {head: [] for head in range(heads)}
    sentences = [at for at, n in enumerate(trees.n_words[::heads]) if n > 2]
    for sentence in sentences:
        for one, other in itertools.permutations(range(heads), 2):
            both = [spans(trees, sentence * heads + head) for head in (one, other)]
            f1[one].append(2 * len(both[0] & both[1]) / (len(both[0]) + len(both[1])))
    wanted = [100 * np.mean(f1[head]) if f1[head] else 0.0 for head in range(heads)]
    sums, count = agreements(trees, heads)
    np.testing.assert_allclose(100 * sums / max(count, 1), wanted, atol=1e-9)
    half = trees.n_words.size // heads // 2 * heads
    parts = [trees.take(np.arange(half)), trees.take(np.arange(half, trees.n_words.size))]
    of_parts = [agreements(part, heads) for part in parts]
    np.testing.assert_allclose(of_parts[0][0] + of_parts[1][0], sums, atol=1e-9)
    assert of_parts[0][1] + of_parts[1][1] == count


@given(head_trees())
def test_distances_are_heights_and_give_the_tree_back(drawn: tuple[Trees, int]) -> None:
    trees, _ = drawn
    found = syntactic_distances(trees)
    at, matrices = 0, []
    for place, n in enumerate(trees.n_words.tolist()):
        own = found[at : at + n - 1]
        at += n - 1
        inner = spans(trees, place) | {(0, n)}
        for k in range(1, n):
            i, j = min((span for span in inner if span[0] < k < span[1]), key=lambda s: s[1] - s[0])
            below = [own[m - 1] for m in range(i + 1, j) if m != k]
            assert own[k - 1] == 1 + max(below, default=0)
        matrices.append(-np.diag(own, 1).ravel() * 1.0)
    again = decode(
        np.concatenate(matrices),
        trees.n_words,
        association="raw",
        score="adjacent",
        decoder="greedy",
    )
    np.testing.assert_array_equal(again.starts, trees.starts)
    np.testing.assert_array_equal(again.ends, trees.ends)


def test_the_choice_looks_at_no_gold_tree(manifest: Path, stage: Stage) -> None:
    flat = stage.make_table(name="flat", spans=[[(0, len(words))] for words in WORDS])
    chosen = []
    for sentences in (stage.folder / "dev.parquet", flat):
        ranking = choose(manifest, sentences, UPIO, "best:3", rank_by="agreement")
        chosen.append(read_selection(stage.folder / "heads.json")["heads"])
        of_heads = read_table(stage.folder / "heads.parquet", schema=HEADS_SCHEMA)[0]
        assert of_heads["agreement"].to_pylist() == ranking.grid("agreement").ravel().tolist()
        assert "f1" not in read_json(stage.folder / "heads.json")
    assert chosen[0] == chosen[1]
    about = {"language": "xx", "split": "dev", "rank_by": "agreement"}
    assert selection_data(about) == "xx dev, text alone"


def test_what_is_above_a_percentage_is_called_agreement() -> None:
    with refused("no-head-above", "30", "0.1", "20"):
        HeadSelection.parse("above:30").apply(np.array([[10.0, 20.0]]), "agreement")


F1 = np.array([[20.0, 31.0, 30.0], [31.0, 45.5, 12.0]])


@pytest.mark.parametrize(
    ("text", "heads"),
    [
        ("all", [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]),
        ("best", [(1, 1)]),
        ("best:1", [(1, 1)]),
        ("best:2", [(0, 1), (1, 1)]),  # a tie goes to the lower layer
        ("best:3", [(0, 1), (1, 0), (1, 1)]),
        ("above:30", [(0, 1), (1, 0), (1, 1)]),  # above, not at
        ("above:31.5", [(1, 1)]),
        ("list:1.2,0.0, 1.2", [(0, 0), (1, 2)]),
    ],
)
def test_heads_chosen(text: str, heads: list[tuple[int, int]]) -> None:
    assert HeadSelection.parse(text).apply(F1) == heads


SELECTIONS = ["all", "best:1", "best:10", "above:30", "above:12.5", "list:1.7,0.11"]


@pytest.mark.parametrize("text", SELECTIONS)
def test_the_text_form_is_read_back(text: str) -> None:
    assert HeadSelection.parse(text).text == text


NO_SELECTIONS = ["", "any", "all:3", "above", "above:", "list", "list:7", "list:1.7,", "list:1.-7"]


@pytest.mark.parametrize("text", [*NO_SELECTIONS, "best:0", "best:x", "best:-1"])
def test_what_is_no_selection_is_one_line(text: str) -> None:
    with refused("bad-selection"):
        HeadSelection.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("above:60", "no-head-above 60 1.1 45.50"),
        ("best:7", "too-few-heads 7 6"),
        ("list:2.0", "no-such-head 2.0 1 2"),
        ("list:0.3", "no-such-head 0.3"),
    ],
)
def test_what_cannot_be_chosen_is_one_line(text: str, message: str) -> None:
    with refused(*message.split()):
        HeadSelection.parse(text).apply(F1)


def test_a_set_of_heads_has_one_name() -> None:
    assert heads_key([(2, 8), (1, 10), (1, 7), (2, 8)]) == "1.7+1.10+2.8"


@pytest.mark.parametrize("content", [[], {}, {"heads": []}, {"heads": [[1]]}, {"heads": "1.7"}])
def test_a_file_that_is_no_selection_is_one_line(content: object, tmp_path: Path) -> None:
    file = tmp_path / "selection.json"
    file.write_text(json.dumps(content))
    with refused("bad-form", file="selection.json"):
        read_selection(file)
