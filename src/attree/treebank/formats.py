"""The treebank formats by name, and reading files of any of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from attree.errors import AttreeError
from attree.treebank import brackets, conllu
from attree.treebank.sentence import DROP_LABELS, Rejected, Sentence, Settings
from attree.treebank.sources import read_text

#: Format → what reads it. To add one: a file with a `Format`, and a line here.
FORMATS = {
    "ptb": brackets.PTB,
    "spmrl": brackets.SPMRL,
    "conllu": conllu.FORMAT,
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
                "the format is not known from the files' extensions",
                file=files[0] if files else None,
                fix=f"add --format with one of {', '.join(FORMATS)}",
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
            yield Rejected(str(file), 1, "the file is empty", "failed")


def sniff(file: str | Path, settings: Settings) -> str:
    """Return the format that a file's content is certainly in; empty if it is not another one."""
    return ""
