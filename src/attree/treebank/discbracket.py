"""Read and write discbracket (disco-dop, treetools): bracketed trees over numbered words.

A line holds a tree: ``(S (VP (VB 1=go)) (NP 0=we))``, or ``(S (VP (VB 1)) (NP 0))``, a tab, and the
words separated by spaces; after leaves with words, it is a comment. Numbers count from 0, or from 1
where none is 0.
"""

import re
from collections.abc import Iterator
from functools import partial

from attree.base.text import unescape
from attree.treebank import sentence
from attree.treebank.crossing import Graph, without_dummy_root
from attree.treebank.sentence import BadSentenceError, Format, Rejected, SplitSettings

# Only ASCII white space separates tokens, as in other brackets.
_TOKEN = re.compile(r"\([ \f\v]*([^ \f\v()]*)|(\))|([^ \f\v()]+)")
_LEAF = re.compile(r"([0-9]{1,9})(?:=(.*))?", re.DOTALL)
_SAFE = str.maketrans({"(": "#LRB#", ")": "#RRB#", **dict.fromkeys(" \t\n\r\f\v", "_")})


class _BadTreeError(BadSentenceError):
    """A mistake in a tree that the user can correct."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem} — correct this tree")


def graphs(text: str, file: str, settings: SplitSettings) -> Iterator[Graph | Rejected]:
    """Yield every line of ``text`` in order, each as a `Graph` or as `Rejected`."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield sentence.attempt(partial(_graph, line, file, number, settings), file, number)


def _graph(line: str, file: str, number: int, settings: SplitSettings) -> Graph:
    sentence.check_decoded(line, settings.encoding)
    tree, _, text = line.partition("\t")
    labels, above, leaves = _nodes(tree)
    order = sorted(leaves, key=lambda leaf: leaf[0])
    first = order[0][0] if order and order[0][0] == 1 else 0
    if [leaf[0] for leaf in order] != list(range(first, first + len(order))):
        raise _BadTreeError("the leaves' numbers are not those of a sentence, each once")
    words = [leaf[1] for leaf in order]
    if text and set(words) == {None}:
        words = [*text.split("\t")[0].split(" ")]
        if len(words) != len(order):
            raise _BadTreeError(f"{len(order)} leaves, but {len(words)} words after the tab")
    if not all(words):
        raise _BadTreeError("a leaf without a word")
    names = (sentence.split_label(sentence.unescape_label(_unquoted(label))) for label in labels)
    nodes = {node: (*name, above[node]) for node, name in enumerate(names)}
    # a node with one child, a word, is the word's tag
    tags = [nodes.pop(leaf[2]) for leaf in order]
    forms = [_word(word, undo=settings.escapes == "undo") for word in words if word]
    rows = [(form, *tag) for form, tag in zip(forms, tags, strict=True)]
    return without_dummy_root(Graph.of_rows(rows, nodes, file=file, line=number), ("VROOT",))


def _nodes(tree: str) -> tuple[list[str], list[int | None], list[tuple[int, str | None, int]]]:
    """Return the nodes' labels and parents, and each leaf's number, word and preterminal."""
    labels: list[str] = []
    above: list[int | None] = []
    leaves: list[tuple[int, str | None, int]] = []
    opened: list[int] = []
    for token in _TOKEN.finditer(tree):
        if token[2]:
            if not opened:
                raise _BadTreeError("a bracket closes nothing")
            opened.pop()
        elif token[3] is not None:
            if (leaf := _LEAF.fullmatch(token[3])) is None or not opened:
                raise _BadTreeError(f"expected a leaf such as 0=word, token {token[3]!r}")
            leaves.append((int(leaf[1]), leaf[2], opened[-1]))
        else:
            if leaves and opened and leaves[-1][2] == opened[-1]:
                raise _BadTreeError("a node beside a word under one node")
            if not opened and labels:
                raise _BadTreeError("more than one tree on a line")
            above.append(opened[-1] if opened else None)
            opened.append(len(labels))
            labels.append(token[1])
    if opened:
        raise _BadTreeError(f"{len(opened)} brackets are not closed")
    if not leaves:
        raise _BadTreeError("a tree without words")
    if len({node for _, _, node in leaves}) < len(leaves):
        raise _BadTreeError("two words under one tag")
    return labels, above, leaves


def _word(word: str, *, undo: bool) -> str:
    word = _unquoted(word)
    return unescape(word) if undo else word


def held(word: str) -> str:
    """Return a word as it is read back."""
    return _word(word.translate(_SAFE), undo=True)


def _unquoted(text: str) -> str:
    return text.replace("#LRB#", "(").replace("#RRB#", ")")


def _safe_label(label: str) -> str:
    """Escape a label, but ``(`` by itself, as PTB does, since other readers know that escape."""
    if len(label) > 1:
        label = label.replace("(", "-LRB-").replace(")", "-RRB-")
    return label.translate(_SAFE)


def write(graphs: Iterator[Graph]) -> Iterator[str]:
    """Yield a line for each graph; brackets in words become ``#LRB#``, white space ``_``."""
    for graph in graphs:
        n, below = len(graph.words), graph.children()
        parts: list[str] = []
        todo: list[int | None] = [-1]  # None closes a node
        while todo:
            if (item := todo.pop()) is None:
                parts.append(")")
                continue
            names = [*graph.tags, *graph.labels]
            label = "VROOT" if item < 0 else sentence.join_label(names[item], graph.functions[item])
            label = _safe_label(label) or ("X" if 0 <= item < n else "")
            if 0 <= item < n:
                parts.append(f" ({label} {item}={graph.words[item].translate(_SAFE)})")
            else:
                parts.append(f" ({label}")
                todo += [None, *below[item][::-1]]
        yield "".join(parts).strip() + "\n"


FORMAT = Format(
    graphs,
    (".discbracket", ".dbr"),
    certain=lambda text: re.match(r"\s*+\([^\n]*?\([^\s()]++ \d+=", text) is not None,
    write=write,
    held=held,
)
