"""Content of the tree explorer: sentences of each test set, their trees and associations."""

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attree.association.columns import mean_column, read_selection
from attree.association.shards import read, read_manifest
from attree.base.errors import AttreeError
from attree.base.schemas import (
    ASSOCIATIONS_SCHEMA,
    PARSES_SCHEMA,
    SENTENCES_SCHEMA,
    WORDS_SHOWN,
    read_table,
)
from attree.evaluation.rows import read_scored
from attree.plan.paths import ASSOCIATIONS_PATH, PARSES_PATH, SENTENCE_SCORES, SENTENCES_PATH
from attree.reports.page.reading import note_errors
from attree.reports.page.scores import path_for
from attree.reports.tables.summaries import ScoreRow, by_test
from attree.trees.parses import Parses
from attree.trees.trees import Trees

#: Most characters of all matrices together.
_ROOM = 1_500_000


def explorer(results: Path, rows: Sequence[ScoreRow], most: int, notes: list[str]) -> list[Any]:
    """Return one entry per test set, with the parsers of ``rows``.

    Args:
        results: the workflow's folder of results.
        rows: rows of scores.
        most: most sentences of each test set (see :func:`_choice`).
        notes: gets a line for each damaged file; content that needs the file is left out.
    """
    tests = by_test(row for row in rows if not row.is_baseline).values()
    room = _ROOM // max(1, sum(map(len, tests)))
    entries = []
    for tested in tests:
        with note_errors(notes):
            entries.append(_entry(results, tested, most, room, notes))
    return [entry for entry in entries if entry["parsers"]]


def _entry(
    results: Path, rows: Sequence[ScoreRow], most: int, room: int, notes: list[str]
) -> dict[str, Any]:
    """Return the content for a test set; ``room``: most characters of a parser's matrices."""
    table, _ = read_table(path_for(SENTENCES_PATH, results, rows[0]), schema=SENTENCES_SCHEMA)
    gold = Parses.gold(table)
    words = _by_sentence(table, "words")
    parsers = []
    for row in rows:
        with note_errors(notes):
            parsers.append((row, *_parses(results, row, gold)))
    f1 = np.stack([f1 for _, _, f1 in parsers]) if parsers else np.empty((0, len(gold)))
    shown = _choice(f1, gold.n_words, most)
    numbers = gold.sentence[shown].tolist()
    return {
        "name": " ".join(rows[0].test),
        "total": len(gold),
        "sentence": numbers,
        "words": [words[number] for number in numbers],
        "gold": spans(gold.trees.take(shown)),
        "parsers": [
            {
                "name": f"{row.heading}, {row.encoder}",
                "f1": [None if np.isnan(x) else round(float(x), 2) for x in scores[shown]],
                "status": parses.take(shown).status.tolist(),
                "spans": spans(parses.trees.take(shown)),
                **_association(results, row, numbers, room, notes),
            }
            for row, parses, scores in parsers
        ],
    }


def _association(
    results: Path, row: ScoreRow, numbers: Sequence[int], room: int, notes: list[str]
) -> dict[str, Any]:
    """Return each sentence's matrix or None: 8 bits relative to the maximum, in base64."""
    kept: dict[int, str] = {}
    with note_errors(notes):
        for number, matrix in _matrices(results, row):
            if number in numbers and 1 < len(matrix) <= WORDS_SHOWN and room > 0:
                scaled = np.rint(matrix / max(float(matrix.max()), 1e-9) * 255).clip(0, 255)
                kept[number] = base64.b64encode(scaled.astype(np.uint8).tobytes()).decode()
                room -= len(kept[number])
    return {"association": [kept.get(number) for number in numbers]} if kept else {}


def _by_sentence(table: pa.Table, column: str) -> dict[int, Any]:
    """Return sentence number → value of a column."""
    return dict(zip(table["sentence"].to_pylist(), table[column].to_pylist(), strict=True))


def _parses(results: Path, row: ScoreRow, gold: Parses) -> tuple[Parses, NDArray[np.float64]]:
    """Return a parser's tree and F1 for every sentence of a test set, in its order."""
    path = path_for(PARSES_PATH, results, row)
    parses = Parses.of_table(read_table(path, schema=PARSES_SCHEMA)[0])
    parses = replace(parses, trees=_with_marginals(results, row, parses))
    if not np.array_equal(parses.sentence, gold.sentence):
        problem = f"these are not the sentences of {'/'.join(row.test)}"
        raise AttreeError("other-sentences", problem, file=path)
    scored = read_scored(path_for(SENTENCE_SCORES, results, row))
    f1 = dict(zip(scored.sentence.tolist(), 100.0 * scored.sentence_f1, strict=True))
    return parses, np.array([f1.get(number, np.nan) for number in gold.sentence.tolist()])


def _with_marginals(results: Path, row: ScoreRow, parses: Parses) -> Trees:
    """Add the probabilities of spans to trees, if a trained parser wrote some.

    Raises:
        AttreeError: the probabilities belong to other trees.
    """
    if not (path := path_for(ASSOCIATIONS_PATH, results, row)).is_file():
        return parses.trees
    stored = _by_sentence(read_table(path, schema=ASSOCIATIONS_SCHEMA)[0], "marginals")
    lengths = parses.trees.n_spans.tolist()
    sentences = zip(parses.sentence.tolist(), lengths, strict=True)
    rows = [stored.get(number) or [np.nan] * length for number, length in sentences]
    if [len(values) for values in rows] != lengths:
        problem, fix = "this table is of other trees", "run `snakemake` again"
        raise AttreeError("other-sentences", problem, file=path, fix=fix)
    marginals = np.array([value for values in rows for value in values])
    return replace(parses.trees, marginals=None if np.isnan(marginals).all() else marginals)


def _choice(f1: NDArray[np.float64], n_words: NDArray[np.int64], most: int) -> NDArray[np.intp]:
    """Choose sentences: one half the worst, the other half spread evenly over the rest.

    Args:
        f1: (parsers, sentences), in percent, NaN where a sentence is not scored.
        n_words: (sentences,); sentences of one or two words come last.
        most: number of sentences.

    Returns:
        Positions of the sentences, from the lowest mean F1 to the highest.
    """
    mean_f1 = np.where(np.isnan(f1), 0.0, f1).sum(0) / np.maximum((~np.isnan(f1)).sum(0), 1)
    order = np.argsort(np.where(n_words > 2, mean_f1, np.inf), kind="stable")
    if order.size <= most:
        return order
    worst = most // 2
    rest = np.linspace(worst, order.size - 1, most - worst).astype(int)
    return order[np.concatenate((np.arange(worst), rest))]


def spans(trees: Trees) -> list[list[list[Any]]]:
    """Return ``[start, end, label, marginal]`` for spans of two or more words, by sentence.

    A unary chain is one span, its labels joined by ``+``. Missing values are left out from the end:
    an unlabelled span is ``[start, end]``.
    """
    labels = trees.label_of_each() or [""] * trees.starts.size
    known = trees.marginals
    marginals = [np.nan] * trees.starts.size if known is None else known.tolist()
    nodes: list[dict[tuple[int, int], list[Any]]] = [{} for _ in range(len(trees))]
    cells = (trees.tree_of.tolist(), trees.starts.tolist(), trees.ends.tolist(), labels, marginals)
    for tree, start, end, label, marginal in zip(*cells, strict=True):
        if end - start > 1:
            node = nodes[tree].setdefault((start, end), [start, end, "", marginal])
            node[2] = "+".join(filter(None, (node[2], label)))
    return [[_shortest(*node) for node in by_span.values()] for by_span in nodes]


def _shortest(start: int, end: int, label: str, marginal: float) -> list[Any]:
    if not np.isnan(marginal):
        return [start, end, label, round(marginal, 2)]
    return [start, end, label] if label else [start, end]


def _matrices(results: Path, row: ScoreRow) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield sentence numbers and matrices, from a trained parser or from averaged heads."""
    if (trained := path_for(ASSOCIATIONS_PATH, results, row)).is_file():
        table, _ = read_table(trained, schema=ASSOCIATIONS_SCHEMA)
        for number, flat in zip(table["sentence"].to_pylist(), table["association"], strict=True):
            if flat.is_valid:
                n_words = math.isqrt(len(flat.values))
                yield number, flat.values.to_numpy(zero_copy_only=False).reshape(n_words, n_words)
        return
    manifest = results / f"attention/{row.encoder}/selected/{row.language}/{row.split}.json"
    selections = sorted((results / "heads" / row.encoder / row.parser).glob("*/*.json"))
    if not manifest.is_file() or not selections:
        return
    columns = read_manifest(manifest)["columns"]
    chosen = map(read_selection, selections)  # several, if the tuning set was changed
    averaged = (mean_column(heads["heads"], source=heads["source"])[0] for heads in chosen)
    if (column := next((name for name in averaged if name in columns), None)) is None:
        return
    for batch in read(manifest, column):
        for number, matrices in zip(batch.sentence.tolist(), batch.each(), strict=True):
            yield number, matrices[0]
