"""Run rows of few-shot parsers: train them on drawn trees, then score a test set."""

import itertools
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from attree.base.errors import AttreeError
from attree.base.files import write_json
from attree.base.provenance import digest
from attree.encoder.load import Encoder
from attree.experiments import data
from attree.parsers.batches import Prepared
from attree.parsers.parser import Parser
from attree.plan.rows import RECIPE_KEYS, TRAINING_KEYS, TUNED, ExperimentRow, Set
from attree.training.features import Features, SentenceFeatures, features_of
from attree.training.fit import build_scorer, choose, choose_threshold
from attree.training.gold import read_trees
from attree.training.options import parse_layers
from attree.training.parser import TrainedModel, TrainedParser
from attree.training.parts import BatchSource, HeadPart, SpanScorer
from attree.training.recipes import TrainingPlan, adapted, recipe
from attree.training.self_training import fit_in_rounds
from attree.training.start import Start
from attree.trees import FALLBACK, OK
from attree.trees.parses import Parses
from attree.trees.sampling import draw_trees

#: The most sentences of a set whose features are kept; of a larger set only drawn trees are read.
_SMALL = 1000

#: Stands for a ``threshold`` that is chosen; the most trees that it is chosen on.
CHOSEN = "chosen"
_THRESHOLD_TREES = 500

#: The most bytes of test sets' features that are kept between rows.
_KEPT = 2_000_000_000


class Trainer:
    """Runs the trained rows of one job; keeps the last parser, and features of sets.

    Args:
        encoder: the encoder of all rows.
        sets: the sets that the rows read.
        records: keeps choices of settings.
        folder: folder for the features of large training sets.
    """

    def __init__(
        self, encoder: Encoder, sets: Mapping[Set, data.SentenceSet], records: Path, folder: Path
    ) -> None:
        self.encoder, self.sets, self.records, self.folder = encoder, sets, records, folder
        self._last: tuple[str, TrainedParser] | None = None
        self._kept: dict[tuple[Set, str], dict[int, SentenceFeatures]] = {}
        self._tests: dict[tuple[Set, str], tuple[Prepared, list[Any]]] = {}

    def run(self, row: ExperimentRow) -> dict[str, Any]:
        """Return a row's scores and the facts of its training."""
        test, train = self.sets[row.test], self.sets[row.train]
        rows = data.drawn(row, train)
        before = Start.named(row.settings.get("start")).trained_on
        shared = data.overlap(row, self.sets, [*rows, *data.set_apart(row, train)], before)
        parser = self.parser(row)
        decoder = row.settings.get("decoder") or recipe(row.settings["recipe"]).decoder
        parser = replace(parser, recipe=replace(parser.recipe, decoder=decoder))
        prepared, features = self._test(row.test, parser)
        extra = self._threshold(row, parser)
        model = TrainedModel(parser, self.encoder, extra.get("threshold", 0.0))
        began = time.perf_counter()
        trees = replace(prepared, decoder=model).trees(features)
        parses = Parses.with_policy(test.gold.sentence, trees, prepared.status == OK, FALLBACK)
        seconds = time.perf_counter() - began
        if row.timed:
            speed = data.sentences_a_second(Parser(model), test, row.max_words)
            extra["sentences_a_second"] = speed
        return {
            **data.scores(test.gold, parses, max_words=row.max_words),
            **extra,
            "used": len(rows),
            "overlap": shared,
            "layers": parser.layers,
            "dropout": parser.recipe.dropout,
            "size": row.size or self.encoder.hidden_size,
            **{key: parser.about[key] for key in ("steps", "loss", "seconds")},
            "decoding_seconds": round(seconds, 3),
            "weights": head_weights(parser, self.encoder.n_layers),
        }

    def parser(self, row: ExperimentRow) -> TrainedParser:
        """Train a row's parser, or return the last one if its training was the same."""
        name = digest(row.training())
        if self._last is None or self._last[0] != name:
            self._last = name, self._train(row)
            self._last[1].scorer.freeze(self.encoder.dtype)  # before anything is chosen or parsed
        return self._last[1]

    def _train(self, row: ExperimentRow) -> TrainedParser:
        train, start = self.sets[row.train], Start.named(row.settings.get("start"))
        rows = data.drawn(row, train)
        trees = read_trees(train.table, rows)
        plan = start.plan(plan_of(row), self.encoder, trees, given=row.settings)
        if row.layer == TUNED:
            choice = self._choice(row, plan, start)
            tuned = replace(plan.recipe, dropout=choice["dropout"])
            plan = replace(plan, layers=tuple(choice["layers"]), recipe=tuned)
        if plan.recipe.rounds:  # their sentences are not known yet
            raw = train.words_of(self._rest(row, range(len(train.table))))
            return fit_in_rounds(self.encoder, trees, plan, raw, first=start.parser)
        features = self._features(row.train, rows, build_scorer(self.encoder, plan, len(rows)))
        return fit_in_rounds(self.encoder, trees, plan, (), first=start.parser, features=features)

    def _rest(self, row: ExperimentRow, rows: Iterable[int]) -> list[int]:
        """Return those of some training rows that the row neither draws nor sets apart."""
        train = self.sets[row.train]
        used = {*data.drawn(row, train), *data.set_apart(row, train)}
        return [number for number in rows if number not in used]

    def _features(self, name: Set, rows: list[int], scorer: SpanScorer) -> Features:
        """Return the features of drawn trees that a scorer reads, in their order.

        The encoder runs only once over a small set, however many rows draw from it.
        """
        key, layout, drawn_from = (name, digest(scorer.reads())), scorer.layout(), self.sets[name]
        if key not in self._kept:
            words = drawn_from.table["words"].to_pylist()
            pieces = self.encoder.tokenise(words) if len(words) <= _SMALL else []
            fit = [row for row, sentence in enumerate(pieces) if not sentence.too_long]
            kept = features_of(self.encoder, [words[row] for row in fit], layout)
            self._kept[key] = dict(zip(fit, kept.records, strict=True))
        if self._kept[key].keys() >= set(rows):
            return Features(layout, [self._kept[key][row] for row in rows])
        return features_of(self.encoder, drawn_from.words_of(rows), layout, folder=self.folder)

    def _choice(self, row: ExperimentRow, plan: TrainingPlan, start: Start) -> dict[str, Any]:
        """Choose settings by the first draw; all draws of as many trees share the choice."""
        first, train = replace(row, seed=0), self.sets[row.train]
        read = (self.encoder.fingerprint, str(self.encoder.dtype), train.hash)
        decides = [first.training(), *read, data.first_weights(row), data.code("trained")]
        name = f"choice-{digest(decides)}"
        choice = data.read_record(self.records, name)
        if choice is None:
            rows = (data.drawn(first, train), data.set_apart(first, train))
            trees, tuning = (read_trees(train.table, numbers) for numbers in rows)
            layers = [parse_layers(text) for text in row.candidates] or [plan.layers]
            recipes = [replace(plan.recipe, dropout=rate) for rate in row.dropouts] or [plan.recipe]
            varied = itertools.product(layers, recipes)
            plans = [replace(plan, seed=0, layers=chosen, recipe=r) for chosen, r in varied]
            best = choose(self.encoder, trees, tuning, plans, first=start.parser)
            choice = {"layers": list(best.layers), "dropout": best.recipe.dropout}
            write_json(self.records / f"{name}.json", choice)
        return choice

    def _threshold(self, row: ExperimentRow, parser: TrainedParser) -> dict[str, Any]:
        """Return the marginal below which spans are dropped, and how many trees it was chosen on.

        These are trees of the training set that were not drawn.

        Raises:
            AttreeError: every tree was drawn.
        """
        setting, table = row.settings.get("threshold"), self.sets[row.train].table
        if setting != CHOSEN:
            return {} if setting is None else {"threshold": float(setting)}
        rest = self._rest(row, draw_trees(table, None, seed=row.seed))
        if not rest:
            problem = f"{row.parser}: training leaves no tree of {row.train} to choose a threshold"
            fix = "draw fewer trees, or write the threshold as a number"
            raise AttreeError("no-trees", problem, fix=fix)
        trees = read_trees(table, rest[:_THRESHOLD_TREES])
        source = BatchSource.of(self.encoder, trees.words, parser.scorer)
        threshold = choose_threshold(parser, source, trees.gold)
        return {"threshold": threshold, "threshold_trees": len(trees.gold)}

    def _test(self, name: Set, parser: TrainedParser) -> tuple[Prepared, list[Any]]:
        """Return a test set and its features, which all parsers that read the same ones share."""
        key, tests = (name, digest(parser.scorer.reads())), self._tests
        if key not in tests:
            prepared = Parser(TrainedModel(parser, self.encoder)).prepare(self.sets[name].words)
            tests[key] = prepared, [prepared.encode(batch) for batch in prepared.batches]
            sizes = {key: sum(batch.nbytes for batch in test[1]) for key, test in tests.items()}
            while len(tests) > 1 and sum(sizes[key] for key in tests) > _KEPT:
                del tests[next(iter(tests))]
        return tests[key]


def plan_of(row: ExperimentRow) -> TrainingPlan:
    """Return the settings that a row of a trained parser asks for; no layers are the default."""
    changes = {key: row.settings.get(key) for key in RECIPE_KEYS}
    if changes["label_layers"] is not None:  # JSON has only lists
        changes["label_layers"] = tuple(changes["label_layers"])
    layers = parse_layers(str(row.layer)) if row.layer not in (None, TUNED) else ()
    settings = {key: row.settings[key] for key in TRAINING_KEYS if key in row.settings}
    base = adapted(recipe(row.settings["recipe"]), **changes)
    return TrainingPlan(base, layers, size=row.size, seed=row.seed, **settings)


def head_weights(parser: TrainedParser, n_layers: int) -> list[Any] | None:
    """Return the weights over the encoder's heads, (1 or 2, layers, heads), or None."""
    part = dict(parser.scorer.parts.items()).get("heads")
    if not isinstance(part, HeadPart):
        return None
    weights: list[Any] = part.weights.detach().cpu().unflatten(1, (n_layers, -1)).tolist()
    return weights
