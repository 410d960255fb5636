"""Read and write TIGER-XML, and read the XML of Alpino and Lassy (Dutch).

In TIGER-XML words and nodes are elements, and edges name their ids. In Alpino's, nodes lie within
nodes, their words by position. A node with the index of another one, and without words of its own,
repeats that one, and is left out. A phrase may be discontinuous.

Expat parses it, since it knows line numbers. A document that declares an entity is refused, so that
no entity is expanded or fetched; one that uses an entity of an external DTD is broken there.
"""

import functools
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from attree.treebank.crossing import Graph, without_dummy_root
from attree.treebank.sentence import BadSentenceError, Format, Rejected, SplitSettings, undecoded

_CHUNK = 1 << 16
_FIX = "TIGER-XML and Alpino's XML are read; convert others to one of them, or to brackets"
_DECLARATION = re.compile(r"\ufeff?(?:<\?xml\s[^?<>]*\?>)?")
_UNHELD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


Attributes = dict[str, str]
#: An element's tag, its attributes, and which element of the sentence is around it; -1: none.
Element = tuple[str, Attributes, int]
#: Makes a graph of a sentence's elements.
MakeGraph = Callable[[list[Element]], Graph]


#: Function and parent of a word or node without an edge.
_TOP = ("", None)


class _Handler:
    """Gather sentences from expat's events."""

    def __init__(self, file: str, outer: str, graph: MakeGraph) -> None:
        self.file, self.outer, self.graph = file, outer, graph
        self.done: list[Graph | Rejected] = []
        #: First line, name and elements of the sentence that is being read, and the open ones.
        self.line, self.name = 0, ""
        self.elements: list[Element] = []
        self.opened = [-1]
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.EntityDeclHandler = self.entity
        self.parser.ExternalEntityRefHandler = self.entity
        self.root, self.found = "", 0  # the outermost element, and number of sentences

    def entity(self, *_: object) -> int:
        """Refuse the document."""
        raise BadSentenceError("the XML declares an entity, which is refused")

    def start(self, tag: str, attributes: Attributes) -> None:
        """Begin an element."""
        self.root = self.root or tag
        if tag == self.outer:
            if self.name:
                reason = f"sentence {self.name}: another <{tag}> begins in it — end it before"
                self.done.append(Rejected(self.file, self.line, reason, "failed"))
            self.found += 1
            self.line, self.elements = self.parser.CurrentLineNumber, []
            self.opened = [-1]
            self.name = attributes.get("id") or f"line {self.line}"
        elif self.name:
            self.elements.append((tag, attributes, self.opened[-1]))
            self.opened.append(len(self.elements) - 1)
            self.name = attributes.get("sentid") or self.name  # of Alpino's <sentence>

    def end(self, tag: str) -> None:
        """End an element: a sentence that ends is made a graph."""
        if not self.name:
            return
        self.opened.pop()
        if tag == self.outer:
            try:
                graph = self.graph(self.elements)
                self.done.append(replace(graph, file=self.file, line=self.line, name=self.name))
            except BadSentenceError as bad:
                reason = f"sentence {self.name}: {bad}"
                self.done.append(Rejected(self.file, self.line, reason, "failed"))
            self.name = ""


def _graph(elements: list[Element]) -> Graph:
    """Make a graph of the words, nodes and edges of one ``<s>``.

    Raises:
        BadSentenceError: they are no tree.
    """
    words: dict[str, Attributes] = {}
    nodes: dict[str, Attributes] = {}
    edges: dict[str, tuple[str, str | None]] = {}  # word or node → function, the node above it
    node: str | None = None
    for tag, attributes, _ in elements:
        id_ = attributes.get("id", "")
        if tag in ("t", "nt") and (id_ in words or id_ in nodes):
            raise BadSentenceError(f"the id {id_!r} stands twice")
        if tag == "t":
            if not attributes.get("word"):
                raise BadSentenceError(f"{id_} has no word")
            words[id_] = attributes
        elif tag == "nt":
            node, nodes[id_] = id_, attributes
        elif tag == "edge":
            if (child := attributes.get("idref", "")) in edges:
                parents = f"{edges[child][1]} and {node}"
                raise BadSentenceError(f"{child} is attached twice: to {parents}")
            function = attributes.get("label", "--")
            edges[child] = ("" if function == "--" else function, node)
    for child in edges:
        if child not in words and child not in nodes:
            raise BadSentenceError(f"an edge leads to {child!r}, which does not exist")
    graph = Graph.of_rows(
        [(word["word"], word.get("pos", ""), *edges.get(id_, _TOP)) for id_, word in words.items()],
        {id_: (node.get("cat", ""), *edges.get(id_, _TOP)) for id_, node in nodes.items()},
    )
    return without_dummy_root(graph, ("VROOT",))


def _read(
    text: str, file: str, settings: SplitSettings, outer: str, graph: MakeGraph
) -> Iterator[Graph | Rejected]:
    """Yield every element ``outer``, a sentence, as the graph made of what is in it.

    If the XML is broken or cut short, the sentences before are read, and the rest is one rejected
    sentence with its line.
    """
    if problem := undecoded(text, 0, len(text), settings.encoding or "utf-8"):
        yield Rejected(file, 1, problem[0], "failed", problem[1])
        return
    handler = _Handler(file, outer, graph)
    # else expat cuts an entity of an external DTD, which is not read, out of a word in silence
    alone = "<?xml version='1.0' standalone='yes'?>"
    text = _DECLARATION.sub(lambda match: alone + "\n" * match[0].count("\n"), text, count=1)
    for start in range(0, len(text) + 1, _CHUNK):
        rest: Rejected | None = None
        try:
            handler.parser.Parse(text[start : start + _CHUNK], start + _CHUNK > len(text))
        except expat.ExpatError as error:
            reason = f"the XML is broken: {expat.ErrorString(error.code)}"
            if handler.name:
                reason += f", in sentence {handler.name}"
            rest = Rejected(file, error.lineno, f"{reason}; nothing after it is read", "failed")
        except BadSentenceError as bad:
            rest = Rejected(file, handler.parser.CurrentLineNumber, str(bad), "failed")
        yield from handler.done
        handler.done.clear()
        if rest is not None:
            yield rest
            return
    if not handler.found:
        reason = f"no sentence is in this XML, whose root is <{handler.root}>"
        yield Rejected(file, 1, f"{reason} — {_FIX}", "failed")


#: Yields every ``<s>`` of a text in order, each as a `Graph` or as `Rejected`.
graphs = functools.partial(_read, outer="s", graph=_graph)


def write(graphs: Iterator[Graph]) -> Iterator[str]:
    """Yield a TIGER-XML document; several tops are put under a node ``VROOT``."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<corpus>\n<body>\n'
    for number, graph in enumerate(graphs, start=1):
        yield from _sentence(graph, f"s{number}")
    yield "</body>\n</corpus>\n"


def _sentence(graph: Graph, name: str) -> Iterator[str]:
    n, below = len(graph.words), graph.children()
    tops = below[-1]
    lone = len(tops) == 1 and tops[0] >= n and not graph.functions[tops[0]]
    root = str(tops[0] + 1) if lone else "VROOT"
    yield f'<s id="{name}">\n<graph root="{name}_{root}">\n<terminals>\n'
    for item, (word, tag) in enumerate(zip(graph.words, graph.tags, strict=True)):
        yield f'<t id="{name}_{item + 1}" word={_quote(word)} pos={_quote(tag)}/>\n'
    yield "</terminals>\n<nonterminals>\n"
    for node, label in enumerate([*graph.labels, "VROOT"][: None if root == "VROOT" else -1]):
        item = n + node if node < len(graph.labels) else -1
        yield f'<nt id="{name}_{item + 1 if item >= 0 else root}" cat={_quote(label)}>\n'
        for child in below[item]:
            edge = graph.functions[child] or "--"
            yield f'<edge label={_quote(edge)} idref="{name}_{child + 1}"/>\n'
        yield "</nt>\n"
    yield "</nonterminals>\n</graph>\n</s>\n"


def held(text: str) -> str:
    """Replace control characters that XML cannot hold by U+FFFD."""
    return _UNHELD.sub("\ufffd", text)


def _quote(text: str) -> str:
    return quoteattr(held(text), {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})


FORMAT = Format(
    graphs,
    (".xml", ".tiger"),
    family="xml",
    certain=lambda text: re.match(r"\ufeff?\s*<(\?xml|corpus)\b", text) is not None,
    write=write,
    held=held,
)


_NO_FUNCTION = {"--": "", "top": ""}


def _alpino_graph(elements: list[Element]) -> Graph:
    """Make a graph of the nodes in one ``<alpino_ds>``, each after the one above it.

    Raises:
        BadSentenceError: a word is empty, has no position or that of another, or they are no tree.
    """
    nodes = {n: attributes for n, (tag, attributes, _) in enumerate(elements) if tag == "node"}
    words = [n for n, node in nodes.items() if "word" in node]
    for n in words:
        if not nodes[n]["word"]:
            raise BadSentenceError("a node has no word")
        if not nodes[n].get("begin", "").isdecimal():
            raise BadSentenceError(f"the word {nodes[n]['word']!r} has no number as begin")
    words.sort(key=lambda n: int(nodes[n]["begin"]))
    for one, other in itertools.pairwise(words):
        if nodes[one]["begin"] == nodes[other]["begin"]:
            pair = f"{nodes[one]['word']!r} and {nodes[other]['word']!r}"
            raise BadSentenceError(f"the words {pair} stand in one place")
    filled = set(words)
    for n in reversed(nodes):
        if n in filled:
            filled.add(elements[n][2])
    phrases = [n for n, node in nodes.items() if n in filled and "word" not in node]

    def edge(n: int) -> tuple[str, int | None]:
        relation, parent = nodes[n].get("rel", ""), elements[n][2]
        return _NO_FUNCTION.get(relation, relation), parent if parent in nodes else None

    tags = {n: nodes[n].get("pt") or nodes[n].get("pos", "") for n in words}
    return Graph.of_rows(
        [(nodes[n]["word"], tags[n], *edge(n)) for n in words],
        {n: (nodes[n].get("cat", ""), *edge(n)) for n in phrases},
    )


#: Yields every ``<alpino_ds>`` in order, each as a `Graph` or as `Rejected`.
alpino_graphs = functools.partial(_read, outer="alpino_ds", graph=_alpino_graph)


ALPINO = Format(
    alpino_graphs, (), certain=lambda text: "<alpino_ds" in text, family="xml", labels="alpino"
)
