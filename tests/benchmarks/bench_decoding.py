"""Decoding against the plainest compiled CKY loop, sentences of 25 words, one core."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from attree.decoding.batch import decode
from attree.scoring.prefix import prefix_sums
from attree.scoring.spans import span_terms
from tests.benchmarks import Row

WORDS = 25
#: More of them would measure how the system hands out fresh memory.
SENTENCES = 4_000
REPETITIONS = 21


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


def attention(sentences: int = SENTENCES, words: int = WORDS) -> NDArray[np.float16]:
    """Return random attention-like matrices, flattened: rows are positive and sum to 1."""
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.full(words, 0.5), size=sentences * words)
    return rows.astype(np.float16).ravel()


def rates(work: dict[str, Callable[[], Any]], *, count: int) -> dict[str, float]:
    """Return the median rate of each piece of work, in ``count`` a second, taking turns."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for name in work:
        work[name]()  # compile, and touch the memory
    for _ in range(REPETITIONS):
        for name, run in work.items():
            began = time.thread_time()
            run()
            seconds[name].append(time.thread_time() - began)
    return {name: count / statistics.median(times) for name, times in seconds.items()}


def rows() -> list[Row]:
    """Measure UPIO with the chart and UPOA with greedy decoding, association to spans."""
    values = attention()
    n_words = np.full(SENTENCES, WORDS)
    prefix = prefix_sums(values, n_words)[0]
    spans = span_terms(values, n_words, prefix, np.empty_like(prefix), outside=True)
    spans = spans.reshape(SENTENCES, WORDS + 1, WORDS + 1)
    starts = np.empty(SENTENCES * (WORDS - 1), np.int32)
    ends = np.empty_like(starts)
    rate = rates(
        {
            "plain": lambda: plain_cky(spans, starts, ends),
            "chart": lambda: decode(values, n_words, score="inside_outside", decoder="chart"),
            "greedy": lambda: decode(values, n_words, score="outside", decoder="greedy"),
        },
        count=SENTENCES,
    )
    unit = f"sentences of {WORDS} words a second"
    what = "UPIO chart, association to spans / plain compiled CKY over given span scores"
    return [
        Row(what, ">= 0.9", unit, rate["chart"], rate["plain"]),
        Row("UPOA greedy / UPIO chart", ">= 2", unit, rate["greedy"], rate["chart"]),
    ]
