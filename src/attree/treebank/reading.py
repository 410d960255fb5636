"""Files of trees with all their words, for trees that are paired with others by words."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from attree.treebank.cleaning import Counts, prepare
from attree.treebank.formats import read_files, resolve
from attree.treebank.sentence import Rejected, Sentence, Settings


def read_whole(
    path: Path, settings: Settings, refused: list[str], *, half: bool = False
) -> list[Sentence]:
    """Return the sentences of a treebank file, punctuation too.

    Args:
        path: the file.
        settings: how it is read; its punctuation policy is not applied.
        refused: gets a line for each sentence that cannot be read.
        half: whether half-known trees will do; else they are refused.

    Raises:
        AttreeError: the file cannot be read.
    """
    how = dataclasses.replace(resolve(settings, [path]), punctuation="keep")
    sentences = []
    for item in prepare(read_files([path], how), how, Counts()):
        if isinstance(item, Rejected):
            refused.append(str(item))
        elif item.half and not half:
            refused.append(f"{item.file}:{item.line}: only some of this tree is known")
        else:
            sentences.append(item)
    return sentences
