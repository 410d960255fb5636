"""What a result was made from: a hash of the code that made it, and the versions it ran on."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attree

_ROOT = Path(attree.__file__).parent


def digest(value: Any) -> str:
    """Return a short hash of any JSON-able ``value``; equal values give equal hashes."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def module_files(names: Iterable[str]) -> list[Path]:
    """Return the source files of modules or packages named relative to ``attree``, sorted.

    ``"scoring"`` is every module of the package, ``"encoder.load"`` one module. A name that does
    not exist raises ``FileNotFoundError``: a rule that names a moved module must not pass unseen.
    """
    found: set[Path] = set()
    for name in names:
        place = _ROOT.joinpath(*name.split("."))
        if place.is_dir():
            found.update(place.rglob("*.py"))
        elif place.with_suffix(".py").is_file():
            found.add(place.with_suffix(".py"))
        else:
            raise FileNotFoundError(f"no module attree.{name}")
    return sorted(found)


@functools.cache
def _syntax(path: Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                del body[0]
    return ast.dump(tree)


def code_hash(*names: str) -> str:
    """Hash the syntax trees, docstrings left out, of the named modules (see `module_files`).

    A changed comment or docstring changes nothing; a changed statement does.
    """
    return digest([(str(f.relative_to(_ROOT)), _syntax(f)) for f in module_files(names)])


def versions(*packages: str) -> dict[str, str]:
    """Return the installed versions of ``packages``, and attree's own."""
    found = {"attree": attree.__version__}
    for package in packages:
        found[package] = importlib.metadata.version(package)
    return found


def provenance(*, code: Iterable[str], settings: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Build the metadata that every output carries: code version and hash, settings, and ``more``.

    Args:
        code: the attree modules that made the output, as for :func:`code_hash`.
        settings: what was asked for; hashed under ``configuration``.
        more: further entries (encoder revision, seed, protocol, counts).
    """
    return {
        "attree": attree.__version__,
        "code": code_hash(*code),
        "configuration": digest(settings),
        "settings": dict(settings),
        **more,
    }
