"""What spans and tokens of parsed spaCy documents know: constituents, labels, brackets.

A document's trees lie in ``doc.user_data["attree"]``, as :mod:`attree.spacy_pipe` puts them there
and spaCy saves them: the fields of :class:`Parse`, checked when they are first asked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import pairwise
from typing import Any

import msgspec
from spacy.tokens import Doc, Span, Token

from attree.errors import AttreeError
from attree.files import described
from attree.tree import bracketed, leaf

#: Of ``doc.user_data``.
KEY = "attree"


class NonConstituentError(AttreeError):
    """A span that is no constituent of its sentence's tree."""


class Parse(msgspec.Struct, frozen=True):
    """The trees of a document.

    Attributes:
        length: the number of tokens.
        status: what became of each sentence.
        firsts: the first word of each sentence.
        tokens: the places of the words.
        starts, ends: the constituents of all sentences in pre-order, in words of the document.
        labels: of each constituent; of unary chains from the top.
        tags: the parser's, of each word.
    """

    length: int
    status: tuple[str, ...]
    firsts: tuple[int, ...]
    tokens: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    labels: tuple[tuple[str, ...], ...]
    tags: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what is no tree of each sentence."""
        words, spans = len(self.tokens), list(zip(self.starts, self.ends, strict=False))
        borders, places = [*self.firsts, words], [-1, *self.tokens, self.length]
        sentences = {one for one in pairwise(borders) if one[0] < one[1]}
        constituents = {*spans, *sentences, *((word, word + 1) for word in range(words))}
        if (
            not len(self.starts) == len(self.ends) == len(self.labels)
            or (len(self.status), len(self.tags)) != (len(self.firsts), words)
            or places != sorted(set(places))
            or borders != sorted(borders)
            or borders[0] != 0
            or spans != sorted(constituents, key=lambda span: (span[0], -span[1]))
            or not _nest(spans, sentences)
        ):
            raise ValueError("it holds no tree of each sentence")


def _nest(spans: Iterable[tuple[int, int]], sentences: Container[tuple[int, int]]) -> bool:
    """Tell whether every span, in pre-order, is a sentence or inside the one that is around it."""
    around: list[int] = []
    for start, end in spans:
        while around and around[-1] <= start:
            around.pop()
        if end <= start or (end > around[-1] if around else (start, end) not in sentences):
            return False
        around.append(end)
    return True


class _Checked(dict[str, Any]):
    """A document's data as spaCy saves it, with what was found in it."""

    parse: Parse


def _parse_of(doc: Doc) -> Parse:
    found = doc.user_data.get(KEY)
    if found is None:
        raise AttreeError("this document has no trees", fix='nlp.add_pipe("attree") sets them')
    if not isinstance(found, _Checked):
        what, fix = f"document's data ({KEY})", "parse the document anew"
        parse = described(found, Parse, what=what, fix=fix)
        found = doc.user_data[KEY] = _Checked(found)
        found.parse = parse
    if found.parse.length != len(doc):
        raise AttreeError(
            "this document's tokens are not those that were parsed",
            fix="merge and split tokens before attree runs: nlp.add_pipe(…, before='attree')",
        )
    return found.parse


def _place(span: Span) -> tuple[Parse, int, int, int]:
    """Return the parse, and of a span its constituent (-1 of white space), first word and end.

    Raises:
        NonConstituentError: it is none.
    """
    parse = _parse_of(span.doc)
    first, end = (bisect_left(parse.tokens, place) for place in (span.start, span.end))
    if first == end:
        return parse, -1, first, end
    at = bisect_left(parse.starts, first)
    while at < len(parse.starts) and parse.starts[at] == first:
        if parse.ends[at] == end:
            return parse, at, first, end
        at += 1
    raise NonConstituentError(
        f"{span.text!r} is no constituent", fix="see list(sent._.constituents) of its sentence"
    )


def _span(doc: Doc, parse: Parse, at: int) -> Span:
    tokens = parse.tokens
    return doc[tokens[parse.starts[at]] : tokens[parse.ends[at] - 1] + 1]


def _inside(parse: Parse, at: int, end: int) -> range:
    """Return the constituents inside one, itself first."""
    return range(at, bisect_left(parse.starts, end)) if at >= 0 else range(0)


def constituents(span: Span) -> Iterator[Span]:
    """Yield every constituent inside a span in pre-order, itself first."""
    parse, at, _, end = _place(span)
    return (_span(span.doc, parse, one) for one in _inside(parse, at, end))


def children(span: Span) -> Iterator[Span]:
    """Yield the largest constituents inside a span from left to right; a word has none."""
    parse, at, begins, end = _place(span)
    for one in _inside(parse, at, end)[1:]:
        if parse.starts[one] == begins:
            yield _span(span.doc, parse, one)
            begins = parse.ends[one]


def parent(span: Span) -> Span | None:
    """Return the smallest constituent around a span, None of a sentence."""
    parse, at, _, end = _place(span)
    if at in (-1, bisect_left(parse.starts, _first_of_sentence(parse, span))):
        return None
    above = at - 1
    while parse.ends[above] < end:
        above -= 1
    return _span(span.doc, parse, above)


def labels(span: Span) -> tuple[str, ...]:
    """Return a span's labels, those of a unary chain from the top."""
    parse, at, _, _ = _place(span)
    return tuple(parse.labels[at]) if at >= 0 else ()


def parse_string(span: Span) -> str:
    """Return a span's tree on one line, every word with its tag: the token's, else the
    parser's, else ``X``.

    Brackets and spaces are written as :meth:`attree.Tree.brackets` writes them.
    """
    parse, at, first, end = _place(span)
    tokens = [span.doc[place] for place in parse.tokens[first:end]]
    words = ["_".join(token.text.split()) for token in tokens]
    known = zip(tokens, parse.tags[first:end], strict=True)
    tags = tuple(token.tag_ or token.pos_ or tag for token, tag in known)
    spans: list[tuple[int, int]] = []
    names: list[str] = []
    for one in _inside(parse, at, end):
        chain = parse.labels[one]
        names += chain
        spans += [(parse.starts[one] - first, parse.ends[one] - first)] * len(chain)
    if len(words) == 1 and not names:
        return leaf(words[0], tags[0])
    return bracketed(words, spans, tuple(names), tags)


def parse_status(span: Span) -> str:
    """Return what became of the sentence that a span begins in."""
    parse = _parse_of(span.doc)
    return str(parse.status[_sentence(parse, span)])


def _sentence(parse: Parse, span: Span) -> int:
    first = bisect_left(parse.tokens, span.start)
    return max(bisect_right(parse.firsts, first) - 1, 0)


def _first_of_sentence(parse: Parse, span: Span) -> int:
    return parse.firsts[_sentence(parse, span)]


#: What :func:`install` sets on spans, and on tokens.
_OF_SPANS: dict[str, Callable[[Span], Any]] = {
    "constituents": constituents,
    "children": children,
    "parent": parent,
    "labels": labels,
    "parse_string": parse_string,
    "parse_status": parse_status,
}
_OF_TOKENS = ("parent", "labels", "parse_string", "parse_status")


def _of_token(of_span: Callable[[Span], Any]) -> Callable[[Token], Any]:
    return lambda token: of_span(token.doc[token.i : token.i + 1])


_GETTERS: dict[tuple[type, str], Callable[[Any], Any]] = {
    **{(Span, name): getter for name, getter in _OF_SPANS.items()},
    **{(Token, name): _of_token(_OF_SPANS[name]) for name in _OF_TOKENS},
}


def install() -> None:
    """Set the attributes of spans and tokens: done by the component, or for saved documents.

    Raises:
        AttreeError: one of that name is there already, such as benepar's.
    """
    for (kind, name), getter in _GETTERS.items():
        if not kind.has_extension(name):  # type: ignore[attr-defined]
            kind.set_extension(name, getter=getter)  # type: ignore[attr-defined]
        elif kind.get_extension(name)[2] is not getter:  # type: ignore[attr-defined]
            raise AttreeError(
                f"{kind.__name__.lower()}._.{name} is set by another component",
                fix="use one constituency parser in a process",
            )
