"""Run rows of few-shot parsers: train them on drawn trees, then score a test set."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.provenance import digest
from attree.encoder.load import Encoder
from attree.experiments.data import (
    Records,
    SentenceSet,
    code,
    drawn,
    first_weights,
    overlap,
    scores,
    sentences_a_second,
    set_apart,
)
from attree.parsers.parser import Parser
from attree.plan.rows import RECIPE_KEYS, TRAINING_KEYS, TUNED, ExperimentRow, Set
from attree.ready import folder_of_start
from attree.rivals.self_training import fit_in_rounds
from attree.stages.train import around_middle, parse_layers
from attree.training.features import Features, SentenceFeatures, features_of
from attree.training.fit import build_scorer, choose, choose_threshold, grid, plan_like
from attree.training.gold import read_trees
from attree.training.parser import TrainedModel, TrainedParser, load_parser
from attree.training.parts import BatchSource, HeadPart, SpanScorer
from attree.training.recipes import MANY_TREES, TrainingPlan, adapted, continued, recipe
from attree.trees import FALLBACK, OK
from attree.trees.parses import Parses
from attree.trees.sampling import draw_trees

#: The most sentences of a set whose features are kept; of a larger set only drawn trees are read.
_SMALL = 1000


class Trainings:
    """Trains the parsers of one job's rows; keeps the last one, and features of small sets.

    Args:
        encoder: the encoder of all rows.
        sets: the sets that the rows read.
        records: keeps choices of settings.
        folder: folder for the features of large training sets.
    """

    def __init__(
        self, encoder: Encoder, sets: Mapping[Set, SentenceSet], records: Records, folder: Path
    ) -> None:
        self.encoder, self.sets, self.records, self.folder = encoder, sets, records, folder
        self._last: tuple[str, TrainedParser] | None = None
        self._kept: dict[tuple[Set, str], dict[int, SentenceFeatures]] = {}

    def parser(self, row: ExperimentRow) -> TrainedParser:
        """Train a row's parser, or return the last one if its training was the same."""
        name = digest(row.training())
        if self._last is None or self._last[0] != name:
            self._last = name, self._train(row)
        return self._last[1]

    def _train(self, row: ExperimentRow) -> TrainedParser:
        plan, first, train = self._plan(row), self._start(row), self.sets[row.train]
        rows = drawn(row, train)
        trees = read_trees(train.table, rows)
        raw = self._undrawn_words(row, rows) if plan.recipe.rounds else []
        others: dict[str, Any] = {"first": first} if first else {}
        if not raw:  # with rounds, their sentences are not known yet
            scorer = build_scorer(self.encoder, plan, len(trees.gold))
            others["features"] = self._features(row.train, rows, scorer)
        return fit_in_rounds(self.encoder, trees, plan, raw, **others)

    def _features(self, name: Set, rows: list[int], scorer: SpanScorer) -> Features:
        """Return the features of drawn trees that a scorer reads, in their order.

        The encoder runs only once over a small set, however many rows draw from it.
        """
        kept = self._kept_features(name, scorer)
        if all(row in kept for row in rows):
            return Features(scorer.layout(), [kept[row] for row in rows])
        words = self.sets[name].words_of(rows)
        return features_of(self.encoder, words, scorer.layout(), folder=self.folder)

    def _kept_features(self, name: Set, scorer: SpanScorer) -> dict[int, SentenceFeatures]:
        """Return row of the table → features, for the sentences of a small set."""
        key = (name, digest(scorer.reads()))
        if key not in self._kept:
            words = self.sets[name].table["words"].to_pylist()
            pieces = self.encoder.tokenise(words) if len(words) <= _SMALL else []
            rows = [row for row, sentence in enumerate(pieces) if not sentence.too_long]
            features = features_of(self.encoder, [words[row] for row in rows], scorer.layout())
            self._kept[key] = dict(zip(rows, features.records, strict=True))
        return self._kept[key]

    def _undrawn_words(self, row: ExperimentRow, rows: list[int]) -> list[list[str]]:
        """Return the words of the training sentences whose trees the row does not draw."""
        train = self.sets[row.train]
        used = {*rows, *set_apart(row, train)}
        return train.words_of([index for index in range(len(train.table)) if index not in used])

    def _start(self, row: ExperimentRow) -> TrainedParser | None:
        """Load the parser that the row's settings name as ``start``, if they name one."""
        folder = folder_of_start(row.settings.get("start"))
        return load_parser(folder, device=str(self.encoder.device)) if folder else None

    def _name(self, row: ExperimentRow) -> str:
        """Return a hash of everything that decides the row's training."""
        encoder = (self.encoder.fingerprint, str(self.encoder.dtype))
        trees = self.sets[row.train].hash
        return digest([row.training(), *encoder, trees, first_weights(row), code("trained")])

    def _plan(self, row: ExperimentRow) -> TrainingPlan:
        plan = plan_of(row, self.encoder.n_layers)
        if row.layer is None and (first := self._start(row)):
            plan = plan_like(plan, first)
        if row.layer != TUNED:
            return plan
        choice = self._choice(row, plan)
        chosen = replace(plan.recipe, dropout=choice["dropout"])
        return replace(plan, layers=tuple(choice["layers"]), recipe=chosen)

    def _choice(self, row: ExperimentRow, plan: TrainingPlan) -> dict[str, Any]:
        """Choose settings by the first draw; all draws of as many trees share the choice."""
        first = replace(row, seed=0)
        name = "choice-" + self._name(first)
        choice = self.records.get(name)
        if choice is None:
            train = self.sets[row.train]
            tuning = read_trees(train.table, set_apart(row, train))
            plans = grid(
                replace(plan, seed=0),
                layers=[parse_layers(text) for text in row.candidates] or [plan.layers],
                dropouts=row.dropouts,
            )
            trees, start = read_trees(train.table, drawn(first, train)), self._start(first)
            best, tried = choose(self.encoder, trees, tuning, plans, first=start)
            choice = {
                "layers": list(best.layers),
                "dropout": best.recipe.dropout,
                "tried": tried,
                "trees": tuning.sentence,
            }
            self.records.put(name, choice)
        return choice


def plan_of(row: ExperimentRow, n_layers: int) -> TrainingPlan:
    """Return the training plan of a row before any tuning.

    Args:
        row: a row of a trained parser.
        n_layers: number of the encoder's layers.
    """
    changes = {key: row.settings.get(key) for key in RECIPE_KEYS}
    if changes["label_layers"] is not None:  # JSON has only lists
        changes["label_layers"] = tuple(changes["label_layers"])
    base = adapted(recipe(row.settings["recipe"]), **changes)
    fixed = row.layer not in (None, TUNED)
    layers = parse_layers(str(row.layer)) if fixed else around_middle(n_layers, base.spread)
    settings = {key: row.settings[key] for key in TRAINING_KEYS if key in row.settings}
    if folder_of_start(settings.get("start")):
        del settings["start"]
        few = row.trees if isinstance(row.trees, int) else MANY_TREES
        base = continued(base, few, rate_given="learning_rate" in row.settings)
    return TrainingPlan(base, layers, size=row.size, seed=row.seed, **settings)


#: Stands for a ``threshold`` that is chosen; the most trees that it is chosen on.
CHOSEN = "chosen"
_THRESHOLD_TREES = 500

#: The most bytes of test sets' features that are kept between rows.
_KEPT = 2_000_000_000


class Trainer:
    """Runs the trained rows of one job; keeps features of test sets."""

    def __init__(self, trainings: Trainings) -> None:
        self.trainings, self.encoder, self.sets = trainings, trainings.encoder, trainings.sets
        self._tests: dict[tuple[str, str], _Test] = {}

    def run(self, row: ExperimentRow) -> dict[str, Any]:
        """Return a row's scores and the facts of its training."""
        rows = drawn(row, self.sets[row.train])
        shared = overlap(row, self.sets, [*rows, *set_apart(row, self.sets[row.train])])
        parser = self.trainings.parser(row)
        test = self._test(row.test, parser)
        decoder = row.settings.get("decoder") or recipe(row.settings["recipe"]).decoder
        parser.recipe = replace(parser.recipe, decoder=decoder)
        pruning = self._threshold(row, rows, parser)
        began = time.perf_counter()
        parses = test.parse(parser, pruning.get("threshold", 0.0))
        seconds = time.perf_counter() - began
        gold_set, training, extra = self.sets[row.test], parser.about, dict(pruning)
        if row.timed:
            timed = Parser(TrainedModel(parser, self.encoder, pruning.get("threshold", 0.0)))
            extra["sentences_a_second"] = sentences_a_second(timed, gold_set, row.max_words)
        return {
            **scores(gold_set.gold, parses, max_words=row.max_words),
            **extra,
            "used": len(rows),
            "overlap": shared,
            "layers": parser.layers,
            "dropout": parser.recipe.dropout,
            "size": row.size or self.encoder.hidden_size,
            "steps": training["steps"],
            "loss": training["loss"],
            "seconds": training["seconds"],
            "decoding_seconds": round(seconds, 3),
            "weights": head_weights(parser, self.encoder.n_layers),
        }

    def _threshold(
        self, row: ExperimentRow, rows: list[int], parser: TrainedParser
    ) -> dict[str, Any]:
        """Return the marginal below which spans are dropped, and how many trees it was chosen on.

        These are trees of the training set that were not drawn.

        Raises:
            AttreeError: every tree was drawn.
        """
        setting = row.settings.get("threshold")
        if setting != CHOSEN:
            return {} if setting is None else {"threshold": float(setting)}
        table = self.sets[row.train].table
        seen = {*rows, *set_apart(row, self.sets[row.train])}
        rest = [index for index in draw_trees(table, None, seed=row.seed) if index not in seen]
        if not rest:
            raise AttreeError(
                "no-trees",
                f"{row.parser}: training uses every tree of {row.train} and leaves none to choose "
                "a threshold on",
                fix="draw fewer trees, or write the threshold as a number",
            )
        trees = read_trees(table, rest[:_THRESHOLD_TREES])
        source = BatchSource.of(self.encoder, trees.words, parser.scorer)
        threshold, _ = choose_threshold(parser, source, trees.gold)
        return {"threshold": threshold, "threshold_trees": len(trees.gold)}

    def _test(self, name: str, parser: TrainedParser) -> _Test:
        key = (name, digest(parser.scorer.reads()))
        if key not in self._tests:
            self._tests[key] = _Test(self.encoder, self.sets[name], parser)
            while len(self._tests) > 1 and sum(t.size for t in self._tests.values()) > _KEPT:
                del self._tests[next(iter(self._tests))]
        return self._tests[key]


class _Test:
    """A test set with its features, shared by all parsers that read the same features."""

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


def head_weights(parser: TrainedParser, n_layers: int) -> list[Any] | None:
    """Return the weights over the encoder's heads, (1 or 2, layers, heads), or None."""
    part = dict(parser.scorer.parts.items()).get("heads")
    if not isinstance(part, HeadPart):
        return None
    weights: list[Any] = part.weights.detach().cpu().unflatten(1, (n_layers, -1)).tolist()
    return weights
