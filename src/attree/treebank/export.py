"""Read and write NEGRA export, versions 3 and 4: lines of words, then of nodes, with parents.

Columns are separated by tabs or spaces: word, in version 4 the lemma, tag, morphology, function of
the edge, parent. Nodes are called ``#500`` and up, 0 is the virtual root. Columns after the parent
(secondary edges, comments) are ignored. A sentence is of the version whose column of parents has
more numbers, as a function may be a number, too.
"""

import re
from collections.abc import Iterator
from functools import partial

from attree.base.errors import AttreeError
from attree.treebank import sentence
from attree.treebank.crossing import Graph
from attree.treebank.sentence import BadSentenceError, Format, Rejected, SplitSettings

_NODE = re.compile(r"#(\d{3,})")
#: Neither fits the line of a word ``#BOS`` or ``#EOS``, which has more columns.
_BEGIN, _END = re.compile(r"#BOS(?:\s+\d| +\S)"), re.compile(r"#EOS\s*+(?:[^\s]++\s*+)?$")
_BLANK = re.compile(r"[\t\n]")
_FIRST = 500
_Row = tuple[str, str, str, str | None]


def graphs(text: str, file: str, settings: SplitSettings) -> Iterator[Graph | Rejected]:
    """Yield every sentence of ``text`` in order, each as a `Graph` or as `Rejected`."""
    for first, lines in _blocks(text):
        yield sentence.attempt(partial(_graph, lines, first, file, settings.encoding), file, first)


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
    sentence.check_decoded("\n".join(lines[1:]), encoding)
    if not _END.match(lines[-1]):
        raise BadSentenceError("this sentence has no #EOS line")
    words: list[_Row] = []
    nodes: dict[str, tuple[str, str, str | None]] = {}
    above: list[tuple[str | None, int]] = []  # parent, line
    for number, (word, label, function, parent) in _rows(lines[1:-1], first + 1):
        if (node := _NODE.fullmatch(word)) is None:
            if nodes:
                raise BadSentenceError(f"the word {word!r} comes after the nodes", number)
            words.append((word, label, function, parent))
        elif node[1] in nodes:
            raise BadSentenceError(f"node {word} stands twice", number)
        else:
            nodes[node[1]] = (label, function, parent)
        above.append((parent, number))
    for parent, number in above:
        if parent is not None and parent not in nodes:
            raise BadSentenceError(f"the parent #{parent} is no node of this sentence", number)
    return Graph.of_rows(words, nodes, file=file, line=first, name=lines[0].split()[1])


def _rows(lines: list[str], first: int) -> Iterator[tuple[int, _Row]]:
    """Yield each line's number, and its word, label, function and parent."""
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines, start=first):
        if line.strip() and (not line.startswith("%%") or len(line.split()) >= 5):
            fields = re.split(r"\t+", line) if "\t" in line else re.split(" +", line.strip(" "))
            rows.append((number, [field.strip(" ") for field in fields]))
    four, three = (
        [len(fields) > column and fields[column].isdigit() for _, fields in rows]
        for column in (5, 4)
    )
    lemma = int(sum(four) >= sum(three))
    for (number, fields), fits in zip(rows, four if lemma else three, strict=True):
        if not fits:
            problem = f"expected {5 + lemma} columns, the last a parent's number"
            raise BadSentenceError(f"{problem}, found {len(fields)}", number)
        function, parent = fields[3 + lemma], fields[4 + lemma]
        named = ("" if function == "--" else function, None if parent == "0" else parent)
        yield number, (fields[0], fields[1 + lemma], *named)


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
            blank = _BLANK.search(word) or word != word.strip(" ")
            if item < n and (blank or _NODE.fullmatch(word)):
                problem = f"NEGRA export cannot hold the word {word!r}"
                fix = "choose another format, such as tigerxml"
                error = AttreeError("word-of-blanks", problem, fix=fix)
                raise error.replace(file=graph.file, line=graph.line)
            label = graph.tags[item] if item < n else graph.labels[item - n]
            label, edge = (_BLANK.sub("_", cell) for cell in (label, graph.functions[item]))
            above = _FIRST + parent - n if parent >= 0 else 0
            yield f"{word}\t--\t{label or '--'}\t--\t{edge or '--'}\t{above}\n"
        yield f"#EOS {number}\n"


FORMAT = Format(graphs, (".export", ".negra"), certain=sentence.has_line(r"#BOS\s"), write=write)
