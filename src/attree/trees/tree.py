"""Represent one sentence's tree; write it in brackets, as an NLTK tree, or draw it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from attree.base.errors import AttreeError
from attree.base.terminal import safe, width
from attree.base.text import right_to_left
from attree.trees.drawing import draw, nested

#: The label of a node that has none, and the tag of a word that has none.
NO_LABEL = "X"


class Phrase(NamedTuple):
    """A phrase of a tree.

    Attributes:
        text: its words, with spaces between them.
        start, end: its half-open word interval.
    """

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Tree:
    """One sentence and its tree; ``print`` draws it.

    Attributes:
        words: of the sentence.
        spans: half-open word intervals of its nodes in pre-order; only labelled trees have spans
            of one word.
        labels: of the spans, or None for an unlabelled tree.
        tags: of the words, or None.
        span_scores: of the spans, or None.
        status: ``ok``, ``too_long`` (for the encoder) or ``failed`` (the encoder's numbers are not
            finite); trees of the latter two are right-branching.
        marginals: of the spans, the probability of each under the parser's distribution over trees;
            None where it has none (see :meth:`attree.parsers.parser.Chart.marginals`).
    """

    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    labels: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    span_scores: tuple[float, ...] | None = field(default=None, compare=False)
    status: str = "ok"
    marginals: tuple[float, ...] | None = field(default=None, compare=False)

    @property
    def score(self) -> float | None:
        """Mean of the spans' scores: how sure the parser is; None without scores.

        Scores of one parser can be compared, those of two parsers cannot.
        """
        mean = np.mean(self.span_scores) if self.span_scores else np.nan
        return float(mean) if np.isfinite(mean) else None

    def labelled(self, missing: str = NO_LABEL) -> list[tuple[int, int, str]]:
        """Return start, end and label of each span; ``missing`` is the label of those without."""
        labels = self.labels or (missing,) * len(self.spans)
        return [(*span, label) for span, label in zip(self.spans, labels, strict=True)]

    def phrases(self, *labels: str) -> list[Phrase]:
        """Return the phrases with one of some labels in pre-order, or all phrases without one.

        Raises:
            AttreeError: a label is given, but the tree has no labels.
        """
        if labels and self.labels is None:
            fix = "take a parser with labels, such as universal; phrases() has all phrases"
            raise AttreeError("no-labels", "this tree has no labels", fix=fix)
        return [
            Phrase(" ".join(self.words[start:end]), start, end)
            for start, end, name in self.labelled()
            if not labels or name in labels
        ]

    def brackets(self) -> str:
        """Return the tree on one line.

        Every word has a tag, ``(S (NP (X the) (X cat)) …)``, as EVALB, Tregex and readers of
        treebanks expect; missing labels and tags are ``X``. Round brackets in words and labels are
        written ``-LRB-`` and ``-RRB-``, which readers undo; each white-space character ``_``,
        which they keep: ``New York``, given as one word, is read back as ``New_York``. A tree
        without words is ``()``.
        """
        return bracketed(self.words, self.spans, self.labels, self.tags)

    def to_nltk(self, kind: Callable[[str, list[Any]], Any] | None = None) -> Any:
        """Return an ``nltk.Tree``; its leaves are the unchanged words.

        Words have tags, ``X`` if missing, unless the tree has neither labels nor tags.

        Args:
            kind: makes a node of its label and children; by default ``nltk.Tree``.
        """
        if kind is None:
            from nltk import Tree as NltkTree

            kind = NltkTree
        leaves: list[Any] = list(self.words)
        if self.labels is not None or self.tags is not None:
            tags = self.tags or (NO_LABEL,) * len(self.words)
            leaves = [kind(tag, [word]) for tag, word in zip(tags, self.words, strict=True)]
        root = nested(len(self.words), self.spans, self.labels)
        made: dict[Any, Any] = dict(enumerate(leaves))
        for node in root.post_order():  # no recursion: trees may be deep
            made[node] = kind(node.label or NO_LABEL, [made[child] for child in node.children])
        return made[root]

    def __str__(self) -> str:
        """Draw the tree with lines, upright if that fits the terminal, else sideways.

        Control characters in words are escaped.
        """
        if not self.spans:
            return " ".join(map(safe, self.words)) or "()"
        root = nested(len(self.words), self.spans, self.labels)
        return draw(root, self.words, shutil.get_terminal_size().columns)

    def _repr_svg_(self) -> str:
        """Draw the tree for a notebook, the first word at the right in right-to-left text."""
        import svgling
        from nltk import Tree as NltkTree

        def leftwards(label: str, children: list[Any]) -> Any:
            return NltkTree(label, children[::-1])

        tree = self.to_nltk(leftwards if right_to_left(self.words) else None)
        # svgling takes two characters to be as wide as one is high; Chinese ones are that each
        widest = max((width(word) / len(word) for word in self.words if word), default=1)
        options = {"average_glyph_width": 2 / max(widest, 1)}
        drawn: str = svgling.draw_tree(tree, **options)._repr_svg_()
        return drawn


_UNSAFE = re.compile(r"[()\s]")
_WRITTEN = {"(": "-LRB-", ")": "-RRB-"}


def _escape(text: str) -> str:
    return _UNSAFE.sub(lambda match: _WRITTEN.get(match[0], "_"), text)


@lru_cache(maxsize=1024)
def _symbol(label: str) -> str:
    """Return a label for brackets: one word without brackets."""
    return _escape(label.strip()) or NO_LABEL


def leaf(word: str, tag: str) -> str:
    """Return a word under its tag in brackets, as :meth:`Tree.brackets` writes them."""
    return f"({_symbol(tag)} {_escape(word)})"


def bracketed(
    words: tuple[str, ...] | list[str],
    spans: Any,
    labels: tuple[str, ...] | None = None,
    tags: tuple[str, ...] | None = None,
) -> str:
    """Return a tree on one line (see :meth:`Tree.brackets`); ``spans`` are in pre-order."""
    if not words:
        return "()"
    tokens = list(map(leaf, words, tags or (NO_LABEL,) * len(words)))
    opening, closing = [""] * len(tokens), [0] * (len(tokens) + 1)
    whole = False
    for number, (start, end) in enumerate(spans):
        opening[start] += f"({NO_LABEL if labels is None else _symbol(labels[number])} "
        closing[end] += 1
        whole = whole or end - start == len(tokens)
    if not whole:
        opening[0] = f"({NO_LABEL} {opening[0]}"
        closing[-1] += 1
    parts = zip(opening, tokens, closing[1:], strict=True)
    return " ".join(f"{before}{token}{')' * after}" for before, token, after in parts)


#: Joins the labels of a unary chain to one name, the upper one first: ``S+VP``. In a label, ``%2B``
#: stands for ``+`` and ``%25`` for ``%``, so that ``NP+PP`` is one label or two, as it was before.
CHAIN = "+"


def joined(labels: Iterable[str]) -> str:
    """Return the name of a chain of labels; empty labels are left out."""
    escaped = (label.replace("%", "%25").replace(CHAIN, "%2B") for label in labels if label)
    return CHAIN.join(escaped)


def parted(name: str) -> list[str]:
    """Return the labels of a chain's name; none of the empty name."""
    labels = name.split(CHAIN) if name else []
    return [label.replace("%2B", CHAIN).replace("%25", "%") for label in labels if label]
