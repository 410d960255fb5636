"""The parser that proposes trees, and that is trained anew, beside the page, every few trees."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.annotate.draft import Draft
from attree.errors import AttreeError
from attree.fewshot.fit import fit, label_names, store_of, untrained
from attree.fewshot.gold import GoldTrees, gold_tree
from attree.fewshot.parser import TrainedModel
from attree.fewshot.recipes import WITH_LABELS, TrainingPlan, recipe
from attree.fewshot.session import around_middle
from attree.parser import Parser
from attree.tree import NO_LABEL, Tree
from attree.treebank.sentence import Sentence

#: What a few trees train. Phrases without a label count as ones labelled ``X``: it is labels that
#: tell a phrase from what only binarisation makes.
RECIPE = WITH_LABELS

#: Trees of shorter sentences have nothing that can be trained.
_LEAST_WORDS = 3


@dataclass(frozen=True, slots=True)
class Proposal:
    """A tree that keeps to what is settled.

    Attributes:
        tree: of the highest score.
        likely: (n + 1, n + 1) probabilities of spans, None of a parser that has none.
    """

    tree: Tree
    likely: NDArray[np.float64] | None


class Chart:
    """Proposes trees of one sentence, at once: the encoder has read it."""

    def __init__(self, parser: Parser, words: Sequence[str]) -> None:
        self._chart = parser.chart(list(words))

    def propose(self, draft: Draft) -> Proposal:
        """Return the best tree under what is settled.

        Raises:
            AttreeError: no tree keeps to it.
        """
        constraints = draft.constraints()
        tree = self._chart.tree(constraints)
        try:
            likely = self._chart.marginals(constraints)
        except AttreeError:  # scores of splits are no distribution
            likely = None
        return Proposal(tree, likely)


@dataclass(slots=True)
class Trained:
    """What the last training made: of how many trees, in how many seconds, or why it failed."""

    trees: int = 0
    seconds: float = 0.0
    failed: str = ""


@dataclass(slots=True)
class Proposer:
    """Keeps the newest parser.

    Attributes:
        parser: what proposes now.
        name: what it is called.
        every: trees between two trainings.
        trained: what the last training made.
        told: called after every training, from its thread.
    """

    parser: Parser
    name: str
    every: int = 5
    trained: Trained = field(default_factory=Trained)
    told: Callable[[Trained], None] | None = None
    _thread: threading.Thread | None = None
    _encoding: threading.Lock = field(default_factory=threading.Lock)

    @property
    def training(self) -> bool:
        """Whether a training is going on."""
        return self._thread is not None and self._thread.is_alive()

    def labels(self) -> list[str]:
        """Return the labels that the parser knows."""
        scorer = getattr(getattr(self.parser.model, "trained", None), "scorer", None)
        part = scorer.each().get("labels") if scorer is not None else None
        return sorted(name for name in getattr(part, "names", ()) if name not in ("", NO_LABEL))

    def takes(self, words: Sequence[str]) -> bool:
        """Tell whether the encoder takes a sentence whole."""
        with self._encoding:
            return not self.parser.encoder.tokenise([list(words)])[0].too_long

    def chart(self, words: Sequence[str]) -> Chart:
        """Run the encoder over a sentence."""
        with self._encoding:
            return Chart(self.parser, words)

    def due(self, trees: int) -> bool:
        """Tell whether so many trees are worth another training."""
        return not self.training and trees >= max(self.trained.trees + self.every, 1)

    def train(self, sentences: Sequence[Sentence]) -> None:
        """Train on all trees so far, in a thread that the page does not wait for."""
        self._thread = threading.Thread(target=self._train, args=(list(sentences),), daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait for the training that is going on."""
        if self._thread is not None:
            self._thread.join()

    def _train(self, sentences: list[Sentence]) -> None:
        began = time.perf_counter()
        done = Trained(len(sentences))
        try:
            model = self._fitted(gold_trees(sentences))
        except Exception as error:  # whatever it is, annotating goes on with the parser before
            done.failed = str(error).strip().split("\n")[0] or type(error).__name__
        else:
            self.parser, self.name = Parser(model), f"{len(sentences)} trees"
        done.seconds = round(time.perf_counter() - began, 2)
        self.trained = done
        if self.told is not None:
            self.told(done)

    def _fitted(self, trees: GoldTrees) -> TrainedModel:
        encoder = self.parser.encoder
        plan = plan_of(trees, encoder.n_layers)
        with self._encoding:
            store = store_of(encoder, trees.words, untrained(encoder, plan))
        return TrainedModel(fit(encoder, trees, plan, store=store), encoder)


def plan_of(trees: GoldTrees, n_layers: int) -> TrainingPlan:
    """Return how trees are trained on."""
    chosen = recipe(RECIPE)
    layers = around_middle(n_layers, chosen.spread)
    return TrainingPlan(chosen, layers, labels=label_names(trees))


def gold_trees(sentences: Sequence[Sentence]) -> GoldTrees:
    """Return the trees that can be trained on.

    Raises:
        AttreeError: there is none.
    """
    usable = [one for one in sentences if len(one.words) >= _LEAST_WORDS and one.spans]
    if not usable:
        raise AttreeError("no tree of three words or more is saved yet")
    gold = [_gold(one) for one in usable]
    return GoldTrees(list(range(len(usable))), [list(one.words) for one in usable], gold)


def _gold(one: Sentence) -> Any:
    spans = [(start, end) for start, end, _ in one.spans]
    labels = [label or NO_LABEL for _, _, label in one.spans]
    return gold_tree(len(one.words), spans, name=f"{one.file}:{one.line}", labels=labels)
