"""Agreement of heads against every two of them compared; the choice looks at no gold tree."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attree.association.columns import read_selection
from attree.association.ranking import Agreement, rank_heads
from attree.association.selection import HeadSelection
from attree.base.files import read_json
from attree.base.schemas import HEADS_SCHEMA, read_table
from attree.decoding import Recipe
from attree.decoding.batch import decode, syntactic_distances
from attree.encoder.source import ResolvedEncoder
from attree.stages.from_shards import selection_data
from attree.trees.trees import Trees
from tests.association.conftest import WORDS, MakeTable
from tests.association.test_expected import attention
from tests.refusals import refused

UPIO = Recipe("raw", "inside_outside", "chart")


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
    np.testing.assert_allclose(Agreement.of(trees, heads).percent(), wanted, atol=1e-9)
    half = trees.n_words.size // heads // 2 * heads
    parts = [trees.take(np.arange(half)), trees.take(np.arange(half, trees.n_words.size))]
    total = Agreement.of(parts[0], heads) + Agreement.of(parts[1], heads)
    np.testing.assert_allclose(total.percent(), wanted, atol=1e-9)


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


def test_the_choice_looks_at_no_gold_tree(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path
) -> None:
    table = make_table()
    manifest = attention(table, encoder, "all", every=True)
    flat = make_table(name="flat", spans=[[(0, len(words))] for words in WORDS])
    chosen = []
    for place, sentences in enumerate((table, flat)):
        selection = tmp_path / f"{place}.json"
        ranking = rank_heads(
            manifest,
            sentences,
            UPIO,
            HeadSelection.parse("best:3"),
            rank_by="agreement",
            trees=None,
            seed=0,
            table=tmp_path / f"{place}.parquet",
            selection=selection,
        )
        chosen.append(read_selection(selection)["heads"])
        of_heads = read_table(tmp_path / f"{place}.parquet", schema=HEADS_SCHEMA)[0]
        assert of_heads["agreement"].to_pylist() == ranking.grid("agreement").ravel().tolist()
        assert "f1" not in read_json(selection)
    assert chosen[0] == chosen[1]
    assert selection_data({"language": "xx", "split": "dev", "rank_by": "agreement"}) == (
        "xx dev, text alone"
    )


def test_what_is_above_a_percentage_is_called_agreement() -> None:
    with refused("no-head-above", "30", "0.1", "20"):
        HeadSelection.parse("above:30").apply(np.array([[10.0, 20.0]]), "agreement")
