"""Read and write partly bracketed trees: brackets by hand, of which only some are given.

::

    # a phrase and its label; a phrase of unknown label; words that are no phrase
    ( (NP the old man) walked (? to (! town yesterday)) )
    # all that is inside is given: no other span is a phrase
    ( (= (NP the (ADJP very old) man)) walked home )
    # a whole tree
    (= (S (NP the old man) (VP walked)))

Three marks stand in place of a label (see ``trees/constraints.py``). Nothing is known of other
spans: they may be phrases or not, and the sentence may have any label. A label follows its bracket
without a space. Tags are optional; if one word of a tree has no tag, no word of it has one, and a
bracket around one word is a phrase.
"""

import dataclasses
import re
from collections.abc import Iterator

from attree.base.errors import AttreeError
from attree.base.text import unescape
from attree.treebank import brackets
from attree.treebank.layout import pieces
from attree.treebank.sentence import DUMMY_ROOTS, Format, Rejected, Sentence, Span, SplitSettings
from attree.trees.constraints import COMPLETE, MARKS, NO_PHRASE, UNKNOWN, Constraints

_COMMENT = re.compile(r"^#.*$", re.MULTILINE)
_S, _W = r"[ \t\n\f\v]", r"[^ \t\n\f\v()]"
#: A word in a bracket of its own, the opening of another bracket, or a word beside others.
_PART = re.compile(rf"\({_W}*+{_S}++({_W}++){_S}*+\)|\({_W}*+|({_W}++)")
_SPAN = re.compile(r"span \[(\d+), (\d+)\)")
#: The tag of a word without a tag.
_NO_TAG = "X"
_ONE_A_LINE = "write one sentence a line, all of it inside one pair of brackets"


def read(text: str, file: str, settings: SplitSettings) -> Iterator[Sentence | Rejected]:
    """Yield every tree as a partly bracketed `Sentence`, unless it is completely given.

    Arguments are those of :func:`attree.treebank.brackets.read`.
    """
    text = _COMMENT.sub("", text)
    parts, done = [], 0
    for begin, end in pieces(text):
        tree = text[begin:end]
        parts += [text[done:begin], _add_tags(tree) if tree[0] == "(" else tree]
        done = end
    for item in brackets.read("".join([*parts, text[done:]]), file, settings):
        yield item if isinstance(item, Rejected) else _check(item)


def read_line(line: str) -> Sentence:
    """Read a sentence from one line, which may be words without brackets.

    A comment has no words.

    Raises:
        AttreeError: the brackets of the line are not one whole tree, a label or mark is wrong, or a
            word is nothing but white space.
    """
    if line.startswith("#") or not set("()") & set(line):
        words = () if line.startswith("#") else tuple(map(unescape, line.split()))
        return Sentence(words, (_NO_TAG,) * len(words), (), "", 1, partial=True)
    trees = list(brackets.read(_add_tags(line), "", _LINE))
    sentences = [tree for tree in trees if isinstance(tree, Sentence)]
    reasons = [tree.reason.partition(" — ")[0] for tree in trees if isinstance(tree, Rejected)]
    if reasons or len(sentences) != 1:
        problem = (reasons or ["these brackets are not one tree"])[0]
        raise AttreeError("not-one-tree", problem, fix=_ONE_A_LINE)
    return dataclasses.replace(sentences[0], spans=_spans(sentences[0]), partial=True)


def write(sentences: Iterator[Sentence]) -> Iterator[str]:
    """Yield a line for each partly bracketed or whole tree.

    Brackets cannot cross: a span that is no phrase and crosses others is left out.
    """
    for sentence in sentences:
        whole = (0, len(sentence.words))
        spans = sentence.spans if sentence.partial else ((*whole, COMPLETE), *sentence.spans)
        spans = without_crossing(spans)
        tags = [_NO_TAG if tag in MARKS else tag for tag in sentence.tags]
        tree = brackets.bracketed(sentence.words, tags, spans)
        yield f"({tree})\n" if sentence.partial and spans[0][:2] == whole else f"{tree}\n"


def without_crossing(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Return spans in pre-order, without those that are no phrases and cross others."""
    kept = [span for span in spans if span[2] != NO_PHRASE]
    for start, end, label in spans:
        crosses = any(i < start < j < end or start < i < end < j for i, j, _ in kept)
        if label == NO_PHRASE and not crosses:
            kept.append((start, end, label))
    return tuple(sorted(kept, key=lambda span: (span[0], -span[1])))


def constraints_of(sentence: Sentence) -> Constraints:
    """Return the constraints that a sentence's tree gives.

    Raises:
        AttreeError: they contradict each other; the message names spans by their words.
    """
    words = sentence.words

    def named(span: re.Match[str]) -> str:
        return repr(" ".join(words[int(span[1]) : int(span[2])]))

    try:
        constraints = Constraints.of_tree(len(words), sentence.spans, partial=sentence.partial)
        constraints.check(len(words))
    except AttreeError as error:
        raise error.replace(problem=_SPAN.sub(named, error.problem)) from None
    return constraints


def _add_tags(tree: str) -> str:
    """Give every word a tag if a word of the tree has none."""
    if not any(part[2] for part in _PART.finditer(tree)):
        return tree

    def tag(part: re.Match[str]) -> str:
        if not (word := part[1] or part[2]):
            return part[0]
        before, after = part[0].rsplit(word, 1)
        return f"{before}({_NO_TAG} {word}){after}"

    return _PART.sub(tag, tree)


def _check(tree: Sentence) -> Sentence | Rejected:
    """Refuse a tree that contradicts itself; mark it as whole if all of it is given."""
    try:
        tree = dataclasses.replace(tree, spans=_spans(tree), partial=True)
        if not (constraints := constraints_of(tree)):
            fix = "bracket a phrase, or leave it"
            raise AttreeError("nothing-known", "nothing is known of this tree", fix=fix)
    except AttreeError as error:
        return Rejected(tree.file, tree.line, str(error), "failed")
    whole = (0, len(tree.words), COMPLETE)
    others = tuple(span for span in tree.spans if span != whole)
    marked = any(label in MARKS for *_, label in others)
    if others != tree.spans and not marked and whole[:2] in constraints.chains():
        return dataclasses.replace(tree, spans=others, partial=False)
    return tree


def no_label(span: Span) -> bool:
    """Tell whether text follows a mark in a span's label."""
    return len(span[2]) > 1 and span[2][0] in MARKS


def _spans(tree: Sentence) -> tuple[tuple[int, int, str], ...]:
    """Return the spans of a tree; a span without a label has an unknown one.

    Raises:
        AttreeError: text follows a mark, a mark is a tag, or a word is only white space.
    """
    if not all(word.strip() for word in tree.words):
        raise AttreeError("empty-word", "a word is nothing but white space", fix="leave it out")
    for i, j, label in tree.spans:
        if no_label((i, j, label)):
            problem = f"{label!r} around {' '.join(tree.words[i:j])!r} is no mark and no label"
            fix = f"the marks are {', '.join(MARKS)}, each alone"
            raise AttreeError("bad-mark", problem, fix=fix)
    for word, tag in zip(tree.words, tree.tags, strict=True):
        if tag in MARKS:
            fix = f"write ({tag} ({_NO_TAG} {word}))"
            raise AttreeError("bad-mark", f"{tag} is the tag of {word!r}", fix=fix)
    return tuple((start, end, label or UNKNOWN) for start, end, label in tree.spans)


FORMAT = Format(
    read,
    (".half",),
    punctuation="auto",
    dummy_roots=(*DUMMY_ROOTS, ""),
    write=write,
    continuous=True,
    partial=True,
    held=brackets.held,
)
_LINE = SplitSettings(format="half", dummy_roots=FORMAT.dummy_roots, drop_labels=FORMAT.drop_labels)
