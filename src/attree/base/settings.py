"""Check settings that users write in YAML, make a struct of them; report a mistake in one line.

A struct's fields are the keys; a field's annotation says which values it takes, and the struct's
docstring what it means; errors quote both. `msgspec.json.schema` writes the JSON Schema.
"""

import contextlib
import functools
import json
import os
import re
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from attree.base.errors import AttreeError
from attree.base.registry import choices, nearest

#: Defaults: no value, which is false; an empty mapping.
OPTIONAL: Any = msgspec.UNSET
EMPTY: Any = {}

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_LONGEST = 60  # characters of a value that an error shows
_choices = functools.cache(choices)


class Keys(msgspec.Struct, forbid_unknown_fields=True):
    """A mapping with declared keys.

    Attributes:
        EXACTLY_ONE: keys of which exactly one must be set.
        NEEDS: key → another key without which it means nothing.
        OTHERS: the field, a ``dict``, that takes all keys that are not declared; "" forbids them.
    """

    EXACTLY_ONE: ClassVar[tuple[str, ...]] = ()
    NEEDS: ClassVar[Mapping[str, str]] = {}
    OTHERS: ClassVar[str] = ""

    def given(self, *left_out: str) -> dict[str, Any]:
        """Return key → value as YAML has them, without keys that have none and those left out."""
        values: dict[str, Any] = msgspec.to_builtins(self)
        return {key: value for key, value in values.items() if key not in left_out}


def one_of(registry: str) -> msgspec.Meta:
    """Declare that a value is a name in a registry, written as for :func:`registry.choices`."""
    return msgspec.Meta(extra_json_schema={"x-choices": registry})


def convert(value: Any, kind: Any, *, file: str | Path | None = None) -> Any:
    """Check settings, and return them as a value of a kind, without entries that are null.

    Args:
        value: as read from YAML.
        kind: a `Keys`, or another annotation.
        file: which holds them.

    Raises:
        AttreeError: the first mistake: key, problem and fix in one line.
    """
    try:
        return msgspec.convert(_check(value, kind, "", ""), kind)
    except AttreeError as error:
        raise error.replace(file=file) from None


def _check(value: Any, kind: Any, key: str, takes: str) -> Any:
    """Check a value of any kind; ``takes`` describes it where its kind does not."""
    bare, notes = _split(kind)
    takes = _note(notes, "description") or takes
    if _is_keys(bare):
        takes = str(bare.__doc__).partition("\n")[0].rstrip(".")
        takes = takes[:1].lower() + takes[1:]
    kinds = _alternatives(kind)
    if len(kinds) > 1 and (member := _member(kinds, value)) is not None:
        return _check(value, member, key, takes)
    names = _allowed(bare, notes)
    if names and value not in names:
        fix = nearest(str(value)[:_LONGEST], map(str, names))
        raise _mistake(key, f"{_as_json(value)} is not one of its values", fix)
    done = value
    try:
        if isinstance(value, _container(bare)):
            done = _inside(value, bare, key, takes)
            good = (_note(notes, "min_length") or 0) <= len(done)
        else:
            msgspec.convert(value, kind)
            good = not (isinstance(value, int) and value.bit_length() > 63)  # too long to print
        good = good and all(test(value) for test in notes if callable(test))
    except (msgspec.ValidationError, ValueError):  # the latter of a number of too many digits
        good = False
    if not good:
        raise _mistake(key, f"{_as_json(value)} does not fit", f"it takes {takes}")
    return done


def _inside(value: Any, bare: Any, key: str, takes: str) -> Any:
    """Check the items of a list or a mapping."""
    if _is_keys(bare):
        return _fill(value, bare, key, takes)
    if get_origin(bare) is list:
        (item,) = get_args(bare)
        return [_check(entry, item, f"{key}[{n}]", takes) for n, entry in enumerate(value)]
    name, of_values = get_args(bare)
    for entry in value:
        _check(entry, name, key, takes)
    done = {k: _check(v, of_values, _below(key, k), takes) for k, v in value.items()}
    return {k: v for k, v in done.items() if v is not None}  # by null an overlay leaves one out


def _below(key: str, name: object) -> str:
    return f"{key}.{name}".removeprefix(".")


def _fill(mapping: Mapping[Any, Any], kind: type[Keys], key: str, takes: str) -> dict[str, Any]:
    """Check a mapping of some keys."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    hints, others = hints_of(kind), {k: v for k, v in mapping.items() if k not in fields}
    for name in others if not kind.OTHERS else ():
        raise _mistake(key, f"unknown key {str(name)[:50]}", nearest(str(name), fields))
    for name, field in fields.items():
        if field.required and name not in mapping:
            raise _mistake(key, f"the key {name} is missing", f"add it: {describe(kind, name)}")
    for name, needed in kind.NEEDS.items():
        if name in mapping and needed not in mapping:
            raise _mistake(key, f"{name} means nothing without {needed}", "leave it out")
    if kind.EXACTLY_ONE and sum(name in mapping for name in kind.EXACTLY_ONE) != 1:
        fix = f"it takes exactly one of {', '.join(kind.EXACTLY_ONE)}"
        raise _mistake(key, f"{_as_json(mapping)} does not fit", fix)
    done = {
        name: _check(value, hints[name], _below(key, name), describe(kind, name))
        for name, value in mapping.items()
        if name in fields
    }
    return done | ({kind.OTHERS: _inside(others, hints[kind.OTHERS], key, takes)} if others else {})


def _mistake(key: str, problem: str, fix: str) -> AttreeError:
    return AttreeError("bad-setting", f"{key}: {problem}" if key else problem, fix=fix)


@functools.cache
def hints_of(kind: type[Keys]) -> dict[str, Any]:
    """Return key → annotation of a struct."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.encode_name: hints[field.name] for field in msgspec.structs.fields(kind)}


@functools.cache
def meanings(kind: type[Keys]) -> dict[str, str]:
    """Return key → its meaning, from the docstrings of a struct and of its bases."""
    texts = "\n".join(str(base.__doc__) for base in kind.__mro__)
    meanings_of = re.findall(r"^ +(\w+): (.+(?:\n {12}.+)*)", texts, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in meanings_of}


def form_of(kind: type[Keys], key: str) -> str:
    """Describe the form of a key's values; empty where the meaning tells it."""
    bare, notes = _split(hints_of(kind)[key])
    return _note(notes, "title") or ", ".join(map(str, _allowed(bare, notes)))


def describe(kind: type[Keys], key: str) -> str:
    """Describe the values that a key takes, for an error."""
    _, notes = _split(hints_of(kind)[key])
    form, text = form_of(kind, key), meanings(kind).get(key) or str(_note(notes, "description"))
    return f"{form}: {text}" if _note(notes, "title") else f"{text}: {form}" if form else text


def _split(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Split an annotated kind into the kind and its notes."""
    if get_origin(kind) is not Annotated:
        return kind, ()
    bare, *notes = get_args(kind)
    return bare, tuple(notes)


def _note(notes: Iterable[Any], name: str) -> Any:
    values = [getattr(value, name, None) for value in notes if isinstance(value, msgspec.Meta)]
    return next((value for value in reversed(values) if value is not None), None)


def _is_keys(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Keys)


def _alternatives(kind: Any) -> list[Any]:
    """Return the members of a union; else the kind alone."""
    bare, _ = _split(kind)
    if get_origin(bare) in (Union, types.UnionType):
        return [leaf for member in get_args(bare) for leaf in _alternatives(member)]
    return [kind]


def _container(bare: Any) -> tuple[type, ...]:
    """Return the container type of a kind's values; empty if they are no containers."""
    if _is_keys(bare) or get_origin(bare) is dict:
        return (Mapping,)
    return (list,) if get_origin(bare) is list else ()


def _member(kinds: list[Any], value: Any) -> Any:
    """Return the one of several kinds that a value must have; None if it may have any."""
    kinds = [kind for kind in kinds if kind is not type(None)]
    if len(kinds) == 1:
        return None if value is None else kinds[0]
    return next((kind for kind in kinds if isinstance(value, _container(_split(kind)[0]))), None)


def _allowed(kind: Any, notes: Iterable[Any]) -> list[Any]:
    """Return the names that a value must be one of; empty if it need not be a name."""
    if registry := (_note(notes, "extra_json_schema") or {}).get("x-choices"):
        return _choices(registry)
    return list(get_args(kind)) if get_origin(kind) is Literal else []


def _as_json(value: Any) -> str:
    """Return a value as JSON, cut where it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError):
        return "a number of too many digits"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}…"


def expand_variables(value: Any, where: str, environment: Mapping[str, str] = os.environ) -> Any:
    """Replace ``$NAME`` and ``${NAME}`` in every string of a nested ``value``.

    Raises:
        AttreeError: a variable is not set; ``where`` names the setting.
    """
    if isinstance(value, Mapping):
        return {k: expand_variables(v, f"{where}.{k}", environment) for k, v in value.items()}
    if isinstance(value, list):
        return [expand_variables(v, where, environment) for v in value]
    if not isinstance(value, str):
        return value

    def expand(variable: re.Match[str]) -> str:
        name = variable[1] or variable[2]
        if not environment.get(name):
            problem = f"{where}: the environment variable {name} is not set"
            fix = f"export {name}=… before the run, or write the path out"
            raise AttreeError("unset-variable", problem, fix=fix)
        return environment[name]

    return _VARIABLE.sub(expand, value)


def accepted_by(read: Callable[[str], Any], *errors: type[Exception]) -> Callable[[Any], bool]:
    """Return a test of values: whether a function accepts them without an error."""

    def fits(value: Any) -> bool:
        with contextlib.suppress(AttreeError, *errors):
            read(value)
            return True
        return False

    return fits


def unique(values: list[Any]) -> bool:
    """Tell whether all items of a list differ."""
    return len(set(map(str, values))) == len(values)
