"""EVALB's rules on two files of trees, a tree a line."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from attree.evaluation.evalb import ERROR, Bracketing, Result, compare, read_tree
from attree.evaluation.evalb_parameters import Parameters, lines
from attree.text import unescape
from attree.treebank.cleaning import policy
from attree.treebank.sentence import Sentence, cut_label


def results(
    gold: Sequence[Path],
    test: Sequence[Path],
    parameters: Parameters,
    *,
    punctuation: str | None = None,
) -> Iterator[Result]:
    """Score files of trees against gold ones, a tree a line.

    Args:
        gold, test: the files.
        parameters: what does not count.
        punctuation: a policy of :data:`attree.treebank.cleaning.POLICIES`. The words that it
            removes from a gold tree are removed from both, whatever their tags in the other; of the
            deleted labels of ``parameters`` only those of brackets and of traces count then.

    Raises:
        AttreeError: a file that is not there, or an unknown policy.
    """
    right_lines = (line for file in gold for line in lines(file, "gold file"))
    both = zip_longest(
        right_lines, (line for file in test for line in lines(file, "file of trees"))
    )
    keep = None if punctuation is None else policy(punctuation)
    how = parameters
    if punctuation is not None:
        how = dataclasses.replace(parameters, delete=frozenset({"-NONE-"}), quotes=frozenset())
    for one, other in both:
        if one is None or other is None:
            longer = "test" if one is None else "gold"
            problem = f"Number of lines unmatch (too many lines in {longer} file)"
            yield Result(-1, ERROR, problem=problem)
            return
        try:
            right = read_tree(one, how)
        except ValueError as error:
            yield Result(0, ERROR, problem=f"{error} (gold)")
            continue
        try:
            found = read_tree(other, how)
        except ValueError as error:
            yield Result(right.length, ERROR, problem=f"{error} (test)")
            continue
        if keep is not None and len(right.words) == len(found.words):
            stays = keep(_as_sentence(right))
            right, found = right.without(stays), found.without(stays)
        yield compare(right, found, parameters)


def _as_sentence(tree: Bracketing) -> Sentence:
    """Return the words of a tree, with their tags, as treebank readers give them to policies."""
    words = tuple(unescape(word) for word, _ in tree.words)
    return Sentence(words, tuple(cut_label(tag) for _, tag in tree.words), (), "", 0)
