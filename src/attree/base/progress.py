"""Show the progress of long work: a bar on a terminal, plain lines in a log."""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from attree.base.text import safe

#: :func:`progress`, or :func:`silent`.
Progress = Callable[..., AbstractContextManager[Callable[[int], None]]]

_SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def silent(*_: object, **__: object) -> Iterator[Callable[[int], None]]:
    """Yield ``advance(count)`` as :func:`progress` does, and show nothing."""
    yield lambda count: None


@contextmanager
def progress(
    what: str, *, total: int, unit: str = "sentences", done: int = 0
) -> Iterator[Callable[[int], None]]:
    """Yield ``advance(count)``; show on stderr how much is done, the rate and the time left.

    On a terminal this is a bar; elsewhere it is one line every ten seconds and one at the end, so
    that a log stays readable.

    Args:
        what: the name of the work.
        total: how many units there are.
        unit: what is counted.
        done: how many were done before; they do not count in the rate.
    """
    if sys.stderr.isatty():
        yield from _bar(what, total, unit, done)
        return
    began = shown = time.monotonic()
    before = done

    def advance(count: int) -> None:
        nonlocal done, shown
        done += count
        now = time.monotonic()
        if now - shown >= _SECONDS_BETWEEN_LINES and done < total:
            shown = now
            say(now - began)

    def say(seconds: float) -> None:
        rate = (done - before) / seconds if seconds > 0 else 0.0
        seconds_left = round((total - done) / rate) if rate else 0
        left = f", {datetime.timedelta(seconds=seconds_left)} left" if rate and done < total else ""
        speed = f", {_round(rate)} a second" if rate else ""
        line = f"{what}: {done:,} of {total:,} {unit}{speed}{left}"
        print(safe(line), file=sys.stderr, flush=True)

    yield advance
    say(time.monotonic() - began)


def _round(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def _bar(what: str, total: int, unit: str, done: int) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Any) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{unit}, {_round(speed)}/s" if speed else unit)

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total, completed=done)
        yield lambda count: bar.advance(task, count)
