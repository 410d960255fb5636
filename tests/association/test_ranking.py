"""F1 of every head against a naive parser and scorer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from attree.association.columns import ALL
from attree.association.compute import StageSettings
from attree.association.ranking import Recipe, rank, rank_heads
from attree.association.selection import HeadSelection
from attree.base.schemas import HEADS_SCHEMA
from attree.encoder.source import ResolvedEncoder
from attree.stages.attention import columns_for, compute_attention
from attree.trees.parses import Parses
from attree.trees.sampling import draw
from tests.association.conftest import WORDS, MakeTable
from tests.association.test_stage import matrices
from tests.refusals import refused

UPOA = Recipe("raw", "outside", "greedy")


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


def naive_f1(manifest: Path, sentences: Path, chosen: set[int] | None = None) -> np.ndarray:
    rows = pq.read_table(sentences).to_pylist()
    found = matrices(manifest, ALL)
    hits, total = np.zeros(12), np.zeros(12)
    for row in rows:
        n = len(row["words"])
        if n < 2 or (chosen is not None and row["sentence"] not in chosen):
            continue
        gold = {(0, n)} | {
            (s, e) for s, e in zip(row["starts"], row["ends"], strict=True) if e - s > 1
        }
        for head in range(12):
            tree = greedy(found[row["sentence"]][head].astype(np.float64), 0, n)
            hits[head] += len(gold & tree)
            total[head] += len(gold) + len(tree)
    return 200 * hits / total


@pytest.fixture
def manifest(make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path) -> Path:
    settings = StageSettings(partition_size=3, device="cpu")
    columns = columns_for(encoder, every=True)
    compute_attention(make_table(), encoder, columns, tmp_path / "all.json", settings)
    return tmp_path / "all.json"


def test_every_head_is_scored(manifest: Path, tmp_path: Path) -> None:
    sentences = tmp_path / "dev.parquet"
    gold = Parses.gold(pq.read_table(sentences))
    ranking = rank(manifest, gold, UPOA)
    np.testing.assert_allclose(ranking.f1.corpus_f1, naive_f1(manifest, sentences))
    assert ranking.sentences.tolist() == [0, 1, 2, 3, 4, 6, 7] and ranking.without == 0
    assert ranking.grid()[2, 1] == ranking.f1.corpus_f1[9]


def test_a_draw_of_trees(manifest: Path, tmp_path: Path) -> None:
    sentences = tmp_path / "dev.parquet"
    gold = Parses.gold(pq.read_table(sentences))
    ranking = rank(manifest, gold, UPOA, trees=3, seed=1)
    chosen = set(ranking.sentences.tolist())
    assert len(chosen) == 3 and 5 not in chosen, "a sentence of one word is no tree to tune on"
    np.testing.assert_allclose(ranking.f1.corpus_f1, naive_f1(manifest, sentences, chosen))
    again = rank(manifest, gold, UPOA, trees=3, seed=1)
    assert again.sentences.tolist() == ranking.sentences.tolist()
    draws = {tuple(rank(manifest, gold, UPOA, trees=3, seed=s).sentences) for s in range(8)}
    assert len(draws) > 1
    everything = rank(manifest, gold, UPOA, trees=100)
    assert len(everything.sentences) == 7


def test_a_draw_does_not_depend_on_the_order_and_grows() -> None:
    numbers = np.array([5, 3, 9, 1], dtype=np.int32)
    assert draw(numbers, 2, 7).tolist() == draw(numbers[::-1], 2, 7).tolist()
    assert draw(numbers, 3, 7)[:2].tolist() == draw(numbers, 2, 7).tolist()


def test_the_table_and_the_selection(manifest: Path, tmp_path: Path) -> None:
    ranking = rank_heads(
        manifest,
        tmp_path / "dev.parquet",
        UPOA,
        HeadSelection.parse("best:2"),
        trees=None,
        seed=0,
        table=tmp_path / "heads.parquet",
        selection=tmp_path / "heads.json",
    )
    table = pq.read_table(tmp_path / "heads.parquet")
    assert table.schema.names == HEADS_SCHEMA.names and table.num_rows == 12
    f1 = table["corpus_f1"].to_numpy()
    best = sorted(np.argsort(-f1, kind="stable")[:2])
    assert np.flatnonzero(table["selected"].to_numpy(zero_copy_only=False)).tolist() == best
    found = json.loads((tmp_path / "heads.json").read_text())
    assert found["heads"] == [[int(one) // 4, int(one) % 4] for one in best]
    assert found["f1"] == [f1[one] for one in best]
    assert (found["select"], found["trees"], found["language"]) == ("best:2", None, "english")
    assert found["association"] == "raw" and len(ranking.heads) == 12


def test_other_sentences_are_refused(manifest: Path, make_table: MakeTable) -> None:
    for words in (WORDS[:-1], [*WORDS[:-1], ["three", "more", "words"]], []):
        gold = Parses.gold(pq.read_table(make_table(words, name="other")))
        with refused("other-sentences", file="all.json"):
            rank(manifest, gold, UPOA)


def test_nothing_to_rank_on_is_one_line(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path
) -> None:
    sentences = make_table([["a"], ["cat"] * 70])
    columns = columns_for(encoder, every=True)
    compute_attention(sentences, encoder, columns, tmp_path / "x.json", StageSettings(device="cpu"))
    gold = Parses.gold(pq.read_table(sentences))
    with refused("no-sentences", file="x.json"):
        rank(tmp_path / "x.json", gold, UPOA)
