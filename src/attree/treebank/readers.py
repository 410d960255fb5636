"""The treebank formats by name, and reading files of any of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attree.errors import AttreeError
from attree.treebank import brackets, conllu
from attree.treebank.decode import read_text
from attree.treebank.sentence import Rejected, Sentence
from attree.treebank.settings import DROP_LABELS, DUMMY_ROOTS, Settings

Reader = Callable[[str, str, Settings], Iterator[Sentence | Rejected]]


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its reader (text, file name, settings → sentences), and what it stands for.

    Args:
        read: yields every sentence of a file's text.
        extensions: of files that are in this format unless something else is said.
        punctuation: the policy that is usual for treebanks in this format.
        dummy_roots: outer labels that are no phrases.
        derived: what its brackets are derived from.
    """

    read: Reader
    extensions: tuple[str, ...]
    punctuation: str
    dummy_roots: tuple[str, ...] = DUMMY_ROOTS
    derived: Literal["constituency", "dependency"] = "constituency"


FORMATS = {
    "ptb": Format(brackets.read, (".mrg",), punctuation="ptb"),
    "spmrl": Format(
        brackets.read_spmrl,
        (".ptb", ".psd", ".gld", ".brackets", ".tree", ".trees"),
        punctuation="keep",
        dummy_roots=(*DUMMY_ROOTS, ""),
    ),
    "conllu": Format(conllu.read, (".conllu", ".conll"), punctuation="keep", derived="dependency"),
}


def format_of(path: str | Path) -> str | None:
    """Return the format that a file's extension stands for; None if none."""
    extension = Path(path).suffix.lower()
    for name, one in FORMATS.items():
        if extension in one.extensions:
            return name
    return None


def resolve(settings: Settings, files: Sequence[str | Path]) -> Settings:
    """Fill in what the format says wherever ``settings`` says nothing.

    Raises:
        AttreeError: an unknown format, or none is given and the extensions do not tell one.
    """
    name = settings.format
    if name is None:
        told = {format_of(file) for file in files}
        name = next(iter(told)) if len(told) == 1 else None
        if name is None:
            raise AttreeError(
                "the format cannot be told from the files' extensions",
                file=files[0] if files else None,
                fix=f"give it: {', '.join(FORMATS)}",
            )
    if name not in FORMATS:
        raise AttreeError(f"unknown format {name!r}", fix=f"choose one of {', '.join(FORMATS)}")
    usual = FORMATS[name]
    roots, drop = settings.dummy_roots, settings.drop_labels
    return dataclasses.replace(
        settings,
        format=name,
        punctuation=settings.punctuation or usual.punctuation,
        dummy_roots=usual.dummy_roots if roots is None else roots,
        drop_labels=DROP_LABELS if drop is None else drop,
        derived=settings.derived or usual.derived,
    )


def read_files(files: Iterable[str | Path], settings: Settings) -> Iterator[Sentence | Rejected]:
    """Yield every sentence of ``files`` in order, each as a `Sentence` or as `Rejected`.

    Args:
        files: read one at a time.
        settings: resolved (see `resolve`).

    Raises:
        AttreeError: a file is absent, or the encoding is unknown or not the file's.
    """
    read = FORMATS[settings.format or ""].read
    for file in files:
        text = read_text(file, settings.encoding)
        if text.strip():
            yield from read(text, str(file), settings)
        else:
            yield Rejected(str(file), 1, "the file is empty — delete it", "failed")
