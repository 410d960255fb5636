"""``attree try``: a sentence in, its tree drawn in the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attree import completion
from attree.errors import AttreeError

if TYPE_CHECKING:
    from attree.chart import Candidate
    from attree.constraints import Constraints
    from attree.parser import Parser
    from attree.tree import Tree

_LOOK = "How the tree is shown"


def try_command(
    sentence: Annotated[
        str | None, typer.Argument(help="A sentence; - reads lines; without one you are asked.")
    ] = None,
    parser: Annotated[
        str,
        typer.Option(
            help="upoa, upio, upio-log, a folder of `attree train`, or a heads' file.",
            autocompletion=completion.parsers,
        ),
    ] = "upio-log",
    compare: Annotated[
        str | None,
        typer.Option(
            help="Several parsers one below the other: upoa,upio,my-parser.",
            autocompletion=completion.parsers,
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Another encoder: its description, a folder or a package.",
            autocompletion=completion.encoders,
        ),
    ] = None,
    language: Annotated[
        str, typer.Option(help="Whose rules split text into words: en, de, …; xx for any.")
    ] = "en",
    words: Annotated[
        bool, typer.Option("--words", help="The words are separated by spaces already.")
    ] = False,
    best: Annotated[
        int | None, typer.Option(min=1, help="So many trees of it, the best first.")
    ] = None,
    constraints: Annotated[
        Path | None,
        typer.Option(help="Half-known trees (.half): parse their sentences, keep what is known."),
    ] = None,
    brackets: Annotated[
        bool, typer.Option("--brackets", help="Brackets on one line.", rich_help_panel=_LOOK)
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Words, spans and score as JSON.", rich_help_panel=_LOOK)
    ] = False,
    svg: Annotated[
        Path | None, typer.Option(help="Draw into this file too.", rich_help_panel=_LOOK)
    ] = None,
) -> None:
    """Draw the tree of a sentence.

    The ready parsers need no tree of yours and know English; for another language give --parser
    a parser of it.

    Example:
      attree try "A cat chased the mice."
      attree try "Old men and women left." --best 3
      echo "the old man walked home" | attree try - --words --brackets
    """
    from attree.parser import Parser
    from attree.text import safe

    names = compare.split(",") if compare else [parser]
    loaded = {name: Parser.load(name.strip(), encoder=encoder, language=language) for name in names}
    drawn = "brackets" if brackets else "json" if as_json else "tree"
    if constraints and best:
        raise AttreeError("--best keeps to no constraints", fix="leave one of the two out")
    known = _half_known(constraints, sentence) if constraints else None
    for text, given in known or ((text, None) for text in _sentences(sentence, words)):
        for name, one in loaded.items():
            if len(loaded) > 1:
                print(f"{safe(name)}:")
            found = _candidates(one, text, given, best)
            for rank, each in enumerate(found, start=1):
                print(_shown(each, drawn, rank if best else None))
            if svg is not None:
                _write_svg(found[0].tree, svg)
            _warn(found[0].tree, one)


def _half_known(
    path: Path, sentence: str | None
) -> Iterator[tuple[str | list[str], Constraints | None]]:
    """Yield the words of half-known trees, and what is known; say what cannot be read."""
    from attree.text import say
    from attree.treebank.half import known
    from attree.treebank.reading import read_whole
    from attree.treebank.sentence import Settings

    if sentence is not None:
        raise AttreeError("--constraints has its own sentences", fix="leave SENTENCE out")
    refused: list[str] = []
    sentences = read_whole(path, Settings(), refused, half=True)
    for line in refused:
        say(line)
    for one in sentences:
        yield list(one.words), known(one)


def _candidates(
    parser: Parser, text: str | list[str], known: Constraints | None, best: int | None
) -> list[Candidate]:
    from attree.chart import Candidate

    if best is not None:
        return parser.k_best(text, best)
    return [Candidate(parser.parse([text], constraints=[known])[0], None, None)]


def _sentences(sentence: str | None, words: bool) -> Iterable[str | list[str]]:
    texts = [sentence] if sentence is not None else _asked()
    if sentence == "-":
        texts = (line.rstrip("\n") for line in sys.stdin if line.strip())
    return (text.split() if words else text for text in texts)


def _asked() -> Iterator[str]:
    """Ask for sentences until an empty line or the end of input."""
    while True:
        try:
            text = input("sentence> " if sys.stdin.isatty() else "").strip()
        except EOFError:
            return
        if not text:
            return
        yield text


def _shown(one: Candidate, how: str, rank: int | None) -> str:
    """Return a tree as it is asked for; with its rank, what it scores too."""
    from attree.text import safe

    tree = one.tree
    if how == "json":
        found: dict[str, Any] = {"words": tree.words, "spans": tree.spans}
        if tree.labels is not None:
            found |= {"labels": tree.labels}
        if tree.marginals is not None:
            found |= {"marginals": tree.marginals}
        if rank is not None:
            found |= {"rank": rank, "total": one.score, "probability": one.probability}
        return json.dumps(found | {"score": tree.score, "status": tree.status})
    scored = []
    if one.score is not None:
        scored.append(f"score {one.score:.4f}")
    if one.probability is not None:
        scored.append(f"probability {one.probability:.3g}")
    if how == "brackets":
        return "\t".join([safe(tree.brackets()), *scored])
    heading = "" if rank is None else f"{', '.join([str(rank), *scored])}\n"
    return f"{heading}{tree}"


def _write_svg(tree: Tree, path: Path) -> None:
    from attree.files import write_text

    write_text(path, tree._repr_svg_())


def _warn(tree: Tree, parser: Parser) -> None:
    """Say on stderr what the tree does not show."""
    said = {
        "too_long": f"longer than the {parser.encoder.max_pieces} word pieces that the encoder "
        "takes: branched right",
        "failed": "the encoder's numbers for it are not finite: branched right",
    }
    if tree.status in said:
        print(f"attree: this sentence is {said[tree.status]}", file=sys.stderr)
