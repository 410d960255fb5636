"""Checking ``config.yaml`` against its schema, with one line for each mistake.

Where a key takes a name of a registry, the schema says which: ``x-choices:
attree.decoding:DECODERS``. A further decoder is a line in its registry and none in the schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attree.errors import AttreeError
from attree.plan import nearest
from attree.registry import choices
from attree.treebank.language_file import language_schema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


def check(config: Mapping[str, Any], schema: str | Path) -> None:
    """Check a configuration against a schema file (draft 2020-12, YAML).

    Raises:
        AttreeError: the first mistake, with the key, the problem and the fix in one line.
    """
    from jsonschema import Draft202012Validator

    errors = sorted(
        Draft202012Validator(load_schema(schema)).iter_errors(config),
        key=lambda error: [str(part) for part in error.absolute_path],
    )
    if errors:
        problem, fix = _say(errors[0])
        raise AttreeError(f"configuration: {problem}", fix=fix)


def load_schema(path: str | Path) -> Any:
    """Return a schema with its choices and the keys of ``language.yaml`` filled in."""
    import yaml

    schema = _filled(yaml.safe_load(Path(path).read_text(encoding="utf-8")))
    if "treebanks" in schema["properties"]:
        languages = schema["properties"]["treebanks"]["properties"]["languages"]
        languages["additionalProperties"] = language_schema()
    return schema


def _filled(node: Any) -> Any:
    """Return a schema with an ``enum`` for each ``x-choices``; its description names them too."""
    if isinstance(node, list):
        return [_filled(one) for one in node]
    if not isinstance(node, dict):
        return node
    filled = {key: _filled(value) for key, value in node.items()}
    if registry := filled.pop("x-choices", None):
        names = choices(registry)
        about = filled["description"]
        filled |= {"enum": names, "description": f"{about}: {', '.join(names)}"}
    return filled


def _say(error: ValidationError) -> tuple[str, str]:
    """Return what is wrong, led by the key, and what to do."""
    key = _key(error)
    prefix = f"{key}: " if key else ""
    schema = error.schema
    takes = schema.get("description", error.message)
    value = json.dumps(error.instance, ensure_ascii=False, default=str)
    value = value if len(value) <= 60 else value[:57] + "…"
    match error.validator:
        case "additionalProperties":
            known = schema.get("properties", {})
            unknown = next(name for name in error.instance if name not in known)
            return f"{prefix}unknown key {unknown}", nearest(str(unknown), known)
        case "required":
            missing = next(name for name in error.validator_value if name not in error.instance)
            about = schema["properties"][missing].get("description", "")
            return f"{prefix}the key {missing} is missing", f"add it: {about}"
        case "dependentRequired":
            return f"{prefix}{error.message}", takes
        case "enum":
            return f"{prefix}{value} is not one of its values", nearest(
                str(error.instance), map(str, error.validator_value)
            )
        case _:
            return f"{prefix}{value} does not fit", f"it takes {takes}"


def _key(error: ValidationError) -> str:
    """Return the dotted path of the key at fault: ``tables.crosslingual.runs[0].split``."""
    path = ""
    for part in error.absolute_path:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path
