"""Rows of few-shot parsers: trained, then scored on a test set."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from attree.base.errors import AttreeError
from attree.base.provenance import digest
from attree.base.schemas import FALLBACK, OK
from attree.encoder.load import Encoder
from attree.experiments.data import (
    Records,
    SentenceSet,
    overlap,
    scores,
    sentences_a_second,
    set_apart,
)
from attree.experiments.training import Trainings
from attree.parsers.parser import Parser
from attree.plan.experiments.rows import ExperimentRow
from attree.training.calibration import Confidence
from attree.training.fit import choose_threshold
from attree.training.gold import read_trees
from attree.training.parser import TrainedModel, TrainedParser, gold_trees
from attree.training.parts import HeadPart
from attree.training.recipes import recipe
from attree.training.scorer import BatchSource
from attree.trees.parses import Parses
from attree.trees.sampling import draw_trees

#: A ``threshold`` that is to be found, and trees that it is chosen on at most.
CHOSEN = "chosen"
_THRESHOLD_TREES = 500

#: bytes of test sets' features that are kept between rows
_KEPT = 2_000_000_000


class Trainer:
    """Runs the trained rows of one job; keeps features of test sets.

    Args:
        encoder, sets, records, folder: as of :class:`attree.experiments.training.Trainings`.
    """

    def __init__(
        self, encoder: Encoder, sets: Mapping[str, SentenceSet], records: Records, folder: Path
    ) -> None:
        self.encoder, self.sets = encoder, sets
        self.trainings = Trainings(encoder, sets, records, folder)
        self._tests: dict[tuple[str, str], _Test] = {}

    def run(self, row: ExperimentRow) -> dict[str, Any]:
        """Return a row's scores and how it was trained."""
        places = self.trainings.drawn(row)
        shared = overlap(row, self.sets, [*places, *set_apart(row, self.sets[row.train])])
        parser = self.trainings.parser(row)
        test = self._test(row.test, parser)
        own = row.settings.get("decoder") or recipe(row.settings["recipe"]).decoder
        parser.recipe = replace(parser.recipe, decoder=own)
        pruning = self._threshold(row, places, parser)
        began = time.perf_counter()
        parses = test.parse(parser, pruning.get("threshold", 0.0))
        seconds = time.perf_counter() - began
        read = self.sets[row.test]
        about = parser.about
        speed = {}
        if row.timed:
            timed = Parser(TrainedModel(parser, self.encoder, pruning.get("threshold", 0.0)))
            speed["sentences_a_second"] = sentences_a_second(timed, read, row.max_words)
        calibration = {}
        if row.calibrated:
            calibration = self._calibration(row, parser, test, read)
        return {
            **calibration,
            **scores(read.gold, parses, max_words=row.max_words),
            **pruning,
            **speed,
            "used": len(places),
            "brackets": brackets(self.sets[row.train], places),
            "overlap": shared,
            "beside": sum(about["sources"][1:]) or (about["first"] or {}).get("trees"),
            "layers": parser.layers,
            "dropout": parser.recipe.dropout,
            "share": about["plan"]["shares"][0] if about["plan"]["shares"] else None,
            "size": row.size or self.encoder.hidden_size,
            "steps": about["steps"],
            "loss": about["loss"],
            "seconds": about["seconds"],
            "decoding_seconds": round(seconds, 3),
            "weights": head_weights(parser, self.encoder.n_layers),
        }

    def _threshold(
        self, row: ExperimentRow, places: list[int], parser: TrainedParser
    ) -> dict[str, Any]:
        """Return the marginal below which a row drops spans, and on how many trees it was chosen.

        These are trees of the training set that were not drawn.

        Raises:
            AttreeError: none were left over.
        """
        asked = row.settings.get("threshold")
        if asked != CHOSEN:
            return {} if asked is None else {"threshold": float(asked)}
        table = self.sets[row.train].table
        seen = {*places, *set_apart(row, self.sets[row.train])}
        rest = [place for place in draw_trees(table, None, seed=row.seed) if place not in seen]
        if not rest:
            raise AttreeError(
                f"{row.parser}: every tree of {row.train} is trained on, so that none is left to "
                "choose a threshold on",
                fix="draw fewer trees, or write the threshold as a number",
            )
        trees = read_trees(table, rest[:_THRESHOLD_TREES])
        source = BatchSource.of(self.encoder, trees.words, parser.scorer)
        threshold, _ = choose_threshold(parser, source, trees.gold)
        return {"threshold": threshold, "threshold_trees": len(trees.gold)}

    def _calibration(
        self, row: ExperimentRow, parser: TrainedParser, test: _Test, read: SentenceSet
    ) -> dict[str, Any]:
        """Return how far probabilities are off, as trained and by a temperature.

        The temperature is chosen on the trees set apart.

        Raises:
            AttreeError: no trees are set apart, or the parser has no probabilities.
        """
        apart = set_apart(row, self.sets[row.train])
        if not apart or "tree_crf" not in parser.recipe.objective:
            raise AttreeError(
                f"{row.parser}: `calibrated` needs a tree CRF, and trees set apart",
                fix="choose tree-crf-full, and set `apart` to 40 or so",
            )
        trees = read_trees(self.sets[row.train].table, apart)
        gold = gold_trees(trees.gold)
        source = BatchSource.of(self.encoder, trees.words, parser.scorer)
        some = (np.array([place]) for place in range(len(apart)))
        temperature = Confidence(
            parser, ((source.batch(one.tolist()), gold.take(one)) for one in some)
        ).temperature()
        parts = zip(test.features, test.prepared.batches, strict=True)
        found = Confidence(parser, ((one, read.gold.trees.take(at)) for one, at in parts))
        return {
            "temperature": temperature,
            "temperature_trees": len(apart),
            "calibration_error": 100 * found.error(),
            "calibration_error_scaled": 100 * found.error(temperature),
            "bins": [asdict(one) for one in found.bins()],
            "bins_scaled": [asdict(one) for one in found.bins(temperature)],
        }

    def _test(self, name: str, parser: TrainedParser) -> _Test:
        place = (name, digest(parser.scorer.reads()))
        if place not in self._tests:
            self._tests[place] = _Test(self.encoder, self.sets[name], parser)
            while len(self._tests) > 1 and sum(t.size for t in self._tests.values()) > _KEPT:
                del self._tests[next(iter(self._tests))]
        return self._tests[place]


class _Test:
    """A test set with its features, read once for every parser that reads the same."""

    def __init__(self, encoder: Encoder, sentences: SentenceSet, parser: TrainedParser) -> None:
        self.encoder, self.sentence = encoder, sentences.gold.sentence
        self.prepared = Parser(TrainedModel(parser, encoder)).prepare(sentences.words)
        self.features = [self.prepared.encode(batch) for batch in self.prepared.batches]
        self.size = sum(batch.nbytes for batch in self.features)

    def parse(self, trained: TrainedParser, threshold: float) -> Parses:
        """Parse every sentence; spans whose marginal is below ``threshold`` are left out."""
        model = TrainedModel(trained, self.encoder, threshold)
        prepared = replace(self.prepared, decoder=model)
        trees = prepared.trees(self.features)
        return Parses.with_policy(self.sentence, trees, prepared.status == OK, FALLBACK)


def brackets(sentences: SentenceSet, places: list[int]) -> int:
    """Count the gold brackets of some trees, of two words and more: what annotating them costs."""
    return sum(len(tree.brackets) for tree in read_trees(sentences.table, places).gold)


def head_weights(parser: TrainedParser, n_layers: int) -> list[Any] | None:
    """Return the weights over the encoder's heads, (1 or 2, layers, heads), if there are some."""
    part = dict(parser.scorer.parts.items()).get("heads")
    if not isinstance(part, HeadPart):
        return None
    found: list[Any] = part.weights.detach().cpu().unflatten(1, (n_layers, -1)).tolist()
    return found
