"""``attree annotate``: a page to correct proposed trees on, from raw text to a treebank."""

from __future__ import annotations

import os
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from attree.base import options
from attree.base.errors import AttreeError
from attree.base.options import TextOptions, between
from attree.ready import usual_parser

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

    if not (find_spec("starlette") and find_spec("uvicorn")):
        problem = "attree annotate needs Starlette and uvicorn"
        raise AttreeError("not-installed", problem, fix="pip install 'attree[annotate]'")
    from attree.annotate.folder import TREES, opened
    from attree.annotate.proposals import RECIPE
    from attree.annotate.server import guarded, listen, serve
    from attree.annotate.session import AnnotationRequest, begin
    from attree.annotate.text import are_treebanks
    from attree.base.text import say
    from attree.parsers.find import Overrides, find_parser

    if output is None:
        if not are_treebanks(text) or len(text) > 1:
            problem = "no folder for the treebank is named"
            raise AttreeError("no-output", problem, fix="add --output FOLDER")
        output = Path(f"{text[0].name.partition('.')[0] or 'treebank'}-corrected")
    if parser is None:
        parser = usual_parser(encoder=encoder, heads=heads)
    source = find_parser(parser, Overrides(encoder, heads))
    request = AnnotationRequest(tuple(text), source, parser, how, max_words, every, device, labels)
    with opened(output) as folder, listen(port) as listening:
        session = begin(request, folder)
        guard = guarded(session, listening.getsockname()[1])
        say(f"attree: the page is at {guard.link}")
        say("attree: the link works once, on this machine; Ctrl-C ends")
        if not no_browser:
            _open(guard.link)
        serve(guard, listening)
        session.end()
    trees, count = output / TREES, session.saved_now
    say(f"attree: {count} tree{'s' * (count != 1)} saved, {session.saved} in all: {trees}")
    if session.saved:
        name = shlex.quote(f"parsers/{output.name}")
        say(
            f"next: attree train --sentences {shlex.quote(str(trees))} "
            f"--encoder {source.encoder.slug} --parser {RECIPE} --trees all --output {name}"
        )


def _open(link: str) -> None:
    """Open the page in a browser with windows; one that fills the terminal would hide the link."""
    import threading
    import webbrowser

    if sys.platform != "linux" or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ):
        threading.Timer(0.5, webbrowser.open, [link]).start()
