"""Batches of word pieces → trees: the steps of a loaded parser (see `attree.corpus.parsers`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from attree.attention.compute import flatten
from attree.corpus.parsers import HeadsParser, ParserSource, TrainedFolder
from attree.decoding.batch import Found, decode, span_offsets
from attree.encoder.load import Encoder, load_encoder
from attree.encoder.pieces import Pieces
from attree.scoring.tables import SplitScores, split_scores
from attree.scoring.transform import transform

#: Sentences scored at a time, so that their tables stay in the cache.
_AT_A_TIME = 32


class BatchParser(Protocol):
    """Makes trees of batches, in two steps that different threads take."""

    encoder: Encoder

    def features(self, pieces: Sequence[Pieces]) -> Any:
        """Run the encoder over one batch and keep what trees are made from, on the CPU."""

    def trees(self, features: Any) -> Found:
        """Return flat ``starts``, ``ends`` (as of `decoding.batch.decode`), a score a sentence."""


def load(source: ParserSource, *, device: str | None, threads: int | None) -> BatchParser:
    """Load the encoder of a parser, and its weights where it has some."""
    encoder = load_encoder(source.encoder, device=device, threads=threads)
    if isinstance(source, TrainedFolder):
        return TrainedBatchParser(Path(source.folder), encoder)
    return HeadsBatchParser(source, encoder)


class HeadsBatchParser:
    """The mean attention of some heads, scored and decoded."""

    def __init__(self, source: HeadsParser, encoder: Encoder) -> None:
        self.encoder, self._source = encoder, source
        encoder.check(heads=source.heads)

    def features(self, pieces: Sequence[Pieces]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the flat associations of a batch in float32, as the attention stage keeps them."""
        n_words = [one.n_words for one in pieces]
        attention = self.encoder.run(pieces, heads=self._source.heads).attention
        return flatten(attention.mean(1, keepdim=True), n_words), np.array(n_words)

    def trees(self, features: tuple[NDArray[Any], NDArray[np.int64]]) -> Found:
        """Decode, and score each tree by the mean of its split scores."""
        values, n_words = features
        source = self._source
        starts, ends = decode(
            values,
            n_words,
            association=source.association,
            score=source.score,
            decoder=source.decoder,
        )
        scores = mean_split_scores(
            values, n_words, starts, ends, association=source.association, score=source.score
        )
        return starts, ends, scores


class TrainedBatchParser:
    """A parser that ``attree train`` wrote."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        from attree.fewshot.parser_folder import load_parser

        self.encoder = encoder
        self._parser = load_parser(folder, device=str(encoder.device))
        self._parser.check(encoder)

    def features(self, pieces: Sequence[Pieces]) -> Any:
        """Run the encoder and lay out what the scorer reads."""
        return self._parser.features(self.encoder, pieces)

    def trees(self, features: Any) -> Found:
        """Decode; the score is the mean of the tree's span scores."""
        return self._parser.trees(features)


def mean_split_scores(
    values: NDArray[Any],
    n_words: NDArray[np.int64],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    *,
    association: str,
    score: str,
) -> NDArray[np.float32]:
    """Return the mean split score of each tree.

    Args:
        values, n_words, association, score: as for :func:`attree.decoding.batch.decode`.
        starts, ends: the binary trees, flat, in pre-order.
    """
    each = np.empty(starts.size)
    tree, splits = tree_splits(n_words, starts, ends)
    cells = np.concatenate(([0], np.cumsum(n_words * n_words)))
    spans = span_offsets(n_words)
    for first in range(0, n_words.size, _AT_A_TIME):
        last = min(first + _AT_A_TIME, n_words.size)
        chosen = transform(values[cells[first] : cells[last]], association)
        scores = split_scores(chosen, n_words[first:last], score)
        here = slice(spans[first], spans[last])
        each[here] = _of_splits(scores, tree[here] - first, starts[here], splits[here], ends[here])
    return _means(each, n_words)


def tree_splits(
    n_words: NDArray[np.int64], starts: NDArray[np.int32], ends: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return which tree each span belongs to and where it splits, of binary trees in pre-order."""
    tree = np.repeat(np.arange(n_words.size), np.maximum(n_words - 1, 0))
    # a left part of two words and more comes next in pre-order; else the left part is one word
    next_is_left = np.zeros(starts.size, dtype=bool)
    next_is_left[:-1] = (starts[1:] == starts[:-1]) & (tree[1:] == tree[:-1])
    return tree, np.where(next_is_left, np.roll(ends, -1), starts + 1)


def _of_splits(
    scores: SplitScores,
    tree: NDArray[np.int64],
    i: NDArray[np.int32],
    k: NDArray[np.int32],
    j: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Look up ``split(i, k, j)`` (see :mod:`attree.scoring.tables`)."""
    side = scores.n_words + 1
    table = (np.cumsum(side**2) - side**2)[tree]
    row = side[tree]

    def cell(cells: NDArray[np.float64], a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
        return cells[table + a * row + b]

    found = np.zeros(tree.size)
    if scores.has_terms:
        found += cell(scores.terms, k, i) + cell(scores.terms, k, j)
    if scores.has_cross:
        sums = scores.prefix
        across = cell(sums, j, k) + cell(sums, k, i) - cell(sums, k, k) - cell(sums, j, i)
        found -= across / (2.0 * (k - i) * (j - k))
    return found


def _means(each: NDArray[np.float64], n_words: NDArray[np.int64]) -> NDArray[np.float32]:
    spans = np.maximum(n_words - 1, 1)
    return (np.add.reduceat(each, span_offsets(n_words)[:-1]) / spans).astype(np.float32)
