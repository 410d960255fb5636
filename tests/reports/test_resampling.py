"""Intervals and differences by bootstrap, against a plain loop and what must hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from attree.base.schemas import write_table
from attree.evaluation import HEADINGS
from attree.evaluation.metrics import Scored
from attree.evaluation.resampling import Difference, every_difference, intervals
from attree.evaluation.rows import SCORES_SCHEMA, read_scored
from tests.refusals import refused


def scores(path: Path, n: int = 60, better: float = 0.0) -> Scored:
    """Write and read the scores of a made-up parser on ``n`` sentences, the first of one word."""
    rng = np.random.default_rng(1)
    words = np.concatenate([[1], np.random.default_rng(0).integers(3, 12, n - 1)])
    gold = np.where(words > 1, np.maximum(words - 2, 1), 0)
    share = np.clip(rng.uniform(0.2, 0.6, n) + better, 0, 1)
    matched = np.where(words > 1, 1 + np.floor(share * (gold - 1)), 0).astype(int)
    f1 = np.where(gold + words > 3, 200 * (matched - 1) / np.maximum(gold + words - 3, 1), 100)
    columns = {
        "sentence": np.arange(n),
        "n_words": words,
        "status": ["ok"] * n,
        "gold": gold,
        "predicted": np.maximum(words - 1, 0),
        "matched": matched,
        "sentence_f1": pa.array(f1, mask=words == 1),
    }
    write_table(path, pa.table(columns).cast(SCORES_SCHEMA), schema=SCORES_SCHEMA, metadata={})
    return read_scored(path)


def differences(*parsers: Scored) -> dict[str, Difference]:
    pairs = every_difference(["the first", "the second"], parsers)
    return {metric: found[0, 1] for metric, found in pairs.items()}


def test_the_whole_is_the_f1_of_the_sums(tmp_path: Path) -> None:
    found = scores(tmp_path / "a.parquet")
    each = found.each
    shared, spans = each.matched.sum(), (each.gold + each.predicted).sum()
    assert found.counts.corpus_f1 == pytest.approx(200 * shared / spans)
    trees = (each.gold > 0).sum()
    no_root = 200 * (shared - trees) / (spans - 2 * trees)
    assert found.counts.corpus_f1_no_root == pytest.approx(no_root)


def test_every_f1_is_the_ratio_of_its_parts(tmp_path: Path) -> None:
    found = scores(tmp_path / "a.parquet")
    for metric in HEADINGS:
        up, down = found.parts(metric).sum(axis=0)
        assert 100 * up / down == pytest.approx(getattr(found.counts, metric))


def test_resamples_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    found = scores(tmp_path / "a.parquet")
    n, each = len(found.sentence), found.each
    rng = np.random.default_rng(0)
    values = []
    for counts in rng.multinomial(n, np.full(n, 1 / n), size=2000):
        rows = np.repeat(np.arange(n), counts)
        values.append(200 * each.matched[rows].sum() / (each.gold + each.predicted)[rows].sum())
    low, high = np.quantile(values, [0.025, 0.975])
    assert intervals(found)["corpus_f1"] == pytest.approx((low, high))


def test_a_parser_that_is_better_everywhere_differs_and_one_from_itself_does_not(
    tmp_path: Path,
) -> None:
    plain = scores(tmp_path / "a.parquet")
    good = scores(tmp_path / "b.parquet", better=0.3)
    found = differences(good, plain)["corpus_f1"]
    assert 0 < found.low < found.difference < found.high and found.p < 0.01
    back = differences(plain, good)["corpus_f1"]
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low))
    same = differences(plain, plain)["sentence_f1"]
    assert (same.low, same.high, same.p) == (0, 0, 1)


def test_other_sentences_are_refused(tmp_path: Path) -> None:
    with refused("other-sentences", "60", "50"):
        differences(scores(tmp_path / "a.parquet"), scores(tmp_path / "b.parquet", n=50))
