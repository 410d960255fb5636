"""``attree annotate``: a page to correct proposed trees on, from raw text to a treebank."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attree import completion
from attree.errors import AttreeError
from attree.options import Column, Sentences, Tokenizer

if TYPE_CHECKING:
    from attree.annotate.session import Session

_PARSER, _TEXT, _PAGE = "Parser", "Text", "Page"


def annotate_command(
    text: Annotated[Path, typer.Argument(help="Raw text, JSON Lines or Parquet.")],
    output: Annotated[Path, typer.Option(help="Folder of the treebank; it is continued.")],
    language: Tokenizer = None,
    sentences: Sentences = None,
    column: Column = "text",
    max_words: Annotated[
        int,
        typer.Option(
            min=2, max=1000, help="Longer sentences are passed over.", rich_help_panel=_TEXT
        ),
    ] = 80,
    parser: Annotated[
        str,
        typer.Option(
            help="Proposes the first trees: upio-log, upio, upoa, a folder of `attree train`, a "
            "selection of `attree heads`.",
            rich_help_panel=_PARSER,
            autocompletion=completion.parsers,
        ),
    ] = "upio-log",
    encoder: Annotated[
        str | None,
        typer.Option(
            help="A description, a folder, or a package. Default: the parser's.",
            rich_help_panel=_PARSER,
            autocompletion=completion.encoders,
        ),
    ] = None,
    heads: Annotated[
        str | None, typer.Option(help="list:LAYER.HEAD,… or all.", rich_help_panel=_PARSER)
    ] = None,
    every: Annotated[
        int,
        typer.Option(min=1, help="Trees between two trainings.", rich_help_panel=_PARSER),
    ] = 5,
    device: Annotated[
        str | None,
        typer.Option(help="cpu, cuda. Default: a GPU if any.", rich_help_panel=_PARSER),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, help="Of the page.", show_default="a free one", rich_help_panel=_PAGE
        ),
    ] = 0,
    no_browser: Annotated[
        bool,
        typer.Option("--no-browser", help="Only print the link.", rich_help_panel=_PAGE),
    ] = False,
) -> None:
    """Correct proposed trees of raw text on a page, and save them as a treebank.

    The page opens in your browser and is served to this machine only. Every few trees a parser is
    trained on them, and its proposals get better. Run again, it goes on with the next sentence.

    Example:
      attree annotate text.txt --language icelandic --output treebanks/icelandic
    """
    from attree import process

    process.follow()
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise AttreeError(
            "attree annotate needs Starlette and uvicorn", fix="pip install 'attree[annotate]'"
        ) from None
    from attree.annotate.folder import opened
    from attree.annotate.server import guarded, listen, serve
    from attree.annotate.start import Request, begin
    from attree.parser_source import Overrides, find_parser
    from attree.text import say

    found = find_parser(parser, Overrides(encoder, heads))
    asked = Request(text, found, parser, language, sentences, column, max_words, every, device)
    with opened(output) as folder, listen(port) as listening:
        session = begin(asked, folder)
        guard = guarded(session, listening.getsockname()[1])
        say(f"attree: the page is at {guard.link}")
        say("attree: the link works once, on this machine; Ctrl-C ends")
        if not no_browser:
            _open(guard.link)
        serve(guard, listening)
        session.end()
    for line in _summary(session, output, found.encoder.slug):
        say(line)


def _open(link: str) -> None:
    """Open the page in a browser with windows; one that fills the terminal would hide the link."""
    import threading
    import webbrowser

    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        return
    threading.Timer(0.5, webbrowser.open, [link]).start()


def _summary(session: Session, output: Path, encoder: str) -> list[str]:
    """Say what was saved, and what comes next."""
    from attree.annotate.folder import TREES
    from attree.annotate.proposals import RECIPE

    trees = shlex.quote(str(output / TREES))
    saved = f"{session.saved_now} tree{'s' * (session.saved_now != 1)} saved"
    lines = [f"attree: {saved}, {session.saved} in all: {output / TREES}"]
    if session.saved:
        name = shlex.quote(f"parsers/{output.name}")
        lines.append(
            f"next: attree train --sentences {trees} --encoder {encoder} --parser {RECIPE} "
            f"--trees all --output {name}"
        )
    return lines
