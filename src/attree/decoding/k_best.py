"""The k best trees of one sentence's chart, found lazily.

Algorithm 3 of L. Huang and D. Chiang (2005), *Better k-best Parsing*: the best tree of every span
is known from the chart; the next one of a span is asked for only when the next one of a span above
it needs it, so that k trees cost little more than one. Exact, and no tree comes twice.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attree.decoding.kernels import add_best, add_best_with_cross
from attree.scoring.tables import SplitScores
from attree.trees import Trees

Span = tuple[int, int]
#: Minus the score of a way to make a span's tree, its split, and which trees of the parts it takes,
#: 0 the best: the least comes first, of equal scores that of the smallest split.
_Way = tuple[float, int, int, int]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Trees of one sentence, the best first.

    Attributes:
        trees: of the sentence.
        scores: of each, what the decoder maximises.
        probabilities: of each, None where the parser has no distribution over trees.
    """

    trees: Trees
    scores: list[float]
    probabilities: list[float] | None = None


@dataclass(slots=True)
class _Cell:
    """The trees of one span.

    Attributes:
        found: the best ones, in order.
        waiting: a heap of those that can be next.
        complete: whether there are no more than those found.
    """

    found: list[_Way]
    waiting: list[_Way]
    complete: bool = False


class BestTrees:
    """The trees of one sentence by falling sum of split scores.

    Args:
        scores: of the sentence.
        terms: left and right terms in place of the scores' own; becomes the chart.
    """

    def __init__(self, scores: SplitScores, terms: NDArray[np.float64]) -> None:
        self._n = int(scores.n_words[0])
        self._sums: NDArray[np.float64] | None = None
        side = self._n + 1
        if scores.has_cross:
            add_best_with_cross(scores.n_words, scores.prefix, terms)
            self._sums = scores.prefix.reshape(side, side)
        else:
            add_best(scores.n_words, terms)
        self._terms = terms.reshape(side, side)
        self._cells: dict[Span, _Cell] = {}

    def first(self, k: int) -> Iterator[tuple[float, list[Span]]]:
        """Yield score and spans, in pre-order, of the best k trees, fewer where there are fewer."""
        whole = (0, self._n)
        for rank in range(k):
            if not self._reach(whole, rank):
                return
            yield -self._cells[whole].found[rank][0], self._spans(whole, rank)

    def _cell(self, span: Span) -> _Cell:
        """Return the trees of a span; at the beginning, its best one."""
        if span not in self._cells:
            start, end = span
            waiting = [(0.0, start, 0, 0)]
            if end - start > 1:
                ways = (-self._best_of_splits(start, end)).tolist()
                waiting = [(score, start + 1 + at, 0, 0) for at, score in enumerate(ways)]
                heapq.heapify(waiting)
            first = heapq.heappop(waiting)
            self._cells[span] = _Cell([first], waiting, complete=end - start == 1)
        return self._cells[span]

    def _best_of_splits(self, i: int, j: int) -> NDArray[np.float64]:
        """Return the score of the best tree with each split of ``[i, j)``."""
        k = np.arange(i + 1, j)
        found: NDArray[np.float64] = self._terms[k, i] + self._terms[k, j]
        if self._sums is not None:
            sums = self._sums
            across = sums[j, k] + sums[k, i] - sums[k, k] - sums[j, i]
            found = -across / (2.0 * (k - i) * (j - k)) + found
        return found

    def _reach(self, span: Span, rank: int) -> bool:
        """Find the trees of a span up to ``rank``; tell whether there are as many.

        What a span waits for is kept in a list: trees may be deeper than calls may be.
        """
        asked = [(span, rank)]
        while asked:
            cell = self._cell(asked[-1][0])
            if cell.complete or len(cell.found) > asked[-1][1]:
                asked.pop()
            elif missing := self._missing(asked[-1][0], cell):
                asked.append(missing)
            else:
                self._extend(asked[-1][0], cell)
        return len(self._cell(span).found) > rank

    def _missing(self, span: Span, cell: _Cell) -> tuple[Span, int] | None:
        """Return a part's tree that must be known before the next tree of a span is."""
        for part, rank in self._parts_of_next(span, cell.found[-1]):
            below = self._cell(part)
            if not below.complete and len(below.found) <= rank:
                return part, rank
        return None

    def _parts_of_next(self, span: Span, way: _Way) -> list[tuple[Span, int]]:
        """Return what comes next after a way: the next tree of its right part, or of its left.

        The left part moves on only beside the right one's best, so that no way is met twice.
        """
        _, split, left, right = way
        found = [((split, span[1]), right + 1)]
        return [*found, ((span[0], split), left + 1)] if right == 0 else found

    def _extend(self, span: Span, cell: _Cell) -> None:
        """Add the next tree of a span; what it needs is known."""
        score, split, left, right = cell.found[-1]
        for part, rank in self._parts_of_next(span, cell.found[-1]):
            ways = self._cell(part).found
            if rank < len(ways):
                worse = score + (ways[rank][0] - ways[rank - 1][0])
                ranks = (left, rank) if part[0] == split else (rank, right)
                heapq.heappush(cell.waiting, (worse, split, *ranks))
        if cell.waiting:
            cell.found.append(heapq.heappop(cell.waiting))
        else:
            cell.complete = True

    def _spans(self, span: Span, rank: int) -> list[Span]:
        """Return the spans of two words and more of one tree in pre-order."""
        found, waiting = [], [(span, rank)]
        while waiting:
            (start, end), rank = waiting.pop()
            if end - start > 1:
                found.append((start, end))
                _, split, left, right = self._cell((start, end)).found[rank]
                waiting += [((split, end), right), ((start, split), left)]
        return found
