"""Hand shards out to workers and collect results until all are done or a user stops the run."""

import contextlib
import errno
import os
import queue
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from attree.base.errors import AttreeError
from attree.base.process import end, end_after
from attree.base.terminal import say
from attree.bulk.folder import FAILED_SHARDS, PROGRESS, check_there, note
from attree.bulk.manifest import LinesOfFile, Manifest, Shard, payloads
from attree.bulk.output import Statistics
from attree.bulk.pipeline import Done, WorkerSetup

#: How often a shard is tried before it counts as failed.
ATTEMPTS = 3

#: The fix that an error names when a run ends too early.
RUN_AGAIN = "finished shards are kept: run the same command again to continue"

_SECONDS_BETWEEN_NOTES = 5.0
_SECONDS_TO_END = 10.0
#: Time for shards in flight after Ctrl-C; a shard that is not written then is left to the next run.
_SECONDS_TO_FINISH = 8.0


class Workers(Protocol):
    """Where shards are parsed: this process or Dask workers."""

    @property
    def slots(self) -> int:
        """The number of shards that can be in flight at once."""

    def submit(self, number: int, sources: Sequence[LinesOfFile]) -> Any:
        """Start a shard; return a future with ``result()`` and ``add_done_callback()``."""

    def check(self, error: BaseException | None = None) -> None:
        """Check on the workers; called about every second, and with the error of a shard.

        Raises:
            AttreeError: no worker can go on.
        """


@dataclass(slots=True)
class Outcome:
    """The result of a run.

    Attributes:
        statistics: statistics of the shards written by this run.
        seconds: time from the first shard handed out to the last one written.
        encoder_seconds: time in the encoder, summed over workers.
        failed_shards: shard number → reason.
        stopped: whether a user asked to stop early.
    """

    statistics: Statistics = field(default_factory=Statistics)
    seconds: float = 0.0
    encoder_seconds: float = 0.0
    failed_shards: dict[int, str] = field(default_factory=dict)
    stopped: bool = False


class Driver:
    """Hands out the unfinished shards of a manifest.

    Args:
        manifest: of the output folder.
        workers: where shards are parsed.
        setup: what the workers were made of.
        advance: called with the number of lines just parsed.
    """

    def __init__(
        self,
        manifest: Manifest,
        workers: Workers,
        setup: WorkerSetup,
        advance: Callable[[int], None],
    ) -> None:
        self._manifest, self._workers, self._advance = manifest, workers, advance
        self._folder, self._column = Path(setup.folder), setup.settings.column
        self._ended: queue.SimpleQueue[tuple[Shard, Any]] = queue.SimpleQueue()
        self._in_flight = self._attempt = 0
        self._again: list[Shard] = []
        self._outcome = Outcome()
        self._began = self._noted = time.monotonic()

    def run(self, missing: list[Shard]) -> Outcome:
        """Parse the unfinished shards.

        Raises:
            AttreeError: the input has changed, the disk is full, or the workers are lost.
        """
        (self._folder / FAILED_SHARDS).unlink(missing_ok=True)
        self._note()
        try:
            for self._attempt in range(1, ATTEMPTS + 1):
                self._hand_out(missing)
                missing = sorted(self._again, key=lambda shard: shard.number)
                self._again = []
        except BaseException:
            self._drain()
            raise
        finally:
            self._outcome.seconds = time.monotonic() - self._began
            self._note()
            if failed := self._outcome.failed_shards:
                note(self._folder, FAILED_SHARDS, {str(k): why for k, why in failed.items()})
        return self._outcome

    @contextlib.contextmanager
    def heeding_ctrl_c(self) -> Iterator[None]:
        """Let the first Ctrl-C ask for an orderly end within seconds, the second end at once."""

        def handle(number: int, frame: Any) -> None:
            if self._outcome.stopped:
                end(130)
            self._outcome.stopped = True
            # shards in flight that take too long are left to the next run
            end_after(_SECONDS_TO_FINISH, 130)
            message = "\nattree: finishing the shards in flight, "
            message += f"{_SECONDS_TO_FINISH:.0f} s at most; Ctrl-C again stops now\n"
            os.write(2, message.encode())  # the signal may have interrupted a print

        before = signal.signal(signal.SIGINT, handle)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _hand_out(self, shards: list[Shard]) -> None:
        outcome, alone = self._outcome, self._attempt == ATTEMPTS
        for shard, sources in payloads(self._manifest, shards, column=self._column):
            # the last try is alone: a bad shard can harm no other shard then
            while self._in_flight >= (1 if alone else self._workers.slots) and not outcome.stopped:
                self._collect()
            if outcome.stopped:
                break
            future = self._workers.submit(shard.number, sources)
            self._in_flight += 1
            future.add_done_callback(lambda done, shard=shard: self._ended.put((shard, done)))
        while self._in_flight:
            self._collect()

    def _drain(self) -> None:
        """Wait a moment for the shards in flight, so that none is interrupted while written."""
        until = time.monotonic() + _SECONDS_TO_END
        with contextlib.suppress(queue.Empty):
            while self._in_flight:
                self._ended.get(timeout=max(0.0, until - time.monotonic()))
                self._in_flight -= 1

    def _collect(self) -> None:
        """Wait a moment for a shard to end, and record its result."""
        self._workers.check()
        check_there(self._folder)
        if time.monotonic() - self._noted > _SECONDS_BETWEEN_NOTES:
            self._note()
        try:
            shard, future = self._ended.get(timeout=0.5)
        except queue.Empty:
            return
        self._in_flight -= 1
        try:
            done: Done = future.result()
        except Exception as error:
            self._failed(shard, error)
        else:
            self._outcome.statistics += done.statistics
            self._outcome.encoder_seconds += done.encoder_seconds
            self._advance(shard.lines)

    def _failed(self, shard: Shard, error: BaseException) -> None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise error
        self._workers.check(error)
        reason, first = _reason(error), shard.parts[0]
        name = self._manifest.files[first.file].name
        where = f"{name}, line {first.first:,} and {shard.lines - 1:,} more"
        if self._attempt < ATTEMPTS:
            say(f"attree: shard {shard.number} ({where}) failed and will be tried again: {reason}")
            self._again.append(shard)
        else:
            say(f"attree: shard {shard.number} ({where}) failed {ATTEMPTS} times: {reason}")
            self._outcome.failed_shards[shard.number] = f"{where}: {reason}"

    def _note(self) -> None:
        self._noted = time.monotonic()
        statistics, seconds = self._outcome.statistics, self._noted - self._began
        progress = {
            "lines": statistics.lines,
            "sentences": statistics.sentences,
            "seconds": round(seconds, 1),
            "sentences_per_second": round(statistics.sentences / max(seconds, 1e-9), 1),
            "shards_in_flight": self._in_flight,
            "shards_failed": len(self._again) + len(self._outcome.failed_shards),
        }
        # a full disk or a removed folder is reported elsewhere
        with contextlib.suppress(OSError, AttreeError):
            note(self._folder, PROGRESS, progress)


def _reason(error: BaseException) -> str:
    name = type(error).__name__
    if name == "KilledWorker":  # a class of Dask, which is imported only if used
        return "its worker died, perhaps for want of memory"
    return (str(error).strip().splitlines() or [name])[0]


def gpus(device: str | None) -> int:
    """Return the number of GPUs that workers may use."""
    if device is not None and not device.startswith("cuda"):
        return 0
    import torch

    return torch.cuda.device_count() if device in (None, "cuda") else 1
