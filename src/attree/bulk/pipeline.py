"""Parse shards in memory by three threads with short queues between them.

One thread reads lines, tokenises and makes batches; one runs the encoder, or several with a core
each; one decodes, puts rows back in input order and writes the shard. Only the encoder's threads
are always busy; the work of the others is small, or compiled code that releases the interpreter's
lock. Batches never cross shards,
so that a shard does not depend on the shards before it or on its worker.
"""

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.bulk.options import RowSettings
from attree.bulk.output import REASONS, Rows, Statistics, make_folders, write_shard
from attree.parsers.batches import Prepared, in_threads, threads_of
from attree.parsers.find import ParserSource
from attree.parsers.parser import Parser
from attree.raw_text.lines import EMPTY, InputLine, parse_lines
from attree.raw_text.words import Tokeniser, tokeniser
from attree.trees import FALLBACK, OK, TOO_LONG
from attree.trees.constraints import Constraints
from attree.trees.trees import Trees

#: The number of shards that a pipeline has in flight, so that no thread has to wait.
IN_FLIGHT = 3
_BATCHES_WAITING = 4
#: Words of the longest sentence that gets a tree, since spans are written in 16 bits.
_LONGEST = 30_000


@dataclass(frozen=True, slots=True)
class LinesOfFile:
    """One part of a shard's payload: lines of one file.

    Attributes:
        file: the file's name in the output.
        kind: a key of :data:`attree.raw_text.lines.PARSERS`.
        first: 1-based number of the first line.
        payload: bytes of the lines.
    """

    file: str
    kind: str
    first: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Work:
    """A shard to parse."""

    number: int
    sources: tuple[LinesOfFile, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The statistics of a parsed shard, and the seconds that the encoder took for it."""

    number: int
    statistics: Statistics
    encoder_seconds: float


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
    id: list[str | None] = field(default_factory=list)
    constraints: list[Constraints | None] = field(default_factory=list)
    malformed: list[str] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    prepared: Prepared | None = None
    trees: list[Trees] = field(default_factory=list)
    encoder_seconds: float = 0.0


class Pipeline:
    """Parses shards and writes them.

    Args:
        parser: makes trees of batches.
        words: splits lines into words.
        settings: how rows are made.
        folder: the output folder.
    """

    def __init__(
        self, parser: Parser, words: Tokeniser, settings: RowSettings, folder: Path
    ) -> None:
        self._parser, self._words = parser, words
        self._settings, self._folder = settings, folder
        make_folders(folder, settings.output)
        self._threads = threads_of(parser.model)
        self._waiting: queue.Queue[Any] = queue.Queue()
        self._prepared: queue.Queue[Any] = queue.Queue(1)
        self._encoded: queue.Queue[Any] = queue.Queue(_BATCHES_WAITING)
        for step in (self._prepare_all, self._encode_all, self._finish_all):
            threading.Thread(target=step, name=step.__name__, daemon=True).start()

    def submit(self, work: Work) -> Future[Done]:
        """Start a shard; its future is done when it is written, or holds the error."""
        future: Future[Done] = Future()
        future.set_running_or_notify_cancel()
        self._waiting.put((work, future))
        return future

    def _prepare_all(self) -> None:
        while True:
            work, future = self._waiting.get()
            rows = _run_step(future, partial(self._prepare, work, future))
            if rows is not None:
                self._prepared.put(rows)

    def _prepare(self, work: Work, future: Future[Done]) -> _Rows:
        rows = _Rows(work.number, future)
        for source in work.sources:
            lines = parse_lines(
                source.payload,
                kind=source.kind,
                column=self._settings.column,
                first=source.first == 1,
                id_field=self._settings.id,
            )
            self._add(rows, source, lines)
            rows.malformed += [
                f"{source.file}: line {number}: {line.reason}"
                for number, line in enumerate(lines, source.first)
                if line.reason
            ]
            del rows.malformed[REASONS:]
        self._choose(rows)
        return rows

    def _add(self, rows: _Rows, source: LinesOfFile, lines: list[InputLine]) -> None:
        """Add a row for each sentence of lines; a line without sentences has a row too."""
        rows.lines += len(lines)
        split = self._words([line.text for line in lines])
        for place, (line, sentences) in enumerate(zip(lines, split, strict=True), source.first):
            status = TOO_LONG if sentences is None else line.status
            for number, words in enumerate([[]] if sentences is None else sentences):
                rows.file.append(source.file)
                rows.line.append(place)
                rows.sentence.append(number)
                rows.words.append(words)
                rows.status.append(status if words or status != OK else EMPTY)
                rows.id.append(line.id)
                rows.constraints.append(line.constraints)

    def _choose(self, rows: _Rows) -> None:
        """Tokenise the sentences to parse into pieces, and make batches of them."""
        rows.asked = [row for row, status in enumerate(rows.status) if status == OK]
        constraints = [rows.constraints[row] for row in rows.asked]
        rows.prepared = self._parser.prepare([rows.words[row] for row in rows.asked], constraints)
        for row, status in zip(rows.asked, rows.prepared.status.tolist(), strict=True):
            if status == TOO_LONG and self._settings.too_long == "error":
                problem = f"a sentence of {len(rows.words[row]):,} words is too long"
                file, line, fix = rows.file[row], rows.line[row], "choose another --too-long"
                raise AttreeError("too-long", problem, file=file, line=line, fix=fix)

    def _settle(self, rows: _Rows) -> list[int]:
        """Set the status of each row; return the positions of prepared rows that have trees.

        The words of other rows are removed.
        """
        assert rows.prepared is not None
        kept = {OK, TOO_LONG} if self._settings.too_long == FALLBACK else {OK}
        positions = []
        for position, (row, status) in enumerate(
            zip(rows.asked, rows.prepared.status.tolist(), strict=True)
        ):
            rows.status[row] = status
            if status in kept and len(rows.words[row]) <= _LONGEST:
                positions.append(position)
        with_tree = {rows.asked[position] for position in positions}
        rows.words = [words if row in with_tree else [] for row, words in enumerate(rows.words)]
        return positions

    def _encode_all(self) -> None:
        while True:
            rows = self._prepared.get()
            assert rows.prepared is not None
            groups = rows.prepared.batches
            every = in_threads(partial(_encode, rows), groups, min(self._threads, len(groups)))
            for group, features in zip(groups, every, strict=True):
                if features is None:
                    break
                self._encoded.put((rows, (group, features)))
            self._encoded.put((rows, None))

    def _finish_all(self) -> None:
        if self._threads > 1:  # the encoder's threads have a core each, and this one shares them
            torch.set_num_threads(1)
        while True:
            rows, encoded = self._encoded.get()
            if rows.future.done():
                continue
            if encoded is not None:
                rows.trees.append(_run_step(rows.future, partial(rows.prepared.decode, *encoded)))
                continue
            done = _run_step(rows.future, partial(self._write, rows))
            if done is not None:
                rows.future.set_result(done)

    def _write(self, rows: _Rows) -> Done:
        trees = _in_order(rows, self._settle(rows))
        prepared = rows.prepared
        assert prepared is not None
        pieces = prepared.pieces_of(np.flatnonzero(prepared.status == OK))
        statistics = Statistics(
            lines=rows.lines,
            sentences=len(rows.status) - rows.status.count(EMPTY),
            words=sum(map(len, rows.words)),
            pieces=sum(len(sentence.ids) for sentence in pieces),
            unknown_words=sum(sentence.n_unknown for sentence in pieces),
            status=Counter(rows.status),
            malformed=rows.malformed,
        )
        whole = Rows(rows.file, rows.line, rows.sentence, rows.status, rows.words, trees, rows.id)
        write_shard(self._folder, rows.number, whole, statistics, self._settings.output)
        return Done(rows.number, statistics, rows.encoder_seconds)


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """Everything that a worker needs besides the shards.

    Attributes:
        parser: the parser to load.
        settings: how rows are made.
        folder: the output folder.
        device: ``cpu``, ``cuda`` and so on; by default a GPU if there is one.
        threads: threads of the encoder; by default torch's choice.
    """

    parser: ParserSource
    settings: RowSettings
    folder: str
    device: str | None = None
    threads: int | None = None

    def pipeline(self) -> Pipeline:
        """Load the parser and start a pipeline."""
        settings = self.settings
        make_words = tokeniser(settings.tokenizer, split=settings.sentences)
        loaded = Parser.of(
            self.parser,
            device=self.device,
            threads=self.threads,
            max_words=settings.max_words,
            tokens_per_batch=settings.tokens_per_batch,
        )
        return Pipeline(loaded, make_words, settings, Path(self.folder))


def _in_order(rows: _Rows, positions: list[int]) -> Trees:
    """Return a tree for every row, without spans if the row has no tree."""
    assert rows.prepared is not None
    trees = rows.prepared.assemble(rows.trees).take(np.array(positions, np.int64))
    good = np.array(rows.asked, np.int64)[positions]
    n_words, n_spans = (np.zeros(len(rows.status), np.int64) for _ in range(2))
    n_words[good], n_spans[good] = trees.n_words, trees.n_spans
    return replace(trees, n_words=n_words, offsets=np.concatenate(([0], np.cumsum(n_spans))))


def _encode(rows: _Rows, group: NDArray[np.int64]) -> Any:
    """Return the features of one batch of a shard; None if its future holds an error."""
    assert rows.prepared is not None
    began = time.perf_counter()
    features = _run_step(rows.future, partial(rows.prepared.encode, group))
    rows.encoder_seconds += time.perf_counter() - began
    return features


def _run_step(future: Future[Done], step: Callable[[], Any]) -> Any:
    """Run a step of a shard; an error goes to the shard's future, and the pipeline goes on."""
    try:
        return step()
    except BaseException as error:
        if not future.done():
            future.set_exception(error)
        return None
