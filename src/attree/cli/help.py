"""What cyclopts' help leaves out: examples, and commands whose files are not imported."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_args

from attree.base.registry import definition

if TYPE_CHECKING:
    from cyclopts import App, Argument

#: Columns of help.
WIDTH = 80


def default(value: Any) -> str | None:
    """Return what help says of a default: nothing of one that says nothing itself."""
    items = value if isinstance(value, list | tuple) else [value]
    return None if value in (False, None, "") else ",".join(map(str, items))


def examples(purpose: str) -> Iterator[str]:
    """Yield the examples of a docstring, which are paragraphs of their own."""
    for paragraph in inspect.cleandoc(purpose).split("\n\n"):
        if paragraph.startswith("Example"):
            yield paragraph


def overview(purpose: str, sections: Mapping[str, Mapping[str, str]]) -> str:
    """Return the help of the program: name → meaning, in sections."""
    first, *more = inspect.cleandoc(purpose).split("\n\n")
    parts = ["Usage: attree COMMAND [OPTIONS]", textwrap.fill(first, WIDTH), *more]
    for title, rows in sections.items():
        width = max(map(len, rows)) + 4
        fill = textwrap.TextWrapper(WIDTH, subsequent_indent=" " * width).fill
        named = (f"  {name}".ljust(width) + meaning for name, meaning in rows.items())
        parts.append("\n".join([f"{title}:", *map(fill, named)]))
    return "\n\n".join(parts)


def kind(argument: Argument) -> str:
    """Return the name of an option's type; of a list, of its items: ``bool``, ``int``, ``Path``."""
    hint: Any = argument.hint
    while inner := [part for part in get_args(hint) if part not in (type(None), ...)]:
        hint = inner[0]
    return str(getattr(hint, "__name__", hint))


def first_sentence(text: str) -> str:
    """Return the first sentence of a docstring, without its full stop."""
    words = " ".join(inspect.cleandoc(text).split("\n\n")[0].split())
    return words.partition(". ")[0].rstrip(".")


def purpose_of(reference: str) -> str:
    """Return the docstring of ``module:function``, or the ``help=`` of ``module:app``.

    It is read from the source, since importing all commands would take long.
    """
    command = definition(reference)
    if isinstance(command, ast.FunctionDef):
        return ast.get_docstring(command) or ""
    assert isinstance(command, ast.Call), reference
    return next(ast.literal_eval(word.value) for word in command.keywords if word.arg == "help")


def commands_of(group: App) -> list[str]:
    """Return the names of a group's commands, in the order of their declaration."""
    return [name for name in group if not name.startswith("-")]
