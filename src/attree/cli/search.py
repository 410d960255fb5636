"""``attree search``: nodes of trees that a pattern matches."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from attree.base import options
from attree.base.terminal import in_json, say
from attree.base.text import safe
from attree.cli.treebank import TreeOptions

if TYPE_CHECKING:
    from attree.apps.search import Match

_AS_IT_IS = options.ReadingOptions()


@options.excludes("count json", "count context", "context json")
def search_command(
    pattern: str,
    trees: options.TreebankFiles,
    /,
    *,
    count: bool = False,
    as_json: options.AsJson = False,
    context: Annotated[int, Parameter(validator=options.between(0))] = 8,
    reading: Annotated[options.ReadingOptions, Parameter(name="*")] = _AS_IT_IS,
    reading_trees: Annotated[TreeOptions, Parameter(name="*")] = TreeOptions(),
) -> None:
    """Find nodes of trees by a pattern, as Tregex and NLTK's tgrep know them.

    Prints a line for each match: its file and line, and the match in brackets among its words;
    with --json an object, of file, line, sentence, status, label, start, end, text and words.
    nltk.tgrep reads the pattern: "NP < PP" is an NP with a child PP, "<<" any below, "." right
    before, "$" a sister, "!" not, /^N/ a regular expression, "VP < (NP . PP)" in brackets.
    --functions keep leaves NP-SBJ as it is.

    Example:
      attree search "NP < PP" trees/
      attree search "VP << /^giv/" wsj_0001.mrg --json
      attree search "NP !<< NP" trees/ --count

    Args:
        pattern: What to look for.
        trees: Trees: treebank files, patterns, folders, tables, output of `attree parse`.
        count: Count the matches, and the trees with one, of each file.
        context: So many words before and after.
    """
    from attree.apps.reading import Reading
    from attree.apps.search import Pattern, search
    from attree.treebank.language_file import settings_of

    compiled = Pattern(pattern)
    asked = {"punctuation": "keep", **reading.given(), **reading_trees.given()}
    read = Reading(settings_of(**asked))
    all_trees: Counter[str] = Counter()
    matched, with_match = all_trees.copy(), all_trees.copy()
    for found in search(compiled, read.all(trees)):
        for line in found.refused:
            read.refuse(line)
        all_trees.update(found.files)
        matched.update(match.file for match in found.matches)
        sentences = {(match.file, match.line, match.sentence) for match in found.matches}
        with_match.update(file for file, *_ in sentences)
        for match in [] if count else found.matches:
            print(_json(match) if as_json else _line(match, context))
    if count:
        print("matches\ttrees with one\ttrees\tfile")
        for file, number in all_trees.items():
            print(f"{matched[file]}\t{with_match[file]}\t{number}\t{safe(file)}")
    refused = f", {read.refused:,} not read" if read.refused else ""
    say(
        f"{matched.total():,} matches in {with_match.total():,} of {all_trees.total():,} "
        f"trees{refused}"
    )


def _json(match: Match) -> str:
    values = dataclasses.asdict(match)
    words = values.pop("words")
    return in_json(values | {"text": " ".join(words[match.start : match.end]), "words": words})


def _line(match: Match, context: int) -> str:
    """Return a line of a concordance."""
    words, start, end = match.words, match.start, match.end
    before, after = words[max(0, start - context) : start], words[end : end + context]
    text = " ".join([*before, f"[{match.label} {' '.join(words[start:end])}]", *after])
    return safe(f"{match.file}:{match.line}: {text}")
