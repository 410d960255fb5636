"""How text is split, said on the terminal; standard input → brackets on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from attree.base.errors import AttreeError
from attree.base.options import TextOptions
from attree.base.text import safe, say
from attree.bulk.options import PARQUET, RowSettings
from attree.parsers.find import ParserSource
from attree.parsers.parser import Parser
from attree.raw_text.inputs import find_inputs
from attree.raw_text.lines import read_lines
from attree.raw_text.words import Line, Splitting, Tokeniser, settle, tokeniser

_LINES_AT_A_TIME = 64


def how_split(found: ParserSource | None, text: TextOptions, texts: Iterable[Line]) -> Splitting:
    """Settle how text is split into words for a parser, if there is one, and say so.

    Args:
        found: the parser.
        text: what is asked for.
        texts: as of :func:`attree.raw_text.words.settle`.
    """
    remembered, punctuation = getattr(found, "language", ""), getattr(found, "punctuation", "")
    asked = (text.language, text.tokenizer, text.split_lines)
    how = settle(*asked, remembered=remembered, texts=texts)
    if how.note:
        say(f"attree: {how.note}")
    if punctuation not in ("", "keep"):
        say(
            f"attree: this parser was trained on trees without punctuation ({punctuation}), and "
            "not for text that has it: its trees of such text are worse"
        )
    return how


def first_lines(inputs: Iterable[Path], column: str) -> Iterator[Line]:
    """Yield texts, or words, of files and folders, from the first on, as long as they are asked."""
    for _, _, texts, _ in read_lines(find_inputs(inputs)[0], column):
        yield from texts


def stream(
    found: ParserSource,
    output: Path | None,
    rows: RowSettings,
    text: TextOptions,
    device: str | None,
    threads: int | None,
) -> None:
    """Parse standard input, and write a tree in brackets for every sentence as soon as it is made.

    A line without a word gives an empty line. Where nothing else says the language, the first lines
    do.
    """
    if output is not None or PARQUET in rows.output.formats:
        problem = "standard input is parsed to standard output, in brackets"
        fix = "leave --output out and use --to brackets, or parse a file"
        raise AttreeError("stdin-to-folder", problem, fix=fix)
    parser = Parser.of(found, device=device, threads=threads, max_words=rows.max_words)
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    split: Tokeniser | None = None
    while lines := [line.rstrip("\n") for line in islice(sys.stdin, _LINES_AT_A_TIME)]:
        if split is None:
            how = how_split(found, text, lines)
            split = tokeniser(how.name, split=how.sentences)
        each = split(list(lines))
        words = [one for of_line in each for one in ([[]] if of_line is None else of_line)]
        for tree in parser.parse(words):
            print(safe(tree.brackets()) if tree.words else "")
        sys.stdout.flush()
