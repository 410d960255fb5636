"""Propose trees by a parser that is trained again, in the background, every few trees."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from attree.annotate.draft import Draft
from attree.base.errors import AttreeError
from attree.parsers.parser import Chart, Parser
from attree.training.features import features_of
from attree.training.fit import build_scorer, fit
from attree.training.gold import GoldTrees, read_trees
from attree.training.parser import TrainedModel, TrainedParser
from attree.training.recipes import WITH_LABELS, TrainingPlan, recipe
from attree.training.start import Start
from attree.treebank.sentence import Sentence
from attree.treebank.table import to_table
from attree.trees.tree import NO_LABEL, Tree

#: The recipe of new parsers. Phrases without a label count as labelled ``X``, since labels tell
#: phrases from the spans that binarisation adds.
RECIPE = WITH_LABELS

#: Trees of shorter sentences have nothing to train on.
_LEAST_WORDS = 3

#: The fewest trees that two parsers are compared on, and the number of parts they are split into.
_LEAST_COMPARED, _PARTS = 3, 3


def propose(chart: Chart, draft: Draft) -> tuple[Tree, NDArray[np.float64] | None]:
    """Return the best tree of a sentence under the constraints of its draft.

    Returns:
        the tree, and (n + 1, n + 1) probabilities of spans, or None if the parser has none.

    Raises:
        AttreeError: no tree meets them.
    """
    constraints = draft.constraints()
    tree = chart.tree(constraints)
    try:
        return tree, chart.marginals(constraints)
    except AttreeError:  # split scores give no distribution
        return tree, None


@dataclass(slots=True)
class Trained:
    """The result of the last training.

    Attributes:
        trees: number of trees trained on.
        seconds: its time.
        took_over: whether the new parser proposes from now on.
        scores: labelled F1 of the old and the new parser, on trees that neither was trained on.
        failed: why it failed, or empty.
    """

    trees: int = 0
    seconds: float = 0.0
    took_over: bool = False
    scores: tuple[float, float] | None = None
    failed: str = ""


@dataclass(slots=True)
class Proposer:
    """Keeps the best parser so far.

    A new parser is trained on all trees, from the weights of the first parser if that is a trained
    one. It takes over if it proposes better than the current parser on the trees that this was not
    trained on, which is measured by cross-validation.

    Attributes:
        parser: the current parser.
        name: its name.
        every: number of trees between two trainings.
        trained: the result of the last training.
        told: called after every training, in its thread.
        learnt: number of trees that :attr:`parser` was trained on.
    """

    parser: Parser
    name: str
    every: int = 5
    trained: Trained = field(default_factory=Trained)
    told: Callable[[Trained], None] | None = None
    learnt: int = 0
    _start: Start = field(default_factory=Start)
    _thread: threading.Thread | None = None
    _encoding: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Keep the first parser: every training starts from it."""
        first = self.parser.model.trained
        if first is not None and {"projection", "boundary"} <= set(first.recipe.parts):
            self._start = Start(self.name, first)

    @property
    def training(self) -> bool:
        """Whether a training is running."""
        return self._thread is not None and self._thread.is_alive()

    def names(self, part: str) -> list[str]:
        """Return the ``labels`` or ``tags`` that the parser knows."""
        return sorted(name for name in _names(self.parser.model.trained, part) if name != NO_LABEL)

    def chart(self, words: Sequence[str]) -> Chart:
        """Run the encoder over a sentence, as :meth:`attree.parsers.parser.Parser.chart`."""
        with self._encoding:
            return self.parser.chart(list(words))

    def due(self, trees: int) -> bool:
        """Tell whether this number of trees calls for another training."""
        return not self.training and trees >= max(self.trained.trees + self.every, 1)

    def train(self, sentences: Sequence[Sentence]) -> None:
        """Train on all trees so far, in a background thread."""
        self._thread = threading.Thread(target=self._train, args=(list(sentences),), daemon=True)
        self._thread.start()

    def _train(self, sentences: list[Sentence]) -> None:
        began = time.perf_counter()
        result = Trained(len(sentences))
        try:
            result.scores = self._compare(sentences)
            if result.scores is None or result.scores[1] > result.scores[0]:
                name = f"{len(sentences)} tree{'s' * (len(sentences) != 1)}"
                name = f"{self._start.name} and {name}" if self._start.parser else name
                self.parser, self.name = Parser(self._fit(gold_trees(sentences))), name
                self.learnt, result.took_over = len(sentences), True
        except Exception as error:  # annotating goes on with the current parser, whatever it is
            result.failed = str(error).strip().split("\n")[0] or type(error).__name__
        result.seconds = round(time.perf_counter() - began, 2)
        self.trained = result
        if self.told is not None:
            self.told(result)

    def _compare(self, sentences: Sequence[Sentence]) -> tuple[float, float] | None:
        """Return the labelled F1 of the current parser and of new ones; None with too few trees.

        The trees after the first :attr:`learnt` are split into parts; each part is parsed by a new
        parser that is trained on all other trees.
        """
        fresh = [index for index in range(self.learnt, len(sentences)) if _usable(sentences[index])]
        if len(fresh) < _LEAST_COMPARED or not self.names("labels"):
            return None  # a parser without labels gives way to the first that has labels
        new: dict[int, Tree] = {}
        for part in range(_PARTS):
            part_rows = fresh[part::_PARTS]
            others = [tree for index, tree in enumerate(sentences) if index not in part_rows]
            model = self._fit(gold_trees(others))
            new |= zip(part_rows, self._parse(Parser(model), sentences, part_rows), strict=True)
        old = self._parse(self.parser, sentences, fresh)
        gold = [sentences[index] for index in fresh]
        return labelled_f1(gold, old), labelled_f1(gold, [new[index] for index in fresh])

    def _parse(self, parser: Parser, sentences: Sequence[Sentence], rows: list[int]) -> list[Tree]:
        with self._encoding:
            return parser.parse([list(sentences[row].words) for row in rows])

    def _fit(self, trees: GoldTrees) -> TrainedModel:
        encoder, first = self.parser.encoder, self._start.parser
        labels, tags = (_names(first, part) for part in ("labels", "tags"))
        plan = TrainingPlan(recipe(RECIPE), labels=labels, tags=tags)
        with self._encoding:
            plan = self._start.plan(plan, encoder, trees)
            layout = build_scorer(encoder, plan, len(trees.gold)).layout()
            features = features_of(encoder, trees.words, layout)
        return TrainedModel(fit(encoder, trees, plan, features=features, first=first), encoder)


def _names(parser: TrainedParser | None, part: str) -> tuple[str, ...]:
    """Return the labels or tags that a parser knows, without the empty one."""
    layer = parser.scorer.each().get(part) if parser is not None else None
    return tuple(name for name in getattr(layer, "names", ()) if name)


def _usable(sentence: Sentence) -> bool:
    return len(sentence.words) >= _LEAST_WORDS and bool(sentence.spans)


def gold_trees(sentences: Sequence[Sentence]) -> GoldTrees:
    """Return the trees that can be trained on.

    Raises:
        AttreeError: there is no such tree.
    """
    usable = [
        replace(tree, spans=tuple((i, j, label or NO_LABEL) for i, j, label in tree.spans))
        for tree in sentences
        if _usable(tree)
    ]
    if not usable:
        raise AttreeError("no-trees", "no tree of three words or more is saved yet")
    return read_trees(to_table(usable), range(len(usable)))


def labelled_f1(gold: Sequence[Sentence], trees: Sequence[Tree]) -> float:
    """Return the corpus F1 (percent) of labelled phrases, those of one word included."""
    right = wanted = proposed = 0
    for sentence, tree in zip(gold, trees, strict=True):
        expected = Counter((start, end, label or NO_LABEL) for start, end, label in sentence.spans)
        actual = Counter(tree.labelled())
        right, wanted = right + (expected & actual).total(), wanted + expected.total()
        proposed += actual.total()
    return round(200.0 * right / max(wanted + proposed, 1), 2)
