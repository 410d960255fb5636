"""How text is split, said on the terminal; standard input → brackets on standard output."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

from attree.errors import AttreeError
from attree.parser import Parser
from attree.parser_source import ParserSource
from attree.text import safe
from attree.words import choose, tokeniser

_LINES_AT_A_TIME = 64


def how_split(
    found: ParserSource | None, tokenizer: str | None, sentences: bool | None
) -> tuple[str, bool]:
    """Settle how text is split into words for a parser, if there is one, and say so."""
    trained_on, punctuation = getattr(found, "language", ""), getattr(found, "punctuation", "")
    tokenizer, sentences, line = choose(tokenizer, sentences, trained_on)
    if line:
        _say(line)
    if punctuation not in ("", "keep"):
        _say(
            f"this parser was trained on trees without punctuation ({punctuation}), and not for "
            "text that has it: its trees of such text are worse"
        )
    return tokenizer, sentences


def _say(line: str) -> None:
    print(f"attree: {line}", file=sys.stderr, flush=True)


def stream(
    found: ParserSource,
    output: Path | None,
    formats: str | None,
    tokenizer: str,
    sentences: bool,
    max_words: int,
    device: str | None,
    threads: int | None,
) -> None:
    """Parse standard input, and write a tree in brackets for every sentence as soon as it is made.

    A line without a word gives an empty line.
    """
    if output is not None or formats not in (None, "brackets"):
        raise AttreeError(
            "standard input is parsed to standard output, in brackets",
            fix="leave --output out and use --format brackets, or parse a file",
        )
    split = tokeniser(tokenizer, split=sentences)
    parser = Parser.of(found, device=device, threads=threads, max_words=max_words)
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    while lines := list(islice(sys.stdin, _LINES_AT_A_TIME)):
        each = split([line.rstrip("\n") for line in lines])
        words = [one for of_line in each for one in ([[]] if of_line is None else of_line)]
        for tree in parser.parse(words):
            print(safe(tree.brackets()) if tree.words else "")
        sys.stdout.flush()
