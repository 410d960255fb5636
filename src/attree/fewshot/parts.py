"""What a parser's span scores are summed from: each part reads some features and has weights.

A part says everything about itself: what it reads of the encoder, how large its weights are, how
they start and how fast they learn. Adding one is adding a class, its line in
:data:`attree.fewshot.scorer.PARTS`, and a recipe that names it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from attree.encoder.load import Encoder, EncoderOutput
from attree.fewshot.projection import (
    Projection,
    StateBatch,
    association_of,
    initialise,
    state_batch,
)
from attree.fewshot.recipes import FewShotRecipe, TrainingPlan
from attree.fewshot.scores import SpanScores, existing, span_scores
from attree.scoring import FLOOR

#: how the heads are put together → what is taken of each matrix, of the weights, and of the sum
COMBINATIONS = {
    # Σ w log(A): scores are linear in the weights, any sign may be learned
    "log": (lambda a: (a + FLOOR).log_(), lambda w: w, lambda a: a),
    # the article's Σ w A, w a distribution that starts uniform, whose log is the association
    "article": (lambda a: a, lambda w: w.softmax(-1), lambda a: (a + FLOOR).log()),
    "raw": (lambda a: a, lambda w: w, lambda a: a),
}

#: A part's settings, as JSON.
Shape = Mapping[str, Any]


def dropout(values: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Drop ``rate`` of ``values`` and scale the rest up; leave them alone without a generator."""
    if generator is None or rate == 0.0:
        return values
    kept = torch.rand(values.shape, generator=generator, device=generator.device).ge_(rate)
    return kept.mul_(values).div_(1.0 - rate)


class Part(nn.Module, ABC):
    """One summand of the span scores.

    Attributes:
        reads_layers: whether ``--layer`` says what it reads, so that layers can be tuned for it.
        layers: hidden states that it reads.
        encoder_heads: heads of the encoder, all layers together, whose attention it reads.
    """

    reads_layers: ClassVar[bool] = False
    layers: tuple[int, ...] = ()
    encoder_heads: int = 0

    @classmethod
    @abstractmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return the settings, as JSON, of a part trained by a plan."""

    @classmethod
    @abstractmethod
    def of(cls, recipe: FewShotRecipe, shape: Shape) -> Part:
        """Make the untrained part of a recipe."""

    @classmethod
    def learning_rate(cls, recipe: FewShotRecipe) -> float:
        """Return Adam's learning rate for its weights."""
        return recipe.learning_rate

    def start(self, encoder: Encoder, plan: TrainingPlan) -> None:
        """Set the first weights, where they depend on the encoder."""

    def reads(self) -> tuple[Any, ...]:
        """Return what its features depend on: equal parts can share them."""
        return (self.layers, self.encoder_heads)

    @abstractmethod
    def lay_out(self, output: EncoderOutput) -> Any:
        """Return the features that it reads of a batch, on the batch's device."""

    @abstractmethod
    def scores(
        self, features: Any, n_words: Tensor, generator: torch.Generator | None = None
    ) -> SpanScores:
        """Score every span of a batch; a generator asks for dropout."""

    def attention(self, features: Any) -> Tensor | None:
        """(sentences, words, words): the association that it has trained, if it has one."""
        return None


class ProjectionPart(Part):
    """Span scores of a trained association: ``s_in − s_out`` of its log (FPOA, FPIO, tree CRF).

    Args:
        projection: the query and key.
        association: ``log`` or ``raw``.
        rate: dropout on the hidden states.
        layers: hidden states read, one a layer of the projection.
        specials: whether ``[CLS]`` and ``[SEP]`` take part in the softmax.
    """

    reads_layers = True

    def __init__(
        self,
        projection: Projection,
        *,
        association: str,
        rate: float,
        layers: tuple[int, ...] = (),
        specials: bool = False,
    ) -> None:
        super().__init__()
        self.projection, self.kind, self.rate = projection, association, rate
        self.layers, self.specials = layers, specials

    @classmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return the layers, and the sizes of the projection."""
        return {
            "layers": list(plan.layers),
            "hidden": encoder.hidden_size,
            "size": plan.size or encoder.hidden_size,
            "heads": plan.recipe.heads or encoder.n_heads,
            "specials": plan.specials,
        }

    @classmethod
    def of(cls, recipe: FewShotRecipe, shape: Shape) -> ProjectionPart:
        """Make an empty projection."""
        layers = tuple(shape["layers"])
        sizes = (len(layers), shape["hidden"], shape["size"])
        return cls(
            Projection(*sizes, heads=shape["heads"]),
            association=recipe.association,
            rate=recipe.dropout,
            layers=layers,
            specials=shape["specials"],
        )

    def start(self, encoder: Encoder, plan: TrainingPlan) -> None:
        """Start from the encoder's query and key, or at random."""
        generator = torch.Generator().manual_seed(plan.seed)
        weights = [encoder.query_key(number) for number in self.layers]
        initialise(self.projection, weights, how=plan.start, generator=generator)

    def reads(self) -> tuple[Any, ...]:
        """Return the layers, and whether special tokens take part."""
        return (self.layers, self.specials)

    def lay_out(self, output: EncoderOutput) -> StateBatch:
        """Return the states of the pieces that take part."""
        return state_batch(output, self.layers, specials=self.specials)

    def association(self, features: StateBatch, generator: torch.Generator | None = None) -> Tensor:
        """(sentences, words, words): the association, zero-padded."""
        raw = self.projection(features, dropout(features.states, self.rate, generator))
        return association_of(raw, features.words(), self.kind)

    def scores(
        self, features: StateBatch, n_words: Tensor, generator: torch.Generator | None = None
    ) -> SpanScores:
        """Score every span of a batch."""
        return span_scores(self.association(features, generator), n_words)

    def attention(self, features: StateBatch) -> Tensor:
        """(sentences, words, words): the association, of a log one its exponential."""
        found = self.association(features).float()
        return found.exp() if self.kind == "log" else found


class BoundaryReader(Part):
    """A part that reads the hidden states on both sides of every boundary between words.

    Args:
        rate: dropout on the states.
        layers: hidden states read.
    """

    def __init__(self, rate: float, layers: tuple[int, ...]) -> None:
        super().__init__()
        self.rate, self.layers = rate, layers

    @classmethod
    def of(cls, recipe: FewShotRecipe, shape: Shape) -> BoundaryReader:
        """Make the untrained part of a recipe."""
        layers = tuple(shape["layers"])
        width = len(layers) * shape["hidden"]
        make: Callable[..., BoundaryReader] = cls
        return make(*cls.sizes(shape, width), rate=recipe.dropout, layers=layers)

    @classmethod
    @abstractmethod
    def sizes(cls, shape: Shape, width: int) -> tuple[Any, ...]:
        """Return what the class is made with, by its settings and the width of its states."""

    def lay_out(self, output: EncoderOutput) -> tuple[Tensor, Tensor]:
        """Return the states before and after every boundary (see :func:`boundary_states`)."""
        return boundary_states(output, self.layers)


class BoundaryPart(BoundaryReader):
    """Linear scores of a span's two ends: ``w₁·h_i + w₂·h_{i−1} + w₃·h_{j−1} + w₄·h_j``.

    ``h`` are hidden states of the words on both sides of where a span begins and ends (the piece
    next to the boundary). The start is zero, so that the association speaks first.

    Args:
        width: of the states, all layers of them together.
        rate: dropout on the states.
        layers: hidden states read.
    """

    def __init__(self, width: int, *, rate: float, layers: tuple[int, ...] = ()) -> None:
        super().__init__(rate, layers)
        self.weights = nn.Parameter(torch.zeros(width, 4))

    @classmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return the layers, by default the middle one of the plan's, or all of them."""
        usual = plan.layers if plan.recipe.wide else plan.layers[len(plan.layers) // 2 :][:1]
        return {"layers": list(plan.boundary or usual), "hidden": encoder.hidden_size}

    @classmethod
    def sizes(cls, shape: Shape, width: int) -> tuple[int]:
        """Return the width."""
        return (width,)

    def scores(
        self,
        features: tuple[Tensor, Tensor],
        n_words: Tensor,
        generator: torch.Generator | None = None,
    ) -> SpanScores:
        """Score every span of a batch."""
        before = dropout(features[0], self.rate, generator) @ self.weights[:, :2]
        after = dropout(features[1], self.rate, generator) @ self.weights[:, 2:]
        begins, ends = (before[..., 0] + after[..., 0]), (before[..., 1] + after[..., 1])
        span = begins.double()[:, :, None] + ends.double()[:, None, :]
        span = span * existing(n_words, span.shape[1])
        return SpanScores(torch.zeros_like(span), span, n_words)


def boundary_states(output: EncoderOutput, layers: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return the states on the two sides of every boundary between words.

    Returns:
        (sentences, words + 1, width) each: of the last piece of the word before and the first
        piece of the word after, special tokens at the ends where there are some; meaningless past
        a sentence.
    """
    word_of, n_words = output.word_of, output.n_words
    sentence = torch.arange(len(n_words), device=word_of.device)
    before_it = torch.nn.functional.pad(word_of, (1, 0), value=-1)[:, :-1]
    row, piece = ((word_of >= 0) & (word_of != before_it)).nonzero(as_tuple=True)
    after = word_of.new_zeros(len(n_words), output.batch.max_words + 1)
    after[row, word_of[row, piece]] = piece
    last = torch.where(word_of >= 0, torch.arange(word_of.shape[1], device=word_of.device), 0)
    last_word, last_piece = last.amax(1), output.batch.mask.sum(1) - 1
    after[sentence, n_words] = torch.minimum(last_word + 1, last_piece)
    before = (after - 1).clamp(min=0)
    before[sentence, n_words] = last_word
    states = torch.cat([output.states[layer] for layer in layers], -1).float()
    return states[sentence[:, None], before], states[sentence[:, None], after]


class HeadPart(Part):
    """Span scores of a learned combination of the encoder's own heads.

    Args:
        heads: how many, all layers together.
        combination: a name in :data:`COMBINATIONS`.
        separate: other weights for the outside score than for the inside one.
        first: what every weight starts at.
    """

    def __init__(self, heads: int, *, combination: str, separate: bool, first: float) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.full((2 if separate else 1, heads), first))
        self.combination, self.encoder_heads = combination, heads

    @classmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return how many heads the encoder has."""
        return {"heads": encoder.n_layers * encoder.n_heads}

    @classmethod
    def of(cls, recipe: FewShotRecipe, shape: Shape) -> HeadPart:
        """Make uniform weights; beside other parts the heads begin silent."""
        heads = shape["heads"]
        first = 0.0 if len(recipe.parts) > 1 else 1.0 / heads
        separate, combination = recipe.separate, recipe.combination
        return cls(heads, combination=combination, separate=separate, first=first)

    @classmethod
    def learning_rate(cls, recipe: FewShotRecipe) -> float:
        """Return the learning rate of head weights."""
        return recipe.head_rate

    def lay_out(self, output: EncoderOutput) -> Tensor:
        """Return the attention of every head (sentences, heads, words, words)."""
        return output.attention

    def associations(self, attention: Tensor, n_words: Tensor) -> list[Tensor]:
        """The combined matrices (sentences, words, words): one, or the inside and the outside."""
        before, weigh, after = COMBINATIONS[self.combination]
        mixed = torch.einsum("wh,bhij->wbij", weigh(self.weights), before(attention))
        word = torch.arange(attention.shape[-1], device=n_words.device) < n_words[:, None]
        square = word[:, :, None] & word[:, None, :]
        return [after(matrix) * square for matrix in mixed]

    def scores(
        self, features: Tensor, n_words: Tensor, generator: torch.Generator | None = None
    ) -> SpanScores:
        """Score every span of a batch; there is no dropout."""
        inside, *outside = self.associations(features, n_words)
        return span_scores(inside, n_words, outside[0] if outside else None)


#: Hidden units, as in the authors' program.
_HIDDEN = 250

#: Numbers of hidden units computed at once while nothing is trained: 16 MB.
_AT_ONCE = 4_000_000


class SpanPart(BoundaryReader):
    """Scores of spans by a perceptron over the differences of their boundaries.

    In the manner of Kitaev, Cao and Klein (2019, *Multilingual Constituency Parsing with
    Self-Attention and Pre-Training*), the article's Berkeley row::

        v(i, j) = (f_j - f_i, b_i - b_j),   s(i, j) = w · relu(norm(M v(i, j))) + c

    with ``f_k`` the state of the word before boundary ``k`` and ``b_k`` that of the word after it.
    Decided: the encoder stays frozen, as for every few-shot parser here, where theirs is trained
    along and has further layers on top; one label, since trees are scored without labels.

    Args:
        width: of a state, all layers of them together.
        size: hidden units.
        rate: dropout on the states.
        layers: hidden states read.
    """

    reads_layers = True

    def __init__(self, width: int, size: int, *, rate: float, layers: tuple[int, ...] = ()) -> None:
        super().__init__(rate, layers)
        self.before = nn.Linear(width, size, bias=False)
        self.after = nn.Linear(width, size, bias=False)
        self.first = nn.Parameter(torch.zeros(size))
        self.norm, self.last = nn.LayerNorm(size), nn.Linear(size, 1)

    @classmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return the layers and the sizes."""
        size = plan.size or _HIDDEN
        return {"layers": list(plan.layers), "hidden": encoder.hidden_size, "size": size}

    @classmethod
    def sizes(cls, shape: Shape, width: int) -> tuple[int, int]:
        """Return the width and the hidden units."""
        return width, shape["size"]

    def start(self, encoder: Encoder, plan: TrainingPlan) -> None:
        """Draw the first weights from the plan's seed."""
        generator = torch.Generator().manual_seed(plan.seed)
        with torch.no_grad():
            for weights in (self.before.weight, self.after.weight, self.last.weight):
                bound = math.sqrt(1.0 / weights.shape[1])
                weights.uniform_(-bound, bound, generator=generator)
            self.last.bias.zero_()

    def scores(
        self,
        features: tuple[Tensor, Tensor],
        n_words: Tensor,
        generator: torch.Generator | None = None,
    ) -> SpanScores:
        """Score every span of a batch."""
        before, after = (dropout(side, self.rate, generator) for side in features)
        # the first layer is linear: of a difference it is the difference
        at = self.before(before) - self.after(after)
        rows = at.shape[1]
        if not torch.is_grad_enabled():
            rows = max(1, _AT_ONCE // at.numel())
        found = [self._of(at, start) for start in at.split(rows, dim=1)]
        span = torch.cat(found, dim=1).double() * existing(n_words, at.shape[1])
        return SpanScores(torch.zeros_like(span), span, n_words)

    def _of(self, ends: Tensor, starts: Tensor) -> Tensor:
        """(batch, starts, ends): the scores of spans from some boundaries to all."""
        between = ends[:, None, :, :] - starts[:, :, None, :] + self.first
        found: Tensor = self.last(self.norm(between).relu())[..., 0]
        return found
