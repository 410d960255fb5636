"""Sentences as an Arrow table, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from attree.schemas import REJECTED, SENTENCES
from attree.treebank.sentence import Rejected, Sentence

_ROWS = 10_000  # a chunk: keeps the Python objects of a large treebank from piling up


class TableBuilder:
    """Collects what a reader yields into the two tables of a split, chunk by chunk."""

    def __init__(self) -> None:
        self._sentences: list[Sentence] = []
        self._rejected: list[Rejected] = []
        self._chunks: list[pa.Table] = []
        self._rows = 0

    def add(self, item: Sentence | Rejected) -> None:
        """Add one sentence to the table it belongs to."""
        if isinstance(item, Rejected):
            self._rejected.append(item)
            return
        self._sentences.append(item)
        if len(self._sentences) == _ROWS:
            self._flush()

    def _flush(self) -> None:
        self._chunks.append(_chunk(self._sentences, self._rows))
        self._rows += len(self._sentences)
        self._sentences = []

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Return the tables of `schemas.SENTENCES` and `records.REJECTED`."""
        self._flush()
        rows = [(one.file, one.line, one.reason, one.status) for one in self._rejected]
        columns = list(zip(*rows, strict=True)) or [()] * len(REJECTED)
        return pa.concat_tables(self._chunks), pa.table(list(map(list, columns)), schema=REJECTED)


def to_table(sentences: Iterable[Sentence]) -> pa.Table:
    """Return the table of `schemas.SENTENCES`; rows are numbered from 0 in order."""
    builder = TableBuilder()
    for sentence in sentences:
        builder.add(sentence)
    return builder.tables()[0]


def _chunk(sentences: list[Sentence], first: int) -> pa.Table:
    spans = [list(zip(*one.spans, strict=True)) or [(), (), ()] for one in sentences]
    columns = {
        "sentence": range(first, first + len(sentences)),
        "file": [one.file for one in sentences],
        "line": [one.line for one in sentences],
        "words": [one.words for one in sentences],
        "tags": [one.tags for one in sentences],
        "starts": [one[0] for one in spans],
        "ends": [one[1] for one in spans],
        "labels": [one[2] for one in spans],
    }
    return pa.table({name: list(column) for name, column in columns.items()}, schema=SENTENCES)


def from_table(table: pa.Table) -> Iterator[Sentence]:
    """Yield the sentences of a table in order."""
    for batch in table.to_batches():
        for row in batch.to_pylist():
            spans = tuple(zip(row["starts"], row["ends"], row["labels"], strict=True))
            words, tags = tuple(row["words"]), tuple(row["tags"])
            yield Sentence(words, tags, spans, row["file"], row["line"])


@dataclass(frozen=True, slots=True)
class Spans:
    """The spans of all sentences of a table, one after the other.

    Args:
        n_words: words of each sentence, int32 (sentences,).
        offsets: sentence s has spans ``offsets[s]:offsets[s + 1]``, int64 (sentences + 1,).
        starts, ends: half-open word intervals, int32 (spans,), pre-order in each sentence.
        labels: (spans,), dictionary-encoded strings.
    """

    n_words: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int32]
    ends: npt.NDArray[np.int32]
    labels: pa.DictionaryArray


def spans_of(table: pa.Table) -> Spans:
    """Return a sentence table's spans as flat arrays, without an object for each."""
    columns = {name: table[name].combine_chunks() for name in ("words", "starts", "ends", "labels")}
    sizes = {name: column.value_lengths().to_numpy() for name, column in columns.items()}
    return Spans(
        n_words=sizes["words"].astype(np.int32),
        offsets=np.concatenate(([0], np.cumsum(sizes["starts"], dtype=np.int64))),
        starts=columns["starts"].flatten().to_numpy(),
        ends=columns["ends"].flatten().to_numpy(),
        labels=columns["labels"].flatten().dictionary_encode(),
    )
