"""How the files of one split are read and cleaned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: Outer nodes that treebanks put above every sentence; an empty label counts where it is unary.
DUMMY_ROOTS = ("TOP", "VROOT", "ROOT", "S1")
#: Subtrees that annotate a tree and hold none of its words (IcePaHC-style corpora).
DROP_LABELS = ("META", "lemma")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one split; ``None`` means what the format says (see ``readers.resolve``).

    Args:
        format: a name of ``readers.FORMATS``; by default told from the files' extension.
        encoding: of the files.
        punctuation: a policy of ``cleaning.POLICIES``.
        dummy_roots: outer labels that are no phrases; ``""`` is an outer node without a label.
        drop_labels: labels of subtrees that are left out, words and all.
        escapes: ``undo`` PTB's escapes (``-LRB-``, ``\\/``) in words, or ``keep`` them.
        nonprojective: what to do with a crossing dependency tree.
        max_words: longer sentences (after cleaning) are skipped.
        first: sentences after the first so many (after cleaning and ``max_words``) are skipped.
        derived: ``constituency``, or ``dependency`` where brackets were made from dependencies.
    """

    format: str | None = None
    encoding: str = "utf-8"
    punctuation: str | None = None
    dummy_roots: tuple[str, ...] | None = None
    drop_labels: tuple[str, ...] | None = None
    escapes: Literal["undo", "keep"] = "undo"
    nonprojective: Literal["skip", "lift"] = "skip"
    max_words: int | None = None
    first: int | None = None
    derived: Literal["constituency", "dependency"] | None = None
