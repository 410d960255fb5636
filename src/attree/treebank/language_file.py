"""Checking a language's settings: the keys of ``language.yaml`` and of the workflow's overrides."""

from __future__ import annotations

import codecs
import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from attree.errors import AttreeError
from attree.treebank.cleaning import policy
from attree.treebank.layouts import LAYOUTS
from attree.treebank.readers import FORMATS

#: Returns what is wrong with a value, said as "must be …"; None if nothing.
Check = Callable[[Any], str | None]


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) and value.strip() else "must be a text"


def _one_of(*choices: str) -> Check:
    return lambda value: None if value in choices else f"must be one of {', '.join(choices)}"


def _count(value: Any) -> str | None:
    good = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return None if good else "must be a whole number above 0"


def _texts(value: Any) -> str | None:
    good = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return None if good else 'must be a list of texts (write "…" round each)'


def _text_or_texts(value: Any) -> str | None:
    return _text(value) and _texts(value) and "must be a text or a list of texts"


def _encoding(value: Any) -> str | None:
    try:
        codecs.lookup(value)
    except (LookupError, TypeError):
        return "must be the name of an encoding, such as utf-8 or latin-1"
    return None


def _punctuation(value: Any) -> str | None:
    try:
        policy(value if isinstance(value, str) else "")
    except AttreeError as error:
        return error.fix and error.fix.replace("choose", "must be", 1)
    return None


def _mapping(value: Any) -> str | None:
    good = isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
    return None if good else "must map names to values"


_FILTERS: dict[str, Check] = {"max_words": _count, "first": _count}
SPLIT_KEYS: dict[str, Check] = {
    "files": _text_or_texts,
    "from": _text_or_texts,
    "exclude": _text_or_texts,
    **_FILTERS,
}
LANGUAGE_KEYS: dict[str, Check] = {
    "title": _text,
    "folder": _text,
    "layout": _one_of(*LAYOUTS),
    "format": _one_of(*FORMATS),
    "encoding": _encoding,
    "punctuation": _punctuation,
    "dummy_roots": _texts,
    "drop_labels": _texts,
    "escapes": _one_of("undo", "keep"),
    "nonprojective": _one_of("skip", "lift"),
    "derived": _one_of("constituency", "dependency"),
    "splits": _mapping,
    **_FILTERS,
}


def read_language_file(path: Path) -> dict[str, Any]:
    """Read and check a ``language.yaml``; an empty one says nothing.

    Raises:
        AttreeError: not YAML, or a mistake in a key or its value.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise AttreeError(
            f"this is not YAML ({getattr(error, 'problem', None) or 'it holds odd characters'})",
            file=path,
            line=mark.line + 1 if mark else None,
            fix="mend it, or delete it to use the defaults",
        ) from None
    except UnicodeDecodeError:
        raise AttreeError("this is not UTF-8", file=path, fix="save it as UTF-8") from None
    return check_settings(values, path)


def check_settings(values: Any, where: str | Path) -> dict[str, Any]:
    """Check a language's settings and return them; null means none.

    Args:
        values: as read from YAML.
        where: the file or the key that they stand in, for messages.

    Raises:
        AttreeError: an unknown key (with the nearest known one), or a value of the wrong kind.
    """
    values = {} if values is None else values
    _check(values, LANGUAGE_KEYS, "", where)
    for name, split in (values.get("splits") or {}).items():
        if isinstance(split, Mapping):
            _check(split, SPLIT_KEYS, f"splits.{name}.", where)
            if ("files" in split) == ("from" in split):
                raise AttreeError(
                    f"splits.{name} must have either files or from",
                    file=where,
                    fix="files: lists patterns, from: lists other splits",
                )
        elif problem := _text_or_texts(split):
            raise AttreeError(
                f"splits.{name} {problem}", file=where, fix="or have the key files or from"
            )
    return dict(values)


def _check(values: Any, keys: Mapping[str, Check], prefix: str, where: str | Path) -> None:
    if not isinstance(values, Mapping):
        raise AttreeError(
            "this must hold keys and values", file=where, fix=f"the keys are {', '.join(keys)}"
        )
    for key, value in values.items():
        if key not in keys:
            near = difflib.get_close_matches(str(key), keys, n=1)
            fix = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(keys)}"
            raise AttreeError(f"unknown key {prefix}{key}", file=where, fix=fix)
        if problem := keys[key](value):
            raise AttreeError(f"{prefix}{key} {problem}, not {value!r}", file=where)
