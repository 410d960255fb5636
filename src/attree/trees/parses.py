"""Keep gold trees or parses with the number and the status of each sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from attree.base import schemas
from attree.base.provenance import provenance
from attree.trees import FALLBACK, OK, SKIPPED
from attree.trees.trees import Trees

#: Policy for sentences too long for the encoder → their status. ``error`` refuses them earlier.
POLICIES = {"right_branching": FALLBACK, "skip": SKIPPED, "error": FALLBACK}


@dataclass(frozen=True, slots=True)
class Parses:
    """The trees of some sentences.

    Attributes:
        sentence: int32 (sentences,), their numbers in the treebank.
        trees: of the sentences.
        status: str (sentences,): ``ok``, ``right_branching`` or ``skipped`` (see `schemas`); gold
            trees are all ``ok``.
    """

    sentence: NDArray[np.int32]
    trees: Trees
    status: NDArray[np.str_]

    @classmethod
    def all_ok(cls, sentence: NDArray[np.int32], trees: Trees) -> Parses:
        """Return parses that are all ``ok``."""
        return cls(sentence, trees, np.full(len(trees), OK))

    @classmethod
    def with_policy(
        cls, sentence: NDArray[np.int32], trees: Trees, parsed: NDArray[np.bool_], policy: str
    ) -> Parses:
        """Return parses in which a policy decides on sentences that were not parsed.

        Args:
            sentence: (sentences,), their numbers.
            trees: of all sentences; right-branching for those that were not parsed.
            parsed: bool (sentences,), which were parsed.
            policy: a key of :data:`POLICIES`; ``skip`` removes the spans of the others.
        """
        status = POLICIES[policy]
        if status == SKIPPED:
            trees = trees.keep(np.repeat(parsed, trees.n_spans))
        return cls(sentence, trees, np.where(parsed, OK, status))

    @classmethod
    def gold(cls, sentences: pa.Table) -> Parses:
        """Return the labelled gold trees of a sentence table, sorted by sentence."""
        n_words = pc.list_value_length(sentences["words"]).to_numpy().astype(np.int64)
        return cls.all_ok(sentences["sentence"].to_numpy(), trees_of(sentences, n_words)).sorted()

    @classmethod
    def of_table(cls, parses: pa.Table) -> Parses:
        """Return the trees of a table ``schemas.PARSES_SCHEMA``, sorted by sentence."""
        trees = trees_of(parses, parses["n_words"].to_numpy().astype(np.int64))
        status = parses["status"].to_numpy().astype(np.str_)
        return cls(parses["sentence"].to_numpy(), trees, status).sorted()

    def table(self) -> pa.Table:
        """Return a ``schemas.PARSES_SCHEMA`` table in this order, with labels and tags if any."""
        trees, offsets = self.trees, pa.array(self.trees.offsets, pa.int32())
        labels, tags = named_arrays(trees)
        columns = [
            pa.array(self.sentence, pa.int32()),
            pa.array(trees.n_words, pa.int32()),
            pa.array(self.status.tolist(), pa.string()),
            pa.ListArray.from_arrays(offsets, pa.array(trees.starts)),
            pa.ListArray.from_arrays(offsets, pa.array(trees.ends)),
        ]
        if labels is None:
            return pa.table(columns, schema=schemas.PARSES_SCHEMA)
        columns.append(pa.ListArray.from_arrays(offsets, labels))
        if tags is None:
            return pa.table(columns, schema=schemas.LABELLED_PARSES)
        columns.append(pa.ListArray.from_arrays(pa.array(trees.word_offsets, pa.int32()), tags))
        return pa.table(columns, schema=schemas.TAGGED_PARSES)

    @property
    def n_words(self) -> NDArray[np.int64]:
        """int64 (sentences,), words of each sentence."""
        return self.trees.n_words

    def __len__(self) -> int:
        """Return the number of sentences."""
        return self.sentence.size

    def take(self, rows: NDArray[Any]) -> Parses:
        """Return the sentences at ``rows``, in that order."""
        return Parses(self.sentence[rows], self.trees.take(rows), self.status[rows])

    def sorted(self) -> Parses:
        """Return the same sentences, sorted by number."""
        order = np.argsort(self.sentence, kind="stable")
        return self if np.array_equal(order, np.arange(order.size)) else self.take(order)


def write_parsed(
    path: Path,
    table: pa.Table,
    sentences: Mapping[str, Any],
    *,
    code: Sequence[str],
    settings: Any,
    **more: Any,
) -> None:
    """Write a table of parsed sentences.

    Args:
        path: of the output.
        table: of the parses, or of other results of parsing.
        sentences: metadata of the sentences' table.
        code: the modules that decided the trees.
        settings: of the parser.
        more: further metadata.
    """
    made = provenance(code=code, settings=settings, treebank=sentences.get("provenance"))
    metadata = {**schemas.origin(sentences), **more, "provenance": made}
    schemas.write_table(path, table, schema=table.schema, metadata=metadata)


def named_arrays(trees: Trees) -> tuple[pa.Array | None, pa.Array | None]:
    """Return the labels of all spans and the tags of all words, None where there are none."""

    def named(codes: NDArray[np.int32] | None, names: tuple[str, ...]) -> pa.Array | None:
        return None if codes is None else pa.array(names, pa.string()).take(pa.array(codes))

    return named(trees.labels, trees.label_names), named(trees.tags, trees.tag_names)


def trees_of(table: pa.Table, n_words: NDArray[np.int64]) -> Trees:
    """Return the trees of a table, with labels and tags where it has them.

    Args:
        table: with lists ``starts`` and ``ends``, or ``starts`` and ``lengths``.
        n_words: of each sentence.
    """
    named: dict[str, Any] = {}
    for column, names in ((schemas.LABELS.name, "label_names"), (schemas.TAGS.name, "tag_names")):
        if column in table.schema.names:
            encoded = pc.dictionary_encode(pc.list_flatten(table[column]).combine_chunks())
            codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
            named |= {column: codes, names: tuple(encoded.dictionary.to_pylist())}
    if schemas.HEADS.name in table.schema.names:
        known = pc.list_value_length(table[schemas.HEADS.name]).to_numpy() > 0
        heads = np.full(n_words.sum(), -2, np.int32)
        heads[np.repeat(known, n_words)] = pc.list_flatten(table[schemas.HEADS.name])
        named["heads"] = heads if known.any() else None
    lengths = pc.list_value_length(table["starts"]).to_numpy()
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    other = "ends" if "ends" in table.schema.names else "lengths"
    sides = (pc.list_flatten(table[side]) for side in ("starts", other))
    starts, ends = (np.asarray(side, np.int32) for side in sides)
    return Trees(n_words, offsets, starts, ends if other == "ends" else starts + ends, **named)
