"""Distinct spans of trees, and the spans that two sets of trees share."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attree.base.errors import AttreeError
from attree.trees.trees import Trees

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DistinctSpans:
    """The distinct spans of two or more words of some trees, always with the whole sentence.

    Attributes:
        n_words: int64 (trees,), words; a tree of fewer than two words has no spans.
        cells: int64 (spans,), ascending, see :func:`cells_of`.
    """

    n_words: _Ints
    cells: _Ints

    @property
    def counts(self) -> _Ints:
        """Number of spans of each tree."""
        return np.diff(np.searchsorted(self.cells, tables_of(self.n_words)))

    def have(self, cells: _Ints) -> NDArray[np.bool_]:
        """Tell which cells of these tables are among the spans; ``np.isin`` takes longer."""
        table = np.zeros(tables_of(self.n_words)[-1], bool)
        table[self.cells] = True
        return table[cells]


def tables_of(n_words: _Ints) -> _Ints:
    """Return where each tree's table of (words + 1)² cells begins, and the end of the last."""
    return np.concatenate(([0], np.cumsum((n_words + 1) ** 2)))


def cells_of(trees: Trees) -> _Ints:
    """Return the cell of every span in the tables of all trees; they ascend in pre-order.

    In the table of a tree of ``n`` words it is the cell ``start * (n + 1) + n - end``.
    """
    words, spans = trees.n_words, trees.n_spans
    first = np.repeat(tables_of(words)[:-1] + words, spans)
    return first + np.repeat(words + 1, spans) * trees.starts - trees.ends


def distinct_spans(
    trees: Trees, *, sentences: ArrayLike | None = None, what: str = "tree"
) -> DistinctSpans:
    """Return each tree's distinct spans of two or more words, and the whole sentence.

    Args:
        trees: trees, their spans in any order.
        sentences: numbers that name the trees in errors; their positions by default.
        what: the noun for a tree in errors.

    Raises:
        AttreeError: a span reaches outside its sentence.
    """
    words, starts, ends = trees.n_words, trees.starts, trees.ends
    outside = (starts < 0) | (ends <= starts) | (ends > np.repeat(words, trees.n_spans))
    if outside.any():
        bad = int(outside.argmax())
        tree = int(trees.tree_of[bad])
        name = tree if sentences is None else int(np.asarray(sentences)[tree])
        problem = f"{what} of sentence {name}: the span [{starts[bad]}, {ends[bad]}) lies outside"
        raise AttreeError("span-outside", f"{problem} its {words[tree]} words")
    # the whole sentences, and the spans
    cells = tables_of(words)[:-1][words > 1], cells_of(trees)[ends - starts > 1]
    return DistinctSpans(words, distinct(np.concatenate(cells)))


def distinct(values: _Ints) -> _Ints:
    """Return each value once, ascending; ``np.unique`` hashes integers, which is far slower."""
    ordered = np.sort(values, kind="stable")
    return np.concatenate((ordered[:1], ordered[1:][ordered[1:] != ordered[:-1]]))


def matched(gold: DistinctSpans, predicted: DistinctSpans, trees_each: int = 1) -> _Ints:
    """Count the spans that each predicted tree shares with its gold tree.

    Tree ``t`` of ``predicted`` belongs to tree ``t // trees_each`` of ``gold``.
    """
    counts = predicted.counts
    tree = np.arange(counts.size)
    shift = tables_of(gold.n_words)[tree // trees_each] - tables_of(predicted.n_words)[:-1]
    shared = gold.have(predicted.cells + np.repeat(shift, counts))
    ends, so_far = np.cumsum(counts), np.concatenate(([0], np.cumsum(shared)))
    return so_far[ends] - so_far[ends - counts]
