"""The metrics, written plainly over sets of spans; and tables of trees to score."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from attree.base.schemas import PARSES_SCHEMA, SENTENCES_SCHEMA

Spans = Sequence[tuple[int, int]]
Labelled = Sequence[tuple[int, int, str]]


def sentences(
    trees: Sequence[tuple[int, Labelled]], numbers: Sequence[int] | None = None
) -> pa.Table:
    """Return a sentence table of trees given as number of words and labelled spans."""
    return pa.table(
        {
            "sentence": list(range(len(trees)) if numbers is None else numbers),
            "file": ["a.mrg"] * len(trees),
            "line": [1] * len(trees),
            "words": [["w"] * n for n, _ in trees],
            "tags": [["T"] * n for n, _ in trees],
            "starts": [[start for start, _, _ in spans] for _, spans in trees],
            "ends": [[end for _, end, _ in spans] for _, spans in trees],
            "labels": [[label for _, _, label in spans] for _, spans in trees],
        },
        schema=SENTENCES_SCHEMA,
    )


def parses(
    trees: Sequence[tuple[int, Spans]],
    numbers: Sequence[int] | None = None,
    status: Sequence[str] | None = None,
) -> pa.Table:
    """Return a table of parses of trees given as number of words and spans."""
    return pa.table(
        {
            "sentence": list(range(len(trees)) if numbers is None else numbers),
            "n_words": [n for n, _ in trees],
            "status": list(["ok"] * len(trees) if status is None else status),
            "starts": [[start for start, _ in spans] for _, spans in trees],
            "ends": [[end for _, end in spans] for _, spans in trees],
        },
        schema=PARSES_SCHEMA,
    )


def naive_f1(
    gold: Sequence[tuple[int, Spans]], predicted: Sequence[Spans]
) -> tuple[float, float | None, float]:
    """Return corpus F1, the same without the whole sentence, and sentence F1, in percent."""
    hits = wanted = guessed = roots = 0
    each = []
    for (n, right), found in zip(gold, predicted, strict=True):
        if n < 2:
            continue
        root = {(0, n)}
        a = {span for span in right if span[1] - span[0] > 1} | root
        b = {span for span in found if span[1] - span[0] > 1} | root
        hits, wanted, guessed = hits + len(a & b), wanted + len(a), guessed + len(b)
        roots += 1
        a, b = a - root, b - root
        if a and b:
            precision, recall = len(a & b) / len(b), len(a & b) / len(a)
            both = precision + recall
            each.append(2 * precision * recall / both if both else 0.0)
        else:
            each.append(1.0 if not a and not b else 0.0)
    inner = wanted + guessed - 2 * roots
    return (
        100 * 2 * hits / (wanted + guessed),
        100 * 2 * (hits - roots) / inner if inner else None,
        100 * float(np.mean(each)),
    )


def random_tree(rng: np.random.Generator, n: int, *, binary: bool) -> list[tuple[int, int]]:
    """Return the spans of a random tree; one that is not binary has unary chains and leaves too."""
    found, todo = [], [(0, n)]
    while todo:
        i, j = todo.pop()
        if binary and j - i < 2:
            continue
        found += [(i, j)] * (1 if binary else int(rng.integers(0, 3)))
        if j - i > 1:
            parts = 2 if binary else int(rng.integers(2, 4))
            cuts = rng.choice(np.arange(i + 1, j), size=min(parts - 1, j - i - 1), replace=False)
            bounds = [i, *sorted(cuts.tolist()), j]
            todo += itertools.pairwise(bounds)
    return found


def labelled_trees(
    rng: np.random.Generator, lengths: list[int], labels: Sequence[str]
) -> tuple[list[Spans], list[list[str]]]:
    """Return spans of random trees, in pre-order, and a label of each."""
    trees = [random_tree(rng, n, binary=False) for n in lengths]
    spans = [sorted(one, key=lambda span: (span[0], -span[1])) for one in trees]
    return spans, [[str(rng.choice(labels)) for _ in one] for one in spans]
