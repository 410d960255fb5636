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
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

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
_HELP = ("--help", "Show this message and stop.")


def of_command(app: App, path: str, below: Iterable[Row] = ()) -> str:
    """Return the help of a command: usage, what it does, its arguments and options by group.

    A command without a function is a group of the commands ``below``; one may have both.
    """
    if app.default_command is None:
        return of_group(path, app.help, {"Commands": below, _REST: [_HELP]})
    arguments = options(app)
    names = [_label(one) for one in arguments if _is_positional(one)]
    parts = [f"Usage: {' '.join([path, *names, '[OPTIONS]'])}", *_paragraphs(app.help)]
    groups: dict[str, list[Row]] = {_ARGUMENTS: [], _REQUIRED: []}
    for one in arguments:
        groups.setdefault(_title(one), []).append(row(one))
    rest = groups.pop(_REST, [])
    groups["Commands"] = list(below)
    groups[_REST] = [*rest, _HELP]
    return "\n\n".join([*parts, *_sections(groups)])


def of_group(path: str, about: str, sections: Mapping[str, Iterable[Row]]) -> str:
    """Return the help of what has commands: usage, what it is for, and a line for each command."""
    parts = [f"Usage: {path} COMMAND [OPTIONS]", *_paragraphs(about), *_sections(sections)]
    return "\n\n".join(parts)


def options(app: App) -> list[Argument]:
    """Return the arguments and options of a command that are shown, in their order."""
    found = app.assemble_argument_collection(parse_docstring=True)
    return [one for one in found if one.show and one.parse]


def row(one: Argument) -> Row:
    """Return an argument's or option's names, and what it is for with its default."""
    name = _label(one).strip("[]…")
    if not _is_positional(one):
        name = ", ".join(name for name in one.names if name not in one.negatives)
        name += "".join(f"/{name}" for name in one.negatives[:1])
    return name, " ".join(filter(None, (one.parameter.help, _default(one))))


def kind(one: Argument) -> str:
    """Return the type of an argument's value, of a list that of an item: ``Path``."""
    hint: Any = one.hint
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
    module, _, name = place.partition(":")
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None, module
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node) or ""
        match node:
            case ast.Assign(targets=[ast.Name(id=given)], value=ast.Call(keywords=keywords)) if (
                given == name
            ):
                return next(ast.literal_eval(one.value) for one in keywords if one.arg == "help")
    return ""


def _is_positional(one: Argument) -> bool:
    return one.index is not None


def _label(one: Argument) -> str:
    """Return how an argument is written in the line of usage."""
    name = one.field_info.name.upper()
    if one.token_count()[1]:
        name += "…"
    return name if one.required else f"[{name}]"


def _title(one: Argument) -> str:
    if _is_positional(one):
        return _ARGUMENTS
    groups: Any = one.parameter.group or ()
    named = [group.name for group in groups if group.name not in _UNNAMED]
    if one.required:
        return _REQUIRED
    return str(named[0]) if named else _REST


def _default(one: Argument) -> str:
    """Return the default in words, where there is one worth a word."""
    shown = one.parameter.show_default
    if isinstance(shown, str):
        return f"[default: {shown}]"
    default: Any = one.field_info.default
    if default is one.field_info.empty or default in (None, False, "", (), []) or shown is False:
        return ""
    if isinstance(default, list | tuple):
        default = ",".join(map(str, default))
    return f"[default: {default}]"


def _sections(groups: Mapping[str, Iterable[Row]]) -> Iterator[str]:
    for title, rows in groups.items():
        if rows := list(rows):
            yield "\n".join([f"{title}:", *_table(rows)])


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
    for name in [name for name in app if not name.startswith("-")]:
        found, place = app[name], (*path, name)
        if found.default_command is not None:
            for one in options(found):
                yield Declared(
                    one.name, _meaning(one.parameter.help or ""), kind(one), " ".join(place)
                )
        yield from declared(found, place)


def table(app: App) -> str:
    """Return the options by name: meaning, type, commands."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for one in declared(app):
        rows.setdefault((one.name, one.meaning, one.kind), []).append(one.command)
    return "\n".join(
        f"{name} ({kind}): {meaning}\n{_filled(', '.join(commands), _WIDTH, 4, hyphens=True)}"
        for (name, meaning, kind), commands in sorted(rows.items(), key=lambda row: _order(*row[0]))
    )


def _order(name: str, meaning: str, kind: str) -> tuple[bool, str, str, str]:
    return not name.startswith("-"), name, meaning, kind


def _meaning(text: str) -> str:
    return re.split(r"[:.](?:\s|$)", " ".join(text.split()))[0]
