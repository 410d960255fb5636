"""Help on a terminal of 80 columns: an option a line or two, grouped, with an example.

Typer's own help gives half the width to names of types. Here options stand with what they are for;
an option's group is its ``rich_help_panel``; an example is a paragraph of the docstring.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

#: Widest option that its description stands beside; of a wider one it stands below.
_WIDEST = 24

_PLAIN = "Options"


#: Names of the arguments that are files or folders to write.
_WRITTEN = ("output", "rejected", "selection", "summary", "svg")


class PlainCommand(TyperCommand):
    """A command whose help and errors are plain text, and that replaces none of its inputs."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command, unless an output is an input."""
        from attree.files import check_apart

        paths: dict[bool, list[Path]] = {True: [], False: []}
        for one in self.params:
            paths[one.name in _WRITTEN] += _paths(one, ctx)
        check_apart(outputs=paths[True], inputs=paths[False])
        return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, what the command does, its arguments and its options by group."""
        formatter.write_usage(ctx.command_path, " ".join(_usage(self)))
        _write_text(self.help or "", formatter)
        for title, rows in _groups(self, ctx).items():
            with formatter.section(title):
                formatter.write_dl(rows, col_max=_WIDEST)


class PlainGroup(TyperGroup):
    """A group of commands whose help and errors are plain text."""

    #: title → names of commands, in the order in which they are listed
    sections: dict[str, list[str]] = {}  # noqa: RUF012

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write usage, what the group is for, and a line for each command."""
        formatter.write_usage(ctx.command_path, "COMMAND [OPTIONS]")
        _write_text(self.help or "", formatter)
        sections = self.sections or {"Commands": self.list_commands(ctx)}
        for title, names in sections.items():
            found = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name, _first_sentence(one)) for name, one in found if one is not None]
            with formatter.section(title):
                formatter.write_dl(rows, col_max=_WIDEST)
        with formatter.section(_PLAIN):
            rows = [_row(p) for p in self.get_params(ctx) if _is_shown(p)]
            formatter.write_dl(rows, col_max=_WIDEST)


def plain(command: Any) -> Any:
    """Make a command of Typer, and those below it, write plain help; return it."""
    command.rich_markup_mode = None
    base = PlainGroup if isinstance(command, TyperGroup) else PlainCommand
    own = type(command)
    if not issubclass(own, base):  # what a command does besides, it keeps doing
        plainly = base if own.__module__ == "typer.core" else type("Plain", (base, own), {})
        command.__class__ = plainly
    for below in getattr(command, "commands", {}).values():
        plain(below)
    return command


def _paths(one: Any, ctx: Any) -> list[Path]:
    """Return the paths among an argument's values; other words are none."""
    value = ctx.params.get(one.name)
    values = value if isinstance(value, list | tuple) else [value]
    words = one.param_type_name == "argument"  # FILES of treebanks are patterns, or names
    return [Path(each) for each in values if isinstance(each, (Path, str) if words else Path)]


def _usage(command: Any) -> list[str]:
    names = []
    for one in command.params:
        if one.param_type_name == "argument":
            name = one.name.upper() + ("…" if one.nargs == -1 else "")
            names.append(name if one.required else f"[{name}]")
    return [*names, "[OPTIONS]"]


def _groups(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """Return title → rows: arguments first, required options, then the groups in their order."""
    groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Required": [], _PLAIN: []}
    for one in command.get_params(ctx):
        if not _is_shown(one):
            continue
        title = getattr(one, "rich_help_panel", None)
        if one.param_type_name == "argument":
            title = "Arguments"
        elif one.required:
            title = "Required"
        groups.setdefault(title or _PLAIN, []).append(_row(one))
    groups[_PLAIN] = groups.pop(_PLAIN)  # --help comes last
    return {title: rows for title, rows in groups.items() if rows}


def _is_shown(one: Any) -> bool:
    return not getattr(one, "hidden", False)


def _row(one: Any) -> tuple[str, str]:
    if one.param_type_name == "argument":
        return one.name.upper(), one.help or ""
    names = ", ".join(one.opts)
    if one.secondary_opts:
        names += f"/{one.secondary_opts[0]}"
    return names, " ".join(filter(None, (one.help, _default(one))))


def _default(one: Any) -> str:
    """Return the default in words, where there is one worth a word."""
    shown = getattr(one, "show_default", True)
    if isinstance(shown, str):
        return f"[default: {shown}]"
    default = one.default
    if callable(default) or default in (None, False, "", (), []) or shown is False:
        return ""
    if isinstance(default, list | tuple):
        default = ",".join(map(str, default))
    return f"[default: {default}]"


def _first_sentence(command: Any) -> str:
    text = " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())
    return text.partition(". ")[0].rstrip(".")


def _write_text(text: str, formatter: Any) -> None:
    """Write paragraphs; one that begins with ``Example`` keeps its lines."""
    for paragraph in inspect.cleandoc(text).replace("\b", "").split("\n\n"):
        formatter.write_paragraph()
        with formatter.indentation():
            if paragraph.lstrip().startswith("Example"):
                lines = paragraph.strip("\n").split("\n")
                formatter.write("".join(f"  {line}\n" for line in lines))
            else:
                formatter.write_text(" ".join(paragraph.split()))
