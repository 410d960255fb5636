"""What the log of earlier sessions says: which sentences are done, and what each took."""

from __future__ import annotations

from collections.abc import Iterable

from attree.annotate.folder import Record
from attree.treebank.sentence import Sentence


def accepted(records: Iterable[Record]) -> list[Record]:
    """Return the records of sentences that were accepted and not taken back."""
    found: list[Record] = []
    for one in records:
        if one.action == "reopen":
            found = [other for other in found if other.words != one.words]
        elif one.action == "accept":
            found.append(one)
    return found


def order_of_labels(records: Iterable[Record]) -> list[str]:
    """Return the labels in the order that their digits go by, as it was logged last."""
    return next((list(one.names) for one in reversed([*records]) if one.action == "labels"), [])


def finished(records: Iterable[Record], saved: Iterable[Sentence]) -> set[tuple[str, ...]]:
    """Return the words of the sentences that have a tree in ``saved``, or were skipped.

    A tree that was taken out of ``train.ptb`` by hand is shown again.
    """
    skipped: set[tuple[str, ...]] = set()
    for one in records:
        if one.action == "skip":
            skipped.add(one.words)
        elif one.action == "reopen":
            skipped.discard(one.words)
    return skipped | {sentence.words for sentence in saved}
