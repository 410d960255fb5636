"""Environment variables in the values of a configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from attree.errors import AttreeError

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def expand_variables(value: Any, where: str, environment: Mapping[str, str] = os.environ) -> Any:
    """Replace ``$NAME`` and ``${NAME}`` in every string of a nested ``value``.

    Raises:
        AttreeError: a variable is not set; ``where`` names the setting it stands in.
    """
    if isinstance(value, Mapping):
        return {k: expand_variables(v, f"{where}.{k}", environment) for k, v in value.items()}
    if isinstance(value, list):
        return [expand_variables(v, where, environment) for v in value]
    if not isinstance(value, str):
        return value

    def filled(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if not environment.get(name):
            raise AttreeError(
                f"{where}: the environment variable {name} is not set",
                fix=f"export {name}=… before the run, or write the path out",
            )
        return environment[name]

    return _VARIABLE.sub(filled, value)
