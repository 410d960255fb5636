"""The splits of a language: which files each one has, and how they are read."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attree.errors import AttreeError
from attree.registry import nearest
from attree.treebank.formats import format_of, resolve
from attree.treebank.language_file import as_settings
from attree.treebank.sentence import Settings
from attree.treebank.sources import find

SPLITS = ("train", "dev", "test")
#: Letters with their marks, digits, ``_ - + .``; no white space, no sign that a shell, a pattern or
#: Snakemake reads, and none that turns the direction of writing. The configuration's schema has it.
NAME = re.compile(
    r"\w[^\x00-\x2a\x2c/:-@\[-^`\x7b-\x9f\s\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]*"
)
#: Twenty times the same at the end: Snakemake takes it for an endless recursion.
_ENDLESS = re.compile(r"(.+)\1{19}\Z")


def is_name(text: str) -> bool:
    """Tell whether a text can name a language or a split."""
    return bool(NAME.fullmatch(text)) and not _ENDLESS.search(text)


@dataclass(frozen=True, slots=True)
class Split:
    """One split: its files, the patterns that name them on a command line, how to read them."""

    files: tuple[Path, ...]
    settings: Settings
    patterns: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def treebank_files(folder: Path) -> list[Path]:
    """Return the files of a folder that a treebank's are known by: extension, or split's name."""
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    return [
        file
        for file in files
        if file.name[0] not in "._"
        and file.is_file()
        and (format_of(file) or file.name.split(".")[0] in SPLITS)
    ]


def usual_splits(place: Path, given: str | None) -> dict[str, list[str]]:
    """Return patterns of the files ``train.*`` or ``train/*``, and so on, of a language."""
    names = sorted(path.name for path in place.iterdir() if path.name[0] not in "._")
    specs = {}
    for split in SPLITS:
        there = [name for name in names if name.split(".")[0] == split]
        patterns = []
        for name in there:
            inside = [name]
            if (place / name).is_dir():
                suffixes = {one.suffix for one in (place / name).iterdir() if one.is_file()}
                inside = [f"{name}/*{suffix}" for suffix in sorted(suffixes)]
            patterns += [one for one in inside if given or format_of(one)]
        if patterns:
            specs[split] = patterns
        elif there:
            raise AttreeError(
                "the format of this file is not known from its name",
                file=place / there[0],
                fix="end its name in .mrg, .ptb or .conllu, or set format in language.yaml",
            )
    return specs


def fill(value: Any, names: Mapping[str, str]) -> Any:
    """Replace ``{Lang}`` and its like in every pattern."""
    if isinstance(value, Mapping):
        return {key: fill(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [fill(one, names) for one in value]
    if isinstance(value, str):
        for placeholder, name in names.items():
            value = value.replace(placeholder, name)
    return value


def read_splits(
    place: Path, merged: Mapping[str, Any], specs: Mapping[str, Any], where: str
) -> tuple[dict[str, Split], dict[str, str], set[Path]]:
    """Find files; return the splits that have some, the others' patterns, files left out."""
    base = Settings(**as_settings(merged))
    details: dict[str, Split] = {}
    absent: dict[str, str] = {}
    left_out: set[Path] = set()
    for name, spec in specs.items():
        if not is_name(name):
            raise AttreeError(f"{name!r} cannot name a split", file=where)
        spec = spec if isinstance(spec, Mapping) else {"files": spec}
        patterns = _patterns(name, spec, specs, where)
        found = find(patterns, place)
        excluded = find(_listed(spec.get("exclude", [])), place)
        left_out.update(excluded.files)
        files = tuple(file for file in found.files if file not in excluded.files)
        if all(file.is_file() and file.stat().st_size == 0 for file in files):
            absent[name] = ", ".join(patterns) + (", but for empty files" if files else "")
            continue
        own = {key: spec[key] for key in ("max_words", "part", "first") if key in spec}
        settings = resolve(dataclasses.replace(base, **own), files)
        details[name] = Split(files, settings, found.patterns, excluded.patterns, found.missing)
    return details, absent, left_out


def _patterns(
    name: str, spec: Mapping[str, Any], specs: Mapping[str, Any], where: str
) -> list[str]:
    """Return the patterns of a split, or of all the splits that it is made from."""
    if "files" in spec:
        return _listed(spec["files"])
    patterns = []
    for other in _listed(spec["from"]):
        source = specs.get(other)
        if isinstance(source, Mapping) and "from" in source:
            source = None
        if source is None:
            known = [one for one in specs if one != name]
            raise AttreeError(
                f"splits.{name}.from: there is no split {other} with files of its own",
                file=where,
                fix=nearest(other, known),
            )
        patterns += _listed(source["files"] if isinstance(source, Mapping) else source)
    return patterns


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
