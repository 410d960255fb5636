"""Rows of unsupervised parsers: heads ranked on some trees, averaged, then scored on a test set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.attention.columns import AGREEMENT, all_of
from attree.attention.shards import AssociationBatch, column_heads, read, read_manifest
from attree.attention.sources import HEADS
from attree.decoding import Recipe
from attree.decoding.batch import decode
from attree.decoding.fixed import fixed_trees
from attree.encoder.load import Encoder
from attree.encoder.source import Head
from attree.experiments.data import Sentences, drawn, overlap, scores, sentences_a_second
from attree.experiments.rows import Row
from attree.heads.model import HeadsModel
from attree.heads.ranking import rank
from attree.heads.selection import RANKED_BY, HeadSelection
from attree.parser import Parser
from attree.parses import Parses
from attree.schemas import FALLBACK
from attree.trees import Trees


class Averager:
    """Runs the rows of averaged heads of one job.

    Args:
        sets: those that the rows read.
        manifests: of every head of the encoder, one a set.
        encoder: loads the encoder, for rows that are timed.
    """

    def __init__(
        self,
        sets: Mapping[str, Sentences],
        manifests: Mapping[str, Path],
        encoder: Callable[[], Encoder],
    ) -> None:
        self.sets, self.manifests, self.encoder = sets, manifests, encoder
        self._selected: dict[Any, list[Head]] = {}

    def run(self, row: Row) -> dict[str, Any]:
        """Return a row's scores, its heads, and where asked the speed of its parsing."""
        train, test = self.sets[row.train], self.sets[row.test]
        places = drawn(row, train)
        shared = overlap(row, self.sets, places)
        how = _recipe(row)
        heads = self.heads(row)
        parses = self._parse(self.manifests[row.test], heads, how, source_of(row))
        found = scores(test.gold, parses, max_words=row.max_words)
        found |= {"used": len(places), "overlap": shared, "heads": [list(head) for head in heads]}
        if row.timed:
            parser = Parser(HeadsModel(self.encoder(), heads, how, source_of(row)))
            found["sentences_a_second"] = sentences_a_second(parser, test, row.max_words)
        return found

    def heads(self, row: Row) -> list[Head]:
        """Rank heads on the trees that a row draws, and return those that it selects."""
        recipe, source = _recipe(row), source_of(row)
        places = drawn(row, self.sets[row.train])
        select = HeadSelection.parse(row.settings["heads"])
        manifest = self.manifests[row.train]
        if select.kind in ("all", "list"):
            every = column_heads(read_manifest(manifest), all_of(source), manifest)
            return select.apply(np.zeros((every[-1][0] + 1, every[-1][1] + 1)))
        train = self.sets[row.train]
        numbers = np.sort(train.table["sentence"].to_numpy()[places])
        rank_by = row.settings.get("rank_by", RANKED_BY[0])
        place = (recipe, source, rank_by, numbers.tobytes(), select.text)
        if place not in self._selected:
            how = {"source": source, "only": numbers, "agreement": rank_by == AGREEMENT}
            found = rank(manifest, train.gold, recipe, **how)
            self._selected[place] = select.apply(found.grid(rank_by))
        return self._selected[place]

    def _parse(self, manifest: Path, heads: list[Head], how: Recipe, source: str) -> Parses:
        """Parse every sentence of a set; those without attention are branched right."""
        every = column_heads(read_manifest(manifest), all_of(source), manifest)
        chosen = np.array([every.index(head) for head in heads])
        numbers, parsed, trees = [], [], []
        for batch in read(manifest, all_of(source)):
            there = batch.n_associated
            found = decode(averaged(batch, chosen), there, **how.settings())
            without = (there == 0) & (batch.n_words > 0)
            others = fixed_trees(FALLBACK, batch.n_words[without])
            rows = np.concatenate([np.flatnonzero(~without), np.flatnonzero(without)])
            trees += [found.take(np.flatnonzero(~without)), others]
            numbers.append(batch.sentence[rows])
            parsed.append(~without[rows])
        return Parses.with_policy(
            np.concatenate(numbers), Trees.concatenate(trees), np.concatenate(parsed), FALLBACK
        ).sorted()


def source_of(row: Row) -> str:
    """Return the source whose units a row ranks and averages."""
    return str(row.settings.get("source", HEADS))


def _recipe(row: Row) -> Recipe:
    return Recipe(*(row.settings[key] for key in ("association", "score", "decoder")))


def averaged(batch: AssociationBatch, chosen: NDArray[np.intp]) -> NDArray[np.float32]:
    """Return the mean of some of each sentence's matrices, flat, as :func:`decode` takes them."""
    parts, at = [np.empty(0, np.float32)], 0
    for n_words in batch.n_associated.astype(int):
        size = batch.matrices_each * n_words * n_words
        matrices = batch.values[at : at + size].reshape(batch.matrices_each, n_words * n_words)
        parts.append(matrices[chosen].mean(0, dtype=np.float32))
        at += size
    return np.concatenate(parts)
