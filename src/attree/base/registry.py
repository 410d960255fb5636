"""Choices by name: a registry maps a name to ``module:object``, imported when it is used."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError


def choose(registry: Mapping[str, str], name: str, *, what: str) -> Any:
    """Import and return the object that ``registry`` gives for ``name``.

    Raises:
        AttreeError: ``name`` is not in the registry; the line lists what is.
    """
    check_name(name, registry, f"unknown {what} {name!r}")
    return named(registry[name])


def check_name(
    name: object,
    names: Iterable[str],
    problem: str,
    *,
    file: str | Path | None = None,
    near: bool = False,
) -> None:
    """Raise unless a name is one of those that there are.

    Args:
        name: also what is no text, where a file gives a list for a name.
        names: those that there are.
        problem: what the error says; all names follow, or with ``near`` the one that was meant.
        file: where the name stands.

    Raises:
        AttreeError: it is none of them.
    """
    names = tuple(names)
    if name not in names:
        fix = nearest(str(name), names) if near else f"choose one of {', '.join(names)}"
        raise AttreeError("unknown-name", problem, file=file, fix=fix)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "did you mean …?", or else the list of what is known."""
    known = sorted(known)
    close = difflib.get_close_matches(name[:50], known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"there are {', '.join(known)}" if known else "there are none"


def named(place: str) -> Any:
    """Import and return what ``module:object`` names."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def choices(registry: str) -> list[str]:
    """Return the names in a registry: ``attree.decoding:DECODERS``, ``…recipes:CHOICES.decoder``.

    One that is written out as a dict or tuple is read and not imported: some stand beside what
    takes seconds to import.
    """
    module, _, path = registry.partition(":")
    name, *keys = path.split(".")
    if not keys and (written := _written(module, name)):
        return written
    names = named(f"{module}:{name}")
    for key in keys:
        names = names[key]
    return list(names)


def _written(module: str, name: str) -> list[str]:
    """Return the names in a literal at the top of a module; none if it is put together."""
    literal = definition(f"{module}:{name}")
    items = getattr(literal, "keys", None) or getattr(literal, "elts", [])
    names = [str(item.value) for item in items if isinstance(item, ast.Constant)]
    return names if len(names) == len(items) else []


def definition(place: str) -> ast.FunctionDef | ast.expr | None:
    """Return the function ``module:name``, or the value given to it there; nothing is imported."""
    module, _, name = place.partition(":")
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None, module
    for statement in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        match statement:
            case ast.FunctionDef(name=defined) if defined == name:
                return statement
            case (
                ast.Assign(targets=[ast.Name(id=defined)], value=value)
                | ast.AnnAssign(target=ast.Name(id=defined), value=value)
            ) if defined == name:
                return value
    return None
