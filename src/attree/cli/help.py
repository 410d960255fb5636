"""Help for a terminal of 80 columns: one or two lines per option, in groups, with an example.

Cyclopts' own help draws boxes around groups and gives much of the width to names of types. Here an
option is shown with its purpose; its group is its ``group``; examples are paragraphs of the
docstring. The text is the same in a terminal, a pipe and a file.

``attree --options`` lists the options and arguments of all commands. A name has one meaning and
one type in every command: its help begins with the meaning, up to the first colon or full stop.
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
#: Descriptions of names up to this width stand beside them, others below.
_WIDEST = 24

_ARGUMENTS, _REQUIRED, _REST = "Arguments", "Required", "Options"
#: The groups of cyclopts for options without a group.
_UNNAMED = ("", "Parameters", "Arguments")

#: (name, purpose)
Row = tuple[str, str]
HELP = ("--help", "Show this message and stop.")


def of_command(app: App, path: str, below: Iterable[Row] = ()) -> str:
    """Return the help of a command: usage, purpose, arguments and options by group.

    A command without a function is a group of the commands ``below``; a command may be both.
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
    """Return a page of help: usage, purpose, and sections of rows."""
    tables = [[title, *_table(list(rows))] for title, rows in sections.items()]
    shown = [f"{title}:\n" + "\n".join(lines) for title, *lines in tables if lines]
    return "\n\n".join([f"Usage: {usage} [OPTIONS]", *_paragraphs(purpose), *shown])


def options(app: App) -> list[Argument]:
    """Return the visible arguments and options of a command, in their order."""
    arguments = app.assemble_argument_collection(parse_docstring=True)
    return [argument for argument in arguments if argument.show and argument.parse]


def row(argument: Argument) -> Row:
    """Return the names of an argument or option, and its purpose with its default."""
    name = _label(argument).strip("[]…")
    if argument.index is None:
        name = ", ".join(name for name in argument.names if name not in argument.negatives)
        name += "".join(f"/{name}" for name in argument.negatives[:1])
    return name, " ".join(filter(None, (argument.parameter.help, _default(argument))))


def kind(argument: Argument) -> str:
    """Return the type of an argument's value, such as ``Path``; for a list, that of its items."""
    hint: Any = argument.hint
    while inner := [part for part in get_args(hint) if part not in (type(None), ...)]:
        hint = inner[0]
    return str(getattr(hint, "__name__", hint))


def first_sentence(text: str) -> str:
    """Return the first sentence of a docstring, without its full stop."""
    words = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    return words.partition(". ")[0].rstrip(".")


def purpose_of(reference: str) -> str:
    """Return the docstring of the function, or the ``help`` of the ``App``, ``module:name``.

    The file is parsed, not imported: the imports of most commands take a while.
    """
    command = definition(reference)
    if isinstance(command, ast.FunctionDef):
        return ast.get_docstring(command) or ""
    assert isinstance(command, ast.Call), reference
    return next(ast.literal_eval(word.value) for word in command.keywords if word.arg == "help")


def _label(argument: Argument) -> str:
    """Return an argument as it is written in the line of usage."""
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
    """Return the default as text; empty if there is none, or a trivial one."""
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
    """Yield the paragraphs of a docstring before its arguments; ``Example`` keeps its lines."""
    for paragraph in inspect.cleandoc(text).partition("\n\nArgs:")[0].split("\n\n"):
        if paragraph.startswith("Example"):
            yield textwrap.indent(paragraph, "  ")
        else:
            yield _filled(" ".join(paragraph.split()), _WIDTH - 2, 2, hyphens=False)


def _filled(text: str, width: int, indent: int, *, hyphens: bool) -> str:
    """Wrap text into indented lines of at most ``width`` columns."""
    before = " " * indent
    return textwrap.fill(
        text, width, initial_indent=before, subsequent_indent=before, break_on_hyphens=hyphens
    )


@dataclass(frozen=True, slots=True)
class Declared:
    """An option or argument of one command.

    Attributes:
        name: ``--heads``; in capitals for an argument.
        meaning: its meaning in all commands.
        kind: type of its value; for a list, that of its items.
        command: the command.
    """

    name: str
    meaning: str
    kind: str
    command: str


def declared(app: App, path: tuple[str, ...] = ()) -> Iterator[Declared]:
    """Yield the options and arguments of an app's commands, in their order."""
    for name in commands_of(app):
        command, words = app[name], (*path, name)
        for option in options(command) if command.default_command is not None else ():
            # text after the first colon or full stop is about one command only
            meaning = re.split(r"[:.](?:\s|$)", " ".join((option.parameter.help or "").split()))[0]
            yield Declared(option.name, meaning, kind(option), " ".join(words))
        yield from declared(command, words)


def commands_of(group: App) -> list[str]:
    """Return the names of the commands of a group."""
    return [name for name in group if not name.startswith("-")]


def table(app: App) -> str:
    """Return a table of all options: name, type, meaning, commands."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for option in declared(app):
        rows.setdefault((option.name, option.meaning, option.kind), []).append(option.command)
    # arguments, in capitals, come after options
    ordered = sorted(rows.items(), key=lambda row: (not row[0][0].startswith("-"), row))
    return "\n".join(
        f"{name} ({kind}): {meaning}\n{_filled(', '.join(commands), _WIDTH, 4, hyphens=True)}"
        for (name, meaning, kind), commands in ordered
    )
