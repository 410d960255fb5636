"""``attree choose``: sentences to annotate."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from attree.base import completion, options
from attree.base.options import TextOptions, between
from attree.base.text import safe, say
from attree.choosing import RANDOM, WAYS
from attree.ready import usual_parser

if TYPE_CHECKING:
    from attree.choosing.ranking import SentenceMeasures
    from attree.parsers.find import ParserSource

_TEXT = "Text"


@options.needs(encoder="parser", device="parser by", overwrite="output")
def choose_command(
    inputs: options.Paths,
    /,
    *,
    number: Annotated[int, Parameter(validator=between(1))] = 20,
    output: options.Output | None = None,
    by: Annotated[str, Parameter(completer=completion.ways)] = RANDOM,
    parser: Annotated[str | None, Parameter(completer=completion.parsers)] = None,
    encoder: options.Encoder | None = None,
    min_words: Annotated[int, Parameter(validator=between(2), group=_TEXT)] = 5,
    max_words: Annotated[options.MaxWords, Parameter(group=_TEXT)] = 30,
    pool: Annotated[int, Parameter(validator=between(1), group=_TEXT)] = 2000,
    seed: Annotated[options.Seed, Parameter(group=_TEXT)] = 0,
    text: Annotated[TextOptions, Parameter(name="*")] = TextOptions(),
    device: options.Device | None = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Choose sentences of raw text to annotate, each once.

    The last line tells what they cost: the brackets of the trees that --parser proposes, without
    one those of binary trees.

    Example:
      attree choose text.txt --number 20 --max-words 25 --output first.txt
      attree choose text.txt --by diverse --parser parsers/mine --output next.txt

    Args:
        inputs: Files or folders: text, JSON Lines, Parquet.
        number: How many sentences.
        output: Where to write: a file .txt, or .jsonl with the figures.
        by: random; uncertain: what --parser is least sure of; diverse: such sentences that are
            unlike each other. How much either saves differs by language: see the README.
        parser: Parser: a folder of `attree train`, of a tree CRF. Default: universal, but none for
            random sentences.
        min_words: Shortest sentence, in words.
        pool: Chosen among so many drawn at random.
    """
    from attree.base.files import check_apart, check_new, write_text
    from attree.base.registry import choose
    from attree.bulk.stream import first_lines, how_split
    from attree.parsers.find import Overrides, find_parser
    from attree.raw_text.candidates import Window, read_pool
    from attree.raw_text.words import tokeniser

    rank = choose(WAYS, by, what="way of choosing")
    if by != RANDOM and parser is None:
        parser = usual_parser()
    if output is not None:
        check_apart([output], inputs)
        check_new([output], overwrite=overwrite)
    window = Window(min_words, max_words)
    source = find_parser(parser, Overrides(encoder)) if parser else None
    how = how_split(source, text, first_lines(inputs, text.column))
    split = tokeniser(how.name, split=how.sentences)
    drawn = read_pool(inputs, split, window, size=pool, seed=seed, column=text.column)
    measured = _measured(drawn.words, source, device)
    chosen = rank(measured, number).tolist()
    lines = [" ".join(drawn.words[position]) for position in chosen]
    if output is None:
        print("\n".join(map(safe, lines)))
    else:
        if output.suffix == ".jsonl":
            lines = [_in_json(drawn.words[position], measured, position) for position in chosen]
        write_text(output, "".join(f"{line}\n" for line in lines))
    cost = int(measured.brackets[chosen].sum())
    say(f"{len(chosen):,} of {drawn.seen:,} sentences by {by}; their trees: {cost:,} brackets")


def _measured(
    words: Sequence[Sequence[str]], source: ParserSource | None, device: str | None
) -> SentenceMeasures:
    """Measure sentences; without a parser only what binary trees cost."""
    import numpy as np

    from attree.choosing.ranking import SentenceMeasures

    if source is None:
        lengths = np.array(list(map(len, words)))
        nothing = np.full(len(lengths), np.nan)
        return SentenceMeasures(nothing, np.zeros((len(lengths), 0), np.float32), lengths - 1)
    from attree.base.progress import progress
    from attree.choosing.measure import measure
    from attree.parsers.parser import Parser

    parser = Parser.of(source, device=device)
    with progress("measuring", total=len(words)) as advance:
        return measure(parser, words, advance=advance)


def _in_json(words: Sequence[str], measured: SentenceMeasures, position: int) -> str:
    entropy = float(measured.unsure[position])
    figures = {
        "brackets": int(measured.brackets[position]),
        "entropy_per_word": None if math.isnan(entropy) else round(entropy, 4),
    }
    return json.dumps({"words": words, **figures}, ensure_ascii=False)
