"""``attree choose`` chooses sentences to annotate; ``attree annotate`` serves a page to do so."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from attree.base import options
from attree.base.errors import AttreeError
from attree.base.options import TextOptions, between
from attree.base.registry import choose
from attree.base.terminal import progress, safe, say, silent
from attree.ready import default_parser

if TYPE_CHECKING:
    from attree.annotate.choosing import SentenceMeasures

_PARSER, _TEXT, _PAGE = "Parser", "Text", "Page"


def annotate_command(
    text: options.Paths,
    /,
    *,
    output: options.Output | None = None,
    how: Annotated[TextOptions, Parameter(name="*")] = TextOptions(),
    max_words: Annotated[options.MaxWords, Parameter(validator=between(2, 1000), group=_TEXT)] = 80,
    labels: options.Labels | None = None,
    parser: Annotated[options.Parser | None, Parameter(group=_PARSER)] = None,
    encoder: Annotated[options.Encoder | None, Parameter(group=_PARSER)] = None,
    heads: Annotated[options.Heads | None, Parameter(group=_PARSER)] = None,
    every: Annotated[int, Parameter(validator=between(1), group=_PARSER)] = 5,
    device: Annotated[options.Device | None, Parameter(group=_PARSER)] = None,
    port: Annotated[
        int, Parameter(validator=between(0, 65535), show_default="a free one", group=_PAGE)
    ] = 0,
    no_browser: Annotated[bool, Parameter(group=_PAGE)] = False,
) -> None:
    """Correct proposed trees of raw text on a page, and save them as a treebank.

    The page opens in your browser and is served to this machine only. Every few trees the parser
    learns from them, and proposes from then on where it does better than before. Run again, it
    goes on with the next sentence. The trees of a treebank are shown as they are, to be corrected;
    its file stays as it is.

    Example:
      attree annotate text.txt --language icelandic --output treebanks/icelandic
      attree annotate mine.mrg --parser parsers/mine

    Args:
        text: Files or folders: text, JSON Lines, Parquet; or treebanks to be corrected.
        output: Where to write: a folder for the treebank; it is continued. Default: of x.mrg,
            x-corrected.
        every: Trees between two trainings.
        port: Port of the page.
        no_browser: Only print the link.
    """

    from attree.annotate.folder import TREES, opened
    from attree.annotate.proposals import RECIPE
    from attree.annotate.server import Guard, application, listen, serve
    from attree.annotate.session import AnnotationRequest, begin
    from attree.annotate.text import are_treebanks
    from attree.parsers.find import Overrides, find_parser

    if output is None:
        if not are_treebanks(text) or len(text) > 1:
            problem = "there is no folder to write to"
            raise AttreeError("no-output", problem, fix="add --output FOLDER")
        output = Path(f"{text[0].stem}-corrected")
    if parser is None:
        parser = default_parser(encoder=encoder, heads=heads)
    source = find_parser(parser, Overrides(encoder, heads))
    request = AnnotationRequest(tuple(text), source, parser, how, max_words, every, device, labels)
    with opened(output) as folder, listen(port) as listening:
        session = begin(request, folder)
        guard = Guard(application(session), listening.getsockname()[1])
        say(f"attree: the page is at {guard.link}")
        say("attree: the link works once, on this machine; Ctrl-C ends")
        if not no_browser:
            _open(guard.link)
        serve(guard, listening)
        session.end()
    trees, count = output / TREES, session.saved - len(folder.sentences)
    say(f"attree: {count} tree{'s' * (count != 1)} saved, {session.saved} in all: {trees}")
    if session.saved:
        name = shlex.quote(f"parsers/{output.name}")
        say(
            f"next: attree train --sentences {shlex.quote(str(trees))} "
            f"--encoder {source.encoder.slug} --parser {RECIPE} --trees all --output {name}"
        )


def _open(link: str) -> None:
    """Open the page in a graphical browser; one in the terminal would hide the link."""
    import threading
    import webbrowser

    if sys.platform != "linux" or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        threading.Timer(0.5, webbrowser.open, [link]).start()


@options.needs(encoder="parser", device="parser by", overwrite="output")
def choose_command(
    inputs: options.Paths,
    /,
    *,
    number: Annotated[int, Parameter(validator=between(1))] = 20,
    output: options.Output | None = None,
    by: Annotated[str, Parameter(completer=options.ways)] = "random",
    parser: Annotated[str | None, Parameter(completer=options.parsers)] = None,
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
        output: Where to write: a file .txt, to be read with --tokenizer whitespace as its words are
            apart, or .jsonl with the figures, to be read with --column words.
        by: random; uncertain: what --parser is least sure of; diverse: such sentences that are
            unlike each other. How much either saves differs by language.
        parser: Parser: a folder of `attree train`, of a tree CRF. Default: universal, but none for
            random sentences.
        min_words: Shortest sentence, in words.
        pool: Number of sentences, drawn at random, to choose from.
    """
    from attree.annotate.choosing import RANDOM, WAYS, check_lengths, measure, read_pool
    from attree.base.files import check_new, write_text
    from attree.bulk.run import first_lines, how_split
    from attree.parsers.find import Overrides, find_parser
    from attree.parsers.parser import Parser
    from attree.raw_text.inputs import KINDS

    rank = choose(WAYS, by, what="way of choosing")
    if output is not None and KINDS.get(output.suffix, "") not in ("text", "json"):
        problem, fix = "sentences are written as .txt or .jsonl", "name such a file"
        raise AttreeError("unknown-format", problem, file=output, fix=fix)
    if by != RANDOM and parser is None:
        parser = default_parser()
    check_new([output], overwrite=overwrite)
    check_lengths(min_words, max_words)
    source = find_parser(parser, Overrides(encoder)) if parser else None
    split = how_split(source, text, first_lines(inputs, text.column)).tokeniser()
    lengths, size = (min_words, max_words), max(pool, number)
    drawn, seen = read_pool(inputs, split, lengths, size=size, seed=seed, column=text.column)
    loaded = Parser.of(source, device=device) if source else None
    with progress("measuring", total=len(drawn)) if loaded else silent() as advance:
        measured = measure(loaded, drawn, advance=advance)
    chosen = rank(measured, number).tolist()
    lines, how = [" ".join(drawn[position]) for position in chosen], "--tokenizer whitespace"
    if output is None:
        print("\n".join(map(safe, lines)))
    else:
        if KINDS[output.suffix] == "json":
            how = "--column words"
            lines = [_in_json(drawn[position], measured, position) for position in chosen]
        write_text(output, "".join(f"{line}\n" for line in lines))
    cost = int(measured.brackets[chosen].sum())
    costs = f"{len(chosen):,} of {seen:,} sentences by {by}; their trees: {cost:,} brackets"
    say(f"{costs}; {how} keeps their words, which rules would split again")


def _in_json(words: Sequence[str], measured: SentenceMeasures, position: int) -> str:
    brackets, entropy = int(measured.brackets[position]), float(measured.unsure[position])
    unsure = None if math.isnan(entropy) else round(entropy, 4)
    figures = {"words": words, "brackets": brackets, "entropy_per_word": unsure}
    return json.dumps(figures, ensure_ascii=False)
