"""Raw text: sentence tables, text files (plain, .xz, .gz), folders of them; how languages mix."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attree.errors import AttreeError
from attree.files import COMPRESSIONS, DAMAGE, open_compressed

#: Files that lie beside corpora and are none.
_NO_TEXT = ("README", "LICENSE")
_SUFFIXES = (".txt", *filter(None, COMPRESSIONS))
_TABLE = ".parquet"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Text of one language.

    Args:
        name: the language, or what else the text is called.
        files: read in this order.
    """

    name: str
    files: tuple[Path, ...]

    def lines(self) -> Iterator[str]:
        """Yield the lines that are not blank; of a sentence table its words, joined by spaces.

        Raises:
            AttreeError: a file is missing, cut short, or not UTF-8.
        """
        for file in self.files:
            lines = _table_lines(file) if file.suffix == _TABLE else _file_lines(file)
            yield from filter(None, map(str.strip, lines))


@dataclass(frozen=True, slots=True)
class Extent:
    """How much text there is, and a hash of it."""

    hash: str
    lines: int
    characters: int

    def describe(self) -> dict[str, Any]:
        """Return it as JSON-able values, for provenance."""
        return asdict(self)


def measure(corpus: Corpus) -> Extent:
    """Read a corpus once; the hash covers its lines and not where they lie or how they are packed.

    Raises:
        AttreeError: this file has no text.
    """
    whole, lines, characters = hashlib.sha256(), 0, 0
    for line in corpus.lines():
        whole.update(line.encode() + b"\n")
        lines, characters = lines + 1, characters + len(line)
    if not lines:
        raise AttreeError("this file has no text", file=corpus.files[0])
    return Extent(whole.hexdigest()[:32], lines, characters)


def one_corpus(name: str, paths: Sequence[Path]) -> Corpus:
    """Take all that lies at ``paths``, files or folders, for one corpus."""
    return Corpus(name, tuple(file for path in paths for file in _files(path)))


def by_language(paths: Sequence[Path]) -> list[Corpus]:
    """Find languages: ``en.txt.xz`` is English, and so is all that lies in a folder ``en``.

    Args:
        paths: files, or folders that hold files and folders named by language.

    Returns:
        one corpus a language, by name.
    """
    found: dict[str, list[Path]] = {}
    for path in paths:
        entries = sorted(path.iterdir()) if path.is_dir() else [path]
        for entry in entries:
            if entry.is_dir() or not path.is_dir() or _is_text(entry):
                found.setdefault(entry.name.split(".")[0], []).extend(_files(entry))
    if not found:
        raise AttreeError(
            "no text here", file=paths[0], fix="name files by language, such as en.txt or en.txt.xz"
        )
    return [Corpus(name, tuple(files)) for name, files in sorted(found.items())]


def proportions(sizes: Sequence[int], exponent: float) -> np.ndarray:
    """Return how often to draw from each corpus: ``p ∝ size ** exponent``.

    1 keeps the sizes as they are, 0 draws from all alike; multilingual BERT took 0.7.
    """
    weights = np.asarray(sizes, dtype=np.float64) ** exponent
    return np.asarray(weights / weights.sum())


def balanced_lines(
    corpora: Sequence[Corpus], sizes: Sequence[int], *, characters: int, exponent: float
) -> Iterator[str]:
    """Yield lines spread over each corpus, so that its text is ∝ ``size ** exponent``.

    Args:
        corpora: the languages.
        sizes: their characters.
        characters: about how many to yield in all, at most as many as there are. A small language
            may be repeated, so that it has its share.
        exponent: see :func:`proportions`.
    """
    total = min(characters, sum(sizes))
    shares = proportions(sizes, exponent)
    for corpus, size, share in zip(corpora, sizes, shares, strict=True):
        owed = 0.5
        for line in corpus.lines():
            owed += total * float(share) / size
            for _ in range(int(owed)):
                yield line
            owed %= 1


def _is_text(path: Path) -> bool:
    known = path.suffix == _TABLE or path.suffix in _SUFFIXES
    return known and not path.name.startswith((*_NO_TEXT, "."))


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise AttreeError("this text does not exist", file=path)
    if path.is_file():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.is_file() and _is_text(file))
    if not files:
        raise AttreeError(
            "no text in this folder",
            file=path,
            fix=f"text files end in {', '.join(_SUFFIXES)}, sentence tables in {_TABLE}",
        )
    return files


def _table_lines(path: Path) -> Iterable[str]:
    from attree.schemas import read_table

    table, _ = read_table(path)
    if "words" not in table.schema.names:
        raise AttreeError(
            "this table has no column `words`", file=path, fix="write it with `attree treebank`"
        )
    return (" ".join(words) for words in table["words"].to_pylist())


def _file_lines(path: Path) -> Iterator[str]:
    number = 0
    try:
        with io.BufferedReader(open_compressed(path), 1 << 20) as handle:
            for number, line in enumerate(handle, start=1):
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        raise AttreeError(
            "this text is not UTF-8", file=path, line=number, fix="convert it with `iconv`"
        ) from None
    except DAMAGE:
        raise AttreeError(
            "this file is damaged or cut short", file=path, line=number + 1, fix="copy it again"
        ) from None
