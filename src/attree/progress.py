"""Progress of long work: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def progress(what: str, *, total: int, unit: str = "sentences") -> Iterator[Callable[[int], None]]:
    """Yield ``advance(count)``; show how far the work is on stderr.

    On a terminal this is a bar with the rate and the time left; elsewhere one line every ten
    seconds and one at the end, so that a log stays readable.
    """
    if sys.stderr.isatty():
        yield from _bar(what, total, unit)
        return
    began = said = time.monotonic()
    done = 0

    def advance(count: int) -> None:
        nonlocal done, said
        done += count
        now = time.monotonic()
        if now - said >= _SECONDS_BETWEEN_LINES and done < total:
            said = now
            _say(what, done, total, unit, now - began)

    yield advance
    _say(what, done, total, unit, time.monotonic() - began)


def _say(what: str, done: int, total: int, unit: str, seconds: float) -> None:
    rate = done / seconds if seconds > 0 else 0.0
    shown = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
    line = f"{what}: {done:,} of {total:,} {unit}, {shown} a second"
    print(line, file=sys.stderr, flush=True)


def _bar(what: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)
