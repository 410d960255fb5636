"""What the tree explorer shows: some sentences of each test set, their trees and associations."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.association.columns import mean_column, read_selection
from attree.association.shards import read, read_manifest
from attree.base.errors import AttreeError
from attree.base.schemas import (
    ASSOCIATIONS_SCHEMA,
    PARSES_SCHEMA,
    SCORES_SCHEMA,
    SENTENCES_SCHEMA,
    WORDS_SHOWN,
    read_table,
)
from attree.plan.paths import (
    ASSOCIATIONS_PATH,
    PARSES_PATH,
    SENTENCE_SCORES,
    SENTENCES_PATH,
    path_of,
)
from attree.reports.page.reading import noted
from attree.reports.page.scores import by_set, is_parser
from attree.reports.tables.build import ScoreRow
from attree.trees.parses import Parses
from attree.trees.trees import Trees

#: Characters of all matrices that are shown.
_ROOM = 1_500_000


@dataclass(frozen=True, slots=True)
class _Set:
    """A test set: its name, gold trees, and each sentence's words in the order of the trees."""

    language: str
    split: str
    gold: Parses
    words: list[list[str]]


def explorer(
    results: Path, rows: Sequence[ScoreRow], most: int, notes: list[str]
) -> list[dict[str, Any]]:
    """Return one entry a test set.

    Args:
        results: the workflow's folder.
        rows: scores of its parsers.
        most: sentences of each set at most (see :func:`_choice`).
        notes: takes a line for whatever file is damaged; what hangs on it is left out.
    """
    sets = by_set([row for row in rows if is_parser(row)])
    room = _ROOM // max(1, sum(map(len, sets.values())))
    found = []
    for (language, split), own in sets.items():
        with noted(notes):
            one = _set(results, language, split)
            found.append(_entry(results, one, own, most, room, notes))
    return [entry for entry in found if entry["parsers"]]


def _set(results: Path, language: str, split: str) -> _Set:
    path = path_of(SENTENCES_PATH, f"{language}/{split}", results=results)
    table, _ = read_table(path, schema=SENTENCES_SCHEMA)
    gold = Parses.gold(table)
    words = dict(zip(table["sentence"].to_pylist(), table["words"].to_pylist(), strict=True))
    return _Set(language, split, gold, [words[number] for number in gold.sentence.tolist()])


def _entry(
    results: Path, one: _Set, rows: Sequence[ScoreRow], most: int, room: int, notes: list[str]
) -> dict[str, Any]:
    whole = []
    for row in rows:
        with noted(notes):
            whole.append((row, *_parses(results, row, one)))
    f1 = np.stack([f1 for _, _, f1 in whole]) if whole else np.empty((0, len(one.words)))
    shown = _choice(f1, one.gold.n_words, most)
    numbers = one.gold.sentence[shown].tolist()
    return {
        "name": f"{one.language} {one.split}",
        "total": len(one.words),
        "sentence": numbers,
        "words": [one.words[place] for place in shown.tolist()],
        "gold": spans(one.gold.trees.take(shown)),
        "parsers": [
            {
                "name": f"{row.heading}, {row.encoder}",
                "f1": [None if np.isnan(x) else round(float(x), 2) for x in each[shown]],
                "status": parses.take(shown).status.tolist(),
                "spans": spans(parses.trees.take(shown)),
                **_association(results, row, numbers, room, notes),
            }
            for row, parses, each in whole
        ],
    }


def _parses(results: Path, row: ScoreRow, one: _Set) -> tuple[Parses, NDArray[np.float64]]:
    """Return a parser's trees and F1 of every sentence of a set, in the set's order."""
    place = {"encoder": row.encoder, "parser": row.parser}
    name = f"{row.language}/{row.split}"
    path = path_of(PARSES_PATH, name, results=results, **place)
    parses = Parses.of_table(read_table(path, schema=PARSES_SCHEMA)[0])
    parses = replace(parses, trees=_with_marginals(results, row, parses))
    if not np.array_equal(parses.sentence, one.gold.sentence):
        raise AttreeError("other-sentences", f"these are not the sentences of {name}", file=path)
    scores, _ = read_table(
        path_of(SENTENCE_SCORES, name, results=results, **place), schema=SCORES_SCHEMA
    )
    f1 = dict(zip(scores["sentence"].to_pylist(), scores["sentence_f1"].to_pylist(), strict=True))
    values = [f1.get(number) for number in one.gold.sentence.tolist()]
    return parses, np.array([np.nan if value is None else value for value in values])


def _with_marginals(results: Path, row: ScoreRow, parses: Parses) -> Trees:
    """Return the trees with how probable their spans are, where a trained parser has said it.

    Raises:
        AttreeError: the two tables are of different trees.
    """
    path = _of_trained(results, row)
    if not path.is_file():
        return parses.trees
    table, _ = read_table(path, schema=ASSOCIATIONS_SCHEMA)
    known = dict(zip(table["sentence"].to_pylist(), table["marginals"].to_pylist(), strict=True))
    lengths = parses.trees.n_spans.tolist()
    places = zip(parses.sentence.tolist(), lengths, strict=True)
    each = [known.get(number) or [np.nan] * length for number, length in places]
    marginals = np.array([value for one in each for value in one])
    if [len(one) for one in each] != lengths:
        raise AttreeError(
            "other-sentences",
            "this table is of other trees",
            file=path,
            fix="run `snakemake` again",
        )
    return replace(parses.trees, marginals=None if np.isnan(marginals).all() else marginals)


def _of_trained(results: Path, row: ScoreRow) -> Path:
    """Return where a trained parser's associations lie."""
    place = {"encoder": row.encoder, "parser": row.parser, "results": results}
    return Path(path_of(ASSOCIATIONS_PATH, f"{row.language}/{row.split}", **place))


def _choice(f1: NDArray[np.float64], n_words: NDArray[np.int64], most: int) -> NDArray[np.intp]:
    """Choose sentences: half of them the worst, the others spread evenly over the rest.

    Args:
        f1: (parsers, sentences), percent, NaN where a sentence is not scored.
        n_words: (sentences,); those of two words and fewer come last.
        most: how many.

    Returns:
        Their places, from the lowest mean F1 to the highest.
    """
    known = np.where(np.isnan(f1), 0.0, f1).sum(0) / np.maximum((~np.isnan(f1)).sum(0), 1)
    order = np.argsort(np.where(n_words > 2, known, np.inf), kind="stable")
    if order.size <= most:
        return order
    worst = most // 2
    rest = np.linspace(worst, order.size - 1, most - worst).astype(int)
    return order[np.concatenate((np.arange(worst), rest))]


def spans(trees: Trees) -> list[list[list[Any]]]:
    """Return ``[start, end, label, marginal]`` of the spans of two words and more, by sentence.

    Of a unary chain there is one span, its labels joined by ``+``. What a tree does not have is
    left out from the end: an unlabelled span is ``[start, end]``.
    """
    labels = trees.label_of_each() or [""] * trees.starts.size
    likely = [np.nan] * trees.starts.size if trees.marginals is None else trees.marginals.tolist()
    each = list(zip(trees.starts.tolist(), trees.ends.tolist(), labels, likely, strict=True))
    found = []
    for first, last in zip(trees.offsets[:-1].tolist(), trees.offsets[1:].tolist(), strict=True):
        nodes: dict[tuple[int, int], list[Any]] = {}
        for start, end, label, marginal in each[first:last]:
            if end - start > 1:
                node = nodes.setdefault((start, end), [start, end, "", marginal])
                node[2] = "+".join(filter(None, (node[2], label)))
        found.append([_shortest(node) for node in nodes.values()])
    return found


def _shortest(node: list[Any]) -> list[Any]:
    start, end, label, marginal = node
    if not np.isnan(marginal):
        return [start, end, label, round(marginal, 2)]
    return [start, end, label] if label else [start, end]


def _association(
    results: Path, row: ScoreRow, numbers: Sequence[int], room: int, notes: list[str]
) -> dict[str, Any]:
    """Return each sentence's matrix in 8 bits of its maximum (base64, row-major), or None."""
    kept: dict[int, str] = {}
    wanted, left = set(numbers), room
    with noted(notes):
        for number, matrix in _matrices(results, row):
            if number in wanted and 1 < len(matrix) <= WORDS_SHOWN and left > 0:
                kept[number] = _quantised(matrix)
                left -= len(kept[number])
    return {"association": [kept.get(number) for number in numbers]} if kept else {}


def _quantised(matrix: NDArray[np.float32]) -> str:
    scaled = np.rint(matrix / max(float(matrix.max()), 1e-9) * 255).clip(0, 255)
    return base64.b64encode(scaled.astype(np.uint8).tobytes()).decode()


def _matrices(results: Path, row: ScoreRow) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield sentence number and matrix: trained, or of the heads that a parser averages."""
    if (path := _of_trained(results, row)).is_file():
        yield from _trained(path)
        return
    manifest = results / f"attention/{row.encoder}/selected/{row.language}/{row.split}.json"
    selections = sorted((results / "heads" / row.encoder / row.parser).glob("*/*.json"))
    if not manifest.is_file() or not selections:
        return
    columns = read_manifest(manifest)["columns"]
    for selection in selections:  # one of them, if the tuning set was changed since
        chosen = read_selection(selection)
        column, _ = mean_column(chosen["heads"], source=chosen["source"])
        if column in columns:
            break
    else:
        return
    for batch in read(manifest, column):
        ends = np.cumsum(batch.n_associated.astype(np.int64) ** 2)
        parts = np.split(batch.values, ends[:-1]) if ends.size else []
        sizes = batch.n_associated.tolist()
        for number, n_words, values in zip(batch.sentence.tolist(), sizes, parts, strict=True):
            yield number, values.reshape(n_words, n_words)


def _trained(path: Path) -> Iterator[tuple[int, NDArray[np.float32]]]:
    table, _ = read_table(path, schema=ASSOCIATIONS_SCHEMA)
    for number, flat in zip(table["sentence"].to_pylist(), table["association"], strict=True):
        if flat.is_valid:
            values = flat.values.to_numpy(zero_copy_only=False)
            n_words = math.isqrt(values.size)
            yield number, values.reshape(n_words, n_words)
