"""Convert sentences to an Arrow table, and back."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice

import pyarrow as pa

from attree.base.schemas import HEADS, PARTIAL, PARTLY_BRACKETED, REJECTED, SENTENCES_SCHEMA
from attree.base.text import name_of
from attree.treebank.sentence import Rejected, Sentence

_ROWS = 10_000  # of a chunk, which bounds the Python objects of a large treebank


def to_table(sentences: Iterable[Sentence]) -> pa.Table:
    """Return the table of `schemas.SENTENCES_SCHEMA`; rows are numbered from 0 in order.

    It has the schema `schemas.PARTLY_BRACKETED` if any tree is partly bracketed.
    """
    left, chunks, first = iter(sentences), [_chunk([], 0)], 0
    while some := list(islice(left, _ROWS)):
        chunks.append(_chunk(some, first))
        first += len(some)
    table = pa.concat_tables(chunks)
    return table if any(table[PARTIAL.name].to_pylist()) else table.select(SENTENCES_SCHEMA.names)


def split_table(items: Iterable[Sentence | Rejected]) -> tuple[pa.Table, list[Rejected]]:
    """Return the table of the sentences of a reader (see `to_table`), and those rejected."""
    rejected: list[Rejected] = []

    def read() -> Iterator[Sentence]:
        for item in items:
            if isinstance(item, Rejected):
                rejected.append(item)
            else:
                yield item

    return to_table(read()), rejected


def table_of_rejected(rejected: Iterable[Rejected]) -> pa.Table:
    """Return a table of `schemas.REJECTED`."""
    rows = [asdict(item) | {"file": name_of(item.file)} for item in rejected]
    return pa.Table.from_pylist(rows, REJECTED)


def _chunk(sentences: list[Sentence], first: int) -> pa.Table:
    spans = [list(zip(*sentence.spans, strict=True)) or [(), (), ()] for sentence in sentences]
    columns = {
        "sentence": list(range(first, first + len(sentences))),
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
    return pa.table(columns, schema=PARTLY_BRACKETED)


def from_table(table: pa.Table) -> Iterator[Sentence]:
    """Yield the sentences of a table in order."""
    for batch in table.to_batches():
        for row in batch.to_pylist():
            spans = tuple(zip(row["starts"], row["ends"], row["labels"], strict=True))
            words, tags = tuple(row["words"]), tuple(row["tags"])
            partial, heads = row.get(PARTIAL.name, False), tuple(row.get(HEADS.name, ()))
            file, line = row["file"], row["line"]
            yield Sentence(words, tags, spans, file, line, partial=partial, heads=heads)
