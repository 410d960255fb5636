"""From what the command is given to a session: the text, the parser, what was done before."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from attree.annotate.folder import Folder, accepted, finished, order_of_labels
from attree.annotate.proposals import Proposer
from attree.annotate.session import Session
from attree.annotate.text import TextSentences, TreesToCorrect, are_treebanks
from attree.base.errors import AttreeError
from attree.base.options import TextOptions
from attree.bulk.stream import first_lines, how_split
from attree.parsers.find import ParserSource
from attree.parsers.parser import Parser
from attree.raw_text.inputs import find_inputs
from attree.raw_text.lines import refuse_treebanks
from attree.raw_text.words import tokeniser


@dataclass(frozen=True, slots=True)
class AnnotationRequest:
    """What the command is given.

    Attributes:
        texts: files and folders; or treebank files, whose trees are corrected.
        parser: what proposes the first trees.
        name: how it was named.
        how: it becomes words.
        max_words: longer sentences are passed over.
        every: trees between two trainings.
        device: of the encoder.
        labels: of the treebank, as ``labels`` of ``language.yaml``.
    """

    texts: tuple[Path, ...]
    parser: ParserSource
    name: str
    how: TextOptions = field(default_factory=TextOptions)
    max_words: int = 80
    every: int = 5
    device: str | None = None
    labels: str | None = None


def begin(asked: AnnotationRequest, folder: Folder) -> Session:
    """Load the parser and show the first sentence.

    Raises:
        AttreeError: the text has no sentence that can be annotated, or all are done.
    """
    saved = folder.sentences()
    records = folder.records()
    done = finished(records, saved)
    code, sentences = _to_annotate(asked, folder, done)
    parser = Parser.of(asked.parser, device=asked.device)
    proposer = Proposer(parser, asked.name, asked.every)
    about = {"language": folder.path.name, "words": code, "encoder": asked.parser.encoder.slug}
    before = bool(done)
    curve = [one.edits for one in accepted(records)]
    order = order_of_labels(records)
    session = Session(folder, saved, sentences, proposer, about, curve, order)
    if session.shown is None:
        raise _nothing(asked.texts[0], sentences, before=before)
    return session


def _to_annotate(
    asked: AnnotationRequest, folder: Folder, done: set[tuple[str, ...]]
) -> tuple[str, TextSentences | TreesToCorrect]:
    """Return whose rules split words (the treebank's own are kept), and what is annotated."""
    if are_treebanks(asked.texts):
        for path in asked.texts:
            if path.resolve().is_relative_to(folder.path.resolve()):
                fix = "name another --output"
                raise AttreeError("this input is in the output folder", file=path, fix=fix)
        return "", TreesToCorrect(asked.texts, done, asked.labels)
    files, _ = find_inputs(asked.texts, without=folder.path)
    refuse_treebanks(files)
    texts = first_lines(asked.texts, asked.how.column)
    how = how_split(asked.parser, asked.how, texts)
    words, column = tokeniser(how.name, split=how.sentences), asked.how.column
    found = TextSentences(files, words, max_words=asked.max_words, column=column, done=done)
    return how.name, found


def _nothing(text: Path, sentences: TextSentences | TreesToCorrect, *, before: bool) -> AttreeError:
    """Say why no sentence is shown."""
    passed = {name: count for name, count in sentences.passed.items() if name != "repeated"}
    if before:
        return AttreeError("every sentence of this text is done", file=text, fix="give more text")
    if not passed:
        return AttreeError("this text has no sentence", file=text, fix="give another text")
    counts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in passed.items())
    return AttreeError(
        f"no sentence of this text can be annotated: {counts}",
        file=text,
        fix="give one sentence a line, or a higher --max-words",
    )
