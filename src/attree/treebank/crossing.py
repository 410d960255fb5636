"""Represent trees with crossing branches, and make them continuous in the standard way.

The conversion is that of the SPMRL and TIGER literature (Boyd 2007; Maier's treetools). Children of
the virtual root, mostly punctuation, are attached to the lowest node that spans their neighbours.
Then every node keeps the block of words that holds its head, and its other blocks are raised to its
parent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from attree.treebank import sentence
from attree.treebank.sentence import BadSentenceError, Rejected, Sentence, Span, SplitSettings

_Item = tuple[int, int, bool]  # start, end, whether the block holds the child's head


@dataclass(slots=True)
class Graph:
    """One tree as a graph: words, then nodes, each with its parent.

    Args:
        words, tags: of the sentence.
        labels: of the nodes; node k has the number ``len(words) + k``.
        parents: of the words, then of the nodes: a node's number, or -1 for the virtual root.
        functions: of the edge above each word, then above each node; empty for none, and with its
            mark if that is ``=`` (see ``sentence.split_label``).
        file, line: where the tree starts.
    """

    words: list[str]
    tags: list[str]
    labels: list[str]
    parents: list[int]
    functions: list[str]
    file: str = ""
    line: int = 1
    name: str = field(default="", compare=False)

    def children(self) -> list[list[int]]:
        """Return the children of every node, sorted by first word; the virtual root's are last."""
        firsts = [word[0] for word in self.yields()]
        below: list[list[int]] = [[] for _ in range(len(self.parents) + 1)]
        for item in sorted(range(len(self.parents)), key=lambda i: (firsts[i], i)):
            below[self.parents[item]].append(item)
        return below

    def yields(self) -> list[list[int]]:
        """Return the words below every word and node, in order."""
        words_below: list[list[int]] = [[] for _ in self.parents]
        for word in range(len(self.words)):
            item = word
            while item >= 0:
                words_below[item].append(word)
                item = self.parents[item]
        return words_below

    @classmethod
    def of_rows(
        cls,
        words: Iterable[tuple[str, str, str, Any]],
        nodes: Mapping[Any, tuple[str, str, Any]],
        **origin: Any,
    ) -> Graph:
        """Return the graph of words and nodes that name their parents.

        Args:
            words: word, tag, function and parent of each.
            nodes: name → label, function and parent; None is the virtual root.
            origin: ``file``, ``line`` and ``name``.

        Raises:
            BadSentenceError: this is no tree.
        """
        words = list(words)
        numbers = {name: number for number, name in enumerate(nodes, start=len(words))}
        rows = [*(row[1:] for row in words), *nodes.values()]
        return cls(
            words=[row[0] for row in words],
            tags=[row[1] for row in words],
            labels=[row[0] for row in nodes.values()],
            parents=[-1 if row[2] is None else numbers.get(row[2], -2) for row in rows],
            functions=[row[1] for row in rows],
            **origin,
        ).checked()

    def checked(self) -> Graph:
        """Return it; if it is no tree, raise a `BadSentenceError` that says why."""
        if not self.words:
            raise BadSentenceError("a tree without words")
        nodes = range(len(self.words), len(self.parents))
        for item, parent in enumerate(self.parents):
            if parent != -1 and parent not in nodes:
                raise BadSentenceError(f"{self._describe(item)} has a parent that does not exist")
        if childless := set(nodes).difference(self.parents):
            raise BadSentenceError(f"{self._describe(min(childless))} has no children")
        if lost := set(range(len(self.parents))).difference(top_down(self.parents)):
            item = lost.pop()
            for _ in self.parents:  # up into the cycle
                item = self.parents[item]
            raise BadSentenceError(f"{self._describe(item)} is above itself")
        return self

    def _describe(self, item: int) -> str:
        n = len(self.words)
        if item < n:
            return f"word {item + 1} ({self.words[item]})"
        return f"node {item - n + 1} ({self.labels[item - n]})"


def top_down(heads: Sequence[int]) -> list[int]:
    """Return the words or nodes below a root (-1), each after its head."""
    below: list[list[int]] = [[] for _ in heads]
    order: list[int] = []
    for word, head in enumerate(heads):
        (order if head < 0 else below[head]).append(word)
    for word in order:  # grows as it goes
        order.extend(below[word])
    return order


def without_dummy_root(graph: Graph, roots: Sequence[str] = sentence.DUMMY_ROOTS) -> Graph:
    """Remove the nodes above the whole sentence that are no phrases."""
    n = len(graph.words)
    while graph.parents.count(-1) == 1:
        top = graph.parents.index(-1)
        if top < n or graph.labels[top - n] not in roots:
            break
        parents = [-1 if parent == top else parent - (parent > top) for parent in graph.parents]
        del parents[top], graph.labels[top - n], graph.functions[top]
        graph.parents = parents
    return graph


def attach_to_neighbours(graph: Graph) -> None:
    """Attach children of the virtual root to the lowest node that spans their neighbours.

    It goes from left to right. A child at an edge of the sentence stays, and so does one that only
    the virtual root spans. Right neighbours that are children of the virtual root are skipped.
    """
    yields = graph.yields()
    tops = graph.children()[-1]
    for number, top in enumerate(tops):
        left, last = yields[top][0] - 1, yields[top][-1]
        for other in tops[number + 1 :]:
            if yields[other][0] < last:
                continue
            if yields[other][0] > last + 1:
                break
            last = yields[other][-1]
        if left >= 0 and last + 1 < len(graph.words):
            graph.parents[top] = _common_ancestor(graph.parents, left, last + 1)


def _common_ancestor(parents: list[int], left: int, right: int) -> int:
    """Return the lowest common ancestor of two words; -1 for the virtual root."""
    above = set()
    while (left := parents[left]) >= 0:
        above.add(left)
    while (right := parents[right]) >= 0 and right not in above:
        pass
    return right


def _head(children: list[int], functions: list[str]) -> int:
    """Return the head among children: the first HD or hd, else the last NK, else the first."""
    heads = [child for child in children if functions[child] in ("HD", "hd")][:1]
    return (heads or [child for child in children if functions[child] == "NK"][-1:] or children)[0]


def spans(graph: Graph) -> tuple[tuple[Span, ...], bool]:
    """Make a graph continuous; return its spans in pre-order, and whether a block was raised."""
    n, below = len(graph.words), graph.children()
    order = [item for item in top_down(graph.parents) if item >= n]
    items: dict[int, list[_Item]] = {word: [(word, word + 1, True)] for word in range(n)}
    extents: dict[int, tuple[int, int]] = {}
    raised = False
    for node in reversed(order):
        head = _head(below[node], graph.functions)
        blocks = sorted(
            (start, end, has_head and child == head)
            for child in below[node]
            for start, end, has_head in items.pop(child)
        )
        items[node] = []
        for start, end, has_head in blocks:
            if items[node] and items[node][-1][1] == start:  # adjacent blocks are one
                start, _, with_head = items[node].pop()
                has_head = has_head or with_head
            items[node].append((start, end, has_head))
        extents[node] = next((start, end) for start, end, has_head in items[node] if has_head)
        raised = raised or len(items[node]) > 1
    rank = {node: number for number, node in enumerate(order)}
    ordered = sorted(extents, key=lambda node: (extents[node][0], -extents[node][1], rank[node]))
    return tuple((*extents[node], graph.labels[node - n]) for node in ordered), raised


def continuous(graph: Graph, settings: SplitSettings) -> Sentence:
    """Return a graph as a sentence with continuous phrases; this changes the graph.

    Functions that are kept become part of labels and tags.
    """
    roots = sentence.DUMMY_ROOTS if settings.dummy_roots is None else settings.dummy_roots
    graph = without_dummy_root(graph, roots)
    attach_to_neighbours(graph)
    n, tags, labels = len(graph.words), graph.tags, list(map(sentence.cut_label, graph.labels))
    if settings.functions == "keep":
        tags = list(map(sentence.join_label, graph.tags, graph.functions[:n]))
        labels = list(map(sentence.join_label, graph.labels, graph.functions[n:]))
    phrases, raised = spans(replace(graph, labels=labels))
    return Sentence(tuple(graph.words), tuple(tags), phrases, graph.file, graph.line, raised)


def graph_of(tree: Sentence) -> Graph:
    """Return a sentence's tree as a graph, with the functions of its phrases' labels."""
    words, tags, labels = list(tree.words), list(tree.tags), list[str]()
    n = len(words)
    parents, functions = [-1] * n, [""] * n
    opened: list[tuple[int, int]] = []  # end, node
    waiting = list(tree.spans)[::-1]
    for word in range(n):
        while opened and opened[-1][0] <= word:
            opened.pop()
        while waiting and waiting[-1][0] == word:
            _, end, label = waiting.pop()
            name, function = sentence.split_label(label)
            parents.append(opened[-1][1] if opened else -1)
            functions.append(function)
            opened.append((end, n + len(labels)))
            labels.append(name)
        parents[word] = opened[-1][1] if opened else -1
    return Graph(words, tags, labels, parents, functions, tree.file, tree.line)


def without(graph: Graph, dropped: set[int]) -> Graph:
    """Return a graph without some words, and without the nodes that this leaves empty."""
    kept = [item for item, words in enumerate(graph.yields()) if not dropped.issuperset(words)]
    numbers = {item: number for number, item in enumerate(kept)} | {-1: -1}
    n = len(graph.words)
    return replace(
        graph,
        words=[graph.words[item] for item in kept if item < n],
        tags=[graph.tags[item] for item in kept if item < n],
        labels=[graph.labels[item - n] for item in kept if item >= n],
        parents=[numbers[graph.parents[item]] for item in kept],
        functions=[graph.functions[item] for item in kept],
    )


def without_dropped(graph: Graph, settings: SplitSettings) -> Graph | Rejected:
    """Return a graph without words tagged as traces, and without the subtrees of ``drop_labels``.

    It is rejected if no word is left.
    """
    drop = sentence.DROP_LABELS if settings.drop_labels is None else settings.drop_labels
    names, gone = [*graph.tags, *graph.labels], {sentence.TRACE, *drop}
    forms = map(sentence.cut_label, names), map(sentence.join_label, names, graph.functions)
    items = zip(graph.yields(), *forms, strict=True)
    dropped = {word for words, *pair in items if not gone.isdisjoint(pair) for word in words}
    if len(dropped) == len(graph.words):
        return Rejected(graph.file, graph.line, "no word is left by drop_labels", "skipped")
    return without(graph, dropped) if dropped else graph
