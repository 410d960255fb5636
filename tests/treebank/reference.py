"""Reading PTB brackets with nltk, and cleaning its trees: the slow reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import nltk

from attree.treebank.brackets import unescape
from attree.treebank.cleaning import PTB_TAGS
from attree.treebank.sentence import cut_label


def nltk_clean(tree: nltk.Tree) -> nltk.Tree | None:
    """Take traces and punctuation out of an nltk tree, and prune; None if nothing is left."""
    if not isinstance(tree[0], nltk.Tree):
        return tree if tree.label() in PTB_TAGS else None
    kept = [child for child in map(nltk_clean, tree) if child is not None]
    return nltk.Tree(cut_label(tree.label()), kept) if kept else None


def nltk_spans(tree: nltk.Tree, start: int, spans: list[tuple[int, int, str]]) -> int:
    """Add the spans of an nltk tree in pre-order; return where it ends."""
    if not isinstance(tree[0], nltk.Tree):
        return start + 1
    place, end = len(spans), start
    spans.append((0, 0, ""))
    for child in tree:
        end = nltk_spans(child, end, spans)
    spans[place] = (start, end, tree.label())
    return end


def nltk_sentences(texts: list[str]) -> Iterator[tuple[list[str], list[str], list[Any]]]:
    """Read trees with nltk: words, tags and spans."""
    for text in texts:
        tree = nltk_clean(nltk.Tree.fromstring(text))
        if tree is None:
            continue
        while not tree.label() and len(tree) == 1:
            tree = tree[0]
        spans: list[tuple[int, int, str]] = []
        nltk_spans(tree, 0, spans)
        leaves = tree.pos()
        yield [unescape(word) for word, _ in leaves], [tag for _, tag in leaves], spans
