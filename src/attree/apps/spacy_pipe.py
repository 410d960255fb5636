"""A component for spaCy pipelines: ``nlp.add_pipe("attree", config={"parser": "parsers/mine"})``.

The attributes are those of benepar. A *constituent* is a span of the parse: a phrase, or a word.

===========================  =======================================================================
``span._.constituents``      every constituent inside, in pre-order, the span itself first
``span._.children``          the largest constituents inside, from left to right
``span._.parent``            the smallest constituent around it, None for a sentence
``span._.labels``            labels of the span, several for a unary chain, none for most words;
                             ``("X",)`` for a phrase if the parser has no labels
``span._.parse_string``      brackets on one line, a tag on every word
``span._.parse_status``      status of its sentence: ``ok``; ``too_long`` (for the encoder) or
                             ``failed``, whose trees are right-branching
``doc._.phrases("VP")``      the phrases of a document with that label, in pre-order; of any label
                             without one; ``span._.phrases`` those inside a span, constituent or not
``doc.noun_chunks``          in any language, where spaCy has no dependency parse: noun phrases up
                             to the first noun phrase inside, if that does not come first
===========================  =======================================================================

Tokens have ``labels``, ``parent``, ``parse_string`` and ``parse_status`` too. A span that is no
constituent raises :class:`NonConstituentError`.

A document without sentence boundaries gets those of ``attree parse``, by the rules of the
pipeline's language. Words are the pipeline's tokens; if its language differs from that of the
parser's trees, a warning says so. White-space tokens are in no tree: a constituent neither begins
nor ends with one, and they do not count at the ends of a span, so that a sentence is a constituent
whatever white space follows it.

The parse is stored in ``doc.user_data["attree"]``, which spaCy saves with the document. It has the
fields of :class:`Parse`, which are checked at their first use.
"""

from __future__ import annotations

import multiprocessing
import os
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice, pairwise, zip_longest
from pathlib import Path
from typing import Annotated, Any

import msgspec
import spacy.util
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span, Token
from spacy.vocab import Vocab

from attree.base.errors import AttreeError
from attree.base.files import write_json
from attree.base.languages import ANY, rules_for
from attree.base.process import MOST_THREADS
from attree.base.reading import described, read_described
from attree.parsers.find import language_of
from attree.raw_text.words import sentence_starts
from attree.ready import DEFAULT, ready_parsers
from attree.trees.constraints import find_crossing
from attree.trees.tree import NO_LABEL, Tree, bracketed, leaf

#: Key of the parse in ``doc.user_data``.
KEY = "attree"
_NOUN_PHRASE = "NP"
_SETTINGS = "settings.json"


class ComponentSettings(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The component's settings, from a pipeline's configuration or a saved pipeline.

    Attributes:
        parser: a name, or a folder of ``attree train``.
        encoder: the encoder; by default the one that the parser was made with.
        device: ``cpu``, ``cuda``…
        dtype: ``auto`` by default: ``bfloat16`` where the device multiplies it.
        threads: threads of a CPU run; by default one in a process of ``n_process``, else torch's
            choice.
        max_words: longer sentences get right-branching trees.
    """

    parser: str = DEFAULT
    encoder: str | None = None
    device: str | None = None
    dtype: str | None = None
    threads: Annotated[int, msgspec.Meta(ge=1, le=MOST_THREADS)] | None = None
    max_words: Annotated[int, msgspec.Meta(ge=1)] | None = 500


@Language.factory("attree", default_config=msgspec.structs.asdict(ComponentSettings()))
def make_pipe(
    nlp: Language,
    name: str,
    parser: str,
    encoder: str | None,
    device: str | None,
    dtype: str | None,
    threads: int | None,
    max_words: int | None,
) -> TreePipe:
    """Make the component of a pipeline from the settings of :class:`ComponentSettings`.

    Raises:
        AttreeError: the parser does not exist, or another setting is wrong.
    """
    install(nlp.vocab)
    values = (parser, encoder, device, dtype, threads, max_words)
    settings = dict(zip(ComponentSettings.__struct_fields__, values, strict=True))
    pipe = TreePipe(name, _settings(settings))
    if (trained_on := language_of(parser)) and nlp.lang not in (ANY, rules_for(trained_on)):
        warnings.warn(
            f"the parser's trees are in {trained_on}, and this pipeline splits words by the rules "
            f"for {nlp.lang} — spacy.blank({rules_for(trained_on)!r}) has those of the trees",
            stacklevel=2,
        )
    return pipe


def _settings(raw: Any) -> ComponentSettings:
    """Check settings from a configuration or from saved bytes."""
    return described(
        raw, ComponentSettings, what="configuration of the pipe attree", fix="correct the setting"
    )


class TreePipe(Pipe):
    """Sets the trees of documents.

    Args:
        name: name of the component.
        settings: the component's settings.
    """

    def __init__(self, name: str, settings: ComponentSettings) -> None:
        self.name, self._settings = name, settings
        self._loaded: Any = None
        check_parser(settings.parser)
        install()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the parser: every process loads its own."""
        return TreePipe, (self.name, self._settings)

    def __call__(self, doc: Doc) -> Doc:
        """Parse one document."""
        self._parse([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 1000) -> Iterator[Doc]:
        """Parse documents in order, the sentences of ``batch_size`` documents together."""
        handle = self.get_error_handler()
        for docs in spacy.util.minibatch(stream, size=batch_size):
            try:
                self._parse(docs)
            except Exception as error:
                handle(self.name, self, docs, error)
            else:
                yield from docs

    def _parse(self, docs: Sequence[Doc]) -> None:
        sentences = [_sentences(doc) for doc in docs]
        words = [[token.text for token in sent] for sent in chain.from_iterable(sentences)]
        trees, status = self._parser().trees(words)
        parsed = zip(trees.each(words), status.tolist(), strict=True)
        for doc, of_doc in zip(docs, sentences, strict=True):
            doc.user_data[KEY] = _stored(doc, of_doc, list(islice(parsed, len(of_doc))))

    def _parser(self) -> Any:
        """Return the parser, loaded at its first use."""
        if self._loaded is None:
            from attree.parsers.parser import Parser

            chosen = msgspec.structs.asdict(self._settings)
            if chosen["threads"] is None and multiprocessing.parent_process() is not None:
                chosen["threads"] = 1
            self._loaded = Parser.load(chosen.pop("parser"), **chosen)
        return self._loaded

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the settings; a parser's folder stays where it is."""
        write_json(Path(path) / _SETTINGS, msgspec.structs.asdict(self._settings))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> TreePipe:
        """Read saved settings; settings of the pipeline's configuration have precedence.

        Raises:
            AttreeError: the parser does not exist, or the file holds no settings.
        """
        path = Path(path) / _SETTINGS
        self._take(read_described(path, ComponentSettings, what="file of settings"))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the settings."""
        return msgspec.msgpack.encode(self._settings)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> TreePipe:
        """Read settings from bytes, as :meth:`from_disk` does from a file."""
        try:
            settings = msgspec.msgpack.decode(data)
        except msgspec.DecodeError:
            problem = "these bytes are no settings of the pipe attree"
            fix = "make them again with nlp.to_bytes()"
            raise AttreeError("bad-settings", problem, fix=fix) from None
        self._take(_settings(settings))
        return self

    def _take(self, settings: ComponentSettings) -> None:
        if self._settings == ComponentSettings():
            check_parser(settings.parser)
            self._settings, self._loaded = settings, None


def check_parser(parser: str) -> None:
    """Check that a parser exists.

    Raises:
        AttreeError: it is neither a name nor a file or folder.
    """
    if parser not in ready_parsers() and not os.path.lexists(parser):
        fix = f"give one of {', '.join(ready_parsers())} or the folder's new place: config="
        fix += '{"parser": …}; for spacy.load config={"components": {"attree": {"parser": …}}}'
        raise AttreeError("unknown-parser", f"there is no parser {parser[:200]!r} here", fix=fix)


def _sentences(doc: Doc) -> list[list[Token]]:
    """Return the words of each sentence; set missing sentence boundaries."""
    if not len(doc):
        return []
    if not doc.has_annotation("SENT_START"):
        offsets = [token.idx for token in doc]
        # a boundary inside a token moves to the next token
        starts = {bisect_left(offsets, start) for start in sentence_starts(doc.text, doc.lang_)}
        for token in doc:
            token.is_sent_start = token.i in starts or not token.i
    return [[token for token in sent if not token.is_space] for sent in doc.sents]


def _stored(
    doc: Doc, sentences: Sequence[Sequence[Token]], parsed: Sequence[tuple[Tree, str]]
) -> dict[str, Any]:
    """Return a document's trees as data that spaCy can save; see :class:`Parse`."""
    data: dict[str, Any] = {name: [] for name in Parse.__struct_fields__} | {"length": len(doc)}
    for tokens, (tree, status) in zip(sentences, parsed, strict=True):
        data["status"].append(status)
        first, n_words = len(data["tokens"]), len(tokens)
        data["firsts"].append(first)
        data["tokens"] += [token.i for token in tokens]
        data["tags"] += tree.tags or ("",) * n_words
        whole = [(0, n_words)] if n_words else []
        words = ((word, word + 1) for word in range(n_words))
        chains: dict[tuple[int, int], list[str]] = {span: [] for span in (*whole, *words)}
        for start, end, label in tree.labelled():
            chains.setdefault((start, end), []).append(label)
        for start, end in sorted(chains, key=_in_preorder):
            data["starts"].append(first + start)
            data["ends"].append(first + end)
            data["labels"].append(chains[start, end])
    return data


def _in_preorder(span: tuple[int, int]) -> tuple[int, int]:
    return span[0], -span[1]


class NonConstituentError(AttreeError):
    """A span that is no constituent of its sentence's tree."""


class Parse(msgspec.Struct, frozen=True):
    """The trees of a document.

    Attributes:
        length: the number of tokens.
        status: status of each sentence.
        firsts: the first word of each sentence.
        tokens: token positions of the words.
        starts, ends: the constituents of all sentences in pre-order, in words of the document.
        labels: labels of each constituent, those of a unary chain from the top.
        tags: the parser's tag of each word.
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
        """Check that the fields hold a tree of each sentence."""
        words, spans = len(self.tokens), list(zip(self.starts, self.ends, strict=False))
        borders, indices = [*self.firsts, words], [-1, *self.tokens, self.length]
        sentences = {sentence for sentence in pairwise(borders) if sentence[0] < sentence[1]}
        constituents = {*spans, *sentences, *((word, word + 1) for word in range(words))}
        if (
            not len(self.starts) == len(self.ends) == len(self.labels)
            or (len(self.status), len(self.tags)) != (len(self.firsts), words)
            or indices != sorted(set(indices))
            or borders != sorted(borders)
            or borders[0] != 0
            or spans != sorted(constituents, key=_in_preorder)
            or not all(0 <= start < end <= words for start, end in spans)
            # a border inside a span would make it one of two sentences
            or any(bisect_right(borders, i) < bisect_left(borders, j) for i, j in spans)
            or find_crossing(spans)
        ):
            raise ValueError("it holds no tree of each sentence")


class _Checked(dict[str, Any]):
    """A document's data as spaCy saves it, with the checked parse."""

    parse: Parse


def _parse_of(doc: Doc) -> Parse:
    if (data := doc.user_data.get(KEY)) is None:
        fix = 'nlp.add_pipe("attree") sets them'
        raise AttreeError("no-parse", "this document has no trees", fix=fix)
    if not isinstance(data, _Checked):
        name, fix = f"document's data ({KEY})", "parse the document again"
        parse = described(data, Parse, what=name, fix=fix)
        data = doc.user_data[KEY] = _Checked(data)
        data.parse = parse
    if data.parse.length != len(doc):
        problem = "this document's tokens are not those that were parsed"
        fix = "merge and split tokens before attree runs: nlp.add_pipe(…, before='attree')"
        raise AttreeError("tokens-changed", problem, fix=fix)
    return data.parse


def _find_node(span: Span) -> tuple[Parse, int, int, int]:
    """Return the parse, and a span's constituent (-1 if it has no word), first word and end.

    Raises:
        NonConstituentError: the span is no constituent.
    """
    parse = _parse_of(span.doc)
    first, end = (bisect_left(parse.tokens, bound) for bound in (span.start, span.end))
    if first == end:
        return parse, -1, first, end
    for node in range(bisect_left(parse.starts, first), bisect_right(parse.starts, first)):
        if parse.ends[node] == end:
            return parse, node, first, end
    fix = "see list(sent._.constituents) of its sentence"
    raise NonConstituentError("no-constituent", f"{span.text!r} is no constituent", fix=fix)


def _span(doc: Doc, parse: Parse, node: int) -> Span:
    tokens = parse.tokens
    return doc[tokens[parse.starts[node]] : tokens[parse.ends[node] - 1] + 1]


def _inside(parse: Parse, node: int, end: int) -> range:
    """Return the constituents inside a constituent, itself first."""
    return range(node, bisect_left(parse.starts, end)) if node >= 0 else range(0)


def constituents(span: Span) -> Iterator[Span]:
    """Yield every constituent inside a span in pre-order, itself first."""
    parse, node, _, end = _find_node(span)
    return (_span(span.doc, parse, inner) for inner in _inside(parse, node, end))


def children(span: Span) -> Iterator[Span]:
    """Yield the largest constituents inside a span from left to right; a word has none."""
    parse, node, begins, end = _find_node(span)
    for inner in _inside(parse, node, end)[1:]:
        if parse.starts[inner] == begins:
            yield _span(span.doc, parse, inner)
            begins = parse.ends[inner]


def parent(span: Span) -> Span | None:
    """Return the smallest constituent around a span, None for a sentence."""
    parse, node, _, end = _find_node(span)
    sentence = bisect_left(parse.starts, parse.firsts[_sentence(parse, span)])
    around = (above for above in range(node - 1, sentence - 1, -1) if parse.ends[above] >= end)
    above = next(around, None)
    return None if above is None else _span(span.doc, parse, above)


def labels(span: Span) -> tuple[str, ...]:
    """Return a span's labels, those of a unary chain from the top."""
    parse, node, _, _ = _find_node(span)
    return tuple(parse.labels[node]) if node >= 0 else ()


def parse_string(span: Span) -> str:
    """Return a span's tree on one line, every word with its tag: the token's, else the
    parser's, else ``X``.

    Brackets and spaces are written as :meth:`attree.Tree.brackets` writes them.
    """
    parse, node, first, end = _find_node(span)
    tokens = [span.doc[index] for index in parse.tokens[first:end]]
    words = [token.text for token in tokens]
    pairs = zip(tokens, parse.tags[first:end], strict=True)
    tags = tuple(token.tag_ or token.pos_ or tag for token, tag in pairs)
    inside = [(inner, name) for inner in _inside(parse, node, end) for name in parse.labels[inner]]
    if len(words) == 1 and not inside:
        return leaf(words[0], tags[0])
    spans = [(parse.starts[inner] - first, parse.ends[inner] - first) for inner, _ in inside]
    return bracketed(words, spans, tuple(name for _, name in inside), tags)


def parse_status(span: Span) -> str:
    """Return the status of the sentence that a span begins in."""
    parse = _parse_of(span.doc)
    return str(parse.status[_sentence(parse, span)])


def phrases(within: Doc | Span, *wanted: str) -> list[Span]:
    """Return the phrases with one of some labels, or all phrases, in pre-order.

    Args:
        within: a document, or a span, which need not be a constituent.
        wanted: labels; a phrase of a unary chain has several.

    Raises:
        AttreeError: the document has no trees, or its trees have no labels.
    """
    span, parse = within[:], _parse_of(within.doc)
    first, end = (bisect_left(parse.tokens, bound) for bound in (span.start, span.end))
    if wanted:
        _check_labelled(parse)
    return [
        _span(span.doc, parse, node)
        for node in range(bisect_left(parse.starts, first), bisect_left(parse.starts, end))
        if parse.ends[node] <= end
        and {*parse.labels[node]}.intersection(wanted or parse.labels[node])
    ]


def _check_labelled(parse: Parse) -> None:
    if {*chain.from_iterable(parse.labels)} == {NO_LABEL}:
        fix = "take a parser with labels, such as universal"
        raise AttreeError("no-labels", "the trees of this document have no labels", fix=fix)


def noun_chunks(
    of_dependencies: Callable[[Any], Iterable[Any]] | None, within: Doc | Span
) -> Iterable[tuple[int, int, int]]:
    """Yield the first token, the end and the label of base noun phrases, for spaCy.

    Args:
        of_dependencies: spaCy's own function for the language, which reads a dependency parse if
            there is one; or None.
        within: a document or a span of it.

    Raises:
        AttreeError: the document has no trees, or its trees have no labels.
    """
    own = of_dependencies if within.doc.has_annotation("DEP") else None
    return own(within) if own else _noun_chunks(within.doc)


def _noun_chunks(doc: Doc) -> Iterator[tuple[int, int, int]]:
    parse, label = _parse_of(doc), doc.vocab.strings.add(_NOUN_PHRASE)
    _check_labelled(parse)
    nouns = [node for node, names in enumerate(parse.labels) if _NOUN_PHRASE in names]
    for node, after in zip_longest(nouns, nouns[1:]):
        first, end = parse.starts[node], parse.ends[node]
        if after is not None and parse.starts[after] < end:  # up to the child that it is in
            inside = range(node + 1, after + 1)
            end = next(parse.starts[x] for x in inside if parse.ends[x] > parse.starts[after])
        tokens = parse.tokens[first:end]
        if any(doc[token].text.isalnum() for token in tokens):
            yield tokens[0], tokens[-1] + 1, label


def _sentence(parse: Parse, span: Span) -> int:
    return max(bisect_right(parse.firsts, bisect_left(parse.tokens, span.start)) - 1, 0)


def _of_token(of_span: Callable[[Span], Any]) -> Callable[[Token], Any]:
    return lambda token: of_span(token.doc[token.i : token.i + 1])


_OF_TOKENS = (parent, labels, parse_string, parse_status)
#: The attributes that :func:`install` sets: how spaCy calls a function, and the function.
_EXTENSIONS: dict[tuple[type, str], tuple[str, Callable[..., Any]]] = {
    **{(Span, one.__name__): ("getter", one) for one in (constituents, children, *_OF_TOKENS)},
    **{(Token, one.__name__): ("getter", _of_token(one)) for one in _OF_TOKENS},
    (Doc, "phrases"): ("method", phrases),
    (Span, "phrases"): ("method", phrases),
}


def install(vocab: Vocab | None = None) -> None:
    """Set the attributes of documents, spans and tokens, as the component does.

    Call it for saved documents.

    Args:
        vocab: of the documents, whose ``noun_chunks`` are then those of their trees.

    Raises:
        AttreeError: an attribute of that name exists already, such as benepar's.
    """
    for (kind, name), (way, function) in _EXTENSIONS.items():
        if not kind.has_extension(name):  # type: ignore[attr-defined]
            kind.set_extension(name, **{way: function})  # type: ignore[attr-defined]
        elif function not in kind.get_extension(name):  # type: ignore[attr-defined]
            problem = f"{kind.__name__.lower()}._.{name} is set by another component"
            raise AttreeError("name-taken", problem, fix="use one constituency parser in a process")
    if vocab is not None and getattr(vocab.get_noun_chunks, "func", None) is not noun_chunks:
        chunks = partial(noun_chunks, vocab.get_noun_chunks)
        vocab.get_noun_chunks = chunks  # type: ignore[assignment]
