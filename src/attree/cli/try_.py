"""``attree try``: a sentence in, its tree drawn in the terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from attree.base import options
from attree.base.errors import AttreeError
from attree.base.options import between
from attree.base.terminal import in_json, safe, say, unread
from attree.decoding import MOST_BEST
from attree.ready import default_parser

if TYPE_CHECKING:
    from attree.parsers.parser import Candidate, Parser
    from attree.trees.constraints import Constraints
    from attree.trees.tree import Tree

_LOOK = "How the tree is shown"
#: What --constraints, whose sentences have their words already, does not heed.
_OTHER_SENTENCES = ("best constraints", "tokenizer constraints", "language constraints")
#: Sentences that are parsed by uncompiled loops: more are worth the half second of loading Numba.
_FIRST = 10


@options.needs(overwrite="svg")
@options.excludes("parser compare", "brackets json", *_OTHER_SENTENCES)
def try_command(
    sentence: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *,
    parser: options.Parser | None = None,
    compare: Annotated[options.Words | None, Parameter(completer=options.parsers)] = None,
    encoder: options.Encoder | None = None,
    language: options.Language | None = None,
    tokenizer: options.Tokenizer | None = None,
    best: Annotated[int | None, Parameter(validator=between(1, MOST_BEST))] = None,
    constraints: Path | None = None,
    brackets: Annotated[bool, Parameter(group=_LOOK)] = False,
    as_json: Annotated[options.AsJson, Parameter(group=_LOOK)] = False,
    svg: Annotated[Path | None, Parameter(group=_LOOK)] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Draw the tree of a sentence.

    The parser that comes ready, universal, labels the phrases of a hundred languages; --parser
    takes another, such as one that you have trained.

    Example:
      attree try "A cat chased the mice."
      attree try "Old men and women left." --best 3
      echo "the old man left" | attree try - --brackets --tokenizer whitespace

    Args:
        sentence: A sentence or several; - reads lines; without one you are asked.
        compare: Several parsers, one below the other: upoa,upio,my-parser.
        best: Number of trees of the sentence, the best first.
        constraints: Partly bracketed trees (.half): parse their sentences, keep what is known.
        brackets: Brackets on one line.
        svg: Draw the first of the trees into this file too.
    """
    from attree.base.compiled import interpreting_small
    from attree.base.files import check_new
    from attree.base.languages import code_of
    from attree.parsers.find import language_of
    from attree.parsers.parser import Parser
    from attree.raw_text.words import ANY, WHITESPACE, settle, split_beside

    check_new([svg], overwrite=overwrite)
    if sentence is not None and not sentence.strip():
        raise AttreeError("no-sentence", "the sentence is empty", fix="type one between the quotes")
    names = compare or [default_parser(encoder=encoder) if parser is None else parser]
    by_spaces = settle(language, tokenizer, None, remembered=ANY).name == WHITESPACE
    split = None
    if sentence not in (None, "-") and not by_spaces:
        code = code_of(language) if language else language_of(names[0])
        split = split_beside(str(sentence), code)
    parsers = {name: Parser.load(name, encoder=encoder, language=language) for name in names}
    form = "brackets" if brackets else "json" if as_json else "tree"
    given = sentence, parsers[names[0]], by_spaces, split
    sentences = _partly_bracketed(constraints, sentence) if constraints else _sentences(*given)
    for number, (words, constraint) in enumerate(sentences):
        if number and svg is not None:
            say(f"attree: {svg} has the tree of the first sentence alone")
            svg = None
        with interpreting_small(number < _FIRST):
            _show(words, constraint, parsers, best, form, svg)


def _show(
    words: list[str],
    constraint: Constraints | None,
    parsers: dict[str, Parser],
    best: int | None,
    form: str,
    svg: Path | None,
) -> None:
    """Print the trees that each parser gives a sentence; write a picture of the first."""
    from attree.base.files import write_text
    from attree.parsers.parser import Candidate

    for name, model in parsers.items():
        several = name if len(parsers) > 1 else None
        if several and form != "json":
            print(f"{safe(several)}:")
        if best is None:
            trees = [Candidate(model.parse([words], constraints=[constraint])[0], None, None)]
        else:
            trees = model.k_best(words, best)
        for rank, candidate in enumerate(trees, start=1):
            print(_shown(candidate, form, rank if best else None, several))
        _explain(trees)
        if svg is not None and name == next(iter(parsers)):
            write_text(svg, trees[0].tree._repr_svg_())
        _warn(trees[0].tree, model)


def _partly_bracketed(
    path: Path, sentence: str | None
) -> Iterator[tuple[list[str], Constraints | None]]:
    """Yield the words and constraints of partly bracketed trees; say which cannot be read."""
    from attree.treebank.half import constraints_of
    from attree.treebank.pairing import read_whole
    from attree.treebank.sentence import SplitSettings

    if sentence is not None:
        problem = "--constraints has its own sentences"
        raise AttreeError("two-inputs", problem, fix="leave SENTENCE out")
    tree = None
    for tree in read_whole([path], SplitSettings(), say, partial=True):
        yield list(tree.words), constraints_of(tree)
    if tree is None:
        raise AttreeError("nothing-read", "no tree was read", file=path, fix="write one a line")


def _sentences(
    sentence: str | None,
    parser: Parser,
    by_spaces: bool,
    split: Callable[[], tuple[str, list[list[str]]]] | None,
) -> Iterator[tuple[list[str], None]]:
    """Yield the words of the sentences; say once which language's rules split them.

    ``split`` waits for those of ``sentence``, if they are being split already.
    """
    from attree.parsers.reading import doubt
    from attree.raw_text.words import how_split

    texts: Iterable[str] = [sentence] if sentence is not None else _asked()
    if sentence == "-":
        texts = (line.rstrip("\n") for line in sys.stdin if line.strip())
    named_codes, read = {parser.language}, set()
    about = parser.model.trained.about if parser.model.trained else {}
    for text in texts:
        if by_spaces:
            yield text.removeprefix("\ufeff").split(), None
            continue
        code, sentences = split() if split else parser.sentences(text)
        if code not in named_codes:
            named_codes.add(code)
            say(f"attree: {how_split(code, text)}")
        if code not in read and (line := doubt(about.get("languages", {}), code)):
            say(f"attree: {line}")
        read.add(code)
        yield from ((words, None) for words in sentences)


def _asked() -> Iterator[str]:
    """Ask for sentences until an empty line or the end of input."""
    with contextlib.suppress(EOFError):
        while text := input("sentence> " if sys.stdin.isatty() else "").strip():
            yield text


def _explain(candidates: list[Candidate]) -> None:
    """Say why trees are not in the order of their probabilities, if so."""
    chances = [tree.probability for tree in candidates if tree.probability is not None]
    if chances != sorted(chances, reverse=True):
        say(
            "attree: ranked by score, the number of phrases expected to be right; probability is "
            "that of the whole tree being right, and ranks these otherwise"
        )


def _shown(ranked: Candidate, form: str, rank: int | None, parser: str | None) -> str:
    """Return a tree in the form asked for, with its scores if it has a rank.

    JSON names ``parser``, if there are several.
    """
    tree = ranked.tree
    if form == "json":
        figures: dict[str, Any] = {} if parser is None else {"parser": parser}
        figures |= {"words": tree.words, "spans": tree.spans}
        more = {name: getattr(tree, name) for name in ("labels", "tags", "marginals")}
        figures |= {name: values for name, values in more.items() if values is not None}
        if rank is not None:
            figures |= {"rank": rank, "total": ranked.score, "probability": ranked.probability}
        return in_json(figures | {"score": tree.score, "status": tree.status})
    scored = [] if ranked.score is None else [f"score {ranked.score:.4f}"]
    scored += [] if ranked.probability is None else [f"probability {ranked.probability:.3g}"]
    if form == "brackets":
        return "\t".join([safe(tree.brackets()), *scored])
    return str(tree) if rank is None else f"{', '.join([str(rank), *scored])}\n{tree}"


def _warn(tree: Tree, parser: Parser) -> None:
    """Warn on stderr of a fallback tree, and of words that the encoder does not know."""
    reasons = {
        "too_long": f"longer than the {parser.encoder.max_pieces} word pieces that the encoder "
        "takes: branched right",
        "failed": "the encoder's numbers for it are not finite: branched right",
    }
    if tree.status in reasons:
        say(f"attree: this sentence is {reasons[tree.status]}")
    (pieces,) = parser.encoder.tokenise([tree.words])
    if warning := unread(pieces.n_unknown, len(tree.words)):
        say(warning)
