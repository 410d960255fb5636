"""Find the k best trees of one sentence's chart lazily.

Algorithm 3 of L. Huang and D. Chiang (2005), *Better k-best Parsing*: the chart gives the best tree
of every span; the next best tree of a span is computed only when a span above it needs it, so k
trees cost little more than one. The result is exact, without duplicates.

Labelled trees need not be binary. A node with more than two children has several binarisations;
only the right-branching one is used, so there are no duplicates either.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attree.decoding.decoders import add_best_sums
from attree.scoring.tables import SplitScores
from attree.trees.trees import Trees

Span = tuple[int, int]
#: A phrase of a labelled tree: start, end, and the number of its label.
Node = tuple[int, int, int]
#: A chart item with a list of its best ways: a span, or a span with further marks.
Vertex = tuple[int, ...]
#: A way to make a vertex: minus its score, its choice (a split, or a label), and the ranks of the
#: ways of its two parts, 0 the best. Sorted, the best comes first, then the smallest choice.
Way = tuple[float, int, int, int]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Trees of one sentence, the best first.

    Attributes:
        trees: of the sentence.
        scores: of each tree, the value that the decoder maximises.
        probabilities: of each tree; None if the parser has no distribution over trees.
    """

    trees: Trees
    scores: list[float]
    probabilities: list[float] | None = None


@dataclass(slots=True)
class _Cell:
    """The ways to make one vertex.

    Attributes:
        ranked: the best ways, in order.
        waiting: a heap of candidates for the next best way.
        complete: whether there are no more ways.
    """

    ranked: list[Way]
    waiting: list[Way]
    complete: bool = False


class BestTrees:
    """The binary trees of one sentence by falling sum of split scores; a vertex is a span.

    :meth:`ways` and :meth:`parts` define the vertices; labelled trees override them.

    Args:
        scores: of the sentence, with terms, which are overwritten by the chart.
    """

    def __init__(self, scores: SplitScores) -> None:
        self._cells: dict[Vertex, _Cell] = {}
        self._scores, self._n = scores, int(scores.n_words[0])
        add_best_sums(scores)

    def first(self, k: int) -> Iterator[tuple[float, list[Span]]]:
        """Yield score and spans, in pre-order, of the k best trees, or all if there are fewer."""
        for score, choices in self.best((0, self._n), k):
            yield score, [(start, end) for (start, end), _ in choices if end - start > 1]

    def ways(self, vertex: Vertex) -> list[Way]:
        """Return a way for each split of a span, with the best trees of its parts."""
        start, end = vertex
        if end - start == 1:
            return [(0.0, start, 0, 0)]
        k = np.arange(start + 1, end)
        ways = zip((-self._scores.at(0, start, k, end)).tolist(), k.tolist(), strict=True)
        return [(score, split, 0, 0) for score, split in ways]

    def parts(self, vertex: Vertex, choice: int) -> Sequence[Vertex]:
        """Return the two sides of a split; none for a word."""
        start, end = vertex
        return ((start, choice), (choice, end)) if end - start > 1 else ()

    def best(self, top: Vertex, k: int) -> Iterator[tuple[float, list[tuple[Vertex, int]]]]:
        """Yield score, and vertices with their choices in pre-order, of the k best ways."""
        for rank in range(k):
            if not self._reach(top, rank):
                return
            yield -self._cells[top].ranked[rank][0], self._choices(top, rank)

    def _cell(self, vertex: Vertex) -> _Cell:
        """Return the cell of a vertex; a new cell ranks the best way only."""
        if vertex not in self._cells:
            waiting = self.ways(vertex)
            heapq.heapify(waiting)
            self._cells[vertex] = _Cell([heapq.heappop(waiting)], waiting)
        return self._cells[vertex]

    def _reach(self, vertex: Vertex, rank: int) -> bool:
        """Rank the ways to make a vertex up to ``rank``; tell whether there are as many.

        Pending vertices are kept in a list, since trees may be deeper than the recursion limit.
        """
        pending = [(vertex, rank)]
        while pending:
            cell = self._cell(pending[-1][0])
            if cell.complete or len(cell.ranked) > pending[-1][1]:
                pending.pop()
            elif missing := self._missing(pending[-1][0], cell):
                pending.append(missing)
            else:
                self._extend(pending[-1][0], cell)
        return len(self._cell(vertex).ranked) > rank

    def _missing(self, vertex: Vertex, cell: _Cell) -> tuple[Vertex, int] | None:
        """Return a part and rank that must be computed before the next way of a vertex."""
        for _, part, rank in self._parts_of_next(vertex, cell.ranked[-1]):
            below = self._cell(part)
            if not below.complete and len(below.ranked) <= rank:
                return part, rank
        return None

    def _parts_of_next(self, vertex: Vertex, way: Way) -> Iterator[tuple[int, Vertex, int]]:
        """Yield side, part and next rank of the parts that can move on after a way.

        The left part moves on only if the right one is at its best, so that no way comes twice.
        """
        _, choice, *ranks = way
        for side, part in enumerate(self.parts(vertex, choice)):
            if not any(ranks[side + 1 :]):
                yield side, part, ranks[side] + 1

    def _extend(self, vertex: Vertex, cell: _Cell) -> None:
        """Rank the next way to make a vertex, once the ways of its parts are ranked."""
        score, choice, *ranks = cell.ranked[-1]
        for side, part, rank in self._parts_of_next(vertex, cell.ranked[-1]):
            ways = self._cell(part).ranked
            if rank < len(ways):
                worse = score + (ways[rank][0] - ways[rank - 1][0])
                left, right = (rank if x == side else old for x, old in enumerate(ranks))
                heapq.heappush(cell.waiting, (worse, choice, left, right))
        if cell.waiting:
            cell.ranked.append(heapq.heappop(cell.waiting))
        else:
            cell.complete = True

    def _choices(self, top: Vertex, rank: int) -> list[tuple[Vertex, int]]:
        """Return the vertices and choices of one way to make a vertex, in pre-order."""
        choices, waiting = [], [(top, rank)]
        while waiting:
            vertex, rank = waiting.pop()
            _, choice, *ranks = self._cell(vertex).ranked[rank]
            choices.append((vertex, choice))
            waiting += [*zip(self.parts(vertex, choice), ranks, strict=False)][::-1]
        return choices


class BestLabelled(BestTrees):
    """The labelled trees of one sentence, not binary in general, by falling sum of gains.

    A vertex ``(start, end)`` is a span split in two. A vertex ``(start, end, free)`` is the same
    span with a label, or, if ``free``, optionally without.

    Args:
        gains: (n + 1, n + 1, labels), what a phrase ``[i, j)`` of each label adds to a tree, -inf
            for a label that it cannot have. The first label means no phrase and adds 0. The whole
            sentence is always a phrase.
    """

    def __init__(self, gains: NDArray[np.float64]) -> None:
        self._gains = gains
        best = gains[:, :, 1:].max(2)
        free = np.maximum(best, 0.0)
        left = np.where(np.eye(len(gains), k=1, dtype=bool), free, best)
        n_words, flat = np.array([len(gains) - 1]), (np.triu(free, 1) + np.triu(left, 1).T).ravel()
        super().__init__(SplitScores(n_words, np.zeros_like(flat), flat, has_cross=False))

    def nodes(self, k: int) -> Iterator[tuple[float, list[Node]]]:
        """Yield score and phrases, in pre-order, of the k best trees."""
        for score, choices in self.best((0, self._n, False), k):
            labels = ((vertex, label) for vertex, label in choices if len(vertex) > 2 and label)
            yield score, [(start, end, label) for (start, end, _), label in labels]

    def ways(self, vertex: Vertex) -> list[Way]:
        """Return a way for each split of a span, or for each label that it may have."""
        if len(vertex) == 2:
            return super().ways(vertex)
        start, end, free = vertex
        below = self._cell((start, end)).ranked[0][0]
        gains = self._gains[start, end].tolist()[0 if free else 1 :]
        ways = ((below - gain, label, 0, 0) for label, gain in enumerate(gains, int(not free)))
        return [way for way in ways if way[0] < np.inf]

    def parts(self, vertex: Vertex, choice: int) -> Sequence[Vertex]:
        """Return the two sides of a split; a word, or the right side, may be without a label."""
        if len(vertex) > 2:
            return (vertex[:2],)
        return [
            (start, end, end - start == 1 or start > vertex[0])
            for start, end in super().parts(vertex, choice)
        ]
