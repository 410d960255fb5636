"""Choose objects by name: a registry maps a name to ``module:object``, imported on use."""

import ast
import difflib
import importlib
import importlib.util
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError


def choose(registry: Mapping[str, str], name: str, *, what: str) -> Any:
    """Import and return the object that ``registry`` has under ``name``.

    Raises:
        AttreeError: ``name`` is not in the registry; the message lists the names that are.
    """
    check_name(name, registry, f"unknown {what} {name!r}")
    return load(registry[name])


def check_name(
    name: object,
    names: Iterable[str],
    problem: str,
    *,
    file: str | Path | None = None,
    near: bool = False,
) -> None:
    """Refuse a name that is not one of ``names``.

    Args:
        name: any object, since a file may have a list in place of a name.
        names: the allowed names.
        problem: what the error says; all names follow, or with ``near`` the nearest one.
        file: where the name stands.

    Raises:
        AttreeError: it is not.
    """
    names = tuple(names)
    if name not in names:
        fix = nearest(str(name), names) if near else f"choose one of {', '.join(names)}"
        raise AttreeError("unknown-name", problem, file=file, fix=fix)


def nearest(name: str, names: Iterable[str]) -> str:
    """Return "did you mean …?", or else the list of names."""
    names = sorted(names)
    close = difflib.get_close_matches(name[:50], names, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"there are {', '.join(names)}" if names else "there are none"


def load(reference: str) -> Any:
    """Import and return the object of ``module:object``."""
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


def choices(registry: str) -> list[str]:
    """Return the names in a registry: ``attree.decoding:DECODERS``, ``…recipes:CHOICES.decoder``.

    ``attree.treebank.convert:writable``, a function, returns them.
    A registry that is a literal dict or tuple is parsed, not imported: some modules take seconds to
    import.
    """
    module, _, path = registry.partition(":")
    name, *keys = path.split(".")
    if not keys and (written := _literal_names(module, name)):
        return written
    names = load(f"{module}:{name}")
    for key in keys:
        names = names[key]
    return list(names() if callable(names) else names)


def _literal_names(module: str, name: str) -> list[str]:
    """Return the names in a literal at the top of a module; none if it is computed."""
    literal = definition(f"{module}:{name}")
    items = getattr(literal, "keys", None) or getattr(literal, "elts", [])
    names = [str(item.value) for item in items if isinstance(item, ast.Constant)]
    return names if len(names) == len(items) else []


def definition(reference: str) -> ast.FunctionDef | ast.expr | None:
    """Return the syntax of ``module:name``, a function or a value, without importing it."""
    module, _, name = reference.partition(":")
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
