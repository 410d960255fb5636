"""Parquet tables between stages: an explicit schema, and provenance in the file's metadata."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from attree.base.errors import AttreeError
from attree.base.files import whole_file
from attree.base.reading import check_regular

_METADATA_KEY = b"attree"
#: Metadata that are names, or absent.
_NAMES = ("language", "split", "punctuation", "derived")
_AGAIN = "run the stage that writes it again"

INT, FLOAT, TEXT = pa.int32(), pa.float64(), pa.string()
INTS, TEXTS, SINGLES = pa.list_(INT), pa.list_(TEXT), pa.list_(pa.float32())


def schema_of(*nullable: str, **columns: pa.DataType) -> pa.Schema:
    """Return a schema of column → type; only ``nullable`` columns may lack values."""
    return pa.schema([pa.field(x, kind, nullable=x in nullable) for x, kind in columns.items()])


#: One row per sentence of a treebank, in file order. ``starts``, ``ends``, ``labels``: the phrase
#: nodes in pre-order: one-word phrases and unary chains are kept (EVALB counts them), the dummy
#: root, traces and preterminals are not.
SENTENCES_SCHEMA = schema_of(
    sentence=INT, file=TEXT, line=INT, words=TEXTS, tags=TEXTS, starts=INTS, ends=INTS, labels=TEXTS
)

#: The column that tells which trees of a table are partly bracketed. Labels of such trees may be
#: :data:`attree.trees.constraints.MARKS`.
PARTIAL = pa.field("half", pa.bool_(), nullable=False)
#: The column beside it: the head of each word, from 0, -1 for a root; empty if heads are not known.
HEADS = pa.field("heads", INTS, nullable=False)
PARTLY_BRACKETED = SENTENCES_SCHEMA.append(PARTIAL).append(HEADS)


def origin(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the language and the split of a table, each None where its metadata do not tell it."""
    return {key: metadata.get(key) for key in ("language", "split")}


def partly_bracketed(table: pa.Table) -> pa.Table:
    """Return a sentence table with the columns of a table of partly bracketed trees."""
    for column, value in ((PARTIAL, False), (HEADS, [])):
        if column.name not in table.schema.names:
            table = table.append_column(column, pa.array([value] * len(table), column.type))
    return table


#: One row per sentence that could not be read, or that cleaning left empty.
REJECTED = schema_of(file=TEXT, line=INT, reason=TEXT, status=TEXT)

#: One row per parsed sentence: ``status`` is ``ok``, ``right_branching`` (fallback) or ``skipped``;
#: ``starts``/``ends`` are the spans of two words and more in pre-order, the whole sentence first.
#: Parses of a parser with labels have those of their spans too (:data:`LABELS`); such trees need
#: not be binary, and have one-word phrases and unary chains as gold trees do. Imported ones lack
#: the whole sentence where it is no phrase. Where the parser tags words they have tags as well
#: (:data:`TAGS`).
PARSES_SCHEMA = schema_of(sentence=INT, n_words=INT, status=TEXT, starts=INTS, ends=INTS)

#: The column of a table of parses whose trees are labelled.
LABELS = pa.field("labels", pa.list_(pa.string()), nullable=False)
LABELLED_PARSES = PARSES_SCHEMA.append(LABELS)
#: The column of a table of parses whose words have tags.
TAGS = pa.field("tags", pa.list_(pa.string()), nullable=False)
TAGGED_PARSES = LABELLED_PARSES.append(TAGS)

#: A trained parser's output beside the tree: the probability of each span, in the order of spans,
#: null without a distribution over trees; and the words × words association, row-major, null where
#: there is none or the sentence has more than ``WORDS_SHOWN`` words.
ASSOCIATIONS_SCHEMA = schema_of(
    "marginals", "association", sentence=INT, marginals=SINGLES, association=SINGLES
)
WORDS_SHOWN = 40


#: One row per attention head: its F1 in percent on the tuning set, and whether it was selected.
HEADS_SCHEMA = schema_of(
    "agreement",
    layer=INT,
    head=INT,
    corpus_f1=FLOAT,
    corpus_f1_no_root=FLOAT,
    sentence_f1=FLOAT,
    agreement=FLOAT,
    selected=pa.bool_(),
)


#: Names of tables in messages, and their schemas; a room adds its own.
KINDS: dict[str, tuple[pa.Schema, ...]] = {
    "sentence table": (SENTENCES_SCHEMA,),
    "table of partly bracketed trees": (PARTLY_BRACKETED,),
    "table of rejected sentences": (REJECTED,),
    "table of parses": (PARSES_SCHEMA, LABELLED_PARSES, TAGGED_PARSES),
    "table of associations": (ASSOCIATIONS_SCHEMA,),
    "head ranking": (HEADS_SCHEMA,),
}


def pack(metadata: Mapping[str, Any]) -> dict[bytes, bytes]:
    """Encode ``metadata`` for a Parquet schema."""
    text = json.dumps(metadata, sort_keys=True, ensure_ascii=False)
    return {_METADATA_KEY: text.encode("utf-8", "backslashreplace")}


def unpack(schema: pa.Schema) -> dict[str, Any]:
    """Return the metadata in a schema; empty if there is none.

    Raises:
        ValueError: it is damaged.
    """
    metadata = json.loads((schema.metadata or {}).get(_METADATA_KEY, b"{}"))
    names = [metadata.get(key) for key in _NAMES] if isinstance(metadata, dict) else [metadata]
    if not all(isinstance(name, str | None) for name in names):
        raise ValueError("metadata is no mapping, or has a name that is no text")
    return metadata


def read_metadata(path: str | Path) -> dict[str, Any]:
    """Return the metadata of a table that :func:`write_table` wrote, without reading its rows."""
    check_regular(path, what="table")
    return unpack(pq.read_schema(Path(path).absolute()))


def write_table(
    path: str | Path, table: pa.Table, *, schema: pa.Schema, metadata: Mapping[str, Any]
) -> None:
    """Write ``table`` under ``schema``, whole or not at all, with ``metadata`` as JSON inside.

    Raises:
        pyarrow.ArrowInvalid: a column is missing or does not fit its type (a bug, not bad input).
    """
    table = table.select(schema.names).cast(schema).replace_schema_metadata(pack(metadata))
    with whole_file(path) as part:
        pq.write_table(table, part, compression="zstd")


def read_table(
    path: str | Path, *, schema: pa.Schema | None = None
) -> tuple[pa.Table, dict[str, Any]]:
    """Read a table that :func:`write_table` wrote; return it and its metadata.

    For a schema of parses, labelled parses are accepted; for one of partly bracketed trees, whole
    ones.

    Raises:
        AttreeError: it is absent, cut short, not Parquet, has other columns than ``schema``, or
            lacks a value.
    """
    path = Path(path)
    expected = SENTENCES_SCHEMA if schema is PARTLY_BRACKETED else schema
    what = _kind(expected) or "table" if path.suffix == ".parquet" or path.exists() else "file"
    check_regular(path, what=what)
    try:
        with pq.ParquetFile(path.absolute()) as file:  # pq.read_table imports pyarrow.dataset
            table = file.read()
        table.validate(full=True)
        metadata = unpack(table.schema)
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None)
        problem = f"cannot be read: {reason}" if reason else "is not a whole Parquet file"
        problem = f"this {what} {problem}"
        raise AttreeError("unreadable-table", problem, file=path, fix=_AGAIN) from None
    if schema is PARSES_SCHEMA and LABELS.name in table.schema.names:
        schema = TAGGED_PARSES if TAGS.name in table.schema.names else LABELLED_PARSES
    if schema is PARTLY_BRACKETED and PARTIAL.name not in table.schema.names:
        schema = SENTENCES_SCHEMA
    if schema is not None and table.schema.names != schema.names:
        raise AttreeError("other-table", _explain(table.schema, expected or schema), file=path)
    for field in schema or ():
        if not field.nullable and table[field.name].null_count:
            problem = f"column {field.name} of this {what} has rows without a value"
            raise AttreeError("empty-cells", problem, file=path, fix=_AGAIN)
    if schema is not None:
        wrong = next((field for field in schema if table[field.name].type != field.type), None)
        why = f"column {wrong.name} of this {what} is no {wrong.type}" if wrong else ""
        if not why and "starts" in schema.names and not has_trees(table):
            why = f"a row of this {what} is no tree: its spans or tags do not fit its words"
        if why:
            raise AttreeError("other-table", why, file=path, fix=_AGAIN)
    return table, metadata


def has_trees(table: pa.Table) -> bool:
    """Tell whether the columns of each tree belong together, and its spans lie in its words.

    Args:
        table: with lists ``words``, or numbers ``n_words``; lists ``starts``, and ``ends`` or
            ``lengths``; perhaps ``labels``, ``tags``, and ``marginals`` (not checked if one is
            null).
    """
    names = set(table.schema.names)
    if "marginals" in names and table["marginals"].null_count:
        names.remove("marginals")
    of_words = names & {"words", "tags"}
    of_spans = names & {"starts", "ends", "lengths", "labels", "marginals"}
    items = {name: table[name].combine_chunks().flatten() for name in of_words | of_spans}
    counts = {name: pc.list_value_length(table[name]).to_numpy() for name in items}
    n_words = counts["words"] if "words" in counts else table["n_words"].to_numpy()
    starts = items["starts"].to_numpy()
    if "ends" in items:
        ends = items["ends"].to_numpy()
    else:  # in 16 bits
        ends = starts + items["lengths"].to_numpy().astype(np.int64)
    return (
        not any(column.null_count for column in items.values())
        and all(np.array_equal(counts["starts"], counts[name]) for name in of_spans)
        and np.array_equal(counts.get("tags", n_words), n_words)
        and bool((n_words >= 0).all() and (starts >= 0).all() and (starts < ends).all())
        and bool((ends <= np.repeat(n_words, counts["starts"])).all())
    )


def _kind(schema: pa.Schema | None) -> str | None:
    names = None if schema is None else schema.names
    fitting = (kind for kind, schemas in KINDS.items() if names in [s.names for s in schemas])
    return next(fitting, None)


def _explain(actual: pa.Schema, expected: pa.Schema) -> str:
    if kind := _kind(actual):
        return f"this is a {kind}; expected a {_kind(expected)}"
    missing = [name for name in expected.names if name not in actual.names]
    note = f"; missing {', '.join(missing)}" if missing else ""
    return f"this is not a {_kind(expected)}: its columns are {', '.join(actual.names)}{note}"


def join_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Join sentence tables, and renumber the sentences; ``partial`` is kept if one table has it."""
    if len(tables) == 1:
        return tables[0]
    if any(PARTIAL.name in table.schema.names for table in tables):
        tables = [partly_bracketed(table) for table in tables]
    whole = pa.concat_tables(tables)
    return whole.set_column(0, whole.schema.field(0), pa.array(range(len(whole)), pa.int32()))
