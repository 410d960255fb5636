"""TIGER-XML: words and nodes as elements, edges by their ids.

Parsed by expat, which keeps the lines. A document that declares an entity is refused, so that none
is expanded or fetched, whatever it refers to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from attree.treebank.crossing import Graph, reader, without_dummy_root
from attree.treebank.sentence import Format, Rejected, SplitSettings
from attree.treebank.sources import undecoded

_CHUNK = 1 << 16


class _EntityError(Exception):
    """The document declares an entity."""


@dataclass(slots=True)
class _Element:
    """One ``<s>``: its words and nodes, and the edges between them."""

    name: str
    line: int
    words: dict[str, tuple[str, str]] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    edges: dict[str, tuple[str, str]] = field(default_factory=dict)
    problem: str | None = None


class _Handler:
    """Gathers sentences from expat's events."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.done: list[Graph | Rejected] = []
        self.now: _Element | None = None
        self.node = ""
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.EntityDeclHandler = self.entity
        self.parser.ExternalEntityRefHandler = self.entity

    def entity(self, *_: object) -> int:
        raise _EntityError

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        now = self.now
        if tag == "s":
            line = self.parser.CurrentLineNumber
            self.now = _Element(attributes.get("id", f"line {line}"), line)
        elif now is None:
            return
        elif tag in ("t", "nt"):
            self._declare(now, tag, attributes)
        elif tag == "edge":
            child = attributes.get("idref", "")
            if child in now.edges:
                both = f"{now.edges[child][0]} and {self.node}"
                now.problem = now.problem or f"{child} is attached twice: to {both}"
            now.edges[child] = (self.node, attributes.get("label", ""))

    def _declare(self, now: _Element, tag: str, attributes: dict[str, str]) -> None:
        name = attributes.get("id", "")
        if name in now.words or name in now.nodes:
            now.problem = now.problem or f"the id {name!r} stands twice"
        if tag == "nt":
            self.node = name
            now.nodes[name] = attributes.get("cat", "")
            return
        if not attributes.get("word"):
            now.problem = now.problem or f"{name} has no word"
        now.words[name] = (attributes.get("word", ""), attributes.get("pos", ""))

    def end(self, tag: str) -> None:
        if tag == "s" and self.now is not None:
            self.done.append(_graph(self.now, self.file))
            self.now = None


def _graph(one: _Element, file: str) -> Graph | Rejected:
    names = [*one.words, *one.nodes]
    places = {name: number for number, name in enumerate(names)}
    unknown = [name for name in one.edges if name not in places]
    problem = one.problem
    if problem is None and unknown:
        problem = f"an edge leads to {unknown[0]!r}, which does not exist"
    if problem is None:
        edges = [one.edges.get(name) for name in names]
        graph = Graph(
            words=[word for word, _ in one.words.values()],
            tags=[tag for _, tag in one.words.values()],
            labels=list(one.nodes.values()),
            parents=[places[edge[0]] if edge else -1 for edge in edges],
            functions=[edge[1] if edge and edge[1] != "--" else "" for edge in edges],
            file=file,
            line=one.line,
            name=one.name,
        )
        problem = graph.problem()
        if problem is None:
            return without_dummy_root(graph, ("VROOT",))
    return Rejected(file, one.line, f"sentence {one.name}: {problem}", "failed")


def graphs(text: str, file: str, settings: SplitSettings) -> Iterator[Graph | Rejected]:
    """Yield every ``<s>`` of ``text`` in order, each as a `Graph` or as `Rejected`.

    Where the XML is broken or cut short, what stands before is read, and the rest is one rejected
    sentence with the line.
    """
    if problem := undecoded(text, 0, len(text), settings.encoding or "utf-8"):
        yield Rejected(file, 1, problem[0], "failed", problem[1])
        return
    handler = _Handler(file)
    for start in range(0, len(text) + 1, _CHUNK):
        rest: Rejected | None = None
        try:
            handler.parser.Parse(text[start : start + _CHUNK], start + _CHUNK > len(text))
        except expat.ExpatError as error:
            reason = f"the XML is broken: {expat.ErrorString(error.code)}"
            if handler.now is not None:
                reason += f", in sentence {handler.now.name}"
            rest = Rejected(file, error.lineno, f"{reason}; nothing after it is read", "failed")
        except _EntityError:
            line = handler.parser.CurrentLineNumber
            rest = Rejected(file, line, "the XML declares an entity, which is refused", "failed")
        yield from handler.done
        handler.done.clear()
        if rest is not None:
            yield rest
            return


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
    for place, (word, tag) in enumerate(zip(graph.words, graph.tags, strict=True)):
        yield f'<t id="{name}_{place + 1}" word={_quoted(word)} pos={_quoted(tag)}/>\n'
    yield "</terminals>\n<nonterminals>\n"
    for node, label in enumerate([*graph.labels, "VROOT"][: None if root == "VROOT" else -1]):
        place = n + node if node < len(graph.labels) else -1
        yield f'<nt id="{name}_{place + 1 if place >= 0 else root}" cat={_quoted(label)}>\n'
        for child in below[place]:
            edge = graph.functions[child] or "--"
            yield f'<edge label={_quoted(edge)} idref="{name}_{child + 1}"/>\n'
        yield "</nt>\n"
    yield "</nonterminals>\n</graph>\n</s>\n"


def _quoted(text: str) -> str:
    """Quote a value; control characters that XML cannot hold become U+FFFD."""
    text = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", text)
    return quoteattr(text, {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})


FORMAT = Format(
    reader(graphs),
    (".xml", ".tiger"),
    certain=lambda text: re.match(r"\ufeff?\s*<(\?xml|corpus)\b", text) is not None,
    graphs=graphs,
    write=write,
)
