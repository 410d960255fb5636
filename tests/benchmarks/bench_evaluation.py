"""Scoring against chart decoding, sentences of 25 words, one core."""

from __future__ import annotations

import dataclasses

import numpy as np

from attree.decoding.batch import decode
from attree.decoding.fixed import fixed_trees
from attree.evaluation.metrics import count_each, gold_spans, score
from attree.trees.parses import Parses
from tests.benchmarks import Row
from tests.benchmarks.bench_decoding import SENTENCES, WORDS, attention, rates

LABELS = ("NP", "VP", "PP", "ADJP", "SBAR", "ADVP")


def trees(name: str) -> Parses:
    """Return fixed trees with labels in turn."""
    n_words = np.full(SENTENCES, WORDS)
    plain = fixed_trees(name, n_words)
    labels = np.arange(plain.starts.size, dtype=np.int32) % len(LABELS)
    labelled = dataclasses.replace(plain, labels=labels, label_names=LABELS)
    return Parses.all_ok(np.arange(SENTENCES, dtype=np.int32), labelled)


def rows() -> list[Row]:
    """Measure full scoring, and F1 alone as the ranking of heads needs it."""
    gold, parses = trees("random_shift_reduce"), trees("random_uniform_split")
    known = gold_spans(gold)
    values = attention()
    rate = rates(
        {
            "chart": lambda: decode(values, gold.n_words, score="inside_outside", decoder="chart"),
            "score": lambda: score(gold, parses),
            "f1": lambda: count_each(known, parses.trees).sentence_f1,
        },
        count=SENTENCES,
    )
    names = {
        "score": "scoring (F1 of every sentence, label recall) / UPIO chart decoding",
        "f1": "F1 alone, against known gold trees / UPIO chart decoding",
    }
    unit = f"sentences of {WORDS} words a second"
    return [Row(name, ">= 1", unit, rate[key], rate["chart"]) for key, name in names.items()]
