"""Choose how text is split into words; parse standard input to brackets on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from attree.base.errors import AttreeError
from attree.base.options import TextOptions
from attree.base.terminal import say
from attree.base.text import safe
from attree.bulk.options import PARQUET, RowSettings
from attree.parsers.find import ParserSource
from attree.parsers.parser import Parser
from attree.parsers.reading import doubt
from attree.raw_text.inputs import find_inputs
from attree.raw_text.lines import read_lines
from attree.raw_text.words import WHITESPACE, Line, Splitting, Tokeniser, settle, tokeniser

_LINES_AT_A_TIME = 64


def how_split(source: ParserSource | None, text: TextOptions, texts: Iterable[Line]) -> Splitting:
    """Choose how text is split into words for a parser, and say so on the terminal.

    Args:
        source: the parser, or None.
        text: the options of the command.
        texts: as for :func:`attree.raw_text.words.settle`.
    """
    remembered, punctuation = (source.language, source.punctuation) if source else ("", "")
    asked = (text.language, text.tokenizer, text.split_lines)
    how = settle(*asked, remembered=remembered, texts=texts)
    if how.note:
        say(f"attree: {how.note}")
    if source and how.name != WHITESPACE and (line := doubt(source.languages, how.name)):
        say(f"attree: {line}")
    if punctuation not in ("", "keep"):
        say(
            f"attree: this parser was trained on trees without punctuation ({punctuation}): its "
            "trees of text with punctuation are worse"
        )
    return how


def first_lines(inputs: Iterable[Path], column: str) -> Iterator[Line]:
    """Yield the lines of files and folders, as text or words, reading only as far as needed."""
    for _, _, lines in read_lines(find_inputs(inputs)[0], column):
        yield from (line.text for line in lines)


def stream(
    source: ParserSource,
    output: Path | None,
    rows: RowSettings,
    text: TextOptions,
    device: str | None,
    threads: int | None,
) -> None:
    """Parse standard input and write each tree in brackets as soon as it is made.

    A line without words gives an empty line. If no option names the language, it is told from the
    first lines.
    """
    if output is not None or PARQUET in rows.output.formats:
        problem = "standard input is parsed to standard output, in brackets"
        fix = "leave --output out and use --to brackets, or parse a file"
        raise AttreeError("stdin-to-folder", problem, fix=fix)
    parser = Parser.of(source, device=device, threads=threads, max_words=rows.max_words)
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    split: Tokeniser | None = None
    while lines := [line.rstrip("\n") for line in islice(sys.stdin, _LINES_AT_A_TIME)]:
        if split is None:
            how = how_split(source, text, lines)
            split = tokeniser(how.name, split=how.sentences)
        split_lines = split(list(lines))
        words = [words for line in split_lines for words in ([[]] if line is None else line)]
        for tree in parser.parse(words):
            print(safe(tree.brackets()) if tree.words else "")
        sys.stdout.flush()
