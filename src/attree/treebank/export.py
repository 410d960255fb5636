"""Read and write NEGRA export, versions 3 and 4: lines of words, then of nodes, with parents.

Columns are separated by tabs or spaces: word, in version 4 the lemma, tag, morphology, function of
the edge, parent. Nodes are called ``#500`` and up, 0 is the virtual root. Columns after the parent
(secondary edges, comments) are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from attree.base.errors import AttreeError
from attree.treebank.crossing import Graph
from attree.treebank.sentence import Format, Rejected, SplitSettings, has_line
from attree.treebank.sources import BadSentenceError, attempt, check_decoded

_NODE = re.compile(r"#(\d{3,})")
_BEGIN, _END = re.compile(r"#BOS\s+\S"), re.compile(r"#EOS\b")
_FIRST = 500


def graphs(text: str, file: str, settings: SplitSettings) -> Iterator[Graph | Rejected]:
    """Yield every sentence of ``text`` in order, each as a `Graph` or as `Rejected`."""
    for first, lines in _blocks(text):
        yield attempt(partial(_graph, lines, first, file, settings.encoding), file, first)


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number of each sentence's ``#BOS``, and its lines."""
    first, lines = 0, list[str]()
    for number, line in enumerate(text.split("\n"), start=1):
        if _BEGIN.match(line):
            if lines:
                yield first, lines
            first, lines = number, []
        elif not lines:
            continue
        lines.append(line)
        if _END.match(line):
            yield first, lines
            lines = []
    if lines:
        yield first, lines


def _graph(lines: list[str], first: int, file: str, encoding: str | None) -> Graph:
    """Read the lines of one sentence.

    Raises:
        BadSentenceError: it has bytes of another encoding, no end, too few columns or a node twice,
            or is no tree.
    """
    check_decoded("\n".join(lines[1:]), encoding)
    if not _END.match(lines[-1]):
        raise BadSentenceError("this sentence has no #EOS line")
    words: list[list[str]] = []
    nodes: dict[str, list[str]] = {}
    above: list[tuple[str, int]] = []  # parent, line
    for number, line in enumerate(lines[1:-1], start=first + 1):
        if not line.strip() or (line.startswith("%%") and len(line.split()) < 5):
            continue
        fields = _fields(line, number)
        node = _NODE.fullmatch(fields[0])
        if node is None:
            if nodes:
                raise BadSentenceError(f"the word {fields[0]!r} comes after the nodes", number)
            words.append(fields)
        elif node[1] in nodes:
            raise BadSentenceError(f"node {fields[0]} stands twice", number)
        else:
            nodes[node[1]] = fields
        above.append((fields[3], number))
    numbers = {node: len(words) + number for number, node in enumerate(nodes)} | {"0": -1}
    for parent, number in above:
        if parent not in numbers:
            raise BadSentenceError(f"the parent #{parent} is no node of this sentence", number)
    rows = [*words, *nodes.values()]
    graph = Graph(
        words=[row[0] for row in words],
        tags=[row[1] for row in words],
        labels=[row[1] for row in nodes.values()],
        parents=[numbers[parent] for parent, _ in above],
        functions=["" if row[2] == "--" else row[2] for row in rows],
        file=file,
        line=first,
        name=lines[0].split()[1],
    )
    if problem := graph.problem():
        raise BadSentenceError(problem)
    return graph


def _fields(line: str, number: int) -> list[str]:
    """Return the word, tag, function and parent in a line of either version."""
    fields = re.split(r"\t+", line.strip("\n")) if "\t" in line else line.split()
    fields = [field.strip() for field in fields]
    if len(fields) > 4 and fields[4].isdigit():
        return [fields[0], fields[1], fields[3], fields[4]]
    if len(fields) > 5 and fields[5].isdigit():
        return [fields[0], fields[2], fields[4], fields[5]]
    problem = f"expected 5 or 6 columns, the last a parent's number, found {len(fields)}"
    raise BadSentenceError(problem, number)


def write(graphs: Iterator[Graph]) -> Iterator[str]:
    """Yield the text of graphs in version 4.

    Raises:
        AttreeError: this format cannot hold a word.
    """
    yield "#FORMAT 4\n"
    for number, graph in enumerate(graphs, start=1):
        n = len(graph.words)
        yield f"#BOS {number} 0 0 0 %% {graph.name or number}\n"
        for item, parent in enumerate(graph.parents):
            word = graph.words[item] if item < n else f"#{_FIRST + item - n}"
            if item < n and (_NODE.fullmatch(word) or re.search(r"[\t\n]", word)):
                problem = f"NEGRA export cannot hold the word {word!r}"
                fix = "choose another format, such as tigerxml"
                error = AttreeError("word-of-blanks", problem, fix=fix)
                raise error.replace(file=graph.file, line=graph.line)
            label = graph.tags[item] if item < n else graph.labels[item - n]
            edge = graph.functions[item] or "--"
            above = _FIRST + parent - n if parent >= 0 else 0
            yield f"{word}\t--\t{label or '--'}\t--\t{edge}\t{above}\n"
        yield f"#EOS {number}\n"


FORMAT = Format(
    graphs,
    (".export", ".negra"),
    certain=has_line(r"#BOS\s"),
    write=write,
)
