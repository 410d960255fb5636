"""A language's settings: every key of ``language.yaml``, its kind, its check and its JSON Schema.

The keys stand under ``treebanks.languages.<name>`` of the workflow's configuration too, where
``folder`` is allowed as well. What can be chosen comes from the registries. `LAYOUTS` says how two
well-known treebanks lie in their folders: ``{LANG}``, ``{Lang}`` and ``{lang}`` stand for the
language's name in capitals, with one capital, and in lower case; what the language says itself
overrides it.
"""

from __future__ import annotations

import codecs
import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, get_args

import yaml

from attree.errors import AttreeError
from attree.files import read_bytes
from attree.treebank.cleaning import PARTS, POLICIES, parts, policies, policy
from attree.treebank.formats import FORMATS
from attree.treebank.labels import KINDS, UNIVERSAL, Labelling
from attree.treebank.sentence import (
    Dependencies,
    Derived,
    Escapes,
    Final,
    Functions,
    Nonprojective,
    Settings,
)


def _wsj(section: str) -> str:
    """Return where a section, or a range of them, lies under the LDC's folder, or nearer to it."""
    places = ("parsed/mrg/wsj/", "*/parsed/mrg/wsj/", "mrg/wsj/", "wsj/", "")
    return " | ".join(f"{place}{section}/*.{{mrg,MRG}}" for place in places)


def _spmrl(*kinds: str) -> str:
    """Return where one split lies: the first of ``kinds`` there is, the name in either case."""
    base = "{LANG}_SPMRL/gold/ptb"
    return " | ".join(
        f"{place}{kind}/{kind}.{name}.gold.ptb"
        for kind in kinds
        for place in (f"{base}/", f"*/{base}/", "gold/ptb/", "")
        for name in ("{Lang}", "{lang}")
    )


LAYOUTS: dict[str, dict[str, Any]] = {
    # the article's 45,089 training sentences fit sections 00-21 and 24
    "ptb": {
        "format": "ptb",
        "punctuation": "ptb",
        "splits": {
            "train": [_wsj("{00..21}"), _wsj("24")],
            "train_standard": [_wsj("{02..21}")],
            "dev": [_wsj("22")],
            "test": [_wsj("23")],
            "wsj10": {"from": ["train", "dev", "test"], "max_words": 10},
        },
    },
    # Hebrew and Swedish ship train5k only
    "spmrl": {
        "format": "spmrl",
        "splits": {
            "train": _spmrl("train", "train5k"),
            "dev": _spmrl("dev"),
            "test": _spmrl("test"),
        },
    },
}


#: Bytes, and lists and mappings within one another: no settings are as long or as deep.
_LARGEST, _DEEPEST = 2**20, 20


class _Loader(yaml.SafeLoader):
    """Reads plain values, within bounds: no alias stands for a value, which could multiply it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a node, and count how deep it lies."""
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            self._refuse("aliases are not read", event)
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse("nested too deeply", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def _refuse(self, problem: str, event: Any) -> NoReturn:
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: in words ("must be …"), as a test, and as a JSON Schema."""

    words: str
    fits: Callable[[Any], bool]
    schema: Mapping[str, Any]


def _one_of(choices: Iterable[str]) -> Kind:
    names = list(choices)
    return Kind(
        f"one of {', '.join(names)}",
        lambda value: isinstance(value, str) and value in names,
        {"enum": names},
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_encoding(value: Any) -> bool:
    try:
        codecs.lookup(value)
    except (LookupError, TypeError, ValueError):
        return False
    return True


def _accepted_by(read: Callable[[str], Any]) -> Callable[[Any], bool]:
    def fits(value: Any) -> bool:
        try:
            read(value if isinstance(value, str) else "")
        except AttreeError:
            return False
        return True

    return fits


def _is_regex(value: Any) -> bool:
    try:
        re.compile(value)
    except (re.error, TypeError, RecursionError, OverflowError):
        return False
    return isinstance(value, str)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


_TEXT = Kind("a text", _is_text, {"type": "string", "pattern": r"\S"})
_TEXTS = Kind(
    'a list of texts (write "…" round each)',
    _are_texts,
    {"type": "array", "items": {"type": "string"}},
)
_PATTERNS = Kind(
    "a text or a list of texts",
    lambda value: _is_text(value) or _are_texts(value),
    {"anyOf": [_TEXT.schema, _TEXTS.schema]},
)
_SHARE = Kind(
    "true or a share from 0 to 1",
    lambda value: (
        value is True
        or (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1)
    ),
    {"anyOf": [{"const": True}, {"type": "number", "minimum": 0, "maximum": 1}]},
)
_REGEX = Kind("a regular expression", _is_regex, {"type": "string", "format": "regex"})
_COUNT = Kind("a whole number above 0", _is_count, {"type": "integer", "minimum": 1})
_PART = Kind(
    "a part such as 1/5, or parts such as 2-5/5",
    _accepted_by(parts),
    {"type": "string", "pattern": rf"\A{PARTS}\Z"},
)
_ENCODING = Kind(
    "the name of an encoding, such as utf-8 or latin-1", _is_encoding, {"type": "string"}
)
_POLICY = Kind(
    policies(),
    _accepted_by(policy),
    {
        "type": "string",
        "pattern": r"\A({})\Z".format(
            "|".join(rf"{name}:.*\S.*" if one.takes else name for name, one in POLICIES.items())
        ),
    },
)
_LABELS = Kind(
    f"{', '.join(KINDS)} or {UNIVERSAL}:TABLE",
    _accepted_by(Labelling.of),
    {"type": "string", "pattern": rf"\A({'|'.join(KINDS)}|{UNIVERSAL}:[a-z]+)\Z"},
)


@dataclass(frozen=True, slots=True)
class Key:
    """A key of ``language.yaml``: the kind of its value, and what it sets."""

    kind: Kind
    sets: str


_FILTERS = {
    "max_words": Key(_COUNT, "longer sentences are skipped and counted"),
    "part": Key(_PART, "sentences are dealt in turn to that many parts; the others are skipped"),
    "first": Key(_COUNT, "sentences after this many are skipped and counted"),
}
SPLIT_KEYS = {
    "files": Key(_PATTERNS, "the split's files, as patterns in the language's folder"),
    "from": Key(_PATTERNS, "other splits, whose files it has"),
    "exclude": Key(_PATTERNS, "files that are left out, as patterns"),
    **_FILTERS,
}
_SPLIT_SCHEMA = {
    "type": "object",
    "oneOf": [{"required": ["files"]}, {"required": ["from"]}],
}


def _schema(keys: Mapping[str, Key]) -> dict[str, Any]:
    """Return the JSON Schema of a mapping with these keys."""
    properties = {
        name: {"description": f"{key.kind.words}: {key.sets}", **key.kind.schema}
        for name, key in keys.items()
    }
    return {"type": "object", "additionalProperties": False, "properties": properties}


_SPLITS = Kind(
    "a mapping from names to values",
    _is_mapping,
    {
        "type": "object",
        "additionalProperties": {
            "description": "a pattern, a list of patterns, or a mapping with files or from",
            "anyOf": [_PATTERNS.schema, _schema(SPLIT_KEYS) | _SPLIT_SCHEMA],
        },
    },
)
LANGUAGE_KEYS = {
    "folder": Key(_TEXT, "where its files lie, for a language in none of treebanks.folders"),
    "layout": Key(_one_of(LAYOUTS), "where files lie as that treebank is distributed"),
    "format": Key(_one_of(FORMATS), "default: told by the file's extension"),
    "encoding": Key(_ENCODING, "default: utf-8"),
    "punctuation": Key(_POLICY, "which words stay; default: what is usual in the format"),
    "dummy_roots": Key(_TEXTS, "labels above a sentence that are no phrases"),
    "drop_labels": Key(_TEXTS, "labels whose subtrees are left out, words and all"),
    "traces": Key(_REGEX, "words that are traces, and are left out"),
    "functions": Key(_one_of(get_args(Functions)), "function tags of labels, such as NP-SBJ"),
    "escapes": Key(_one_of(get_args(Escapes)), "the Penn Treebank's escapes, such as -LRB-"),
    "nonprojective": Key(_one_of(get_args(Nonprojective)), "dependency trees that cross"),
    "dependencies": Key(
        _one_of(get_args(Dependencies)), "whether a dependency tree says all of a phrase tree"
    ),
    "labels": Key(_LABELS, "phrase labels: the treebank's, of Han et al. 2014, or left open"),
    "final_punctuation": Key(
        _one_of(get_args(Final)), "whether the sentence's phrase takes in punctuation at its end"
    ),
    "derived": Key(_one_of(get_args(Derived)), "what the brackets were made from"),
    "accept_loss": Key(_SHARE, "how much may be lost where a tenth of the trees is too little"),
    "splits": Key(_SPLITS, "split → its files"),
    **_FILTERS,
}


def language_schema() -> dict[str, Any]:
    """Return the JSON Schema of a language's settings, made from `LANGUAGE_KEYS`."""
    return {"description": "the settings of a language"} | _schema(LANGUAGE_KEYS)


def read_language_file(path: Path) -> dict[str, Any]:
    """Read and check a ``language.yaml``; an empty one says nothing.

    Raises:
        AttreeError: not YAML, or a mistake in a key or its value.
    """
    try:
        text = read_bytes(path, what="language's settings", largest=_LARGEST).decode("utf-8")
        values = yaml.load(text, _Loader)
    except UnicodeDecodeError:
        raise AttreeError("this is not UTF-8", file=path, fix="save it as UTF-8") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: such as the date 2024-99-99
        mark = getattr(error, "problem_mark", None)
        raise AttreeError(
            f"this is not YAML ({getattr(error, 'problem', None) or 'characters not allowed'})",
            file=path,
            line=mark.line + 1 if mark else None,
            fix="correct it",
        ) from None
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
        elif not _PATTERNS.fits(split):
            raise AttreeError(
                f"splits.{name} must be {_PATTERNS.words}",
                file=where,
                fix="or a mapping with the key files or from",
            )
    return dict(values)


def _check(values: Any, keys: Mapping[str, Key], prefix: str, where: str | Path) -> None:
    if not isinstance(values, Mapping):
        raise AttreeError(
            "expected keys and values", file=where, fix=f"the keys are {', '.join(keys)}"
        )
    for key, value in values.items():
        if key not in keys:
            near = difflib.get_close_matches(str(key)[:50], keys, n=1)
            fix = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(keys)}"
            raise AttreeError(f"unknown key {prefix}{str(key)[:50]}", file=where, fix=fix)
        kind = keys[key].kind
        if not kind.fits(value):
            problem = f"{prefix}{key} must be {kind.words}, not {_brief(value)}"
            raise AttreeError(problem, file=where)


def _brief(value: Any) -> str:
    """Return a value as it is written in Python, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:99]}…"


def as_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those checked values that belong to `Settings`, as it holds them."""
    names = {one.name for one in dataclasses.fields(Settings)}
    found = {key: value for key, value in values.items() if key in names}
    if "accept_loss" in found:
        found["accept_loss"] = float(found["accept_loss"])
    return {key: tuple(one) if isinstance(one, list) else one for key, one in found.items()}
