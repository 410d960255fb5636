"""Constituency trees in CoNLL-U, as Stanza writes them: ``# constituency = (ROOT (S …))``."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from attree.treebank import brackets
from attree.treebank.crossing import Graph
from attree.treebank.sentence import Format, Rejected, Sentence, SplitSettings, has_line

_TREE = re.compile(r"#\s*constituency\s*=\s*(.*)")


def read(text: str, file: str, settings: SplitSettings) -> Iterator[Sentence | Rejected]:
    """Yield the tree of every sentence; its words are those of the rows, as they are."""
    for number, lines in _blocks(text):
        found = [(line, _TREE.fullmatch(one)) for line, one in enumerate(lines, start=number)]
        trees = [(line, match[1]) for line, match in found if match]
        rows = [one.split("\t") for one in lines if one[:1].isdigit()]
        words = [row[1] for row in rows if row[0].isdigit() and len(row) > 1]
        if not trees:
            if rows:
                reason = "a sentence without a line # constituency = (…)"
                yield Rejected(file, number, reason, "failed")
            continue
        line, tree = trees[0]
        yield _sentence(tree, words, Rejected(file, line, "", "failed"), settings)


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    number = 1
    for block in re.split(r"\n[ \t]*\n", text):
        lines = block.split("\n")
        empty = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
        if empty < len(lines):
            yield number + empty, lines[empty:]
        number += len(lines) + 1


def _sentence(
    tree: str, words: list[str], where: Rejected, settings: SplitSettings
) -> Sentence | Rejected:
    """Read one tree, and take its words from the rows where there are any."""
    (*_, found) = brackets.read(tree, where.file, settings) or [where]
    if isinstance(found, Rejected):
        return dataclasses.replace(found, line=where.line)
    if words and len(words) != len(found.words):
        reason = f"the tree has {len(found.words)} words, the rows {len(words)}"
        return dataclasses.replace(where, reason=reason)
    return dataclasses.replace(found, line=where.line, words=tuple(words) or found.words)


def write(graphs: Iterator[Graph]) -> Iterator[str]:
    """Yield a sentence in CoNLL-U for each tree; heads and relations are left open (``_``)."""
    trees = brackets.write
    for graph in graphs:
        (tree,) = trees(iter([graph]))
        yield f"# constituency = {tree}"
        for number, (word, tag) in enumerate(zip(graph.words, graph.tags, strict=True), start=1):
            form = re.sub(r"[\t\n]", " ", word)
            yield "\t".join([str(number), form, "_", "_", tag or "_", *"_____"]) + "\n"
        yield "\n"


FORMAT = Format(
    read,
    (),
    certain=has_line(r"# ?constituency ?= ?\("),
    family="conllu",
    write=write,
    continuous=True,
)
