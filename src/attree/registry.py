"""Choices by name: a registry maps a name to the module that implements it, imported when used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType

from attree.errors import AttreeError


def choose(registry: Mapping[str, str], name: str, *, what: str) -> ModuleType:
    """Import and return the module that ``registry`` gives for ``name``.

    Raises:
        AttreeError: ``name`` is not in the registry; the line lists what is.
    """
    if name not in registry:
        raise AttreeError(f"unknown {what} {name!r}", fix=f"choose one of {', '.join(registry)}")
    return importlib.import_module(registry[name])
