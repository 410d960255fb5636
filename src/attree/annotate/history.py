"""What the log of earlier sessions says: which sentences are done, and what each took."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attree.annotate.folder import Folder
from attree.treebank.sentence import Sentence


def accepted(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of sentences that were accepted and not taken back."""
    found: list[dict[str, Any]] = []
    for one in records:
        if one["action"] == "reopen":
            found = [other for other in found if other.get("words") != one.get("words")]
        elif one["action"] == "accept":
            found.append(one)
    return found


def finished(folder: Folder, saved: Iterable[Sentence]) -> set[tuple[str, ...]]:
    """Return the words of the sentences that have a tree in ``saved``, or were skipped.

    A tree that was taken out of ``train.ptb`` by hand is shown again.
    """
    skipped: set[tuple[str, ...]] = set()
    for one in folder.records():
        words = tuple(map(str, one.get("words", ())))
        if one["action"] == "skip":
            skipped.add(words)
        elif one["action"] == "reopen":
            skipped.discard(words)
    return skipped | {sentence.words for sentence in saved}
