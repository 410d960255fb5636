"""The parser that proposes trees, and that is trained anew, beside the page, every few trees."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from attree.annotate.draft import Draft, labelled_spans
from attree.base.errors import AttreeError
from attree.parsers.parser import Chart, Parser
from attree.stages.train import around_middle
from attree.training.features import features_of
from attree.training.fit import build_scorer, fit, label_names
from attree.training.gold import GoldTree, GoldTrees, gold_tree
from attree.training.parser import TrainedModel, TrainedParser
from attree.training.recipes import WITH_LABELS, TrainingPlan, recipe
from attree.treebank.sentence import Sentence
from attree.trees.tree import NO_LABEL, Tree

#: What a few trees train. Phrases without a label count as ones labelled ``X``: it is labels that
#: tell a phrase from what only binarisation makes.
RECIPE = WITH_LABELS

#: Trees of shorter sentences have nothing that can be trained.
_LEAST_WORDS = 3

#: Fewer trees tell nothing about two parsers; and how many parts they are dealt to.
_LEAST_COMPARED, _PARTS = 3, 3


@dataclass(frozen=True, slots=True)
class Proposal:
    """A tree that keeps to what is settled.

    Attributes:
        tree: of the highest score.
        likely: (n + 1, n + 1) probabilities of spans, None of a parser that has none.
    """

    tree: Tree
    likely: NDArray[np.float64] | None


def propose(chart: Chart, draft: Draft) -> Proposal:
    """Return the best tree of a sentence under what is settled; the encoder has read it already.

    Raises:
        AttreeError: no tree keeps to it.
    """
    constraints = draft.constraints()
    tree = chart.tree(constraints)
    try:
        return Proposal(tree, chart.marginals(constraints))
    except AttreeError:  # scores of splits are no distribution
        return Proposal(tree, None)


@dataclass(slots=True)
class Trained:
    """What the last training made.

    Attributes:
        trees: of how many it was.
        seconds: how long it took.
        took_over: whether the new parser proposes from now on.
        scores: labelled F1 of the old and of the new one, on trees that neither has learnt from.
        failed: why it failed.
    """

    trees: int = 0
    seconds: float = 0.0
    took_over: bool = False
    scores: tuple[float, float] | None = None
    failed: str = ""


@dataclass(slots=True)
class Proposer:
    """Keeps the best parser so far.

    A new one is trained on all trees, from the weights of the parser that was given if it was
    trained too. It takes over where it proposes better than the one before, measured on the trees
    that this has not learnt from: by parsers that are trained in the same way on the other trees.

    Attributes:
        parser: what proposes now.
        name: what it is called.
        every: trees between two trainings.
        trained: what the last training made.
        told: called after every training, from its thread.
        learnt: how many trees :attr:`parser` was trained on.
    """

    parser: Parser
    name: str
    every: int = 5
    trained: Trained = field(default_factory=Trained)
    told: Callable[[Trained], None] | None = None
    learnt: int = 0
    _first: TrainedParser | None = None
    _given: str = ""
    _thread: threading.Thread | None = None
    _encoding: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Keep the given parser: every training starts from it."""
        first = getattr(self.parser.model, "trained", None)
        self._first, self._given = first if _can_start(first) else None, self.name

    @property
    def training(self) -> bool:
        """Whether a training is going on."""
        return self._thread is not None and self._thread.is_alive()

    def names(self, part: str) -> list[str]:
        """Return the ``labels`` or ``tags`` that the parser knows."""
        names = _names(getattr(self.parser.model, "trained", None), part)
        return sorted(name for name in names if name != NO_LABEL)

    def takes(self, words: Sequence[str]) -> bool:
        """Tell whether the encoder takes a sentence whole."""
        with self._encoding:
            return not self.parser.encoder.tokenise([list(words)])[0].too_long

    def chart(self, words: Sequence[str]) -> Chart:
        """Run the encoder over a sentence."""
        with self._encoding:
            return self.parser.chart(list(words))

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
            done.scores = self._compared(sentences)
            if done.scores is None or done.scores[1] > done.scores[0]:
                model = self._fitted(gold_trees(sentences))
                name = f"{len(sentences)} tree{'s' * (len(sentences) != 1)}"
                name = f"{self._given} and {name}" if self._first is not None else name
                self.parser, self.name = Parser(model), name
                self.learnt, done.took_over = len(sentences), True
        except Exception as error:  # whatever it is, annotating goes on with the parser before
            done.failed = str(error).strip().split("\n")[0] or type(error).__name__
        done.seconds = round(time.perf_counter() - began, 2)
        self.trained = done
        if self.told is not None:
            self.told(done)

    def _compared(self, sentences: Sequence[Sentence]) -> tuple[float, float] | None:
        """Return labelled F1 of the parser and of new ones; None with too few trees to tell by.

        The trees after the first :attr:`learnt` are dealt to some parts; each is parsed by a parser
        that is trained on all trees but those of the part.
        """
        fresh = [place for place in range(self.learnt, len(sentences)) if _usable(sentences[place])]
        if len(fresh) < _LEAST_COMPARED or not self.names("labels"):
            return None  # a parser without labels is left as soon as there is one that has some
        new: dict[int, Tree] = {}
        for part in range(_PARTS):
            those = fresh[part::_PARTS]
            others = [one for place, one in enumerate(sentences) if place not in those]
            model = self._fitted(gold_trees(others))
            new |= zip(those, self._parsed(Parser(model), sentences, those), strict=True)
        old = self._parsed(self.parser, sentences, fresh)
        gold = [sentences[place] for place in fresh]
        return labelled_f1(gold, old), labelled_f1(gold, [new[place] for place in fresh])

    def _parsed(
        self, parser: Parser, sentences: Sequence[Sentence], places: Sequence[int]
    ) -> list[Tree]:
        with self._encoding:
            return parser.parse([list(sentences[place].words) for place in places])

    def _fitted(self, trees: GoldTrees) -> TrainedModel:
        encoder, first = self.parser.encoder, self._first
        plan = plan_of(trees, encoder.n_layers, first)
        with self._encoding:
            features = features_of(encoder, trees.words, build_scorer(encoder, plan).layout())
        return TrainedModel(fit(encoder, trees, plan, features=features, first=first), encoder)


def _can_start(parser: TrainedParser | None) -> bool:
    """Tell whether a parser has the parts whose weights a new one can start from."""
    return parser is not None and {"projection", "boundary", "heads"} <= set(parser.recipe.parts)


def _names(parser: TrainedParser | None, part: str) -> tuple[str, ...]:
    """Return the labels or tags that a parser knows, but the empty label."""
    found = parser.scorer.each().get(part) if parser is not None else None
    return tuple(name for name in getattr(found, "names", ()) if name)


def plan_of(trees: GoldTrees, n_layers: int, first: TrainedParser | None = None) -> TrainingPlan:
    """Return how trees are trained on; the labels and tags of a first parser stay."""
    chosen = recipe(RECIPE)
    if first is None:
        layers = around_middle(n_layers, chosen.spread)
        return TrainingPlan(chosen, layers, labels=label_names(trees))
    shape = first.shape["projection"]
    return TrainingPlan(
        first.recipe if "labels" in first.recipe.parts else chosen,
        tuple(shape["layers"]),
        boundary=tuple(first.shape["boundary"]["layers"]),
        size=shape["size"],
        specials=bool(shape["specials"]),
        labels=_names(first, "labels"),
        tags=_names(first, "tags"),
    )


def _usable(one: Sentence) -> bool:
    return len(one.words) >= _LEAST_WORDS and bool(one.spans)


def gold_trees(sentences: Sequence[Sentence]) -> GoldTrees:
    """Return the trees that can be trained on.

    Raises:
        AttreeError: there is none.
    """
    usable = [one for one in sentences if _usable(one)]
    if not usable:
        raise AttreeError("no-trees", "no tree of three words or more is saved yet")
    gold = [_gold(one) for one in usable]
    return GoldTrees(list(range(len(usable))), [list(one.words) for one in usable], gold)


def _gold(one: Sentence) -> GoldTree:
    spans = [(start, end) for start, end, _ in one.spans]
    labels = [label or NO_LABEL for _, _, label in one.spans]
    found = gold_tree(len(one.words), spans, name=f"{one.file}:{one.line}", labels=labels)
    known = set(one.tags) - {"", NO_LABEL}
    return replace(found, tags=tuple(tag or NO_LABEL for tag in one.tags)) if known else found


def labelled_f1(gold: Sequence[Sentence], found: Sequence[Tree]) -> float:
    """Return the corpus F1, in percent, of phrases with their labels, of one word too."""
    right = wanted = proposed = 0
    for one, tree in zip(gold, found, strict=True):
        there = Counter((start, end, label or NO_LABEL) for start, end, label in one.spans)
        here = Counter(labelled_spans(tree))
        right, wanted = right + (there & here).total(), wanted + there.total()
        proposed += here.total()
    return round(200.0 * right / max(wanted + proposed, 1), 2)
