"""Parse shards in memory by threads with short queues between them.

One thread reads lines, tokenises and makes batches; one runs the encoder; one decodes, puts rows
back in input order and writes the shard. Where the encoder has several cores, a thread for each
encodes and decodes whole batches: features stay in the cache of their core, and no third thread
wants a share of it. Batches never cross shards, so that a shard does not depend on the shards
before it or on its worker.
"""

import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.base.process import give_memory_back, use_threads
from attree.bulk.manifest import LinesOfFile
from attree.bulk.options import RowSettings
from attree.bulk.output import REASONS, Rows, Statistics, make_folders, write_shard
from attree.parsers.batches import Prepared, threads_of
from attree.parsers.find import ParserSource
from attree.parsers.parser import Parser
from attree.raw_text.lines import EMPTY, InputLine, parse_lines
from attree.raw_text.words import Tokeniser, tokeniser
from attree.trees import FALLBACK, OK, TOO_LONG
from attree.trees.constraints import Constraints
from attree.trees.trees import Trees

#: The number of shards that a pipeline has in flight, so that no thread has to wait.
IN_FLIGHT = 3
#: Words of the longest sentence that gets a tree, since spans are written in 16 bits.
_LONGEST = 30_000
#: Lines after which freed memory goes back to the system: it grows with the number of batches.
_LINES_TO_TRIM = 1000


@dataclass(frozen=True, slots=True)
class Done:
    """The statistics of a parsed shard, and the seconds that the encoder took for it."""

    statistics: Statistics
    encoder_seconds: float


@dataclass(slots=True)
class _Shard:
    """A shard between reading and writing.

    Attributes:
        number, future: of the shard.
        lines: how many lines it has.
        malformed: reasons of the first malformed ones.
        rows: of its lines; their trees come last.
        asked: positions of the rows whose sentences are parsed.
        prepared: these sentences.
        trees: of the batches decoded so far.
        encoder_seconds: how long the encoder took for each batch; threads append to it.
    """

    number: int
    future: Future[Done]
    lines: int
    malformed: list[str]
    rows: Rows
    asked: list[int]
    prepared: Prepared
    trees: list[Trees] = field(default_factory=list)
    encoder_seconds: list[float] = field(default_factory=list)


class Pipeline:
    """Parses shards and writes them (a :class:`attree.bulk.driver.Workers` of one process).

    Args:
        parser: makes trees of batches.
        words: splits lines into words.
        settings: how rows are made.
        folder: the output folder.
    """

    slots = IN_FLIGHT

    def __init__(
        self, parser: Parser, words: Tokeniser, settings: RowSettings, folder: Path
    ) -> None:
        self._parser, self._words = parser, words
        self._settings, self._folder = settings, folder
        make_folders(folder, settings)
        self._since_trimmed = 0
        # the encoder wants the interpreter after every operation: by default it would wait 5 ms for
        # the thread that splits words
        sys.setswitchinterval(1e-4)
        self._threads = threads_of(parser.model)
        self._waiting: queue.Queue[Any] = queue.Queue()
        self._prepared: queue.Queue[Any] = queue.Queue(1)
        self._encoded: queue.Queue[Any] = queue.Queue(2 * max(2, self._threads))
        for step in (self._prepare_all, self._encode_all, self._finish_all):
            threading.Thread(target=step, name=step.__name__, daemon=True).start()

    def submit(self, number: int, sources: Sequence[LinesOfFile]) -> Future[Done]:
        """Start a shard; its future is done when it is written, or holds the error."""
        future: Future[Done] = Future()
        future.set_running_or_notify_cancel()
        self._waiting.put((number, sources, future))
        return future

    def check(self, error: BaseException | None = None) -> None:
        """Do nothing: a pipeline is lost only with its process."""

    def _prepare_all(self) -> None:
        while True:
            number, sources, future = self._waiting.get()
            shard = _run_step(future, partial(self._prepare, number, sources, future))
            if shard is not None:
                self._prepared.put(shard)

    def _prepare(self, number: int, sources: Sequence[LinesOfFile], future: Future[Done]) -> _Shard:
        """Read the lines, split sentences into pieces, and make batches of them."""
        rows, n_lines = Rows([], [], [], [], [], Trees.concatenate([]), []), 0
        constraints: list[Constraints | None] = []
        malformed: list[str] = []
        for source in sources:
            lines = parse_lines(
                source.payload,
                kind=source.kind,
                column=self._settings.column,
                first=source.first == 1,
                id_field=self._settings.id,
            )
            n_lines += len(lines)
            self._add(rows, constraints, source, lines)
            malformed += [
                f"{source.file}: line {place}: {line.reason}"
                for place, line in enumerate(lines, source.first)
                if line.reason
            ]
            del malformed[REASONS:]
        asked = [row for row, status in enumerate(rows.status) if status == OK]
        known = [constraints[row] for row in asked]
        prepared = self._parser.prepare([rows.words[row] for row in asked], known)
        too_long = np.flatnonzero(prepared.status == TOO_LONG)
        if too_long.size and self._settings.too_long == "error":
            row = asked[too_long[0]]
            problem = f"a sentence of {len(rows.words[row]):,} words is too long"
            file, line, fix = rows.file[row], rows.line[row], "choose another --too-long"
            raise AttreeError("too-long", problem, file=file, line=line, fix=fix)
        return _Shard(number, future, n_lines, malformed, rows, asked, prepared)

    def _add(
        self,
        rows: Rows,
        constraints: list[Constraints | None],
        source: LinesOfFile,
        lines: list[InputLine],
    ) -> None:
        """Add a row for each sentence of lines; a line without sentences has a row too."""
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
                constraints.append(line.constraints)

    def _encode_all(self) -> None:
        one_core = {"initializer": use_threads, "initargs": (1,)}
        step, how = (_parse, one_core) if self._threads > 1 else (_encode, {})
        pool = ThreadPoolExecutor(self._threads, **how)  # type: ignore[call-overload]
        while True:
            shard = self._prepared.get()
            for group in shard.prepared.batches:
                self._encoded.put((shard, pool.submit(step, shard, group)))
            self._encoded.put((shard, None))

    def _finish_all(self) -> None:
        while True:
            shard, batch = self._encoded.get()
            decode = None if batch is None else batch.result()
            if shard.future.done():
                continue
            if decode is not None:
                shard.trees.append(_run_step(shard.future, decode))
                continue
            done = _run_step(shard.future, partial(self._write, shard))
            if done is not None:
                shard.future.set_result(done)

    def _write(self, shard: _Shard) -> Done:
        self._settle(shard)
        rows, prepared = shard.rows, shard.prepared
        pieces = prepared.pieces_of(np.flatnonzero(prepared.status == OK))
        statistics = Statistics(
            lines=shard.lines,
            sentences=len(shard.asked),
            words=sum(map(len, rows.words)),
            pieces=sum(len(sentence.ids) for sentence in pieces),
            unknown_words=sum(sentence.n_unknown for sentence in pieces),
            status=Counter(rows.status),
            malformed=shard.malformed,
        )
        write_shard(self._folder, shard.number, rows, statistics, self._settings)
        self._since_trimmed += shard.lines
        if self._since_trimmed >= _LINES_TO_TRIM:
            self._since_trimmed = 0
            give_memory_back()
        return Done(statistics, sum(shard.encoder_seconds))

    def _settle(self, shard: _Shard) -> None:
        """Set the status and the tree of each row; a row without a tree loses its words."""
        rows, prepared = shard.rows, shard.prepared
        for row, status in zip(shard.asked, prepared.status.tolist(), strict=True):
            rows.status[row] = status
        kept = [OK, TOO_LONG] if self._settings.too_long == FALLBACK else [OK]
        with_tree = np.isin(prepared.status, kept) & (prepared.n_words <= _LONGEST)
        trees = prepared.assemble(shard.trees).take(np.flatnonzero(with_tree))
        n_words, n_spans = (np.zeros(len(rows.status), np.int64) for _ in range(2))
        good = np.array(shard.asked, np.int64)[with_tree]
        n_words[good], n_spans[good] = trees.n_words, trees.n_spans
        offsets = np.concatenate(([0], np.cumsum(n_spans)))
        rows.trees = replace(trees, n_words=n_words, offsets=offsets)
        kept_words = zip(rows.words, n_words.tolist(), strict=True)
        rows.words = [words if n else [] for words, n in kept_words]


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
        limits = {"max_words": settings.max_words, "tokens_per_batch": settings.tokens_per_batch}
        loaded = Parser.of(self.parser, device=self.device, threads=self.threads, **limits)
        return Pipeline(loaded, make_words, settings, Path(self.folder))


def _encode(shard: _Shard, group: NDArray[np.int64]) -> Callable[[], Trees] | None:
    """Encode one batch of a shard; return what decodes it, or None if its future holds an error."""
    if shard.future.done():
        return None
    began = time.perf_counter()
    features = _run_step(shard.future, partial(shard.prepared.encode, group))
    shard.encoder_seconds.append(time.perf_counter() - began)
    return None if features is None else partial(shard.prepared.decode, group, features)


def _parse(shard: _Shard, group: NDArray[np.int64]) -> Callable[[], Trees] | None:
    """Encode and decode one batch of a shard, as :func:`_encode`."""
    decode = _encode(shard, group)
    trees = None if decode is None else _run_step(shard.future, decode)
    return None if trees is None else lambda: trees


def _run_step(future: Future[Done], step: Callable[[], Any]) -> Any:
    """Run a step of a shard; an error goes to the shard's future, and the pipeline goes on."""
    try:
        return step()
    except BaseException as error:
        if not future.done():
            future.set_exception(error)
        return None
