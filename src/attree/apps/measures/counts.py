"""Node counts of words, shapes of trees and counts of phrase types, of many trees at once.

A *node* is a span of a tree: a phrase. The tags over the words (preterminals) are none. A node
counts at one word under each of three parsing strategies: the word at which that parser, reading
from left to right, first makes it.

============  ==========================================================  ========================
strategy      a node is made                                              nodes counted at word i
============  ==========================================================  ========================
top-down      when it is predicted, before its first word                 ``start = i``
bottom-up     when it is reduced, after its last word                     ``end = i + 1``
left-corner   when its first child is complete, by projection from it     first child ends ``i + 1``
============  ==========================================================  ========================

So each of the three sums to the number of nodes. They are the step counts of J. Hale, *Automaton
Theories of Human Sentence Comprehension* (2014), chapter 3, as M. Nelson et al. (2017,
*Neurophysiological dynamics of phrase-structure building during sentence processing*, PNAS 114)
correlate them with brain signals. Their counts that include preterminals are larger by one at
every word.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attree.trees.trees import Trees

_Integers = NDArray[np.int64]


class OfWords(NamedTuple):
    """Numbers of all words of some trees, one tree after the other; int64 (words,) each.

    Attributes:
        top_down, bottom_up, left_corner: nodes counted at the word.
        depth: nodes above it.
    """

    top_down: _Integers
    bottom_up: _Integers
    left_corner: _Integers
    depth: _Integers


class OfTrees(NamedTuple):
    """Numbers of trees; (trees,) each, the shares and means NaN where there is nothing to count.

    Attributes:
        nodes: how many.
        depth: nodes above the deepest word.
        mean_phrase_length: words of a node, on average.
        right_branching, left_branching: of the phrases of two words and more inside others (a unary
            chain is one), the shares that end where the phrase around them ends, and that begin
            where it begins. The rest lies in the middle. The whole sentence is around all others.
    """

    nodes: _Integers
    depth: _Integers
    mean_phrase_length: NDArray[np.float64]
    right_branching: NDArray[np.float64]
    left_branching: NDArray[np.float64]


class PhraseTypes(NamedTuple):
    """Nodes of each label of each tree; (pairs,) each, by tree, then label.

    Attributes:
        tree: its position.
        label: the label.
        number: of its nodes.
        mean_length: their words, on average.
    """

    tree: _Integers
    label: list[str]
    number: _Integers
    mean_length: NDArray[np.float64]


def distinct(trees: Trees) -> Trees:
    """Return trees without one-word phrases, and with one node of each unary chain, the upper."""
    return trees.keep((trees.ends - trees.starts > 1) & ~_repeats(trees))


def of_words(trees: Trees) -> OfWords:
    """Count the nodes of every word."""
    total = int(trees.n_words.sum())
    first = (np.cumsum(trees.n_words) - trees.n_words)[trees.tree_of]
    begins, ends = first + trees.starts, first + trees.ends
    corner = first + _first_child_ends(trees)

    def count(places: _Integers) -> _Integers:
        return np.bincount(places, minlength=total + 1)

    depth = np.cumsum(count(begins) - count(ends))
    each = (count(begins), count(ends - 1), count(corner - 1), depth)
    return OfWords(*(counts[:total] for counts in each))


def of_trees(trees: Trees) -> OfTrees:
    """Measure every tree."""
    depth = np.zeros(len(trees), np.int64)
    some = np.flatnonzero(trees.n_words)
    if some.size:
        first = (np.cumsum(trees.n_words) - trees.n_words)[some]
        depth[some] = np.maximum.reduceat(of_words(trees).depth, first)
    lengths = _sum(trees, trees.ends - trees.starts)
    phrases = distinct(trees)
    inner, left, right = _sides(phrases)
    total = _sum(phrases, inner)
    return OfTrees(
        trees.n_spans,
        depth,
        _divided(lengths, trees.n_spans),
        _divided(_sum(phrases, right), total),
        _divided(_sum(phrases, left), total),
    )


def phrase_types(trees: Trees) -> PhraseTypes:
    """Count the nodes of each label; of trees without labels nothing is returned."""
    if trees.labels is None or not trees.labels.size:
        none = np.zeros(0, np.int64)
        return PhraseTypes(none, [], none, none.astype(np.float64))
    rank = np.argsort(np.argsort(trees.label_names))  # so that labels come in their order
    keys = trees.tree_of * len(trees.label_names) + rank[trees.labels]
    found, which, count = np.unique(keys, return_inverse=True, return_counts=True)
    lengths = np.bincount(which, weights=trees.ends - trees.starts)
    names = sorted(trees.label_names)
    tree, label = np.divmod(found, len(names))
    return PhraseTypes(tree, [names[code] for code in label.tolist()], count, lengths / count)


def _sum(trees: Trees, values: NDArray[Any]) -> _Integers:
    """Sum a value of every span over each tree."""
    return np.bincount(trees.tree_of, weights=values, minlength=len(trees)).astype(np.int64)


def _divided(above: _Integers, below: _Integers) -> NDArray[np.float64]:
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)


def _follows(trees: Trees) -> NDArray[np.bool_]:
    """Tell which spans are not the first of their tree."""
    found = np.ones(trees.starts.size, np.bool_)
    found[trees.offsets[:-1][trees.n_spans > 0]] = False
    return found


def _same_start(trees: Trees) -> NDArray[np.bool_]:
    """Tell which spans begin where the one before them in pre-order does: its first children."""
    found = _follows(trees)
    found[1:] &= trees.starts[1:] == trees.starts[:-1]
    return found


def _repeats(trees: Trees) -> NDArray[np.bool_]:
    """Tell which spans are those before them, lower in a unary chain."""
    found = _same_start(trees)
    found[1:] &= trees.ends[1:] == trees.ends[:-1]
    return found


def _first_child_ends(trees: Trees) -> NDArray[np.int32]:
    """Return where each span's first child ends: the next span if it begins there, else a word."""
    found = trees.starts + 1
    first = np.flatnonzero(_same_start(trees))
    found[first - 1] = trees.ends[first]
    return found


def _sides(trees: Trees) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which distinct spans lie inside others, which of them on the left, which on the right.

    Of spans in pre-order, the one before a first child is its parent. Seen from the right, by
    falling end and rising start, the same holds of last children.
    """
    whole = (trees.starts == 0) & (trees.ends == trees.n_words[trees.tree_of])
    left = _same_start(trees) | ~_follows(trees) & (trees.starts == 0)
    order = np.lexsort((trees.starts, -trees.ends, trees.tree_of))
    ends, tree = trees.ends[order], trees.tree_of[order]
    mirrored = ends == trees.n_words[tree]  # those of no other parent end with the sentence
    mirrored[1:] |= (ends[1:] == ends[:-1]) & (tree[1:] == tree[:-1])
    right = np.empty_like(mirrored)
    right[order] = mirrored
    return ~whole, left & ~whole, right & ~whole
