"""Scoring against chart decoding, sentences of 25 words, one core."""

from __future__ import annotations

from typing import Any

import numpy as np

from attree.decoding.batch import decode, span_offsets
from attree.decoding.fixed import fixed_trees
from attree.evaluation.brackets import Brackets
from attree.evaluation.metrics import f1_of_each, gold_spans, score
from tests.benchmarks.bench_decoding import SENTENCES, WORDS, attention, rates

LABELS = ("NP", "VP", "PP", "ADJP", "SBAR", "ADVP")


def trees(name: str) -> Brackets:
    """Return fixed trees with labels in turn."""
    n_words = np.full(SENTENCES, WORDS)
    starts, ends = fixed_trees(name, n_words)
    return Brackets(
        sentence=np.arange(SENTENCES, dtype=np.int32),
        n_words=n_words,
        offsets=span_offsets(n_words),
        starts=starts,
        ends=ends,
        labels=np.arange(starts.size, dtype=np.int32) % len(LABELS),
        label_names=LABELS,
        status=np.full(SENTENCES, "ok"),
    )


def rows() -> list[dict[str, Any]]:
    """Measure full scoring, and F1 alone as the ranking of heads needs it."""
    gold, parses = trees("random_shift_reduce"), trees("random_uniform_split")
    known = gold_spans(gold)
    values = attention()
    rate = rates(
        {
            "chart": lambda: decode(values, gold.n_words, score="inside_outside", decoder="chart"),
            "score": lambda: score(gold, parses),
            "f1": lambda: f1_of_each(known, parses.starts, parses.ends, parses.offsets),
        },
        count=SENTENCES,
    )
    names = {
        "score": "scoring (F1 of every sentence, label recall) / UPIO chart decoding",
        "f1": "F1 alone, against known gold trees / UPIO chart decoding",
    }
    return [
        {
            "name": name,
            "ratio": rate[key] / rate["chart"],
            "goal": ">= 1",
            "unit": f"sentences of {WORDS} words a second",
            "ours": rate[key],
            "baseline": rate["chart"],
        }
        for key, name in names.items()
    ]
