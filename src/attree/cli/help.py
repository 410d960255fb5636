"""Help on a terminal of 80 columns: an option a line or two, grouped, with an example.

Cyclopts' own help boxes its groups and gives much of the width to names of types. Here options
stand with what they are for; an option's group is its ``group``; an example is a paragraph of the
docstring. It is the same text in a terminal, a pipe and a file.

``attree --options`` lists the options and arguments of all commands. A name means one thing,
whichever command has it: its help begins with that, up to the first colon or full stop, and its
values, or the items of its list, have one type.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from attree.base.registry import definition

if TYPE_CHECKING:
    from cyclopts import App, Argument

_WIDTH = 80
#: Widest name that its description stands beside; of a wider one it stands below.
_WIDEST = 24

_ARGUMENTS, _REQUIRED, _REST = "Arguments", "Required", "Options"
#: The groups that cyclopts puts options in that name none.
_UNNAMED = ("", "Parameters", "Arguments")

#: (name, what it is for)
Row = tuple[str, str]
HELP = ("--help", "Show this message and stop.")


def of_command(app: App, path: str, below: Iterable[Row] = ()) -> str:
    """Return the help of a command: usage, what it does, its arguments and options by group.

    A command without a function is a group of the commands ``below``; one may have both.
    """
    if app.default_command is None:
        return page(f"{path} COMMAND", app.help, {"Commands": below, _REST: [HELP]})
    groups: dict[str, list[Row]] = {_ARGUMENTS: [], _REQUIRED: []}
    for argument in options(app):
        groups.setdefault(_title(argument), []).append(row(argument))
    rest = groups.pop(_REST, [])
    names = [_label(argument) for argument in options(app) if argument.index is not None]
    sections = {**groups, "Commands": below, _REST: [*rest, HELP]}
    return page(" ".join([path, *names]), app.help, sections)


def page(usage: str, purpose: str, sections: Mapping[str, Iterable[Row]]) -> str:
    """Return usage, what a command or a group of commands is for, and its sections."""
    tables = [[title, *_table(list(rows))] for title, rows in sections.items()]
    shown = [f"{title}:\n" + "\n".join(lines) for title, *lines in tables if lines]
    return "\n\n".join([f"Usage: {usage} [OPTIONS]", *_paragraphs(purpose), *shown])


def options(app: App) -> list[Argument]:
    """Return the arguments and options of a command that are shown, in their order."""
    arguments = app.assemble_argument_collection(parse_docstring=True)
    return [argument for argument in arguments if argument.show and argument.parse]


def row(argument: Argument) -> Row:
    """Return an argument's or option's names, and what it is for with its default."""
    name = _label(argument).strip("[]…")
    if argument.index is None:
        name = ", ".join(name for name in argument.names if name not in argument.negatives)
        name += "".join(f"/{name}" for name in argument.negatives[:1])
    return name, " ".join(filter(None, (argument.parameter.help, _default(argument))))


def kind(argument: Argument) -> str:
    """Return the type of an argument's value, of a list that of an item: ``Path``."""
    hint: Any = argument.hint
    while inner := [each for each in get_args(hint) if each not in (type(None), ...)]:
        hint = inner[0]
    return str(getattr(hint, "__name__", hint))


def first_sentence(text: str) -> str:
    """Return the first sentence of a docstring, without its full stop."""
    words = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    return words.partition(". ")[0].rstrip(".")


def said_by(place: str) -> str:
    """Return what ``module:name`` is for: a function's docstring, or the ``help`` of an ``App``.

    The file is read and not imported: most commands import what takes a while.
    """
    command = definition(place)
    if isinstance(command, ast.FunctionDef):
        return ast.get_docstring(command) or ""
    assert isinstance(command, ast.Call), place
    return next(ast.literal_eval(one.value) for one in command.keywords if one.arg == "help")


def _label(argument: Argument) -> str:
    """Return how an argument is written in the line of usage."""
    name = argument.field_info.name.upper() + ("…" if argument.token_count()[1] else "")
    return name if argument.required else f"[{name}]"


def _title(argument: Argument) -> str:
    if argument.index is not None:
        return _ARGUMENTS
    if argument.required:
        return _REQUIRED
    groups: Any = argument.parameter.group or ()
    return next((str(group.name) for group in groups if group.name not in _UNNAMED), _REST)


def _default(argument: Argument) -> str:
    """Return the default in words, where there is one worth a word."""
    default: Any = argument.parameter.show_default
    if not isinstance(default, str):
        field = argument.field_info
        if default is False or field.default in (field.empty, None, False, "", (), []):
            return ""
        default = field.default
    items = default if isinstance(default, list | tuple) else [default]
    return f"[default: {','.join(map(str, items))}]"


def _table(rows: list[Row]) -> Iterator[str]:
    fitting = [len(name) for name, _ in rows if len(name) <= _WIDEST]
    width = max(fitting, default=_WIDEST) + 2
    for name, text in rows:
        lines = textwrap.wrap(text, _WIDTH - width - 2, break_on_hyphens=False) or [""]
        if len(name) > _WIDEST:
            yield f"  {name}"
        else:
            yield f"  {name:<{width}}{lines.pop(0)}".rstrip()
        yield from (f"  {'':<{width}}{line}" for line in lines)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs without those of arguments; ``Example`` keeps its lines."""
    for paragraph in inspect.cleandoc(text).partition("\n\nArgs:")[0].split("\n\n"):
        if paragraph.startswith("Example"):
            yield textwrap.indent(paragraph, "  ")
        else:
            yield _filled(" ".join(paragraph.split()), _WIDTH - 2, 2, hyphens=False)


def _filled(text: str, width: int, indent: int, *, hyphens: bool) -> str:
    """Return text in lines of so many columns, all of them indented."""
    before = " " * indent
    return textwrap.fill(
        text, width, initial_indent=before, subsequent_indent=before, break_on_hyphens=hyphens
    )


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
    for name in commands_of(app):
        command, words = app[name], (*path, name)
        for one in options(command) if command.default_command is not None else ():
            # what follows the first colon or full stop holds of one command only
            meaning = re.split(r"[:.](?:\s|$)", " ".join((one.parameter.help or "").split()))[0]
            yield Declared(one.name, meaning, kind(one), " ".join(words))
        yield from declared(command, words)


def commands_of(group: App) -> list[str]:
    """Return the names of the commands of a group."""
    return [name for name in group if not name.startswith("-")]


def table(app: App) -> str:
    """Return the options by name: meaning, type, commands."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for one in declared(app):
        rows.setdefault((one.name, one.meaning, one.kind), []).append(one.command)
    # arguments, whose names are in capitals, follow options
    ordered = sorted(rows.items(), key=lambda row: (not row[0][0].startswith("-"), row))
    return "\n".join(
        f"{name} ({kind}): {meaning}\n{_filled(', '.join(commands), _WIDTH, 4, hyphens=True)}"
        for (name, meaning, kind), commands in ordered
    )
