"""Rows of few-shot parsers: trained, then scored on a test set."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from attree.encoder.load import Encoder
from attree.errors import AttreeError
from attree.experiments.data import (
    Records,
    Sentences,
    code,
    drawn,
    overlap,
    scores,
    sentences_a_second,
    set_apart,
)
from attree.experiments.rows import RECIPE_KEYS, TRAINING_KEYS, Row
from attree.fewshot.fit import choose, choose_threshold, fit, grid, store_of, untrained
from attree.fewshot.gold import GoldTrees, read_trees
from attree.fewshot.parser import TrainedModel, TrainedParser
from attree.fewshot.parts import HeadPart
from attree.fewshot.recipes import TrainingPlan, adapted, recipe
from attree.fewshot.scorer import BatchSource
from attree.fewshot.session import around_middle, parse_layers
from attree.parser import Parser
from attree.parses import Parses
from attree.provenance import digest
from attree.sampling import draw_trees
from attree.schemas import FALLBACK, OK

#: A ``threshold`` that is to be found, and trees that it is chosen on at most.
CHOSEN = "chosen"
_THRESHOLD_TREES = 500

#: bytes of test sets' features that are kept between rows
_KEPT = 2_000_000_000


class Trainer:
    """Runs the trained rows of one job; keeps the last training, and features of test sets.

    Args:
        encoder: of all rows.
        sets: those that the rows read.
        records: where choices of settings are kept.
        scratch: folder for features of large training sets.
    """

    def __init__(
        self, encoder: Encoder, sets: Mapping[str, Sentences], records: Records, scratch: Path
    ) -> None:
        self.encoder, self.sets, self.records, self.scratch = encoder, sets, records, scratch
        self._trained: tuple[str, TrainedParser] | None = None
        self._tests: dict[tuple[str, str], _Test] = {}

    def run(self, row: Row) -> dict[str, Any]:
        """Return a row's scores and how it was trained."""
        places = drawn(row, self.sets[row.train])
        shared = overlap(row, self.sets, [*places, *set_apart(row, self.sets[row.train])])
        parser = self.parser(row, places)
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
        return {
            **scores(read.gold, parses, max_words=row.max_words),
            **pruning,
            **speed,
            "used": len(places),
            "overlap": shared,
            "layers": parser.layers,
            "dropout": parser.recipe.dropout,
            "size": row.size or self.encoder.hidden_size,
            "steps": about["steps"],
            "loss": about["loss"],
            "seconds": about["seconds"],
            "decoding_seconds": round(seconds, 3),
            "weights": head_weights(parser, self.encoder.n_layers),
        }

    def parser(self, row: Row, places: list[int]) -> TrainedParser:
        """Train, or return the parser just trained if the row asks for the same."""
        name = digest(row.training())
        if self._trained is None or self._trained[0] != name:
            trees = read_trees(self.sets[row.train].table, places)
            plan = self._plan(row, trees)
            scorer, folder = untrained(self.encoder, plan), self.scratch / "features"
            try:
                store = store_of(self.encoder, trees.words, scorer, folder=folder)
                parser = fit(self.encoder, trees, plan, store=store)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            self._trained = (name, parser)
        return self._trained[1]

    def _plan(self, row: Row, trees: GoldTrees) -> TrainingPlan:
        plan = plan_of(row, self.encoder.n_layers)
        if row.layer != "tuned":
            return plan
        found = self._choice(row, trees)
        chosen = replace(plan.recipe, dropout=found["dropout"])
        return replace(plan, layers=tuple(found["layers"]), recipe=chosen)

    def _choice(self, row: Row, trees: GoldTrees) -> dict[str, Any]:
        """Choose layers and dropout on the first of all draws of a parser and number of trees."""
        first = replace(row, seed=0)
        rests_on = (
            self.encoder.fingerprint,
            str(self.encoder.dtype),
            self.sets[row.train].hash,
            code("trained"),
        )
        name = "choice-" + digest([first.training(), *rests_on])
        found = self.records.get(name)
        if found is None:
            table = self.sets[row.train].table
            if row.seed:
                trees = read_trees(table, drawn(first, self.sets[row.train]))
            tuning = read_trees(table, set_apart(row, self.sets[row.train]))
            base = plan_of(replace(first, layer=None), self.encoder.n_layers)
            layers = [parse_layers(text) for text in row.candidates]
            plans = grid(base, layers=layers, dropouts=row.dropouts)
            plan, tried = choose(self.encoder, trees, tuning, plans)
            chosen = {"layers": list(plan.layers), "dropout": plan.recipe.dropout}
            found = {**chosen, "tried": tried, "trees": tuning.sentence}
            self.records.put(name, found)
        return found

    def _threshold(self, row: Row, places: list[int], parser: TrainedParser) -> dict[str, Any]:
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
        store = store_of(self.encoder, trees.words, parser.scorer)
        source = BatchSource(store, parser.scorer, device=str(self.encoder.device))
        threshold, _ = choose_threshold(parser, source, trees.gold)
        return {"threshold": threshold, "threshold_trees": len(trees.gold)}

    def _test(self, name: str, parser: TrainedParser) -> _Test:
        place = (name, digest(parser.scorer.reads()))
        if place not in self._tests:
            self._tests[place] = _Test(self.encoder, self.sets[name], parser)
            while len(self._tests) > 1 and sum(t.size for t in self._tests.values()) > _KEPT:
                del self._tests[next(iter(self._tests))]
        return self._tests[place]


class _Test:
    """A test set with its features, read once for every parser that reads the same."""

    def __init__(self, encoder: Encoder, sentences: Sentences, parser: TrainedParser) -> None:
        self.encoder, self.sentence = encoder, sentences.gold.sentence
        reader = self._parser(parser, 0.0)
        self.prepared = reader.prepare(sentences.words)
        self.features = [reader.encode(self.prepared, one) for one in self.prepared.batches]
        self.size = sum(batch.nbytes for batch in self.features)

    def _parser(self, trained: TrainedParser, threshold: float) -> Parser:
        return Parser(TrainedModel(trained, self.encoder, threshold))

    def parse(self, trained: TrainedParser, threshold: float) -> Parses:
        """Parse every sentence; spans whose marginal is below ``threshold`` are left out."""
        parser, prepared = self._parser(trained, threshold), self.prepared
        found = [
            parser.decode(prepared, *one)
            for one in zip(prepared.batches, self.features, strict=True)
        ]
        trees = parser.assemble(prepared, found)
        return Parses.with_policy(self.sentence, trees, prepared.status == OK, FALLBACK)


def plan_of(row: Row, n_layers: int) -> TrainingPlan:
    """Return the training that a row asks for; a ``tuned`` layer is not settled yet.

    Args:
        row: a trained one.
        n_layers: of the encoder.
    """
    changes = {key: row.settings.get(key) for key in RECIPE_KEYS}
    base = adapted(recipe(row.settings["recipe"]), **changes)
    fixed = row.layer not in (None, "tuned")
    layers = parse_layers(str(row.layer)) if fixed else around_middle(n_layers, base.spread)
    given = {key: row.settings[key] for key in TRAINING_KEYS if key in row.settings}
    return TrainingPlan(base, layers, size=row.size, seed=row.seed, **given)


def head_weights(parser: TrainedParser, n_layers: int) -> list[Any] | None:
    """Return the weights over the encoder's heads, (1 or 2, layers, heads), if there are some."""
    part = dict(parser.scorer.parts.items()).get("heads")
    if not isinstance(part, HeadPart):
        return None
    found: list[Any] = part.weights.detach().cpu().unflatten(1, (n_layers, -1)).tolist()
    return found
