"""Find where bracketed trees begin and end, in files that may be damaged.

A missing bracket must not merge a broken tree with the next one, so counting brackets is not
enough. A file is cut into pieces by the first of these rules that fits:

1. A line at the margin (the least indentation of any line that starts with a bracket) starts a
   piece unless it starts with a closing bracket. This fits if at least half of the pieces are
   balanced and hold more than one opening bracket, or if all are balanced. Where pieces that no
   other tree begins like close a piece before them, they are one tree with it.
2. Brackets alone separate the trees (printed without indentation). This fits if the brackets of
   the whole file are balanced.
3. A blank line ends a piece. This fits if at least half of the pieces are balanced.
4. As in 1.

If the pieces of a file hold one tree each, a piece that does not close, closes too often, or closes
early (more brackets follow on an indented line) is one broken sentence. If they hold several trees
(a whole treebank on one line), only the tree at the fault is broken.
"""

import itertools
import re
from dataclasses import dataclass, field

Stretch = tuple[int, int]

_PART = re.compile(r"[()]|[^ \t\n\f\v()]++")
_INDENT = re.compile(r"^([ \t]*+)\(", re.MULTILINE)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_OPENING = re.compile(r"\(\s*([^\s()]*)")
_SAMPLE = 500
_MOST_JOINED = 50  # pieces of a tree, which bounds time
#: The most brackets open at once, which bounds memory; no tree is deeper.
_DEEPEST = 200_000


@dataclass(slots=True)
class TopLevel:
    """The content of a stretch of text: whole trees, text outside trees, and at most one fault.

    ``fault_at`` is the position of the bracket at fault: the first that is not closed, or the first
    that closes nothing.
    """

    trees: list[Stretch] = field(default_factory=list)
    outside: list[Stretch] = field(default_factory=list)
    fault: str | None = None
    fault_at: int = 0


def top_level(text: str, begin: int, end: int) -> TopLevel:
    """Scan the brackets of ``text[begin:end]``; stop at one that closes nothing."""
    content = TopLevel()
    opened: list[int] = []
    for match in _PART.finditer(text, begin, end):
        token = match[0]
        if token == "(":
            opened.append(match.start())
            if len(opened) > _DEEPEST:
                break
        elif token == ")" and opened:
            start = opened.pop()
            if not opened:
                content.trees.append((start, match.end()))
        elif token == ")":
            content.fault, content.fault_at = "a bracket closes nothing", match.start()
            return content
        elif not opened:
            outside, word = content.outside, match.span()
            if outside and "(" not in text[outside[-1][1] : word[0]]:
                outside[-1] = (outside[-1][0], word[1])  # a run of words
            else:
                outside.append(word)
    if opened:
        many = "1 bracket is" if len(opened) == 1 else f"{len(opened)} brackets are"
        deep = f"more than {_DEEPEST:,} brackets are open"
        content.fault = deep if len(opened) > _DEEPEST else f"{many} not closed"
        content.fault_at = opened[0]
    return content


def pieces(text: str) -> list[Stretch]:
    """Cut a file into pieces by the module's rules; no text is lost."""
    margin = _cut(text, _margin(text))
    total, whole, nested = _balanced(text, margin)
    if whole == total:
        return margin
    if 2 * nested >= total:
        return _joined(text, margin)
    stream = top_level(text, 0, len(text))
    if stream.fault is None and stream.trees:
        return _cut(text, [start for start, _ in stream.trees])
    blocks = _cut(text, [0, *(match.end() for match in _BLANK_LINE.finditer(text))])
    total, whole, _ = _balanced(text, blocks)
    return blocks if 2 * whole >= total else _joined(text, margin)


def _joined(text: str, cuts: list[Stretch]) -> list[Stretch]:
    """Join pieces that are not closed with those that close them, but none that begins a tree."""
    opened = [text.count("(", *cut) - text.count(")", *cut) for cut in cuts]
    begins = [_OPENING.match(text, begin) for begin, _ in cuts]
    known = {
        found[1]
        for found, left, cut in zip(begins, opened, cuts, strict=True)
        if found and not left and text.count("(", *cut) > 1
    }
    joined: list[Stretch] = []
    number = 0
    while number < len(cuts):
        left, last = opened[number], number
        while left > 0 and last + 1 < min(len(cuts), number + _MOST_JOINED):
            if (found := begins[last + 1]) is None or found[1] in known:
                break
            last += 1
            left += opened[last]
        last = number if left else last
        joined.append((cuts[number][0], cuts[last][1]))
        number = last + 1
    return joined


def _margin(text: str) -> list[int]:
    """Return the starts of the lines at the margin: brackets, and text outside trees.

    A line that starts with a closing bracket continues its tree.
    """
    least = 0
    if not text.startswith("(") and "\n(" not in text:
        least = min((len(match[1]) for match in _INDENT.finditer(text)), default=0)
    line = re.compile(rf"(?:\n|\A)[ \t]{{0,{least}}}(?=[^ \t\n\f\v)])")
    positions: list[int] = []
    for match in line.finditer(text):
        position = match.end()
        if text[position] == "(" or (positions and text[positions[-1]] == "("):
            positions.append(position)
    return positions


def _cut(text: str, starts: list[int]) -> list[Stretch]:
    """Return the stretches between ``starts``, without blank ones."""
    cuts = itertools.pairwise([0, *starts, len(text)])
    return [(a, b) for a, b in cuts if a < b and (text[a] == "(" or not text[a:b].isspace())]


def _balanced(text: str, cuts: list[Stretch]) -> tuple[int, int, int]:
    """Count the stretches with brackets, the balanced ones, and the balanced and nested ones."""
    total = whole = nested = 0
    for begin, end in cuts:
        opening = text.count("(", begin, end)
        total += opening > 0
        if opening and opening == text.count(")", begin, end):
            whole += 1
            nested += opening > 1
    return total, whole, nested


def one_tree_each(text: str, cuts: list[Stretch]) -> bool:
    """Tell, by a sample, whether the pieces of a file hold one tree each rather than several."""
    single = several = 0
    for begin, end in cuts[:: max(1, len(cuts) // _SAMPLE)]:
        content = top_level(text, begin, end)
        several += len(content.trees) > 1
        single += len(content.trees) == 1 and content.fault is None
    return single >= several


def closes_early(text: str, content: TopLevel) -> int | None:
    """Return the position of a tree on a line of its own, indented deeper than the first tree.

    Such a tree continues one whose brackets close too early.
    """
    indents = [(_indent(text, start), start) for start, _ in content.trees]
    first = (indents[0][0] if indents else None) or 0
    deeper = (start for indent, start in indents[1:] if indent is not None and indent > first)
    return next(deeper, None)


def _indent(text: str, position: int) -> int | None:
    """Return the indentation of a position; None if text precedes it on its line."""
    line = text.rfind("\n", 0, position) + 1
    return position - line if not text[line:position].strip() else None
