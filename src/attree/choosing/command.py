"""``attree choose``: sentences to annotate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attree import completion
from attree.choosing import RANDOM, WAYS
from attree.options import Column, Sentences, Tokenizer

if TYPE_CHECKING:
    from attree.choosing.ranking import Measured
    from attree.choosing.text import Pool
    from attree.parser_source import ParserSource

_TEXT = "Text"


def choose_command(
    inputs: Annotated[
        list[Path], typer.Argument(help="Files or folders: text, JSON Lines, Parquet.")
    ],
    number: Annotated[int, typer.Option(min=1, help="How many sentences.")] = 20,
    output: Annotated[
        Path | None, typer.Option(help="A file .txt, or .jsonl with the figures.")
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            help="random; uncertain: what --parser is least sure of; diverse: such sentences that "
            "are unlike each other. How much either saves differs by language: see the README.",
            autocompletion=completion.ways,
        ),
    ] = RANDOM,
    parser: Annotated[
        str | None, typer.Option(help="A folder of `attree train`, of a tree CRF.")
    ] = None,
    encoder: Annotated[str | None, typer.Option(help="Another place of its encoder.")] = None,
    words: Annotated[str, typer.Option(help="Of how many words.", rich_help_panel=_TEXT)] = "5-30",
    pool: Annotated[
        int,
        typer.Option(min=1, help="Chosen among so many drawn at random.", rich_help_panel=_TEXT),
    ] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw.", rich_help_panel=_TEXT)] = 0,
    tokenizer: Tokenizer = None,
    sentences: Sentences = None,
    column: Column = "text",
    device: Annotated[str | None, typer.Option(help="cpu, cuda. Default: a GPU if any.")] = None,
) -> None:
    """Choose sentences of raw text to annotate, each once.

    The last line tells what they cost: the brackets of the trees that --parser proposes, without
    one those of binary trees.

    Example:
      attree choose text.txt --number 20 --words 5-30 --output first.txt
      attree choose text.txt --by diverse --parser parsers/mine --output next.txt
    """
    from attree.choosing.text import Window, read_pool
    from attree.corpus.stream import how_split
    from attree.errors import AttreeError
    from attree.files import check_apart
    from attree.parser_source import Overrides, find_parser
    from attree.registry import choose
    from attree.words import tokeniser

    rank = choose(WAYS, by, what="way of choosing")
    if by != RANDOM and parser is None:
        raise AttreeError(f"{by} needs a parser", fix="add --parser, a folder of `attree train`")
    if output is not None:
        check_apart([output], inputs)
    window = Window.parse(words)
    found = find_parser(parser, Overrides(encoder)) if parser else None
    name, split = how_split(found, tokenizer, sentences)
    drawn = read_pool(
        inputs, tokeniser(name, split=split), window, size=pool, seed=seed, column=column
    )
    measured = _measured(drawn, found, device)
    places = rank(measured, number).tolist()
    _write(drawn, measured, places, output)
    cost = int(measured.brackets[places].sum())
    _say(f"{len(places):,} of {drawn.seen:,} sentences by {by}; their trees: {cost:,} brackets")


def _measured(drawn: Pool, parser: ParserSource | None, device: str | None) -> Measured:
    """Measure the sentences of a pool; without a parser only what binary trees cost."""
    import numpy as np

    from attree.choosing.ranking import Measured

    if parser is None:
        lengths = np.array([len(words) for words in drawn.words])
        nothing = np.full(len(lengths), np.nan)
        return Measured(nothing, np.zeros((len(lengths), 0), np.float32), lengths - 1)
    from attree.choosing.measure import measure
    from attree.parser import Parser
    from attree.progress import progress

    loaded = Parser.of(parser, device=device)
    with progress("measuring", total=len(drawn.words)) as advance:
        return measure(loaded, drawn.words, advance=advance)


def _write(drawn: Pool, measured: Measured, places: list[int], output: Path | None) -> None:
    """Write a sentence a line, words with spaces between; as JSON also what was measured."""
    from attree.files import write_text
    from attree.text import safe

    lines = [" ".join(drawn.words[place]) for place in places]
    if output is None:
        print("\n".join(map(safe, lines)))
        return
    if output.suffix == ".jsonl":
        lines = [
            json.dumps(
                {
                    "words": drawn.words[place],
                    "brackets": int(measured.brackets[place]),
                    "entropy_per_word": _number(float(measured.unsure[place])),
                },
                ensure_ascii=False,
            )
            for place in places
        ]
    write_text(output, "".join(f"{line}\n" for line in lines))


def _number(value: float) -> float | None:
    return round(value, 4) if value == value else None


def _say(line: str) -> None:
    from attree.text import say

    say(line)
