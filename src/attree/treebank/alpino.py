"""Read the XML of Alpino and Lassy (Dutch): nodes within nodes, their words by position.

A node with the index of another one, and without words of its own, repeats that one, and is left
out. A phrase may be discontinuous.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from attree.treebank.crossing import Graph
from attree.treebank.sentence import BadSentenceError, Format, Rejected, SplitSettings
from attree.treebank.tigerxml import Element, read_xml

_NO_FUNCTION = {"--": "", "top": ""}


def _graph(elements: list[Element], file: str, line: int, name: str) -> Graph:
    """Make a graph of the nodes in one ``<alpino_ds>``, each after the one above it.

    Raises:
        BadSentenceError: a word is empty, has no position or that of another, or they are no tree.
    """
    chosen = [index for index, (tag, _, _) in enumerate(elements) if tag == "node"]
    place = {index: number for number, index in enumerate(chosen)}
    nodes = [elements[index][1] for index in chosen]
    above = [place.get(elements[index][2], -1) for index in chosen]
    words = [number for number, node in enumerate(nodes) if "word" in node]
    for number in words:
        if not nodes[number]["word"]:
            raise BadSentenceError("a node has no word")
        if not nodes[number].get("begin", "").isdecimal():
            raise BadSentenceError(f"the word {nodes[number]['word']!r} has no number as begin")
    words.sort(key=lambda number: int(nodes[number]["begin"]))
    for one, other in itertools.pairwise(words):
        if nodes[one]["begin"] == nodes[other]["begin"]:
            pair = f"{nodes[one]['word']!r} and {nodes[other]['word']!r}"
            raise BadSentenceError(f"the words {pair} stand in one place")
    filled = set(words)
    for number in reversed(range(len(nodes))):
        if number in filled and above[number] >= 0:
            filled.add(above[number])
    phrases = [number for number in sorted(filled) if "word" not in nodes[number]]
    order = [*words, *phrases]
    numbers = {number: place for place, number in enumerate(order)} | {-1: -1}
    graph = Graph(
        words=[nodes[number]["word"] for number in words],
        tags=[nodes[number].get("pt") or nodes[number].get("pos", "") for number in words],
        labels=[nodes[number].get("cat", "") for number in phrases],
        parents=[numbers[above[number]] for number in order],
        functions=[_NO_FUNCTION.get(rel := nodes[number].get("rel", ""), rel) for number in order],
        file=file,
        line=line,
        name=name,
    )
    if problem := graph.problem():
        raise BadSentenceError(problem)
    return graph


def graphs(text: str, file: str, settings: SplitSettings) -> Iterator[Graph | Rejected]:
    """Yield every ``<alpino_ds>`` in order, each as a `Graph` or as `Rejected`."""
    return read_xml(text, file, settings, "alpino_ds", _graph)


FORMAT = Format(
    graphs, (), certain=lambda text: "<alpino_ds" in text, family="xml", labels="alpino"
)
