r"""Read bracketed trees (PTB and SPMRL style) in one scan straight to spans.

No tree is built and nothing recurses: one regular expression cuts a piece of text (see
:mod:`attree.treebank.layout`) into tokens, a stack holds the open nodes, and a node that closes
without a word is dropped, which prunes all empty nodes.

A node whose only child is a word is a preterminal, and its label is the word's tag. A node with
several bare words (``(fs_þf Þvert á)``) is a phrase, and each of its words has its label as tag: a
leaf is a word, and white space separates words. A node without a leaf is a word where its label is
made of punctuation marks, as in ``(,)``; else it is empty and pruned.
"""

import functools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from attree.base.errors import AttreeError
from attree.base.text import unescape
from attree.treebank import sentence
from attree.treebank.layout import closes_early, one_tree_each, pieces, top_level
from attree.treebank.sentence import Format, Rejected, Sentence, Span, SplitSettings, Status

# Only ASCII white space separates tokens: a no-break or zero-width space is part of a word.
# Repetitions are possessive, so that no input makes the expression backtrack; but not those of
# groups, which Python before 3.11.5 matches wrongly.
_S, _W = r"[ \t\n\f\v]", r"[^ \t\n\f\v()]"
#: A token is (label, word, "", …) for a preterminal, (label, "", "", …) for the opening of another
#: node, ("", "", word, …) for a bare word; last in it are the closing brackets that follow.
_TOKEN = re.compile(rf"(?:\({_S}*+({_W}*+)(?:{_S}++({_W}++){_S}*+\))?|({_W}++))([ \t\n\f\v)]*+)")
_Token = tuple[str, str, str, str]
_FEATURES = re.compile(
    r"(\([^\s()][^\s()#]*+(?:#(?!#)[^\s()#]*+)*)##"
    r"(?:[^()\n]*?|[^()\n]*?=[()][^()\n]*?)##(?=[ \t\n(])"
)
#: A comment without a tree (Floresta), and mark-up (the Penn Chinese Treebank) without brackets or
#: around a tree, in a line that begins with it.
_NO_TREE = re.compile(
    r"\A#(?!.*\([^\s()]*\s*\().*|<!--.*?-->|<[^()]*>\s*\Z|<[^()<>]*>\s*(?=\()|(?<=\))\s*</[^()<>]*>\s*\Z"
)
#: White space that is not ASCII in a label, or in front of a word.
_OTHER_SPACE = re.compile(r"\([^\s()]*([^\S \t\n\f\v])")
_FAULTY = re.compile(rf"{sentence.UNDECODED.pattern}|{_OTHER_SPACE.pattern}")
#: A file with ``\\(`` escapes brackets, as Icelandic treebanks and NLTK do; so does one whose
#: brackets balance only so. In other files ``\\)`` is a backslash and a bracket.
_ESCAPED_BRACKET = re.compile(r"(?<!\\)\\([()])")
_WRITTEN = {"(": "-LRB-", ")": "-RRB-"}
_SAFE = str.maketrans(_WRITTEN | dict.fromkeys(" \t\n\r\f\v", "_"))
_LAYER = re.compile(r"\{\w+=[^{}]*\}")


def read(text: str, file: str, settings: SplitSettings) -> Iterator[Sentence | Rejected]:
    """Yield every tree of ``text`` in order, each as a `Sentence` or as `Rejected`.

    Args:
        text: the whole file, as `sentence.read_text` gives it.
        file: its name, for the sentences' origin.
        settings: ``dummy_roots``, ``drop_labels``, ``escapes`` and (for messages) ``encoding``.
    """
    if text.startswith(("#", "<")) or "\n#" in text or "\n<" in text:
        text = _between_trees(text)
    surplus = text.count(")") - text.count("(") if "\\)" in text else 0
    if "\\(" in text or (surplus and surplus == len(_ESCAPED_BRACKET.findall(text))):
        text = _ESCAPED_BRACKET.sub(lambda match: _WRITTEN[match[1]], text)
    return _Scanner(text, file, settings).sentences()


def _between_trees(text: str) -> str:
    """Take out comments and mark-up between trees; one word on a line of a tree is no comment."""
    lines, depth, last = text.split("\n"), 0, ")"
    for number, line in enumerate(lines):
        if line[:1] in ("#", "<") and (depth <= 0 or last == ")" or " " in line.strip()):
            lines[number] = line = _NO_TREE.sub("", line)
        depth += line.count("(") - line.count(")")
        last = line.rstrip()[-1:] or last
    return "\n".join(lines)


def read_spmrl(text: str, file: str, settings: SplitSettings) -> Iterator[Sentence | Rejected]:
    """Read as `read` does, after stripping the ``##…##`` feature blocks from the labels.

    A block may hold spaces; it ends in ``##`` before white space or a bracket. So a label with one
    literal ``##`` (``NP-OBJ::OBJ##OBJ/OBJ``) stays whole.
    """
    return read(_FEATURES.sub(r"\1", text) if "##" in text else text, file, settings)


def bracketed(
    words: Sequence[str], tags: Sequence[str], spans: Sequence[Span], *, root: str = ""
) -> str:
    """Write a tree on one line: ``(S (NP (DT the) (NN dog)) (VP (VBZ barks)))``.

    Brackets in words are escaped (``-LRB-``) and white space becomes ``_``, so that any reader can
    tokenise it.

    Args:
        words, tags: one tag for each word; an empty tag is written ``X``.
        spans: half-open word intervals with labels, in pre-order.
        root: the label of a node that is put over several top nodes.

    Raises:
        AttreeError: the spans cross or are not in pre-order.
    """
    n = len(words)
    parts: list[str] = []
    ends: list[int] = []  # of the open nodes
    left = list(spans)[::-1]
    if n > 1 and (not left or left[-1][:2] != (0, n)):
        left.append((0, n, root))
    for position, (word, tag) in enumerate(zip(words, tags, strict=True)):
        while left and left[-1][0] == position < left[-1][1] <= (ends[-1] if ends else n):
            _, end, label = left.pop()
            ends.append(end)
            parts.append(f" ({label.translate(_SAFE)}")
        parts.append(f" ({tag.translate(_SAFE) or 'X'} {word.translate(_SAFE)})")
        while ends and ends[-1] == position + 1:
            ends.pop()
            parts.append(")")
    if left:
        problem = f"the span {left[-1][:2]} crosses another or is out of order"
        raise AttreeError("span-order", problem)
    return "".join(parts).strip()


def held(word: str) -> str:
    """Return a word as it is read back."""
    return unescape(word.translate(_SAFE))


@functools.cache
def _is_mark(label: str) -> bool:
    return all(unicodedata.category(character)[0] in "PS" for character in label)


@dataclass(slots=True)
class _Tree:
    """One tree as flat lists: words and tags, and its nodes in pre-order."""

    words: list[str]
    tags: list[str]
    starts: list[int]
    ends: list[int]
    labels: list[str | None]


class _Names(dict[str, str | None]):
    """Raw label → label without functions; ``None`` where the node is dropped with its words."""

    def __init__(self, dropped: frozenset[str], *, whole: bool = False) -> None:
        self.dropped, self.whole = dropped, whole

    def __missing__(self, label: str) -> str | None:
        whole = sentence.unescape_label(label) if "B-" in label else label
        name = sentence.cut_label(whole)
        dropped = label in self.dropped or name in self.dropped
        self[label] = kept = None if dropped else whole if self.whole else name
        return kept


def _parse(tokens: list[_Token], names: _Names) -> _Tree | None:
    """Read the tokens of exactly one whole tree; return None if they are not one."""
    if len(tokens) == 1 and tokens[0][1] and ")" not in tokens[0][3]:
        tokens = [("", "", "", ""), (*tokens[0][:3], ")")]  # a lone preterminal: wrap it
    tree = _Tree([], [], [], [], [])
    words, tags, starts = tree.words, tree.tags, tree.starts
    ends, labels = tree.ends, tree.labels
    stack: list[int] = []
    lone: dict[int, int] = {}  # bare word → its parent
    pruned: set[int] = set()  # parents of nodes without a leaf
    whole = 0
    for label, word, bare, tail in tokens:
        closing = tail.count(")") if tail else 0
        if word:
            if not stack:
                return None
            if (name := names[label]) is not None:
                words.append(word)
                tags.append(name)
        elif bare:
            if not stack or not tail:  # a bracket in a word: ``report(s)``
                return None
            lone[len(words)] = stack[-1]
            words.append(bare)
            tags.append(labels[stack[-1]] or "")
        elif closing:  # a node without a leaf
            closing -= 1
            whole += not stack
            if label and _is_mark(label) and names[label] is not None:
                words.append(label)
                tags.append(label)
            elif stack:
                pruned.add(stack[-1])
        else:
            stack.append(len(starts))
            starts.append(len(words))
            ends.append(-1)
            labels.append(names[label])
        while closing:
            if not stack:
                return None
            closing -= 1
            node = stack.pop()
            whole += not stack
            if lone and node in pruned and node in lone.values():  # ``(NN (1) foo)``
                return None
            pruned.discard(node)
            if labels[node] is None or lone:
                _close(tree, node, lone)
            elif starts[node] < len(words):
                ends[node] = len(words)
            else:
                del starts[node:], ends[node:], labels[node:]
    return tree if whole == 1 and not stack else None


def _close(tree: _Tree, node: int, lone: dict[int, int]) -> None:
    """Close a node that is dropped, or that may be the preterminal of a bare word."""
    start = tree.starts[node]
    if tree.labels[node] is None:
        del tree.words[start:], tree.tags[start:]
        for word in [word for word in lone if word >= start]:
            del lone[word]
    n = len(tree.words)
    if n == start or (n == start + 1 and node == len(tree.starts) - 1 and lone.get(start) == node):
        del tree.starts[node:], tree.ends[node:], tree.labels[node:]
    else:
        tree.ends[node] = n


class _Scanner:
    """Reads the trees of one file, piece by piece."""

    def __init__(self, text: str, file: str, settings: SplitSettings) -> None:
        drop = sentence.DROP_LABELS if settings.drop_labels is None else settings.drop_labels
        roots = sentence.DUMMY_ROOTS if settings.dummy_roots is None else settings.dummy_roots
        self.text, self.file, self.encoding = text, file, settings.encoding or "utf-8"
        self.unescaped = settings.escapes == "undo"
        self.names = _Names(frozenset((sentence.TRACE, *drop)), whole=settings.functions == "keep")
        self.roots = frozenset(roots)
        self.faulty = not text.isascii() and _FAULTY.search(text) is not None
        self.pieces = pieces(text)
        self.counted = (0, 1)  # a position in the text, and its line

    def sentences(self) -> Iterator[Sentence | Rejected]:
        """Yield the trees of every piece."""
        for begin, end in self.pieces:
            tree = None
            # tokens take a hundred times the memory of text, so do not cut a broken tree
            even = self.text.count("(", begin, end) == self.text.count(")", begin, end)
            bad = self.faulty and _FAULTY.search(self.text, begin, end)
            if self.text[begin] == "(" and even and not bad:
                tree = _parse(_TOKEN.findall(self.text, begin, end), self.names)
            if tree is not None and tree.words:
                yield self._sentence(tree, begin)
            else:
                yield from self._salvage(begin, end)

    @functools.cached_property
    def one_tree_each(self) -> bool:
        """Whether each piece holds one tree: then a piece with a fault is one broken sentence."""
        return one_tree_each(self.text, self.pieces)

    def _salvage(self, begin: int, end: int) -> Iterator[Sentence | Rejected]:
        """Read a piece that is not one whole tree: yield its whole trees, and reject the rest."""
        surplus = True
        while surplus and begin < end:
            content = top_level(self.text, begin, end)
            fault, start = content.fault, content.fault_at
            surplus = fault is not None and self.text[start] == ")"
            if self.one_tree_each:
                early = closes_early(self.text, content)
                if early is not None and fault is None:
                    fault = f"it closes too early: it continues on line {self._line(early)}"
                if fault is not None:
                    first = content.trees[0][0] if content.trees else start
                    yield self._reject(first, f"{fault} — correct this tree")
                    return
            elif surplus and content.trees:
                start, _ = content.trees.pop()
            for stretch in sorted(content.trees + content.outside):
                yield self._read_one(*stretch)
            if fault is not None:
                yield self._reject(start, f"{fault} — correct this tree")
            rest = self.text[content.fault_at : end] if surplus else ""
            begin = end - len(rest.lstrip(") \t\n\f\v"))

    def _read_one(self, begin: int, end: int) -> Sentence | Rejected:
        """Read one whole tree, or text outside all trees."""
        if problem := sentence.undecoded(self.text, begin, end, self.encoding):
            return self._reject(begin, problem[0], setting=problem[1])
        if space := _OTHER_SPACE.search(self.text, begin, end):
            reason = f"white space in a label (U+{ord(space[1]):04X})"
            return self._reject(begin, f"{reason} — put an ASCII blank there")
        if self.text[begin] != "(":
            reason = f"text outside any tree: {self.text[begin : min(end, begin + 30)]!r}"
            return self._reject(begin, f"{reason} — check the brackets around it")
        tokens = _TOKEN.findall(self.text, begin, end)
        if (tree := _parse(tokens, self.names)) is None:
            return self._reject(begin, "a bracket in or beside a word — write it as -LRB- or -RRB-")
        if tree.words:
            return self._sentence(tree, begin)
        dropped = {label for label, *_ in tokens if label and self.names[label] is None}
        if dropped - {sentence.TRACE}:
            return self._reject(begin, "no word is left by drop_labels", "skipped")
        if any(word or bare for _, word, bare, _ in tokens):
            return self._reject(begin, "no word is left: every leaf is a trace", "emptied")
        return self._reject(begin, "a tree without words")

    def _sentence(self, tree: _Tree, begin: int) -> Sentence | Rejected:
        """Unescape the words and strip the dummy roots; refuse leaves of layers."""
        words, n = tree.words, len(tree.words)
        joined = "".join(words)
        if "{" in joined and (layers := next(filter(_LAYER.match, words), "")):
            reason = f"the leaf {layers[:30]!r} has layers in place of a word"
            return self._reject(begin, reason, setting="format: starlang")
        if self.unescaped and ("\\" in joined or "B-" in joined):
            words = [unescape(word) for word in words]
        spans = tuple(zip(tree.starts, tree.ends, cast("list[str]", tree.labels), strict=True))
        top = 0
        while top < len(spans) and spans[top][1] - spans[top][0] == n:
            label = spans[top][2]
            unary = spans[top + 1][:2] == (0, n) if top + 1 < len(spans) else n == 1
            if label not in self.roots and (label or not unary):
                break
            top += 1
        return Sentence(tuple(words), tuple(tree.tags), spans[top:], self.file, self._line(begin))

    def _reject(
        self, position: int, reason: str, status: Status = "failed", setting: str = ""
    ) -> Rejected:
        return Rejected(self.file, self._line(position), reason, status, setting)

    def _line(self, position: int) -> int:
        """Return the line of a position, counted on from the last call."""
        last, line = self.counted
        if position >= last:
            line += self.text.count("\n", last, position)
        else:
            line -= self.text.count("\n", position, last)
        self.counted = (position, line)
        return line


def write(sentences: Iterator[Sentence]) -> Iterator[str]:
    """Yield a line for each tree."""
    for tree in sentences:
        yield bracketed(tree.words, tree.tags, tree.spans, root="VROOT") + "\n"


_format = functools.partial(Format, family="brackets", write=write, continuous=True, held=held)
PTB = _format(read, (".mrg",), punctuation="auto")
_EXTENSIONS = (".ptb", ".psd", ".gld", ".brackets", ".tree", ".trees")
SPMRL = _format(read_spmrl, _EXTENSIONS, dummy_roots=(*sentence.DUMMY_ROOTS, ""))
