"""Say something, or show progress, in a terminal: no control character of a text reaches it."""

import datetime
import json
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

#: C0, DEL and C1 controls, and the marks that change the direction of text.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def safe(text: str) -> str:
    """Return text for a terminal: a control character is shown as ``\\x1b``, never sent."""
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


#: Control characters that JSON does not escape, and surrogates, which have no encoding.
_UNPRINTED = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def safe_lines(text: str) -> str:
    """Return lines for a terminal, each made :func:`safe`."""
    return "\n".join(map(safe, text.split("\n")))


def in_json(value: Any, *, indent: int | None = None) -> str:
    """Return JSON for a terminal: letters as they are, control characters escaped."""
    text = json.dumps(value, indent=indent, sort_keys=indent is not None, ensure_ascii=False)
    return _UNPRINTED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def say(line: str) -> None:
    """Print a line to stderr, made :func:`safe`."""
    print(safe(line), file=sys.stderr, flush=True)


def unread(unknown: int, words: int) -> str | None:
    """Return a warning if the encoder does not know pieces of many words, else None.

    Args:
        unknown: how many words have an unknown piece.
        words: how many words there are.
    """
    if unknown * 5 < words or not unknown:
        return None
    return (
        f"attree: {unknown:,} of {words:,} words ({unknown / words:.0%}) have word pieces "
        "unknown to the encoder: it has hardly read this script"
    )


def width(text: str) -> int:
    """Return the width of text on a terminal: Chinese and Korean characters take two columns."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


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
    began = shown = time.monotonic()
    before = done

    def line(now: float) -> str:
        rate = (done - before) / (now - began) if now > began else 0.0
        seconds_left = round((total - done) / rate) if rate else 0
        left = f", {datetime.timedelta(seconds=seconds_left)} left" if rate and done < total else ""
        speed = f", {f'{rate:,.0f}' if rate >= 10 else f'{rate:.2g}'} a second" if rate else ""
        return safe(f"{what}: {done:,} of {total:,} {unit}{speed}{left}")

    def advance(count: int) -> None:
        nonlocal done, shown
        done += count
        now = time.monotonic()
        if now - shown >= pause and done < total:
            shown = now
            show(line(now))

    with ExitStack() as stack:
        show: Callable[[str], None] = partial(print, file=sys.stderr, flush=True)
        pause = _SECONDS_BETWEEN_LINES
        if sys.stderr.isatty():
            show, pause = _bar(stack, total, lambda: done), 0.0
        yield advance
        show(line(time.monotonic()))


def _bar(stack: ExitStack, total: int, done: Callable[[], int]) -> Callable[[str], None]:
    """Show a bar on stderr until the stack is closed; return what sets the text beside it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = BarColumn(bar_width=None), TextColumn("{task.description}", markup=False)
    bar = stack.enter_context(Progress(*columns, console=Console(stderr=True), expand=True))
    task = bar.add_task("", total=total, completed=done())
    return lambda text: bar.update(task, completed=done(), description=text)
