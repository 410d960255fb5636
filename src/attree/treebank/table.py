"""Convert sentences to an Arrow table, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from attree.base.schemas import HEADS, PARTIAL, PARTLY_BRACKETED, REJECTED, SENTENCES_SCHEMA
from attree.base.text import name_of
from attree.treebank.sentence import Rejected, Sentence

_ROWS = 10_000  # of a chunk, which bounds the Python objects of a large treebank


class TableBuilder:
    """Collect the items of a reader into the two tables of a split, chunk by chunk."""

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
        """Return the tables of `schemas.SENTENCES_SCHEMA` and `schemas.REJECTED`.

        The first has the schema `schemas.PARTLY_BRACKETED` if any of its trees is partly bracketed.
        """
        self._flush()
        sentences = pa.concat_tables(self._chunks)
        if not any(sentences[PARTIAL.name].to_pylist()):
            sentences = sentences.select(SENTENCES_SCHEMA.names)
        rejected = [
            {"file": name_of(item.file)}
            | {name: getattr(item, name) for name in ("line", "reason", "status")}
            for item in self._rejected
        ]
        return sentences, pa.Table.from_pylist(rejected, REJECTED)


def to_table(sentences: Iterable[Sentence]) -> pa.Table:
    """Return the table of `schemas.SENTENCES_SCHEMA`; rows are numbered from 0 in order."""
    builder = TableBuilder()
    for sentence in sentences:
        builder.add(sentence)
    return builder.tables()[0]


def _chunk(sentences: list[Sentence], first: int) -> pa.Table:
    spans = [list(zip(*sentence.spans, strict=True)) or [(), (), ()] for sentence in sentences]
    columns = {
        "sentence": range(first, first + len(sentences)),
        "file": [name_of(s.file) for s in sentences],
        "line": [s.line for s in sentences],
        "words": [s.words for s in sentences],
        "tags": [s.tags for s in sentences],
        "starts": [triple[0] for triple in spans],
        "ends": [triple[1] for triple in spans],
        "labels": [triple[2] for triple in spans],
        "half": [s.partial for s in sentences],
        "heads": [s.heads for s in sentences],
    }
    return pa.table(
        {name: list(column) for name, column in columns.items()}, schema=PARTLY_BRACKETED
    )


def from_table(table: pa.Table) -> Iterator[Sentence]:
    """Yield the sentences of a table in order."""
    for batch in table.to_batches():
        for row in batch.to_pylist():
            spans = tuple(zip(row["starts"], row["ends"], row["labels"], strict=True))
            words, tags = tuple(row["words"]), tuple(row["tags"])
            partial, heads = row.get(PARTIAL.name, False), tuple(row.get(HEADS.name, ()))
            yield Sentence(
                words, tags, spans, row["file"], row["line"], partial=partial, heads=heads
            )
