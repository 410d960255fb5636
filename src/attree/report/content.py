"""What the report shows, gathered from a folder of results as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.attention.columns import mean_column, read_selection
from attree.attention.shards import read
from attree.files import read_json
from attree.parses import Parses
from attree.provenance import versions
from attree.results import SENTENCES, path_of
from attree.schemas import PARSES, SCORES, read_table
from attree.schemas import SENTENCES as SENTENCES_SCHEMA

#: Matrices are shown of sentences up to this many words.
_WORDS_SHOWN = 30
_PACKAGES = ("numpy", "pyarrow", "torch", "transformers")


def content(results: Path, *, sentences: int) -> dict[str, Any]:
    """Gather everything that the page shows; what a run did not make is left out.

    Args:
        results: the workflow's folder.
        sentences: trees of each test set at most, those of the lowest F1.
    """
    tables = [_table(path) for path in sorted((results / "tables").glob("*.parquet"))]
    scored = sorted((results / "scores").glob("*/*/*/*.json"))
    return {
        "tables": tables,
        "experiments": [_table(one) for one in sorted(_experiments(results)) if _is_table(one)],
        "scores": _scores(results),
        "heads": [_heads(path, results) for path in sorted(_rankings(results))],
        "trees": dict(_trees(results, scored, sentences)),
        "versions": versions(*_PACKAGES),
    }


def _rankings(results: Path) -> Iterator[Path]:
    return (results / "heads").glob("*/*/*/*.parquet")


def _experiments(results: Path) -> Iterator[Path]:
    return (results / "experiments/tables").glob("*.parquet")


def _is_table(path: Path) -> bool:
    """Tell a table of an experiment from the numbers of its heat maps beside it."""
    return "." not in path.stem


def _table(path: Path) -> dict[str, Any]:
    _, about = read_table(path)
    parts = [
        {"title": title, "headings": headings, "rows": rows, "note": note}
        for title, headings, rows, note in about.get("tables", [])
    ]
    return {"name": path.stem, "parts": parts}


def _scores(results: Path) -> list[dict[str, Any]]:
    """Return one entry a language, split and parser or baseline, once in whatever table."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for path in sorted((results / "tables").glob("*.parquet")):
        table, _ = read_table(path)
        if "parser" not in table.column_names:
            continue
        for row in table.to_pylist():
            key = (row["language"], row["split"], row["encoder"], row["parser"])
            found.setdefault(key, row)
    return list(found.values())


def _heads(path: Path, results: Path) -> dict[str, Any]:
    table, _ = read_table(path)
    names = ("layer", "head", "corpus_f1", "selected")
    rows = table.select(names).to_pylist()
    encoder, parser, language, split = path.relative_to(results / "heads").with_suffix("").parts
    return {"title": f"{parser} with {encoder}, ranked on {language} {split}", "cells": rows}


def _trees(results: Path, scored: list[Path], most: int) -> Iterator[tuple[str, dict[str, Any]]]:
    sets: dict[str, list[tuple[str, Path]]] = {}
    for path in scored:
        parts = path.relative_to(results / "scores").with_suffix("").parts
        sets.setdefault("/".join(parts[2:]), []).append(("/".join(parts[:2]), path))
    for name, parsers in sets.items():
        treebank = Path(path_of(SENTENCES, name, results=results))
        if treebank.is_file():
            yield name, _set_of_trees(results, name, treebank, dict(parsers), most)


def _set_of_trees(
    results: Path, name: str, treebank: Path, parsers: Mapping[str, Path], most: int
) -> dict[str, Any]:
    table, _ = read_table(treebank, schema=SENTENCES_SCHEMA)
    gold = Parses.gold(table)
    words = dict(zip(table["sentence"].to_pylist(), table["words"].to_pylist(), strict=True))
    f1 = {parser: _sentence_f1(path, gold.sentence) for parser, path in parsers.items()}
    shown = _worst(np.stack(list(f1.values())), gold.n_words, most)
    numbers = gold.sentence[shown]
    return {
        "sentence": numbers.tolist(),
        "words": [words[number] for number in numbers.tolist()],
        "gold": _spans(gold, shown),
        "parsers": {
            parser: {
                "f1": [None if np.isnan(x) else round(float(x), 2) for x in f1[parser][shown]],
                "spans": _spans(_parses(results, parser, name), shown),
                "association": _association(results, parser, name, numbers),
            }
            for parser in parsers
        },
    }


def _sentence_f1(summary: Path, numbers: NDArray[np.int32]) -> NDArray[np.float64]:
    table, _ = read_table(summary.with_suffix(".parquet"), schema=SCORES)
    found = np.full(int(numbers.max(initial=0)) + 1, np.nan)
    found[table["sentence"].to_numpy()] = table["sentence_f1"].to_numpy()
    values: NDArray[np.float64] = found[numbers]
    return values


def _worst(f1: NDArray[np.float64], n_words: NDArray[np.int64], most: int) -> NDArray[np.intp]:
    """Return the sentences of the lowest mean F1; those of two words and fewer come last."""
    known = np.where(np.isnan(f1), 0.0, f1).sum(0) / np.maximum((~np.isnan(f1)).sum(0), 1)
    return np.argsort(np.where(n_words > 2, known, np.inf), kind="stable")[:most]


def _parses(results: Path, parser: str, name: str) -> Parses:
    path = results / "parses" / parser / f"{name}.parquet"
    return Parses.of_table(read_table(path, schema=PARSES)[0])


def _spans(parses: Parses, rows: NDArray[np.intp]) -> list[list[list[Any]]]:
    """Return ``[start, end, label]`` of every span of two words and more, by sentence."""
    taken = parses.take(rows).trees
    names = taken.label_names
    found = []
    for first, last in zip(taken.offsets[:-1], taken.offsets[1:], strict=True):
        own = range(int(first), int(last))
        labels = ["" if taken.labels is None else names[taken.labels[at]] for at in own]
        sides = [(int(taken.starts[at]), int(taken.ends[at])) for at in own]
        found.append(
            [
                [*side, label]
                for side, label in zip(sides, labels, strict=True)
                if side[1] - side[0] > 1
            ]
        )
    return found


def _association(results: Path, parser: str, name: str, numbers: NDArray[np.int32]) -> list[Any]:
    """Return each sentence's association matrix in hundredths of its maximum, or None.

    Sentences too long for the encoder have none, nor have long ones here.
    """
    encoder, _, recipe = parser.partition("/")
    manifest = results / "attention" / encoder / "selected" / f"{name}.json"
    selections = sorted((results / "heads" / encoder / recipe).glob("*/*.json"))
    none: list[Any] = [None] * len(numbers)
    if not manifest.is_file() or not selections:
        return none
    chosen = read_selection(selections[0])
    column, _ = mean_column(chosen["heads"], source=chosen["source"])
    if column not in read_json(manifest, what="attention manifest")["columns"]:
        return none
    wanted = {number: place for place, number in enumerate(numbers.tolist())}
    for batch in read(manifest, column):
        at = 0
        for number, n_words in zip(
            batch.sentence.tolist(), batch.n_associated.tolist(), strict=True
        ):
            matrix = batch.values[at : at + n_words**2]
            at += n_words**2
            if number in wanted and 0 < n_words <= _WORDS_SHOWN:
                scaled = matrix / max(float(matrix.max()), 1e-6) * 100
                none[wanted[number]] = np.rint(scaled).astype(int).tolist()
    return none
