"""Draw trees with lines on a terminal: upright, or sideways if that does not fit.

NLTK draws trees too, but importing it takes as long as parsing the sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from attree.base.terminal import safe, width
from attree.base.text import right_to_left

#: Left-to-right mark, of no width: beside a word it keeps a terminal that orders right-to-left text
#: itself from moving the word, and its letters run as they should.
_STAY = "\u200e"
_MIRRORED = str.maketrans("├└┌┐", "┤┘┐┌")


@dataclass(slots=True, eq=False)
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
    made: dict[DrawnNode | int, Any] = {word: n_words - 1 - word for word in range(n_words)}
    for node in root.post_order():
        made[node] = DrawnNode(node.label, [made[child] for child in reversed(node.children)])
    turned: DrawnNode = made[root]
    return turned


def _upright(root: DrawnNode, words: Sequence[str], room: int, leftwards: bool) -> str | None:
    """Draw nodes above their children, the words in one line; None if there is no room."""
    nodes, words = root.post_order(), words[::-1] if leftwards else words
    widest = max(width(safe(node.label)) for node in nodes)
    columns = [max(width(word), widest) for word in words]
    if sum(columns) + len(columns) > room + 1:
        return None
    rows = _rows_above(nodes, columns, rows_each=2 if widest else 1)
    centred = []
    for word, column in zip(words, columns, strict=True):
        before = (column - width(word)) // 2
        centred.append(" " * before + word + " " * (column - width(word) - before))
    if leftwards:
        centred = [f"{_STAY}{word}{_STAY}" for word in centred]
    return "\n".join(line.rstrip() for line in [*rows, " ".join(centred)])


def _rows_above(nodes: list[DrawnNode], columns: Sequence[int], rows_each: int) -> list[str]:
    """Return the rows above the words: for each level its labels, if any, then its lines."""
    # the column of each word and node, and its level above the words
    positions: dict[DrawnNode | int, tuple[int, int]] = {}
    column = 0
    for word, size in enumerate(columns):
        positions[word] = column + (size - 1) // 2, 0
        column += size + 1
    for node in nodes:
        below = [positions[child] for child in node.children]
        middle = (below[0][0] + below[-1][0]) // 2
        positions[node] = middle, 1 + max(level for _, level in below)
    top = positions[nodes[-1]][1]
    cells = [[" "] * column for _ in range(rows_each * top)]
    for node in nodes:  # its label, the line over its children, and the lines down to them
        middle, level = positions[node]
        below = [positions[child] for child in node.children]
        last = rows_each * (top - level + 1) - 1
        if rows_each > 1:
            label = safe(node.label)
            first = max(0, middle - (width(label) - 1) // 2)
            cells[last - 1][first : first + len(label)] = label
        row = cells[last]
        row[below[0][0] : below[-1][0] + 1] = "─" * (below[-1][0] + 1 - below[0][0])
        for column, _ in below:
            row[column] = "┬"
        row[below[0][0]], row[below[-1][0]] = "┌", "┐"
        above = level < top or rows_each > 1
        row[middle] = ("┴" if above else row[middle]) if len(below) > 1 else "│"
        for column, child_level in below:
            for between in range(last + 1, rows_each * (top - child_level)):
                cells[between][column] = "│"
    return ["".join(row) for row in cells]


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
