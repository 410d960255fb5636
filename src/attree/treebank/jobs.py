"""Find what ``attree treebank`` reads: files, a language's splits, or a folder's treebanks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.languages import code_in, code_of
from attree.base.patterns import find
from attree.base.terminal import say
from attree.treebank.formats import by_format, in_folder, resolve, together
from attree.treebank.language import discover
from attree.treebank.language_file import as_settings, check_settings, settings_of
from attree.treebank.sentence import SplitSettings

_FOLDERS = [Path("workflow/resources/treebanks"), Path("treebanks")]
_NAMED = 5  # files that are no treebanks and are named in a message


@dataclass(frozen=True, slots=True)
class ReadingJob:
    """Files that are read together, and their settings.

    Attributes:
        files, settings: which files, and how they are read.
        language, split: of the treebank; empty if unknown.
        place: the folder that was searched, if one was.
    """

    files: tuple[Path, ...]
    settings: SplitSettings
    language: str = ""
    split: str = ""
    place: str = ""

    @property
    def title(self) -> str:
        """The folder, the treebank, the only file, or the number of files."""
        files = str(self.files[0]) if len(self.files) == 1 else f"{len(self.files):,} files"
        return self.place or f"{self.language} {self.split}".strip() or files


def of_files(
    patterns: Sequence[str], exclude: Sequence[str], options: dict[str, Any], **names: str
) -> list[ReadingJob]:
    """Return a job of the files that patterns match, or one for each of their formats.

    Args:
        patterns: each must match a file.
        exclude: patterns of files to leave out.
        options: keys of ``language.yaml``.
        names: language and split.

    Raises:
        AttreeError: a pattern matches nothing, or an option is wrong.
    """
    settings = settings_of(**options)
    files = _files(patterns, exclude, settings.format)
    groups = [list(files)] if settings.format else by_format(files).values()
    return [ReadingJob(tuple(group), resolve(settings, group), **names) for group in groups]


def of_language(
    language: str, split: str, folders: list[Path] | None, keys: dict[str, Any]
) -> Iterator[ReadingJob]:
    """Yield the splits of a language in folders of treebanks; all splits, or only ``split``."""
    if not language:
        raise AttreeError("no-inputs", "no files are given", fix="name some, or a --language")
    options = as_settings(check_settings(keys, "command line"))
    catalogue = discover(folders or _FOLDERS)
    language = _find_language(language, catalogue)
    for name in [split] if split else list(catalogue[language].splits):
        part = catalogue[language].split(name)
        yield ReadingJob(part.files, dataclasses.replace(part.settings, **options), language, name)


def _find_language(language: str, names: Iterable[str]) -> str:
    """Return the treebank's name for a language's name or code."""
    if language in (names := list(names)):
        return language
    try:
        code = code_of(language)
    except AttreeError:
        return language
    matches = [name for name in names if code_in(name) == code]
    return matches[0] if len(matches) == 1 else language


def of_folder(folder: Path, options: dict[str, Any]) -> Iterator[ReadingJob]:
    """Yield the treebanks in a folder: a language's splits, or a job for each format."""
    if (folder / "language.yaml").is_file():
        yield from of_language(folder.resolve().name, "", [folder.resolve().parent], options)
        return
    settings = settings_of(**options)
    groups, others = in_folder(folder, settings.format)
    if others:
        names = ", ".join(str(file.relative_to(folder)) for file in others[:_NAMED])
        more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
        kind = settings.format or "any format that their names or contents tell"
        say(f"{folder}: not in {kind}: {names}{more}")
    if not groups:
        fix = f"name its files, with --format: '{folder}/*'"
        raise AttreeError("no-treebank", "no treebank is in this folder", file=folder, fix=fix)
    for name, files in groups.items():
        yield ReadingJob(tuple(files), resolve(settings, files), place=name)


def _files(patterns: Sequence[str], exclude: Sequence[str], format: str | None) -> tuple[Path, ...]:
    """Return the files of patterns and folders; each of these must have one."""
    paths: dict[Path, None] = {}
    for pattern in patterns:
        if Path(pattern).is_dir():
            inside = [file for files in together(Path(pattern), format) for file in files]
            paths.update(dict.fromkeys(inside))
            continue
        matched = find([pattern])
        if not matched.files:
            raise AttreeError("missing-file", "no such file", file=pattern, fix="check its name")
        paths.update(dict.fromkeys(matched.files))
        if matched.missing:
            say(f"warning: {len(matched.missing)} of {pattern} do not exist")
    excluded = set(find(exclude).files)
    files = tuple(file for file in paths if file not in excluded)
    if not files:
        raise AttreeError("all-excluded", "every file is excluded", fix="correct --exclude")
    return files
