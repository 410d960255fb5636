"""Find the files that patterns match.

In a pattern, ``wsj_{0125..0149}.mrg`` is a range (padded to the width of its first number),
``test.{Basque,basque}.ptb`` is a list, and ``*``, ``?``, ``[…]`` and ``**`` are globs. Of
alternatives separated by `` | ``, the first that matches a file counts.
"""

import glob
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from attree.base.errors import AttreeError

_RANGE = re.compile(r"\{(\d{1,9})\.\.(\d{1,9})\}")
_LIST = re.compile(r"\{([^{}]*,[^{}]*)\}")
_ALTERNATIVE = re.compile(r"\s+\|\s+")
_MOST = 100_000


@dataclass(frozen=True, slots=True)
class Matches:
    """The files that patterns match.

    Args:
        files: each file once, in the patterns' order and sorted within a pattern.
        patterns: the alternative that matched, of each pattern, with its folder.
        missing: the members of numbered ranges that match no file.
    """

    files: tuple[Path, ...]
    patterns: tuple[str, ...]
    missing: tuple[str, ...]


def find(patterns: Iterable[str], folder: str | Path | None = None) -> Matches:
    """Find the files that ``patterns`` match, in ``folder`` if one is given.

    A pattern that is a file's own name stands for that file, whatever characters it holds.
    """
    files: list[Path] = []
    used: list[str] = []
    missing: list[str] = []
    for pattern in patterns:
        for alternative in _ALTERNATIVE.split(pattern):
            matched, absent = _matches(alternative, folder)
            if matched:
                files += matched
                literal = matched == [Path(folder or "", alternative)]
                used.append(str(matched[0]) if literal else _within(folder, alternative))
                missing += absent
                break
    return Matches(tuple(distinct(files)), tuple(used), tuple(missing))


def distinct(files: Iterable[Path], without: Iterable[Path] = ()) -> list[Path]:
    """Return files in order, one of several names once, by its first; some left out by any name."""
    first: dict[str, Path] = {}
    for file in files:
        first.setdefault(os.path.realpath(file), file)
    excluded = set(map(os.path.realpath, without))
    return [file for name, file in first.items() if name not in excluded]


def is_hidden(name: str) -> bool:
    """Tell whether the name of a file or folder says that it is passed over in a folder."""
    return name.startswith((".", "_"))


def files_below(folder: Path) -> list[Path]:
    """Return the files in a folder and in the folders in it, without hidden ones."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [file for file in files if not any(map(is_hidden, file.relative_to(folder).parts))]


def _matches(pattern: str, folder: str | Path | None) -> tuple[list[Path], list[str]]:
    """Return the files that a pattern matches, and the members of its ranges without a file."""
    literal = Path(folder or "", pattern)
    if literal.is_file():
        return [literal], []
    matched: dict[str, list[Path]] = {}
    for member in expand(pattern, _RANGE):
        globs = [_within(folder, alternative) for alternative in expand(member)]
        names = (name for w in globs for name in glob.iglob(w, recursive=True))  # noqa: PTH207
        matched[member] = sorted(path for path in map(Path, names) if path.is_file())
    absent = [member for member, files in matched.items() if not files and len(matched) > 1]
    return [file for files in matched.values() for file in files], absent


def _within(folder: str | Path | None, pattern: str) -> str:
    if folder is None or Path(folder) == Path():
        return pattern
    return str(Path(glob.escape(str(folder)), pattern))


def expand(pattern: str, braces: re.Pattern[str] = _LIST) -> list[str]:
    """Expand the brace lists or ranges of a pattern, the leftmost one first."""
    done: list[str] = []
    left = [pattern]
    while left:
        name = left.pop()
        match = braces.search(name)
        if match is None:
            done.append(name)
            continue
        members = _members(match)
        if len(members) + len(left) + len(done) > _MOST:
            problem = f"the pattern {pattern} matches more than {_MOST:,} names"
            raise AttreeError("too-many-names", problem)
        left += [name[: match.start()] + member + name[match.end() :] for member in members[::-1]]
    return done


def _members(match: re.Match[str]) -> list[str]:
    if match.re is _LIST:
        return match[1].split(",")
    first, last = int(match[1]), int(match[2])
    if last - first > _MOST:
        raise AttreeError("range-too-long", f"the range {match[0]} is longer than {_MOST:,}")
    return [str(number).zfill(len(match[1])) for number in range(first, last + 1)]


def matching(item: str | Path) -> list[Path]:
    """Return the files that a pattern matches; else take it for a file's name."""
    if Path(item).exists() or not re.search(r"[*?\[{]", str(item)):
        return [Path(item)]
    return list(find([str(item)]).files) or [Path(item)]
