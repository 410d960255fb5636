"""Find the languages in folders of treebanks, the files of their splits, and their settings.

A folder ``<treebanks>/<language>/`` with files (or folders) named ``train``, ``dev`` and ``test``
is a language. A ``language.yaml`` in it overrides the defaults, and the workflow's configuration
overrides both, or names a language in another folder (``folder:``). The Snakefile imports this
module while it is parsed, so it imports nothing heavy.
"""

import dataclasses
import difflib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from attree.base.errors import AttreeError
from attree.base.patterns import distinct, find, is_hidden
from attree.base.registry import nearest
from attree.base.settings import expand_variables
from attree.base.text import listed
from attree.treebank.formats import format_of, is_aside, resolve
from attree.treebank.language_file import LAYOUTS, as_settings, check_settings, read_yaml
from attree.treebank.sentence import SplitSettings

SPLITS = ("train", "dev", "test")
#: Letters with their marks, digits, ``_ - + .``; no white space, no special character of shells,
#: patterns or Snakemake, no mark of writing direction. The configuration's schema has it too.
NAME = re.compile(
    r"\w[^\x00-\x2a\x2c/:-@\[-^`\x7b-\x9f\s\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]*"
)
#: Snakemake takes a string that is repeated twenty times at the end for an endless recursion.
_ENDLESS = re.compile(r"(.+)\1{19}\Z")


def is_name(text: str) -> bool:
    """Tell whether a text can name a language or a split."""
    return bool(NAME.fullmatch(text)) and not _ENDLESS.search(text)


@dataclass(frozen=True, slots=True)
class Split:
    """One split: its files, the patterns that name them on a command line, and its settings."""

    files: tuple[Path, ...]
    settings: SplitSettings
    patterns: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Language:
    """One language's treebank.

    Args:
        name: in paths, the folder's name.
        folder: of its files.
        splits: split → files and settings, for each split with files.
        absent: split → its patterns, for each split without files.
        unused: treebank files in its folder that are in no split.
    """

    name: str
    folder: Path
    splits: Mapping[str, Split]
    absent: Mapping[str, str] = field(default_factory=dict)
    unused: tuple[Path, ...] = ()

    def split(self, name: str) -> Split:
        """Return a split.

        Raises:
            AttreeError: there is no such split, or it has no files.
        """
        if name in self.splits:
            return self.splits[name]
        if name in self.absent:
            problem = f"language {self.name}: no file for split {name} ({self.absent[name]})"
            fix = "add the file, or correct splits:"
            raise AttreeError("no-files", problem, file=self.folder, fix=fix)
        problem = f"language {self.name} has no split {name}"
        has = ", ".join(self.splits) or "none"
        fix = f"it has {has}; add {name}.* to its folder, or name its files under splits:"
        raise AttreeError("unknown-split", problem, file=self.folder, fix=fix)

    def files(self, split: str) -> tuple[Path, ...]:
        """Return the files of a split, in order (see `split` for errors)."""
        return self.split(split).files

    def arguments(self, split: str) -> str:
        """Return the arguments of ``attree treebank`` for a split, quoted for a shell.

        The format's defaults are left out. Files are given as patterns, since thousands of names do
        not fit on a command line.
        """
        files, settings = self.split(split), self.split(split).settings
        usual = resolve(SplitSettings(format=settings.format), [])
        words = ["--language", self.name, "--split-name", split, "--format", str(settings.format)]
        for key in sorted(f.name for f in dataclasses.fields(settings) if f.name != "format"):
            value, option = getattr(settings, key), f"--{key.replace('_', '-')}"
            if value == getattr(usual, key):
                continue
            if isinstance(value, tuple):  # an option for each label; "-" means no label
                labels = value or ("-",)
                words += [part for label in labels for part in (option.removesuffix("s"), label)]
            else:
                words += [option] if value is True else [option, str(value)]
        words += [part for pattern in files.exclude for part in ("--exclude", pattern)]
        return shlex.join([*words, *files.patterns])


class Catalogue(dict[str, Language]):
    """The languages that can be read, by name, in the order they were found.

    Attributes:
        problems: language → the mistake in its settings, which is raised on access.
        warnings: a line for everything that was ignored.
    """

    def __init__(self) -> None:
        super().__init__()
        self.problems: dict[str, AttreeError] = {}
        self.warnings: list[str] = []

    def __missing__(self, name: str) -> NoReturn:
        """Raise an `AttreeError` that says why there is no such language."""
        raise self.problems.get(name) or AttreeError(
            "unknown-language", f"unknown language {name}", fix=nearest(name, self)
        )


def discover(
    folders: Iterable[str | Path] = (), languages: Mapping[str, Any] | None = None
) -> Catalogue:
    """Find all languages.

    Args:
        folders: folders of languages. Variables such as ``$HOME`` are expanded; an absent folder is
            ignored, with a warning if its name has a variable. A language in a later folder
            replaces one of the same name in an earlier folder.
        languages: name → settings that override ``language.yaml``, and ``folder`` for a language
            in another folder.

    Raises:
        AttreeError: a variable in ``folders`` is not set. A mistake in a language's settings is
            kept in `Catalogue.problems`, so that other languages can be used.
    """
    languages = languages or {}
    catalogue = Catalogue()
    paths: dict[str, Path] = {}
    for folder in folders:
        top = _path(folder, "treebanks.folders")
        if "$" in str(folder) and not top.is_dir():
            catalogue.warnings.append(f"{top}: this folder ({folder}) does not exist")
        if loose := treebank_files(top):
            fix = f"move to {top}/<language>/"
            named = _names(loose, top)
            catalogue.warnings.append(f"{top}: {named} in no language's folder — {fix}")
        for path in sorted(top.iterdir()) if top.is_dir() else []:
            if is_hidden(path.name) or not path.is_dir():
                continue
            if path.name in paths:
                catalogue.warnings.append(f"{path} is read instead of {paths[path.name]}")
            paths[path.name] = path
    for name in dict.fromkeys([*paths, *languages]):
        try:
            catalogue[name] = _make_language(name, paths.get(name), languages.get(name))
        except (AttreeError, OSError) as error:
            if isinstance(error, OSError):
                reason = error.strerror or "it cannot be read"
                error = AttreeError("unreadable", f"language {name}: {reason}", file=error.filename)
            catalogue.problems[name] = error
            catalogue.warnings.append(str(error))
        else:
            catalogue.warnings += _warn(catalogue[name])
    return catalogue


def _warn(language: Language) -> Iterator[str]:
    """Warn of missing and unused files of a language."""
    name = f"language {language.name}"
    for split, details in language.splits.items():
        if details.missing:
            gaps = ", ".join(details.missing[:3]) + (" …" if len(details.missing) > 3 else "")
            line = f"{len(details.missing)} numbered patterns match no file: {gaps}"
            yield f"{name}, split {split}: {line}"
    for split, patterns in language.absent.items():
        yield f"{name}, split {split}: no file matches {patterns}"
    if language.unused:
        meant = _suggest(language.unused) or "name it train, dev or test"
        named = _names(language.unused, language.folder)
        yield f"{name}: {named} in no split — {meant}, or list it under splits: in language.yaml"


def _suggest(files: Sequence[Path]) -> str | None:
    """Return "did you mean …?" for a file whose name is nearly that of a split, else None."""
    for file in files:
        stem, dot, rest = file.name.partition(".")
        close = difflib.get_close_matches(stem.lower(), SPLITS, n=1, cutoff=0.7)
        if close and stem not in SPLITS:
            return f"did you mean {close[0]}{dot}{rest}?"
    return None


def _names(files: Sequence[Path], folder: Path) -> str:
    """Name the first files, and count the others."""
    names = [str(file.relative_to(folder)) for file in files]
    return f"{listed(names, 3)} {'is' if len(files) == 1 else 'are'}"


def _path(folder: str | Path, where: str) -> Path:
    return Path(expand_variables(str(folder), where)).expanduser()


def _make_language(name: str, folder: Path | None, overrides: Any) -> Language:
    """Merge a language's settings: defaults, layout, language.yaml, overrides."""
    where = f"treebanks.languages.{name}"
    if not is_name(name):
        fix = "use letters, digits, _ and -, nothing twenty times in a row"
        raise AttreeError("bad-name", f"{name!r} cannot name a language", file=folder, fix=fix)
    overridden = check_settings(overrides, where)
    if "folder" in overridden:
        folder = _path(overridden["folder"], f"{where}.folder")
    if folder is None:
        problem = f"language {name}: no folder of treebanks has it"
        raise AttreeError("missing-folder", problem, fix="add folder:")
    if not folder.is_dir():
        problem = f"language {name}: this folder does not exist"
        raise AttreeError("missing-folder", problem, file=folder)
    described = folder / "language.yaml"
    given = read_yaml(described, what="language's settings") if os.path.lexists(described) else {}
    settings = check_settings(given, described)
    if "folder" in settings:
        problem = "folder can be set in the workflow's configuration only"
        raise AttreeError("folder-key", problem, file=described)
    layout = LAYOUTS.get(overridden.get("layout", settings.get("layout", "")), {})
    layers = [layout, settings, overridden]
    merged = {key: value for layer in layers for key, value in layer.items()}
    specs = {} if layout else _default_splits(folder, merged.get("format"))
    custom = [split for layer in layers for split in layer.get("splits", {}).items()]
    specs |= {split: spec if isinstance(spec, dict) else {"files": spec} for split, spec in custom}
    if not specs:
        problem = "this folder is not a language: it has no train, dev or test file"
        raise AttreeError("no-splits", problem, file=folder, fix=_suggest(treebank_files(folder)))
    splits, absent, used = _read_splits(name, folder, merged, specs, where)
    known = [*treebank_files(folder), *_in_folders_of_splits(folder)]
    unused = [file for file in known if file not in used]
    unused = distinct(unused, used if unused else ())
    if custom:  # splits name their files: ignore files with other extensions
        kinds = {file.suffix for file in used}
        unused = [file for file in unused if file.suffix in kinds]
    return Language(name, folder, splits, absent, tuple(unused))


def treebank_files(folder: Path) -> list[Path]:
    """Return the files of a folder that have a treebank's extension or a split's name."""
    files = [file for file in folder.iterdir() if file.is_file()] if folder.is_dir() else []
    shown = [file for file in sorted(files) if not is_hidden(file.name)]
    return [file for file in shown if format_of(file) or file.name.split(".")[0] in SPLITS]


def _in_folders_of_splits(folder: Path) -> list[Path]:
    """Return what lies in folders of splits as a treebank, be it packed or a link to no file.

    Patterns of splits may miss it: ``train/*.mrg`` finds neither ``train/00/a.mrg`` nor those.
    """
    tops = [path for path in folder.iterdir() if path.name.split(".")[0] in SPLITS]
    found = [file for top in sorted(tops) for file in sorted(top.rglob("*")) if not file.is_dir()]
    named = [file for file in found if any(format_of(f"_{kind}") for kind in file.suffixes)]
    return [file for file in named if not is_aside(file)]


def _default_splits(folder: Path, format: str | None) -> dict[str, dict[str, Any]]:
    """Return each split's usual patterns: ``train.*`` or ``train/*``, and so on."""
    names = sorted(path.name for path in folder.iterdir() if not is_aside(path))
    specs: dict[str, dict[str, Any]] = {}
    for split in SPLITS:
        named = [name for name in names if name.split(".")[0] == split]
        patterns: list[str] = []
        aside: list[str] = []
        for name in named:
            if (folder / name).is_dir():
                files = [file for file in (folder / name).glob("[!.]*") if file.is_file()]
                suffixes = {file.suffix for file in files if not is_aside(file)}
                patterns += [f"{name}/*{suffix}" for suffix in sorted(suffixes)]
                aside += sorted(f"{name}/{file.name}" for file in files if is_aside(file))
            else:
                patterns.append(name)
        if patterns := [pattern for pattern in patterns if format or format_of(pattern)]:
            specs[split] = {"files": patterns, "exclude": aside}
        elif named:
            problem = "no format is known from the name of this file, or of a file in this folder"
            fix = "unpack it, end its name in .mrg, .ptb or .conllu, or set format in language.yaml"
            raise AttreeError("unknown-format", problem, file=folder / named[0], fix=fix)
    return specs


def _read_splits(
    language: str,
    folder: Path,
    settings: Mapping[str, Any],
    specs: Mapping[str, Mapping[str, Any]],
    where: str,
) -> tuple[dict[str, Split], dict[str, str], set[Path]]:
    """Find files; return splits with files, patterns of those without, and all files named."""
    splits: dict[str, Split] = {}
    absent: dict[str, str] = {}
    used: set[Path] = set()
    for split, spec in specs.items():
        if not is_name(split):
            raise AttreeError("bad-name", f"{split!r} cannot name a split", file=where)
        sources = _sources(split, specs, language, where)
        patterns = [p for source in sources for p in _fill_in(source["files"], language)]
        matches = find(patterns, folder)
        excluded = find(_fill_in(spec.get("exclude", []), language), folder)
        used.update(excluded.files)
        kept = [file for source in sources for file in _kept(source, language, folder)]
        # what another split leaves out does not come back in one that is made from it
        left_out = distinct(matches.files, kept)
        files = tuple(distinct(matches.files, [*excluded.files, *left_out]))
        if all(file.is_file() and file.stat().st_size == 0 for file in files):
            absent[split] = ", ".join(patterns) + (", but for empty files" if files else "")
            continue
        used.update(files)
        how = resolve(as_settings({**settings, **spec}), files)
        without = (*excluded.patterns, *map(str, distinct(left_out, excluded.files)))
        splits[split] = Split(files, how, matches.patterns, without, matches.missing)
    return splits, absent, used


def _sources(
    split: str, specs: Mapping[str, Mapping[str, Any]], language: str, where: str
) -> list[Mapping[str, Any]]:
    """Return a split with files of its own, or the splits that it is made from."""
    if "files" in specs[split]:
        return [specs[split]]
    others = _fill_in(specs[split]["from"], language)
    for other in others:
        if "files" not in specs.get(other, {}):
            problem = f"splits.{split}.from: there is no split {other} with files of its own"
            fix = nearest(other, [name for name in specs if name != split])
            raise AttreeError("unknown-split", problem, file=where, fix=fix)
    return [specs[other] for other in others]


def _kept(spec: Mapping[str, Any], language: str, folder: Path) -> list[Path]:
    """Return the files of a split, without those that it leaves out."""
    keys = ("files", "exclude")
    named, excluded = (find(_fill_in(spec.get(key, []), language), folder).files for key in keys)
    return distinct(named, excluded)


def _fill_in(value: str | list[str], language: str) -> list[str]:
    """Return patterns with the language's name in place of ``{LANG}``, ``{Lang}``, ``{lang}``."""
    patterns = [value] if isinstance(value, str) else value
    upper, capital, lower = language.upper(), language.capitalize(), language.lower()
    for placeholder, name in {"{LANG}": upper, "{Lang}": capital, "{lang}": lower}.items():
        patterns = [pattern.replace(placeholder, name) for pattern in patterns]
    return patterns
