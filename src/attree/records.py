"""Parquet tables between stages: an explicit schema, and provenance in the file's metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from attree.errors import AttreeError
from attree.files import whole_file

_METADATA_KEY = b"attree"

#: One row a sentence of a treebank, in file order. ``starts``, ``ends``, ``labels`` are the phrase
#: nodes in pre-order: one-word phrases and unary chains are kept (EVALB counts them), the dummy
#: root, traces and preterminals are not.
SENTENCES = pa.schema(
    [
        pa.field("sentence", pa.int32(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("line", pa.int32(), nullable=False),
        pa.field("words", pa.list_(pa.string()), nullable=False),
        pa.field("tags", pa.list_(pa.string()), nullable=False),
        pa.field("starts", pa.list_(pa.int32()), nullable=False),
        pa.field("ends", pa.list_(pa.int32()), nullable=False),
        pa.field("labels", pa.list_(pa.string()), nullable=False),
    ]
)

#: One row a sentence that could not be read or was left empty by cleaning.
REJECTED = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("line", pa.int32(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
    ]
)

#: One row a sentence parsed: ``status`` is ``ok``, ``right_branching`` (fallback) or ``skipped``;
#: ``starts``/``ends`` are the spans of two words and more in pre-order, the whole sentence first.
PARSES = pa.schema(
    [
        pa.field("sentence", pa.int32(), nullable=False),
        pa.field("n_words", pa.int32(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("starts", pa.list_(pa.int32()), nullable=False),
        pa.field("ends", pa.list_(pa.int32()), nullable=False),
    ]
)


def write_table(
    path: str | Path, table: pa.Table, *, schema: pa.Schema, metadata: Mapping[str, Any]
) -> None:
    """Write ``table`` under ``schema``, whole or not at all, with ``metadata`` as JSON inside.

    Raises:
        pyarrow.ArrowInvalid: a column is missing or does not fit its type (a bug, not bad input).
    """
    packed = {_METADATA_KEY: json.dumps(metadata, sort_keys=True, ensure_ascii=False).encode()}
    table = table.select(schema.names).cast(schema).replace_schema_metadata(packed)
    with whole_file(path) as part:
        pq.write_table(table, part, compression="zstd")


def read_table(
    path: str | Path, *, schema: pa.Schema | None = None, what: str = "table"
) -> tuple[pa.Table, dict[str, Any]]:
    """Read a table that :func:`write_table` wrote; return it and its metadata.

    Raises:
        AttreeError: absent, cut short, not Parquet, or other columns than ``schema``'s.
    """
    path = Path(path)
    try:
        table = pq.read_table(path, partitioning=None)
    except FileNotFoundError:
        raise AttreeError(f"this {what} does not exist", file=path) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise AttreeError(
            f"this {what} is not a whole Parquet file ({str(error).splitlines()[0]})",
            file=path,
            fix="delete it and run the stage that writes it again",
        ) from None
    metadata = json.loads((table.schema.metadata or {}).get(_METADATA_KEY, b"{}"))
    if schema is not None and table.schema.names != schema.names:
        missing = [name for name in schema.names if name not in table.schema.names]
        raise AttreeError(
            f"this is not a {what}: its columns are {', '.join(table.schema.names)}"
            + (f"; missing {', '.join(missing)}" if missing else ""),
            file=path,
        )
    return table, metadata
