"""From what the command is given to a session: the text, the parser, what was done before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from attree.annotate.folder import Folder
from attree.annotate.history import finished
from attree.annotate.proposals import Proposer
from attree.annotate.session import Session
from attree.annotate.text import Sentences
from attree.corpus.inputs import find_inputs
from attree.corpus.lines import refuse_treebanks
from attree.errors import AttreeError
from attree.parser import Parser
from attree.parser_source import ParserSource
from attree.text import say
from attree.words import choose, code_of, tokeniser


@dataclass(frozen=True, slots=True)
class Request:
    """What the command is given.

    Attributes:
        text: file or folder.
        parser: what proposes the first trees.
        name: how it was named.
        language: whose rules split words, a name or a code; ``whitespace``; or None.
        sentences: whether lines are split into sentences.
        column: of Parquet and JSON Lines.
        max_words: longer sentences are passed over.
        every: trees between two trainings.
        device: of the encoder.
    """

    text: Path
    parser: ParserSource
    name: str
    language: str | None = None
    sentences: bool | None = None
    column: str = "text"
    max_words: int = 80
    every: int = 5
    device: str | None = None


def begin(asked: Request, folder: Folder) -> Session:
    """Load the parser and show the first sentence.

    Raises:
        AttreeError: the text has no sentence that can be annotated, or all are done.
    """
    files, _ = find_inputs([asked.text], without=folder.path)
    refuse_treebanks(files)
    language = code_of(asked.language) if asked.language else None
    trained_on = getattr(asked.parser, "language", "")
    code, split, line = choose(language, asked.sentences, trained_on)
    if line:
        say(f"attree: {line}")
    saved = folder.sentences()
    done = finished(folder, saved)
    sentences = Sentences(
        files,
        tokeniser(code, split=split),
        max_words=asked.max_words,
        column=asked.column,
        done=done,
    )
    parser = Parser.of(asked.parser, device=asked.device)
    proposer = Proposer(parser, asked.name, asked.every)
    about = {"language": folder.path.name, "words": code, "encoder": asked.parser.encoder.slug}
    before = bool(done)
    session = Session(folder, saved, sentences, proposer, about)
    if session.shown is None:
        raise _nothing(asked.text, sentences, before=before)
    return session


def _nothing(text: Path, sentences: Sentences, *, before: bool) -> AttreeError:
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
