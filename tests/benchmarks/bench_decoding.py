"""Decoding against the plainest compiled CKY loop, scoring against decoding, on one core."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import numba
import numpy as np
from numpy.typing import NDArray

from attree.decoding.batch import decode
from attree.decoding.fixed import fixed_trees
from attree.evaluation.metrics import count_each, gold_spans, score
from attree.scoring.prefix import prefix_sums
from attree.scoring.spans import span_terms
from attree.trees.parses import Parses
from tests.benchmarks import Row, in_turn, timed

WORDS = 25
#: More of them would measure how the system hands out fresh memory.
SENTENCES = 4_000
ROUNDS = 21
LABELS = ("NP", "VP", "PP", "ADJP", "SBAR", "ADVP")


@numba.njit(cache=True)
def plain_cky(
    spans: NDArray[np.float64], starts: NDArray[np.int32], ends: NDArray[np.int32]
) -> None:
    """Write the tree of highest summed span scores of each sentence, as one would first write it.

    ``spans`` has shape ``(sentences, n+1, n+1)``.
    """
    side = spans.shape[1]
    n = side - 1
    best = np.zeros((side, side))
    split = np.zeros((side, side), np.int64)
    stack = np.zeros((side, 2), np.int64)
    out = 0
    for s in range(spans.shape[0]):
        for i in range(n):
            best[i, i + 1] = spans[s, i, i + 1]
        for width in range(2, side):
            for i in range(side - width):
                j = i + width
                top, at = -np.inf, i + 1
                for k in range(i + 1, j):
                    score = best[i, k] + best[k, j]
                    if score > top:
                        top, at = score, k
                best[i, j] = top + spans[s, i, j]
                split[i, j] = at
        stack[0, 0], stack[0, 1] = 0, n
        depth = 1
        while depth > 0:
            depth -= 1
            i, j = stack[depth, 0], stack[depth, 1]
            starts[out], ends[out] = i, j
            out += 1
            k = split[i, j]
            if j - k > 1:
                stack[depth, 0], stack[depth, 1] = k, j
                depth += 1
            if k - i > 1:
                stack[depth, 0], stack[depth, 1] = i, k
                depth += 1


def attention() -> NDArray[np.float32]:
    """Return random attention-like matrices, flattened, in the type of shards.

    Rows are positive and sum to 1.
    """
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.full(WORDS, 0.5), size=SENTENCES * WORDS)
    return rows.astype(np.float32).ravel()


def fixed(name: str) -> Parses:
    """Return fixed trees with labels in turn."""
    plain = fixed_trees(name, np.full(SENTENCES, WORDS))
    labels = np.arange(plain.starts.size, dtype=np.int32) % len(LABELS)
    labelled = dataclasses.replace(plain, labels=labels, label_names=LABELS)
    return Parses.all_ok(np.arange(SENTENCES, dtype=np.int32), labelled)


def rows() -> list[Row]:
    """Measure UPIO with the chart, UPOA with greedy decoding, and scoring beside them.

    All from the association to spans; F1 alone is what the ranking of heads needs.
    """
    values = attention()
    n_words = np.full(SENTENCES, WORDS)
    prefix = prefix_sums(values, n_words)[0]
    spans = np.empty_like(prefix)
    span_terms(values, n_words, prefix, spans, outside=True)
    spans = spans.reshape(SENTENCES, WORDS + 1, WORDS + 1)
    starts = np.empty(SENTENCES * (WORDS - 1), np.int32)
    ends = np.empty_like(starts)
    gold, parses = fixed("random_shift_reduce"), fixed("random_uniform_split")
    known = gold_spans(gold)
    work: list[Callable[[], object]] = [
        lambda: plain_cky(spans, starts, ends),
        lambda: decode(values, n_words, score="inside_outside", decoder="chart"),
        lambda: decode(values, n_words, score="outside", decoder="greedy"),
        lambda: score(gold, parses),
        lambda: count_each(known, parses.trees).sentence_f1,
    ]
    seconds = in_turn(*(timed(one, time.thread_time) for one in work), rounds=ROUNDS)
    plain, chart, greedy, scored, f1 = SENTENCES / seconds
    unit = f"sentences of {WORDS} words a second"
    upio = "UPIO chart, association to spans / plain compiled CKY over given span scores"
    what = "scoring (F1 of every sentence, label recall) / UPIO chart decoding"
    return [
        Row(upio, ">= 0.9", unit, chart, plain),
        Row("UPOA greedy / UPIO chart", ">= 2", unit, greedy, chart),
        Row(what, ">= 1", unit, scored, chart),
        Row("F1 alone, against known gold trees / UPIO chart decoding", ">= 1", unit, f1, chart),
    ]
