"""A component of spaCy's pipelines: ``nlp.add_pipe("attree", config={"parser": "parsers/mine"})``.

What benepar's users know works alike. A *constituent* is a span of the parse: a phrase, or a word.

===========================  =======================================================================
``span._.constituents``      every constituent inside, in pre-order, the span itself first
``span._.children``          the largest constituents inside, from left to right
``span._.parent``            the smallest constituent around it, None of a sentence
``span._.labels``            labels of the span, more than one of a unary chain, none of most words;
                             ``("X",)`` of a phrase where the parser has no labels
``span._.parse_string``      brackets on one line, a tag on every word
``span._.parse_status``      of its sentence: ``ok``; ``too_long`` (for the encoder) or ``failed``,
                             which are branched right
===========================  =======================================================================

Tokens have ``labels``, ``parent``, ``parse_string`` and ``parse_status`` too. A span that is no
constituent raises :class:`attree.spacy_spans.NonConstituentError`.

Documents without sentence boundaries get those that ``attree parse`` cuts lines at, by the rules of
the pipeline's language. Words are the pipeline's own; where its language is another than that of
the parser's trees, a warning says so. Tokens of white space are in no tree: a constituent neither
begins nor ends with one, and at the ends of a span they do not count, so that a sentence is a
constituent whatever follows it.

The parse lies in ``doc.user_data["attree"]``, which spaCy saves with the document.
"""

from __future__ import annotations

import multiprocessing
import os
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import spacy.util
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc

from attree.errors import AttreeError
from attree.files import described, read_described, write_json
from attree.languages import ANY, rules_for
from attree.parser_source import language_of
from attree.process import MOST_THREADS
from attree.ready import DEFAULT, ready_parsers
from attree.spacy_spans import KEY, install
from attree.tree import NO_LABEL
from attree.words import sentence_starts

_SETTINGS = "settings.json"


class Settings(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What the component is told, by a pipeline's configuration or by what was saved of one.

    Attributes:
        parser: a name, or a folder of ``attree train``.
        encoder: by default the one that the parser was made with.
        device: ``cpu``, ``cuda``…
        dtype: ``auto`` by default: ``bfloat16`` where the device multiplies it.
        threads: of a CPU run; by default one in a process of ``n_process``, else torch's choice.
        max_words: longer sentences are branched right.
    """

    parser: str = DEFAULT
    encoder: str | None = None
    device: str | None = None
    dtype: str | None = None
    threads: Annotated[int, msgspec.Meta(ge=1, le=MOST_THREADS)] | None = None
    max_words: Annotated[int, msgspec.Meta(ge=1)] | None = 500


@Language.factory("attree", default_config=msgspec.structs.asdict(Settings()))
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
    """Make the component of a pipeline; its settings are those of :class:`Settings`.

    Raises:
        AttreeError: no such parser, or another setting that cannot be.
    """
    given = (parser, encoder, device, dtype, threads, max_words)
    made = TreePipe(name, _settings(dict(zip(Settings.__struct_fields__, given, strict=True))))
    trained_on = language_of(parser)
    if trained_on and nlp.lang not in (ANY, rules_for(trained_on)):
        said = (
            f"the parser's trees are in {trained_on}, and this pipeline splits words by the rules"
        )
        fix = f"spacy.blank({rules_for(trained_on)!r}) has those of the trees"
        warnings.warn(f"{said} for {nlp.lang} — {fix}", stacklevel=2)
    return made


def _settings(found: Any) -> Settings:
    """Return settings that a configuration gives, or that were saved in bytes."""
    return described(
        found, Settings, what="configuration of the pipe attree", fix="correct the setting"
    )


class TreePipe(Pipe):
    """Sets the trees of documents.

    Args:
        name: of the component.
        settings: what the factory was told.
    """

    def __init__(self, name: str, settings: Settings) -> None:
        self.name, self._settings = name, settings
        self._loaded: tuple[int, Any] | None = None
        check_parser(settings.parser)
        install()

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the parser out: every process loads its own."""
        return TreePipe, (self.name, self._settings)

    def __call__(self, doc: Doc) -> Doc:
        """Parse one document."""
        self._parse([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 1000) -> Iterator[Doc]:
        """Parse documents, the sentences of ``batch_size`` of them together; order is kept."""
        handle = self.get_error_handler()
        for docs in spacy.util.minibatch(stream, size=batch_size):
            try:
                self._parse(docs)
            except Exception as error:
                handle(self.name, self, docs, error)
            else:
                yield from docs

    def _parse(self, docs: Sequence[Doc]) -> None:
        found = [_sentences(doc) for doc in docs]
        words = [
            [doc[i].text for i in one] for doc, of in zip(docs, found, strict=True) for one in of
        ]
        trees, status = self._parser().trees(words)
        at = 0
        for doc, of_doc in zip(docs, found, strict=True):
            last = at + len(of_doc)
            here = [trees.of(place, words[place]) for place in range(at, last)]
            doc.user_data[KEY] = _stored(doc, of_doc, here, status[at:last].tolist())
            at = last

    def _parser(self) -> Any:
        """Return the parser of this process: one that was loaded before a fork is another's."""
        if self._loaded is None or self._loaded[0] != os.getpid():
            from attree.parser import Parser

            chosen = msgspec.structs.asdict(self._settings)
            if chosen["threads"] is None and multiprocessing.parent_process() is not None:
                chosen["threads"] = 1
            self._loaded = os.getpid(), Parser.load(chosen.pop("parser"), **chosen)
        return self._loaded[1]

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the settings; a parser's folder stays where it is."""
        write_json(Path(path) / _SETTINGS, msgspec.structs.asdict(self._settings))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> TreePipe:
        """Take the settings that were written; those that the pipeline's config gives stay.

        Raises:
            AttreeError: the parser is gone, or the file holds no settings.
        """
        self._take(read_described(Path(path) / _SETTINGS, Settings, what="file of settings"))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the settings."""
        return msgspec.msgpack.encode(self._settings)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> TreePipe:
        """Take settings as :meth:`from_disk` does."""
        try:
            found = msgspec.msgpack.decode(data)
        except msgspec.DecodeError:
            fix = "make them anew: nlp.to_bytes()"
            raise AttreeError("these bytes are no settings of the pipe attree", fix=fix) from None
        self._take(_settings(found))
        return self

    def _take(self, settings: Settings) -> None:
        if self._settings == Settings():
            check_parser(settings.parser)
            self._settings, self._loaded = settings, None


def check_parser(parser: str) -> None:
    """Refuse a parser that is not there.

    Raises:
        AttreeError: neither a name nor a file or folder.
    """
    if parser not in ready_parsers() and not os.path.lexists(parser):
        raise AttreeError(
            f"there is no parser {parser[:200]!r} here",
            fix=f"give one of {', '.join(ready_parsers())} or the folder's new place: "
            'config={"parser": …}; for spacy.load '
            'config={"components": {"attree": {"parser": …}}}',
        )


def _sentences(doc: Doc) -> list[list[int]]:
    """Return the places of the words of each sentence; set boundaries where there are none."""
    if not len(doc):
        return []
    if not doc.has_annotation("SENT_START"):
        places = [token.idx for token in doc]
        # a boundary inside a token is one before the next token
        starts = {bisect_left(places, start) for start in sentence_starts(doc.text, doc.lang_)}
        for token in doc:
            token.is_sent_start = token.i in starts or not token.i
    return [[token.i for token in sent if not token.is_space] for sent in doc.sents]


def _stored(
    doc: Doc, sentences: Sequence[Sequence[int]], trees: Sequence[Any], status: list[str]
) -> dict[str, Any]:
    """Return a document's trees as spaCy can save them; see :mod:`attree.spacy_spans`."""
    found: dict[str, Any] = {"length": len(doc), "status": status, "firsts": []}
    found |= {"tokens": [], "starts": [], "ends": [], "labels": [], "tags": []}
    for places, tree in zip(sentences, trees, strict=True):
        first = len(found["tokens"])
        found["firsts"].append(first)
        found["tokens"] += places
        found["tags"] += tree.tags or ("",) * len(places)
        chains = _chains(tree, len(places))
        for start, end in sorted(chains, key=lambda span: (span[0], -span[1])):
            found["starts"].append(first + start)
            found["ends"].append(first + end)
            found["labels"].append(chains[start, end])
    return found


def _chains(tree: Any, n_words: int) -> dict[tuple[int, int], list[str]]:
    """Return the labels of every constituent, of unary chains from the top."""
    found: dict[tuple[int, int], list[str]] = {}
    labels = tree.labels or (NO_LABEL,) * len(tree.spans)
    for span, label in zip(tree.spans, labels, strict=True):
        found.setdefault(span, []).append(label)
    if n_words:
        found.setdefault((0, n_words), [])
    for place in range(n_words):
        found.setdefault((place, place + 1), [])
    return found
