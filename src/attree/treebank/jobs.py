"""What ``attree treebank`` reads: files, a language's splits, or the treebanks in a folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.languages import code_in, code_of
from attree.base.patterns import find
from attree.base.text import say
from attree.treebank.formats import in_folder, resolve, together
from attree.treebank.language import discover
from attree.treebank.language_file import as_settings, check_settings, settings_of
from attree.treebank.sentence import SplitSettings

_FOLDERS = [Path("workflow/resources/treebanks"), Path("treebanks")]
_NAMED = 5  # files of a folder that are no treebanks, by name


@dataclass(frozen=True, slots=True)
class ReadingJob:
    """Files that are read together, and how.

    Attributes:
        files, settings: which, and how they are read.
        language, split: of which treebank they are, where that is known.
        place: the folder that they were found in, where a folder was asked for.
    """

    files: tuple[Path, ...]
    settings: SplitSettings
    language: str = ""
    split: str = ""
    place: str = ""

    @property
    def title(self) -> str:
        """Their place, or the only file, or how many files there are."""
        files = str(self.files[0]) if len(self.files) == 1 else f"{len(self.files):,} files"
        return self.place or f"{self.language} {self.split}".strip() or files


def of_files(
    patterns: Sequence[str], exclude: Sequence[str], given: dict[str, Any], **names: str
) -> ReadingJob:
    """Return the files that patterns match, under the options given.

    Args:
        patterns: each must match a file.
        exclude: patterns of files to leave out.
        given: keys of ``language.yaml``.
        names: language and split.

    Raises:
        AttreeError: nothing matches, or an option cannot be.
    """
    settings = settings_of(**given)
    files = _found(patterns, exclude, settings.format)
    return ReadingJob(files, resolve(settings, files), **names)


def of_language(
    language: str, split: str, folders: list[Path] | None, given: dict[str, Any]
) -> Iterator[ReadingJob]:
    """Yield the splits of a language that lies in a folder of treebanks; all, or the one named."""
    if not language:
        raise AttreeError("no-inputs", "no files are given", fix="name some, or a --language")
    options = as_settings(check_settings(given, "command line"))
    catalogue = discover(folders or _FOLDERS)
    language = _named(language, catalogue)
    for name in [split] if split else list(catalogue[language].splits):
        one = catalogue[language].split(name)
        yield ReadingJob(one.files, dataclasses.replace(one.settings, **options), language, name)


def _named(language: str, names: Iterable[str]) -> str:
    """Return the one of these treebanks' names that is meant by a name or a code."""
    if language in (names := list(names)):
        return language
    try:
        code = code_of(language)
    except AttreeError:
        return language
    found = [name for name in names if code_in(name) == code]
    return found[0] if len(found) == 1 else language


def of_folder(folder: Path, given: dict[str, Any]) -> Iterator[ReadingJob]:
    """Yield the treebanks in a folder: a language's splits, or files of one format together."""
    if (folder / "language.yaml").is_file():
        yield from of_language(folder.resolve().name, "", [folder.resolve().parent], given)
        return
    settings = settings_of(**given)
    groups, others = in_folder(folder, settings.format)
    if others:
        shown = ", ".join(str(file.relative_to(folder)) for file in others[:_NAMED])
        more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
        kind = settings.format or "any format that their names or contents tell"
        say(f"{folder}: not in {kind}: {shown}{more}")
    if not groups:
        fix = f"name its files, with --format: '{folder}/*'"
        raise AttreeError("no-treebank", "no treebank is in this folder", file=folder, fix=fix)
    for place, files in groups.items():
        yield ReadingJob(tuple(files), resolve(settings, files), place=str(place))


def _found(patterns: Sequence[str], exclude: Sequence[str], format: str | None) -> tuple[Path, ...]:
    """Return the files that patterns match, and those in folders; each must stand for one."""
    found: dict[Path, None] = {}
    for pattern in patterns:
        if Path(pattern).is_dir():
            some = [file for files in together(Path(pattern), format) for file in files]
            found.update(dict.fromkeys(some))
            continue
        matched = find([pattern])
        if not matched.files:
            raise AttreeError("missing-file", "no such file", file=pattern, fix="check its name")
        found.update(dict.fromkeys(matched.files))
        if matched.missing:
            say(f"warning: {len(matched.missing)} of {pattern} do not exist")
    excluded = set(find(exclude).files)
    files = tuple(file for file in found if file not in excluded)
    if not files:
        raise AttreeError("all-excluded", "every file is excluded", fix="correct --exclude")
    return files
