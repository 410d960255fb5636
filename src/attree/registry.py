"""Choices by name: a registry maps a name to ``module:object``, imported when it is used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from attree.errors import AttreeError


def choose(registry: Mapping[str, str], name: str, *, what: str) -> Any:
    """Import and return the object that ``registry`` gives for ``name``.

    Raises:
        AttreeError: ``name`` is not in the registry; the line lists what is.
    """
    if name not in tuple(registry):  # also where a file gives a list for a name
        raise AttreeError(f"unknown {what} {name!r}", fix=f"choose one of {', '.join(registry)}")
    module, _, chosen = registry[name].partition(":")
    return getattr(importlib.import_module(module), chosen)
