"""Features of training sets: the encoder runs once over a set, however many rows draw from it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

from attree.encoder.load import Encoder
from attree.experiments.data import Sentences
from attree.experiments.rows import Set
from attree.fewshot.features import FeatureStore, MemoryStore, in_memory
from attree.fewshot.fit import store_of
from attree.fewshot.scorer import Scorer
from attree.provenance import digest

#: Sentences of a set whose features are kept. Of a larger one, only the trees drawn are read.
_SMALL = 1000

#: A set, and rows of its table.
Drawn = tuple[Set, Sequence[int]]


class Features:
    """Features of the trees that rows draw.

    Args:
        encoder: of all rows.
        sets: those that the rows read.
    """

    def __init__(self, encoder: Encoder, sets: Mapping[Set, Sentences]) -> None:
        self.encoder, self.sets = encoder, sets
        self._kept: dict[tuple[Set, str], tuple[dict[int, int], MemoryStore]] = {}

    def store(self, drawn: Sequence[Drawn], scorer: Scorer, folder: Path) -> FeatureStore:
        """Return what a scorer reads of drawn trees, in their order.

        Args:
            drawn: from each set.
            scorer: what reads them.
            folder: for features that do not fit in memory.

        Raises:
            AttreeError: a tree that is too long for the encoder.
        """
        kept = [self._known(name, scorer) for name, _ in drawn]
        stores, records, word_of = [], [], []
        for (_, rows), (places, store) in zip(drawn, kept, strict=True):
            known = [places[row] for row in rows if row in places]
            stores.append(store)
            records += [store.records[place] for place in known]
            word_of += [store.word_of[place] for place in known]
        if len(records) < sum(len(rows) for _, rows in drawn):
            parts = [self.sets[name].words_of(rows) for name, rows in drawn]
            words = list(itertools.chain.from_iterable(parts))
            return store_of(self.encoder, words, scorer, folder=folder)
        return MemoryStore(stores[0].layout, records, word_of)

    def _known(self, name: Set, scorer: Scorer) -> tuple[dict[int, int], MemoryStore]:
        """Return row → place, and the features, of all that is kept of a set."""
        key = (name, digest(scorer.reads()))
        if key not in self._kept:
            words = self.sets[name].table["words"].to_pylist()
            pieces = self.encoder.tokenise(words) if len(words) <= _SMALL else []
            rows = [row for row, one in enumerate(pieces) if not one.too_long]
            layout = scorer.layout(self.encoder.hidden_size)
            store = in_memory(self.encoder, [words[row] for row in rows], layout)
            self._kept[key] = {row: place for place, row in enumerate(rows)}, store
        return self._kept[key]
