"""From sentences to one shard of associations: what a worker of the attention stage does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attree.attention.columns import Column, Head
from attree.attention.shards import OK, TOO_LONG, ShardWriter, open_shard
from attree.encoder.load import Encoder
from attree.encoder.pieces import Pieces, batches
from attree.errors import AttreeError

#: Cells of one batch's attention matrices (a float32 gigabyte would be 268 million).
_CELLS_PER_BATCH = 64_000_000


@dataclass(frozen=True, slots=True)
class Sentences:
    """Some rows of a sentence table.

    Args:
        number: int32, the sentences' numbers.
        words: of each sentence.
        origin: file and line of each.
    """

    number: NDArray[np.int32]
    words: list[list[str]]
    origin: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be computed.

    Args:
        columns: column → the heads that it holds.
        tokens_per_batch: word pieces that go through the encoder at once.
        refuse_too_long: a sentence past the encoder's limit is an error.
    """

    columns: Mapping[str, Column]
    tokens_per_batch: int
    refuse_too_long: bool


def write_shard(
    encoder: Encoder, sentences: Sentences, task: Task, path: Path, metadata: Mapping[str, Any]
) -> dict[str, int]:
    """Compute the associations of ``sentences`` and write them to ``path``, whole or not at all.

    Returns:
        counts: sentences, too_long, unknown_words.

    Raises:
        AttreeError: a sentence is too long and ``task`` refuses that; the line names it.
    """
    pieces = encoder.tokenise(sentences.words)
    short = [place for place, one in enumerate(pieces) if not one.too_long]
    long = [place for place, one in enumerate(pieces) if one.too_long]
    if long and task.refuse_too_long:
        file, line = sentences.origin[long[0]]
        raise AttreeError(
            f"this sentence has {len(pieces[long[0]].ids)} word pieces, the encoder "
            f"{encoder.slug} takes {encoder.max_pieces}",
            file=file,
            line=line,
            fix="set the policy for too long sentences to right_branching or skip",
        )
    counts = {
        "sentences": len(pieces),
        "too_long": len(long),
        "unknown_words": sum(one.n_unknown for one in pieces),
    }
    with open_shard(path, task.columns, metadata={**metadata, "counts": counts}) as shard:
        heads = sorted({head for column in task.columns.values() for head in column.heads})
        lengths = np.array([len(pieces[place].ids) for place in short])
        for chosen in batches(
            lengths,
            tokens_per_batch=task.tokens_per_batch,
            cells_per_batch=_CELLS_PER_BATCH // max(1, len(heads)),
        ):
            places = [short[row] for row in chosen]
            batch = [pieces[place] for place in places]
            _add(shard, sentences.number[places], batch, OK, _values(encoder, batch, heads, task))
        if long:
            nothing = {name: np.empty(0, column.dtype) for name, column in task.columns.items()}
            _add(shard, sentences.number[long], [pieces[p] for p in long], TOO_LONG, nothing)
    return counts


def _add(
    shard: ShardWriter,
    number: NDArray[np.int32],
    batch: Sequence[Pieces],
    status: str,
    values: Mapping[str, NDArray[Any]],
) -> None:
    n_words = np.array([one.n_words for one in batch], dtype=np.int32)
    n_unknown = np.array([one.n_unknown for one in batch], dtype=np.int32)
    shard.add(number, n_words, n_unknown, status=status, values=values)


def _values(
    encoder: Encoder, batch: Sequence[Pieces], heads: Sequence[Head], task: Task
) -> dict[str, NDArray[Any]]:
    """Run one batch and return each column's matrices, flat."""
    attention = encoder.run(batch, heads=heads).attention
    n_words = [one.n_words for one in batch]
    found = {}
    for name, column in task.columns.items():
        chosen = attention
        if list(column.heads) != list(heads):
            chosen = attention[:, [heads.index(head) for head in column.heads]]
        if column.mean:
            chosen = chosen.mean(dim=1, keepdim=True)
        found[name] = flatten(chosen.to(getattr(torch, column.dtype)), n_words)
    return found


def flatten(attention: torch.Tensor, n_words: Sequence[int]) -> NDArray[Any]:
    """Return (batch, heads, words, words) without padding, flat, sentence after sentence."""
    padded = attention.cpu().numpy()
    heads = padded.shape[1]
    flat = np.empty(heads * sum(n * n for n in n_words), dtype=padded.dtype)
    start = 0
    for matrices, n in zip(padded, n_words, strict=True):
        end = start + heads * n * n
        flat[start:end].reshape(heads, n, n)[...] = matrices[:, :n, :n]
        start = end
    return flat
