"""``attree --options``: every option and argument, what it means, and the commands that have it.

It is read off the commands. A name means one thing, whichever command has it: its help begins with
that, up to the first colon or full stop, and its values, or the items of its list, have one type.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attree import help

if TYPE_CHECKING:
    from cyclopts import App

_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Declared:
    """An option or argument of one command.

    Attributes:
        name: ``--heads``; of an argument in capitals.
        meaning: what it is, without what holds of one command only.
        kind: type of its value, of a list that of an item.
        command: that has it.
    """

    name: str
    meaning: str
    kind: str
    command: str


def declared(app: App, path: tuple[str, ...] = ()) -> Iterator[Declared]:
    """Yield the options and arguments of an app's commands, in their order."""
    for name in [name for name in app if not name.startswith("-")]:
        found, place = app[name], (*path, name)
        if found.default_command is not None:
            for one in help.options(found):
                yield Declared(
                    one.name, _meaning(one.parameter.help or ""), help.kind(one), " ".join(place)
                )
        yield from declared(found, place)


def table(app: App) -> str:
    """Return the options by name: meaning, type, commands."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for one in declared(app):
        rows.setdefault((one.name, one.meaning, one.kind), []).append(one.command)
    return "\n".join(
        f"{name} ({kind}): {meaning}\n"
        + textwrap.fill(
            ", ".join(commands), _WIDTH, initial_indent="    ", subsequent_indent="    "
        )
        for (name, meaning, kind), commands in sorted(rows.items(), key=lambda row: _order(*row[0]))
    )


def _order(name: str, meaning: str, kind: str) -> tuple[bool, str, str, str]:
    return not name.startswith("-"), name, meaning, kind


def _meaning(text: str) -> str:
    return re.split(r"[:.](?:\s|$)", " ".join(text.split()))[0]
