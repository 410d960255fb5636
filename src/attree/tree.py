"""One sentence's tree: its words and spans, as brackets, as an NLTK tree, or drawn."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: The label of a node that has none, and the tag of a word that has none.
NO_LABEL = "X"


@dataclass(frozen=True)
class Tree:
    """One sentence and its tree; ``print`` draws it.

    Attributes:
        words: of the sentence.
        spans: half-open word intervals of its nodes in pre-order; words are no spans, unless a
            labelled phrase is one word long.
        labels: of the spans, or None for an unlabelled tree.
        tags: of the words, or None.
        span_scores: of the spans, or None.
        status: ``ok``, ``too_long`` (for the encoder) or ``failed`` (the encoder's numbers are not
            finite); the latter two are branched right instead.
    """

    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    labels: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    span_scores: tuple[float, ...] | None = field(default=None, compare=False)
    status: str = "ok"

    @property
    def score(self) -> float | None:
        """Mean of the spans' scores: how sure the parser is, None where there is nothing to score.

        Scores of one parser can be compared, those of two parsers cannot.
        """
        mean = np.mean(self.span_scores) if self.span_scores else np.nan
        return float(mean) if np.isfinite(mean) else None

    def brackets(self) -> str:
        """Return the tree on one line.

        An unlabelled tree has bare words, ``(X (X the cat) (X sat down))``; one with labels or tags
        has a tag on every word, ``(S (NP (X the) (X cat)) …)``, as readers of treebanks expect.
        Round brackets of words are written ``-LRB-`` and ``-RRB-``; no words are ``()``.
        """
        return bracketed(self.words, self.spans, self.labels, self.tags)

    def to_nltk(self) -> Any:
        """Return an ``nltk.Tree``; its leaves are the words as they are."""
        from nltk import Tree as Node

        plain = self.labels is None and self.tags is None
        leaves: list[Any] = list(self.words)
        if not plain:
            tags = self.tags or (NO_LABEL,) * len(self.words)
            leaves = [Node(tag, [word]) for tag, word in zip(tags, self.words, strict=True)]
        labels = self.labels or (NO_LABEL,) * len(self.spans)
        root = Node(NO_LABEL, [])
        open_nodes, open_ends = [root], [len(self.words)]
        waiting = list(zip(self.spans, labels, strict=True))[::-1]
        for place, leaf in enumerate(leaves):
            while len(open_ends) > 1 and open_ends[-1] <= place:
                open_nodes.pop(), open_ends.pop()
            while waiting and waiting[-1][0][0] == place:
                (_, end), label = waiting.pop()
                node = Node(label, [])
                open_nodes[-1].append(node)
                open_nodes.append(node)
                open_ends.append(end)
            open_nodes[-1].append(leaf)
        whole = bool(self.spans) and self.spans[0] == (0, len(self.words))
        return root[0] if whole else root

    def __str__(self) -> str:
        """Draw the tree with lines, upright where that fits the terminal, else on its side."""
        if not self.words:
            return "()"
        upright = _upright(self.to_nltk())
        room = shutil.get_terminal_size().columns
        if max(map(len, upright.splitlines())) <= room:
            return upright
        return _sideways(self.to_nltk())

    def _repr_svg_(self) -> str:
        """Draw the tree for a notebook."""
        import svgling

        drawn: str = svgling.draw_tree(self.to_nltk())._repr_svg_()
        return drawn


def bracketed(
    words: tuple[str, ...] | list[str],
    spans: Any,
    labels: tuple[str, ...] | None = None,
    tags: tuple[str, ...] | None = None,
) -> str:
    """Return a tree on one line (see :meth:`Tree.brackets`); ``spans`` are in pre-order."""
    if not words:
        return "()"
    tokens = [word.replace("(", "-LRB-").replace(")", "-RRB-") for word in words]
    if labels is not None or tags is not None:
        tags = tags or (NO_LABEL,) * len(tokens)
        tokens = [f"({tag} {token})" for tag, token in zip(tags, tokens, strict=True)]
    opening, closing = [""] * len(tokens), [0] * (len(tokens) + 1)
    whole = False
    for place, (start, end) in enumerate(spans):
        opening[start] += f"({NO_LABEL if labels is None else labels[place]} "
        closing[end] += 1
        whole = whole or end - start == len(tokens)
    if not whole:
        opening[0] = f"({NO_LABEL} {opening[0]}"
        closing[-1] += 1
    parts = zip(opening, tokens, closing[1:], strict=True)
    return " ".join(f"{before}{token}{')' * after}" for before, token, after in parts)


def _upright(tree: Any) -> str:
    from nltk.tree.prettyprinter import TreePrettyPrinter

    # leaves must be numbers: of words and nodes under one node it would change the order
    words, tree = tree.leaves(), tree.copy(deep=True)
    for number, leaf in enumerate(tree.treepositions("leaves")):
        tree[leaf] = number
    drawn: str = TreePrettyPrinter(tree, words).text(unicodelines=True)
    return "\n".join(line.rstrip() for line in drawn.rstrip("\n").split("\n"))


def _sideways(tree: Any) -> str:
    """Draw a word a line, a column a level: the first child goes on where its parent stands."""
    lines: list[str] = []
    todo: list[tuple[Any, str, str]] = [(tree, "", "")]  # what, drawn before it, drawn below that
    while todo:
        node, before, below = todo.pop()
        if isinstance(node, str):
            lines.append(f"{before} {node}")
            continue
        name = "" if node.label() == NO_LABEL else f"{node.label()}"
        if len(node) == 1:
            todo.append((node[0], f"{before}{name}─", f"{below}{' ' * len(name)} "))
            continue
        below += " " * len(name)
        rest = [(child, f"{below}├", f"{below}│") for child in node[1:-1]]
        last = (node[-1], f"{below}└", f"{below} ")
        todo += [last, *reversed(rest), (node[0], f"{before}{name}┬", f"{below}│")]
    return "\n".join(lines)
