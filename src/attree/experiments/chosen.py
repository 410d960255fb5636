"""Trees that rows draw at random, or have a parser choose: what `attree choose` would have done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from attree.choosing import RANDOM, WAYS
from attree.choosing.measure import measure
from attree.choosing.ranking import Measured
from attree.encoder.load import Encoder
from attree.experiments.data import Sentences, drawn
from attree.experiments.rows import Row, Set
from attree.fewshot.parser import TrainedModel, TrainedParser
from attree.parser import Parser
from attree.provenance import digest
from attree.registry import choose


@dataclass(frozen=True, slots=True)
class _Pool:
    """Rows of a table: those drawn first, and the others, measured."""

    first: list[int]
    rest: list[int]
    measured: Measured


class Chooser:
    """Finds the trees of rows; keeps what was measured, which several numbers of trees share.

    Args:
        encoder: of all rows.
        sets: those that the rows read.
        train: trains the parser of a row.
    """

    def __init__(
        self,
        encoder: Encoder,
        sets: Mapping[Set, Sentences],
        train: Callable[[Row], TrainedParser],
    ) -> None:
        self._encoder, self._sets, self._train = encoder, sets, train
        self._pools: dict[str, _Pool] = {}

    def trees(self, row: Row) -> list[int]:
        """Return the rows of the table that a row trains on: the first ones, then those chosen.

        A parser trained on the first ones measures all other trees, as sentences, once. There are
        fewer than asked where the set has no more that it can parse.

        Raises:
            AttreeError: its parser has no distribution over trees.
        """
        if row.draw == RANDOM:
            return drawn(row, self._sets[row.train])
        pool = self._pool(row.chooser())
        rank = choose(WAYS, row.draw, what="way of choosing")
        places = rank(pool.measured, max(int(row.trees) - len(pool.first), 0))
        return pool.first + [pool.rest[place] for place in places.tolist()]

    def _pool(self, chooser: Row) -> _Pool:
        name = digest(chooser.training())
        if name not in self._pools:
            sentences = self._sets[chooser.train]
            first = drawn(chooser, sentences)
            taken = set(first)
            every = drawn(replace(chooser, trees="all"), sentences)
            rest = [place for place in every if place not in taken]
            parser = Parser(TrainedModel(self._train(chooser), self._encoder))
            self._pools[name] = _Pool(first, rest, measure(parser, sentences.words_of(rest)))
        return self._pools[name]
