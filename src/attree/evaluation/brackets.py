"""Trees as flat arrays of spans, from the Parquet tables that hold them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Brackets:
    """The spans of some sentences, one sentence's after the other's.

    Attributes:
        sentence: int32, the number of each sentence.
        n_words: int64, its words.
        offsets: int64, one more than sentences: where each sentence's spans begin and end.
        starts, ends: int32, half-open spans, repeated and one-word ones among them.
        labels: int32 codes into ``label_names``, one a span; empty where there are none.
        label_names: what the codes mean.
        status: one string a sentence (gold: all ``ok``).
    """

    sentence: NDArray[np.int32]
    n_words: NDArray[np.int64]
    offsets: NDArray[np.int64]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    labels: NDArray[np.int32]
    label_names: tuple[str, ...]
    status: NDArray[np.str_]

    def take(self, rows: NDArray[np.intp]) -> Brackets:
        """Return the sentences at ``rows``, in that order."""
        lengths = (self.offsets[1:] - self.offsets[:-1])[rows]
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        spans = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], lengths)
        return replace(
            self,
            sentence=self.sentence[rows],
            n_words=self.n_words[rows],
            offsets=offsets,
            starts=self.starts[spans],
            ends=self.ends[spans],
            labels=self.labels[spans] if self.labels.size else self.labels,
            status=self.status[rows],
        )


def gold_brackets(sentences: pa.Table) -> Brackets:
    """Return the spans of a sentence table (``schemas.SENTENCES``), sorted by sentence."""
    labels = pc.dictionary_encode(_flat(sentences, "labels"))
    n_words = pc.list_value_length(sentences["words"]).to_numpy().astype(np.int64)
    return _brackets(
        sentences,
        n_words,
        labels=labels.indices.to_numpy(zero_copy_only=False).astype(np.int32),
        label_names=tuple(labels.dictionary.to_pylist()),
        status=np.full(n_words.size, "ok"),
    )


def parsed_brackets(parses: pa.Table) -> Brackets:
    """Return the spans of a table of parses (``schemas.PARSES``), sorted by sentence."""
    return _brackets(
        parses,
        parses["n_words"].to_numpy().astype(np.int64),
        labels=np.zeros(0, np.int32),
        label_names=(),
        status=parses["status"].to_numpy().astype(np.str_),
    )


def _brackets(
    table: pa.Table,
    n_words: NDArray[np.int64],
    *,
    labels: NDArray[np.int32],
    label_names: tuple[str, ...],
    status: NDArray[np.str_],
) -> Brackets:
    lengths = pc.list_value_length(table["starts"]).to_numpy()
    sentence = table["sentence"].to_numpy()
    found = Brackets(
        sentence=sentence,
        n_words=n_words,
        offsets=np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))),
        starts=_flat(table, "starts").to_numpy(zero_copy_only=False),
        ends=_flat(table, "ends").to_numpy(zero_copy_only=False),
        labels=labels,
        label_names=label_names,
        status=status,
    )
    order = np.argsort(sentence, kind="stable")
    return found if np.array_equal(order, np.arange(order.size)) else found.take(order)


def _flat(table: pa.Table, column: str) -> pa.Array:
    values = pc.list_flatten(table[column])
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
