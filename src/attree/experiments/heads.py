"""Run rows of unsupervised parsers: rank heads on some trees, average them, score a test set."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from attree.association.columns import AGREEMENT, all_of
from attree.association.ranking import rank
from attree.association.selection import RANKED_BY, HeadSelection
from attree.association.shards import column_units, read_manifest
from attree.association.sources import HEADS
from attree.decoding import Recipe
from attree.encoder.load import Encoder
from attree.encoder.source import Head
from attree.experiments.data import SentenceSet, drawn, overlap, scores, sentences_a_second
from attree.parsers.heads import HeadsModel
from attree.parsers.parser import Parser
from attree.plan.rows import ExperimentRow
from attree.stages.from_shards import parse_shards
from attree.trees import FALLBACK


@dataclass(slots=True)
class Averager:
    """Runs the rows of averaged heads of one job.

    Args:
        sets: the sets that the rows read.
        manifests: set → manifest of the attention of every head.
        encoder: loads the encoder, for :meth:`model`.
    """

    sets: Mapping[str, SentenceSet]
    manifests: Mapping[str, Path]
    encoder: Callable[[], Encoder]
    _selected: dict[Any, list[Head]] = field(default_factory=dict, init=False)

    def run(self, row: ExperimentRow) -> dict[str, Any]:
        """Return a row's scores, its heads, and if asked its parsing speed."""
        test, rows = self.sets[row.test], drawn(row, self.sets[row.train])
        shared = overlap(row, self.sets, rows)
        heads = self.heads(row)
        source, manifest = source_of(row), self.manifests[row.test]
        units_of_all = column_units(read_manifest(manifest), all_of(source), manifest)
        units = np.array([units_of_all.index(head) for head in heads])
        recipe = _recipe(row).settings()
        parses = parse_shards(manifest, all_of(source), recipe, FALLBACK, units=units)
        record = scores(test.gold, parses, max_words=row.max_words)
        record |= {"used": len(rows), "overlap": shared, "heads": [list(head) for head in heads]}
        if row.timed:
            parser = Parser(self.model(row))
            record["sentences_a_second"] = sentences_a_second(parser, test, row.max_words)
        return record

    def model(self, row: ExperimentRow) -> HeadsModel:
        """Return a row's parser, with the encoder."""
        return HeadsModel(self.encoder(), self.heads(row), _recipe(row), source_of(row))

    def heads(self, row: ExperimentRow) -> list[Head]:
        """Rank heads on the trees that a row draws, and return those that it selects."""
        recipe, source = _recipe(row), source_of(row)
        rows = drawn(row, self.sets[row.train])
        select = HeadSelection.parse(row.settings["heads"])
        manifest = self.manifests[row.train]
        if select.kind in ("all", "list"):
            every = column_units(read_manifest(manifest), all_of(source), manifest)
            return select.apply(np.zeros((every[-1][0] + 1, every[-1][1] + 1)))
        train = self.sets[row.train]
        numbers = np.sort(train.table["sentence"].to_numpy()[rows])
        rank_by = row.settings.get("rank_by", RANKED_BY[0])
        key = (row.train, recipe, source, rank_by, numbers.tobytes(), select.text)
        if key not in self._selected:
            how = {"source": source, "only": numbers, "agreement": rank_by == AGREEMENT}
            ranking = rank(manifest, train.gold, recipe, **how)
            self._selected[key] = select.apply(ranking.grid(rank_by))
        return self._selected[key]


def source_of(row: ExperimentRow) -> str:
    """Return the source whose units a row ranks and averages."""
    return str(row.settings.get("source", HEADS))


def _recipe(row: ExperimentRow) -> Recipe:
    return Recipe(*(row.settings[key] for key in ("association", "score", "decoder")))
