"""The fused path: payload → rows → encoder → tree, in memory, with the steps overlapping.

Three threads, with short queues between: one reads lines, tokenises and makes batches; one runs
the encoder; one decodes, puts rows back in input order and writes the shard. The encoder's thread
is the only one that is busy all the time; what the others do is compiled code that lets go of the
interpreter's lock, or small. Batches never cross shards, so a shard comes out the same whatever is
parsed before it, and wherever.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.corpus.apply import BatchParser
from attree.corpus.lines import EMPTY, OK, TOO_LONG, Line, parse_lines
from attree.corpus.output import Statistics, Trees, write_shard
from attree.corpus.words import Tokeniser
from attree.corpus.work import Done, Settings, Source, Work
from attree.decoding.batch import span_offsets
from attree.encoder.pieces import Pieces, batches

#: Most cells of one batch's attention matrices: sentences × longest².
_CELLS_PER_BATCH = 1 << 20

_BATCHES_WAITING = 4


@dataclass(slots=True)
class _Rows:
    """A shard between reading and writing."""

    number: int
    future: Future[Done]
    lines: int = 0
    file: list[str] = field(default_factory=list)
    line: list[int] = field(default_factory=list)
    sentence: list[int] = field(default_factory=list)
    status: list[str] = field(default_factory=list)
    words: list[list[str]] = field(default_factory=list)
    pieces: list[Pieces] = field(default_factory=list)
    batches: list[NDArray[np.int64]] = field(default_factory=list)
    found: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]] = field(
        default_factory=list
    )
    encoder_seconds: float = 0.0


class Pipeline:
    """Parses shards and writes them.

    Args:
        parser: what makes trees of batches.
        tokeniser: what makes words of lines.
        settings: how.
        folder: where the shards go.
    """

    def __init__(
        self, parser: BatchParser, tokeniser: Tokeniser, settings: Settings, folder: Path
    ) -> None:
        self._parser, self._tokeniser = parser, tokeniser
        self._settings, self._folder = settings, folder
        self._waiting: queue.Queue[Any] = queue.Queue()
        self._prepared: queue.Queue[Any] = queue.Queue(1)
        self._encoded: queue.Queue[Any] = queue.Queue(_BATCHES_WAITING)
        for step in (self._prepare_all, self._encode_all, self._finish_all):
            threading.Thread(target=step, name=step.__name__, daemon=True).start()

    def submit(self, work: Work) -> Future[Done]:
        """Take a shard in hand; the future is done when it is written, or holds the error."""
        future: Future[Done] = Future()
        future.set_running_or_notify_cancel()
        self._waiting.put((work, future))
        return future

    def _prepare_all(self) -> None:
        while True:
            work, future = self._waiting.get()
            rows = _guarded(future, partial(self._prepare, work, future))
            if rows is not None:
                self._prepared.put(rows)

    def _prepare(self, work: Work, future: Future[Done]) -> _Rows:
        rows = _Rows(work.number, future)
        for source in work.sources:
            texts, statuses = parse_lines(
                source.payload,
                kind=source.kind,
                column=self._settings.column,
                first=source.first == 1,
            )
            self._add(rows, source, texts, statuses)
        self._choose(rows)
        return rows

    def _add(self, rows: _Rows, source: Source, texts: list[Line], statuses: Sequence[str]) -> None:
        rows.lines += len(texts)
        sentences = self._tokeniser(texts)
        each = [len(of_line) for of_line in sentences]
        numbers = range(source.first, source.first + len(texts))
        rows.file += [source.file] * sum(each)
        rows.line += np.repeat(np.array(numbers, dtype=np.int64), each).tolist()
        rows.sentence += chain.from_iterable(map(range, each))
        rows.words += chain.from_iterable(sentences)
        for status, of_line in zip(statuses, sentences, strict=True):
            rows.status += [status if status != OK else self._status(words) for words in of_line]

    def _status(self, words: Sequence[str]) -> str:
        if not words:
            return EMPTY
        return OK if len(words) <= self._settings.max_words else TOO_LONG

    def _choose(self, rows: _Rows) -> None:
        """Tokenise into pieces, and put what has a tree to find into batches."""
        good = [row for row, status in enumerate(rows.status) if status == OK]
        pieces = self._parser.encoder.tokenise([rows.words[row] for row in good])
        chosen = []
        for row, of_row in zip(good, pieces, strict=True):
            if of_row.too_long:
                rows.status[row] = TOO_LONG
            else:
                chosen.append(row)
                rows.pieces.append(of_row)
        for row, status in enumerate(rows.status):
            if status != OK:
                rows.words[row] = []
        places = [place for place, one in enumerate(rows.pieces) if one.n_words > 1]
        lengths = [len(rows.pieces[place].ids) for place in places]
        # positions in rows.pieces; which rows these are follows from the statuses
        rows.batches = [
            np.array(places, dtype=np.int64)[group]
            for group in batches(
                lengths,
                tokens_per_batch=self._settings.tokens_per_batch
                or self._parser.encoder.tokens_per_batch,
                cells_per_batch=_CELLS_PER_BATCH,
            )
        ]

    def _encode_all(self) -> None:
        while True:
            rows = self._prepared.get()
            for group in rows.batches:
                began = time.perf_counter()
                chosen = [rows.pieces[place] for place in group]
                features = _guarded(rows.future, partial(self._parser.features, chosen))
                if features is None:
                    break
                rows.encoder_seconds += time.perf_counter() - began
                self._encoded.put((rows, features))
            self._encoded.put((rows, None))

    def _finish_all(self) -> None:
        while True:
            rows, features = self._encoded.get()
            if rows.future.done():
                continue
            if features is not None:
                found = _guarded(rows.future, partial(self._parser.trees, features))
                rows.found.append(found)
                continue
            done = _guarded(rows.future, partial(self._write, rows))
            if done is not None:
                rows.future.set_result(done)

    def _write(self, rows: _Rows) -> Done:
        trees = _in_order(rows)
        statistics = Statistics(
            lines=rows.lines,
            sentences=len(rows.status) - rows.status.count(EMPTY),
            words=sum(map(len, rows.words)),
            pieces=sum(len(one.ids) for one in rows.pieces),
            unknown_words=sum(one.n_unknown for one in rows.pieces),
            status=Counter(rows.status),
        )
        write_shard(self._folder, rows.number, trees, statistics, self._settings.formats)
        return Done(rows.number, statistics, rows.encoder_seconds)


def _in_order(rows: _Rows) -> Trees:
    """Put the trees of all batches where their rows stand."""
    good = np.flatnonzero(np.array(rows.status) == OK)
    scores = np.full(len(rows.status), np.nan, dtype=np.float32)
    n_spans = np.zeros(len(rows.status), dtype=np.int64)
    n_words = np.array([one.n_words for one in rows.pieces], dtype=np.int64)
    order = np.concatenate([np.zeros(0, np.int64), *rows.batches])
    n_spans[good[order]] = n_words[order] - 1
    offsets = np.concatenate(([0], np.cumsum(n_spans)))
    starts, ends = (np.empty(offsets[-1], np.int32) for _ in range(2))
    for group, (some_starts, some_ends, some_scores) in zip(rows.batches, rows.found, strict=True):
        there = span_offsets(n_words[group])
        shift = np.repeat(offsets[good[group]] - there[:-1], np.diff(there))
        places = np.arange(there[-1]) + shift
        starts[places], ends[places] = some_starts, some_ends
        scores[good[group]] = some_scores
    return Trees(
        rows.file, rows.line, rows.sentence, rows.status, rows.words, offsets, starts, ends, scores
    )


def _guarded(future: Future[Done], step: Callable[[], Any]) -> Any:
    """Run a step of a shard; an error becomes the shard's, and the pipeline goes on."""
    try:
        return step()
    except BaseException as error:
        if not future.done():
            future.set_exception(error)
        return None
