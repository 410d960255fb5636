"""Represent one sentence's tree; write it in brackets, as an NLTK tree, or draw it.

Trees are drawn with lines on a terminal: upright, or sideways if that does not fit. NLTK draws
trees too, but importing it takes as long as parsing the sentence.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from attree.base.errors import AttreeError
from attree.base.terminal import safe, width
from attree.base.text import right_to_left

#: Left-to-right mark, of no width: beside a word it keeps a terminal that orders right-to-left text
#: itself from moving the word, and its letters run as they should.
_STAY = "\u200e"
_MIRRORED = str.maketrans("├└┌┐", "┤┘┐┌")


@dataclass(slots=True)
class DrawnNode:
    """A node over other nodes and words.

    Attributes:
        label: its name; empty where it has none.
        children: nodes, and words by their positions.
    """

    label: str
    children: list[DrawnNode | int] = field(default_factory=list)

    def post_order(self) -> list[DrawnNode]:
        """Return the node and those below it, each after its children; trees may be deep."""
        nodes, todo = [], [self]
        while todo:
            node = todo.pop()
            nodes.append(node)
            todo += [child for child in node.children if isinstance(child, DrawnNode)]
        return nodes[::-1]


def nested(
    n_words: int, spans: Sequence[tuple[int, int]], labels: Sequence[str] | None
) -> DrawnNode:
    """Return the root of a tree given by its spans in pre-order; add a root if none is whole.

    Args:
        n_words: of the sentence, at least one.
        spans: half-open word intervals.
        labels: of the spans, or None.
    """
    names = labels if labels is not None else [""] * len(spans)
    waiting = list(zip(spans, names, strict=True))[::-1]
    root = DrawnNode("")
    path = [(root, n_words)]  # the open nodes and their ends
    for word in range(n_words):
        while len(path) > 1 and path[-1][1] <= word:
            path.pop()
        while waiting and waiting[-1][0][0] == word:
            (_, end), label = waiting.pop()
            node = DrawnNode(label)
            path[-1][0].children.append(node)
            path.append((node, end))
        path[-1][0].children.append(word)
    only = root.children[0]
    return only if isinstance(only, DrawnNode) and len(root.children) == 1 else root


def draw(root: DrawnNode, words: Sequence[str], room: int) -> str:
    """Draw a tree over its words, in at most ``room`` columns if possible.

    The first word stands at the right where words are written from right to left. Control
    characters in words and labels are escaped.
    """
    shown = [safe(word) for word in words]
    leftwards = right_to_left(words)
    drawn = _upright(mirrored(root, len(words)) if leftwards else root, shown, room, leftwards)
    return _sideways(root, shown, leftwards) if drawn is None else drawn


def mirrored(root: DrawnNode, n_words: int) -> DrawnNode:
    """Return the tree of the words in reverse order."""
    made: dict[int, DrawnNode] = {}
    for node in root.post_order():
        turned = [
            made[id(child)] if isinstance(child, DrawnNode) else n_words - 1 - child
            for child in node.children
        ]
        made[id(node)] = DrawnNode(node.label, turned[::-1])
    return made[id(root)]


def _upright(root: DrawnNode, words: Sequence[str], room: int, leftwards: bool) -> str | None:
    """Draw nodes above their children, the words in one line; None if there is no room."""
    nodes, words = root.post_order(), words[::-1] if leftwards else words
    widest = max(width(safe(node.label)) for node in nodes)
    columns = [max(width(word), widest) for word in words]
    if sum(columns) + len(columns) > room + 1:
        return None
    canvas = _Canvas(nodes, columns, rows_each=2 if widest else 1)
    for node in nodes:
        canvas.add(node)
    centred = []
    for word, column in zip(words, columns, strict=True):
        before = (column - width(word)) // 2
        centred.append(" " * before + word + " " * (column - width(word) - before))
    rows = ["".join(row) for row in canvas.cells]
    if leftwards:
        centred = [f"{_STAY}{word}{_STAY}" for word in centred]
    return "\n".join(line.rstrip() for line in [*rows, " ".join(centred)])


class _Canvas:
    """Rows of characters above the words: for each level its labels, if any, then its lines."""

    def __init__(self, nodes: Sequence[DrawnNode], columns: Sequence[int], rows_each: int) -> None:
        self.rows_each = rows_each
        self._words, column = [], 0
        for size in columns:
            self._words.append(column + (size - 1) // 2)
            column += size + 1
        self._positions: dict[int, tuple[int, int]] = {}
        for node in nodes:
            below = [self._position(child) for child in node.children]
            middle = (below[0][0] + below[-1][0]) // 2
            self._positions[id(node)] = middle, 1 + max(level for _, level in below)
        self._top = self._positions[id(nodes[-1])][1]
        self.cells = [[" "] * column for _ in range(rows_each * self._top)]

    def _position(self, child: DrawnNode | int) -> tuple[int, int]:
        """Return the column of a node or word, and its level above the words."""
        return (self._words[child], 0) if isinstance(child, int) else self._positions[id(child)]

    def add(self, node: DrawnNode) -> None:
        """Draw a node's label, the line over its children, and the lines down to them."""
        middle, level = self._position(node)
        below = [self._position(child) for child in node.children]
        last = self.rows_each * (self._top - level + 1) - 1
        if self.rows_each > 1:
            label = safe(node.label)
            first = max(0, middle - (width(label) - 1) // 2)
            self.cells[last - 1][first : first + len(label)] = label
        row = self.cells[last]
        row[below[0][0] : below[-1][0] + 1] = "─" * (below[-1][0] + 1 - below[0][0])
        for column, _ in below:
            row[column] = "┬"
        row[below[0][0]], row[below[-1][0]] = "┌", "┐"
        above = level < self._top or self.rows_each > 1
        row[middle] = ("┴" if above else row[middle]) if len(below) > 1 else "│"
        for column, child_level in below:
            for between in range(last + 1, self.rows_each * (self._top - child_level)):
                self.cells[between][column] = "│"


def _sideways(root: DrawnNode, words: Sequence[str], leftwards: bool) -> str:
    """Draw each word on a line; the first child continues its parent's line."""
    lines: list[list[str]] = []
    # node, the parts of text before it on its line, and on the lines below
    todo: list[tuple[DrawnNode | int, list[str], list[str]]] = [(root, [], [])]
    while todo:
        node, before, below = todo.pop()
        if isinstance(node, int):
            lines.append([*before, " ", words[node]])
            continue
        label = safe(node.label)
        below = [*below, " " * width(label)]
        first, *others = node.children
        if not others:
            todo.append((first, [*before, label, "─"], [*below, " "]))
            continue
        rest = [(child, [*below, "├"], [*below, "│"]) for child in others[:-1]]
        last = (others[-1], [*below, "└"], [*below, " "])
        todo += [last, *reversed(rest), (first, [*before, label, "┬"], [*below, "│"])]
    if not leftwards:
        return "\n".join(map("".join, lines))
    widest = max(sum(map(width, line)) for line in lines)
    return "\n".join(_turned(line, widest) for line in lines)


def _turned(line: list[str], widest: int) -> str:
    """Return the line of a word, its parts from right to left, at the right of a picture."""
    *lines, word = line
    drawn = "".join(reversed(lines)).translate(_MIRRORED)
    return f"{' ' * (widest - sum(map(width, line)))}{_STAY}{word}{_STAY}{drawn}".rstrip()


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

    def phrases(self, *labels: str) -> list[Phrase]:
        """Return the phrases with one of some labels in pre-order, or all phrases without one.

        Raises:
            AttreeError: a label is given, but the tree has no labels.
        """
        if labels and self.labels is None:
            fix = "take a parser with labels, such as universal; phrases() has all phrases"
            raise AttreeError("no-labels", "this tree has no labels", fix=fix)
        names = self.labels or (NO_LABEL,) * len(self.spans)
        chosen = [
            span
            for span, name in zip(self.spans, names, strict=True)
            if not labels or name in labels
        ]
        return [Phrase(" ".join(self.words[start:end]), start, end) for start, end in chosen]

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
        plain = self.labels is None and self.tags is None
        leaves: list[Any] = list(self.words)
        if not plain:
            tags = self.tags or (NO_LABEL,) * len(self.words)
            leaves = [kind(tag, [word]) for tag, word in zip(tags, self.words, strict=True)]
        root = nested(len(self.words), self.spans, self.labels)
        made: dict[int, Any] = {}
        for node in root.post_order():  # no recursion: trees may be deep
            children = [made[id(c)] if not isinstance(c, int) else leaves[c] for c in node.children]
            made[id(node)] = kind(node.label or NO_LABEL, children)
        return made[id(root)]

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
