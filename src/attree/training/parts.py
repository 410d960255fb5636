"""The parts of a parser, the scorer that sums their span scores, and batches of features."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from attree.base.compiled import kernel
from attree.base.errors import AttreeError, NotFiniteError
from attree.encoder.load import Encoder, EncoderOutput
from attree.encoder.packed import packed
from attree.scoring import FLOOR
from attree.training.features import Features, Layout, features_of, read_back
from attree.training.projection import Projection, StateBatch, association_of, initialise
from attree.training.recipes import FewShotRecipe, TrainingPlan
from attree.training.scores import SpanScores, headed_by, span_mask, span_scores, told_by_heads
from attree.trees.tree import parted
from attree.trees.trees import Trees

#: combination of heads → functions applied to each matrix, to the weights, and to the sum
COMBINATIONS = {
    # Σ w log(A): scores are linear in the weights, any sign may be learned
    "log": (lambda a: (a + FLOOR).log_(), lambda w: w, lambda a: a),
    # the article's Σ w A, w a distribution that starts uniform, whose log is the association
    "article": (lambda a: a, lambda w: w.softmax(-1), lambda a: (a + FLOOR).log()),
}

#: A part's settings, as JSON.
Shape = Mapping[str, Any]
#: (sentences, words + 1, width) each: states before and after every boundary between words.
Sides = tuple[Tensor, Tensor]
#: Generator of dropout; None for no dropout.
Noise = torch.Generator | None


def dropout(values: Tensor, rate: float, generator: Noise) -> Tensor:
    """Drop ``rate`` of ``values`` and scale the rest up; leave them alone without a generator."""
    if generator is None or rate == 0.0:
        return values
    kept = torch.rand(values.shape, generator=generator, device=generator.device).ge_(rate)
    return kept.mul_(values).div_(1.0 - rate)


class ScorePart(nn.Module, ABC):
    """One summand of the span scores.

    Args:
        recipe: of the parser.
        shape: the settings of the part, as :meth:`shape` gives them.

    Attributes:
        reads_layers: whether ``--layer``, or an experiment, chooses the layers that it reads.
        layers: hidden states that it reads.
        rate: dropout on these hidden states.
        learning_rate: Adam's, for its weights.
        encoder_heads: number of heads, over all layers, whose attention it reads.
    """

    reads_layers: ClassVar[bool] = False
    encoder_heads: int = 0

    def __init__(self, recipe: FewShotRecipe, shape: Shape) -> None:
        super().__init__()
        self.layers, self.rate = tuple(shape.get("layers", ())), recipe.dropout
        self.learning_rate = recipe.learning_rate

    @classmethod
    @abstractmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return the settings, as JSON, of a part trained by a plan."""

    def start(self, encoder: Encoder, plan: TrainingPlan) -> None:
        """Set the first weights that depend on the encoder or the plan."""

    def reads(self) -> tuple[Any, ...]:
        """Return what its features depend on; parts with equal values can share features."""
        return (self.layers, self.encoder_heads)

    @abstractmethod
    def lay_out(self, output: EncoderOutput) -> Any:
        """Return the features that it reads, on the device of the encoder's output."""

    @abstractmethod
    def scores(self, features: Any, n_words: Tensor, noise: Noise = None) -> SpanScores:
        """Score every span of a batch, with dropout if ``noise`` is given."""


class ProjectionPart(ScorePart):
    """Span scores of a trained association: ``s_in − s_out`` of its log (FPOA, FPIO, tree CRF).

    Attributes:
        projection: the query and key, with a layer for each layer read.
        kind: ``log`` or ``raw``, the kind of association.
        specials: whether ``[CLS]`` and ``[SEP]`` are in the softmax.
    """

    reads_layers = True

    def __init__(self, recipe: FewShotRecipe, shape: Shape) -> None:
        super().__init__(recipe, shape)
        sizes = (len(shape["layers"]), shape["hidden"], shape["size"])
        self.projection = Projection(*sizes, heads=shape["heads"])
        self.kind, self.specials = recipe.association, shape["specials"]

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

    def start(self, encoder: Encoder, plan: TrainingPlan) -> None:
        """Start from the encoder's query and key, or at random."""
        generator = torch.Generator().manual_seed(plan.seed)
        layers = () if plan.start == "random" else self.layers
        weights = [encoder.query_key(number) for number in layers]
        initialise(self.projection, weights, how=plan.start, generator=generator)

    def reads(self) -> tuple[Any, ...]:
        """Return the layers, and whether special tokens are in the softmax."""
        return (self.layers, self.specials)

    def lay_out(self, output: EncoderOutput) -> StateBatch:
        """Return the states of the pieces in the softmax."""
        whole = bool(self.projection.frozen)
        return StateBatch.of(output, self.layers, specials=self.specials, whole=whole)

    def association(self, features: StateBatch, noise: Noise = None) -> Tensor:
        """Return the association, (sentences, words, words), zero-padded."""
        raw = self.projection(features, dropout(features.states, self.rate, noise))
        return association_of(raw, features.words(), self.kind)

    def scores(self, features: StateBatch, n_words: Tensor, noise: Noise = None) -> SpanScores:
        """Score every span of a batch."""
        return span_scores(self.association(features, noise), n_words)

    def attention(self, features: StateBatch) -> Tensor:
        """Return the association, (sentences, words, words), exponentiated if a log."""
        association = self.association(features).float()
        return association.exp() if self.kind == "log" else association


class BoundaryReader(ScorePart):
    """A part that reads the hidden states on both sides of every boundary between words.

    Attributes:
        width: size of the hidden states of all layers together.
    """

    def __init__(self, recipe: FewShotRecipe, shape: Shape) -> None:
        super().__init__(recipe, shape)
        self.width = len(shape["layers"]) * shape["hidden"]

    def lay_out(self, output: EncoderOutput) -> Sides:
        """Return the states before and after every boundary (see :func:`boundary_states`)."""
        return boundary_states(output, self.layers)

    @abstractmethod
    def sides(self) -> Sides:
        """Return the weights, (outputs, width) each, of states before and after a boundary."""

    @abstractmethod
    def read(self, products: Sides, n_words: Tensor) -> SpanScores:
        """Score every span of a batch.

        Args:
            products: (sentences, words + 1, outputs) each, of the states with :meth:`sides`.
            n_words: (sentences,).
        """

    def scores(self, features: Sides, n_words: Tensor, noise: Noise = None) -> SpanScores:
        """Score every span of a batch, with dropout if ``noise`` is given."""
        states = (dropout(side.float(), self.rate, noise) for side in features)
        before, after = map(functional.linear, states, self.sides())
        return self.read((before, after), n_words)


class BoundaryPart(BoundaryReader):
    """Linear scores of a span's two ends: ``w₁·h_i + w₂·h_{i−1} + w₃·h_{j−1} + w₄·h_j``.

    ``h`` are hidden states of the words on both sides of the span's ends (of the piece next to the
    boundary). Weights start at zero, so that the association decides at first.
    """

    def __init__(self, recipe: FewShotRecipe, shape: Shape) -> None:
        super().__init__(recipe, shape)
        self.weights = nn.Parameter(torch.zeros(self.width, 4))

    @classmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return the layers, by default the middle one of the plan's, or all of them."""
        usual = plan.layers if plan.recipe.wide else plan.layers[len(plan.layers) // 2 :][:1]
        return {"layers": list(plan.boundary or usual), "hidden": encoder.hidden_size}

    def sides(self) -> Sides:
        """Return the weights of a span's begin and end."""
        return self.weights[:, :2].T, self.weights[:, 2:].T

    def read(self, products: Sides, n_words: Tensor) -> SpanScores:
        """Score every span of a batch."""
        begins, ends = (products[0] + products[1]).unbind(-1)
        span = begins.double()[:, :, None] + ends.double()[:, None, :]
        span = span * span_mask(n_words, span.shape[1])
        return SpanScores(torch.zeros_like(span), span, n_words)


def boundary_states(output: EncoderOutput, layers: tuple[int, ...]) -> Sides:
    """Return the states on the two sides of every boundary between words.

    Returns:
        (sentences, words + 1, width) each: states of the last piece of the word before and of the
        first piece of the word after. At the ends of the sentence they are those of special
        tokens, if there are any; past the sentence they are meaningless.
    """
    word_of, n_words = output.batch.word_of, output.batch.n_words
    sentence = torch.arange(len(n_words), device=word_of.device)
    before_it = functional.pad(word_of, (1, 0), value=-1)[:, :-1]
    row, piece = ((word_of >= 0) & (word_of != before_it)).nonzero(as_tuple=True)
    after = word_of.new_zeros(len(n_words), output.batch.max_words + 1)
    after[row, word_of[row, piece]] = piece
    last = torch.where(word_of >= 0, torch.arange(word_of.shape[1], device=word_of.device), 0)
    last_word, last_piece = last.amax(1), output.batch.mask.sum(1) - 1
    after[sentence, n_words] = torch.minimum(last_word + 1, last_piece)
    before = (after - 1).clamp(min=0)
    before[sentence, n_words] = last_word
    states = torch.cat([output.states[layer] for layer in layers], -1).flatten(0, 1)
    first = sentence[:, None] * word_of.shape[1]

    def at(piece: Tensor) -> Tensor:
        return states.index_select(0, (first + piece).flatten()).view(*piece.shape, -1)

    return at(before), at(after)


class HeadPart(ScorePart):
    """Span scores of a learned combination of the encoder's own heads.

    Weights start uniform, or at zero if there are other parts.

    Attributes:
        weights: (1 or 2, heads), the second row for a separate outside score.
    """

    def __init__(self, recipe: FewShotRecipe, shape: Shape) -> None:
        super().__init__(recipe, shape)
        self.combination, self.encoder_heads = recipe.combination, shape["heads"]
        self.learning_rate = recipe.head_rate
        first = 0.0 if len(recipe.parts) > 1 else 1.0 / self.encoder_heads
        size = (2 if recipe.separate else 1, self.encoder_heads)
        self.weights = nn.Parameter(torch.full(size, first))

    @classmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return how many heads the encoder has."""
        return {"heads": encoder.n_layers * encoder.n_heads}

    def lay_out(self, output: EncoderOutput) -> Tensor:
        """Return the attention of every head (sentences, heads, words, words)."""
        return output.attention

    def associations(self, attention: Tensor, n_words: Tensor) -> list[Tensor]:
        """Return one combined matrix (sentences, words, words), or one inside and one outside."""
        before, weigh, after = COMBINATIONS[self.combination]
        mixed = torch.einsum("wh,bhij->wbij", weigh(self.weights), before(attention))
        word = torch.arange(attention.shape[-1], device=n_words.device) < n_words[:, None]
        square = word[:, :, None] & word[:, None, :]
        return [after(matrix) * square for matrix in mixed]

    def scores(self, features: Tensor, n_words: Tensor, noise: Noise = None) -> SpanScores:
        """Score every span of a batch; there is no dropout."""
        inside, *outside = self.associations(features, n_words)
        return span_scores(inside, n_words, outside[0] if outside else None)


@torch.no_grad()
def _draw(weights: Sequence[Tensor], plan: TrainingPlan) -> None:
    """Draw weights, (outputs, inputs) each, from the plan's seed."""
    generator = torch.Generator().manual_seed(plan.seed)
    for matrix in weights:
        bound = math.sqrt(1.0 / matrix.shape[1])
        matrix.uniform_(-bound, bound, generator=generator)


#: Size of the hidden layer, as in the authors' program.
_HIDDEN = 250

#: Hidden values computed at a time without gradients: 16 MB.
_AT_ONCE = 4_000_000


class SpanPart(BoundaryReader):
    """Scores of spans by a perceptron over the differences of their boundaries.

    In the manner of Kitaev, Cao and Klein (2019, *Multilingual Constituency Parsing with
    Self-Attention and Pre-Training*), the article's Berkeley row::

        v(i, j) = (f_j - f_i, b_i - b_j),   s(i, j) = w · relu(norm(M v(i, j))) + c

    with ``f_k`` the state of the word before boundary ``k`` and ``b_k`` that of the word after it.
    Differences from theirs: the encoder is frozen, as for every few-shot parser here, and has no
    further layers on top; there is one label, since trees are scored without labels.
    """

    reads_layers = True

    def __init__(self, recipe: FewShotRecipe, shape: Shape) -> None:
        super().__init__(recipe, shape)
        size = shape["size"]
        self.before = nn.Linear(self.width, size, bias=False)
        self.after = nn.Linear(self.width, size, bias=False)
        self.first = nn.Parameter(torch.zeros(size))
        self.norm, self.last = nn.LayerNorm(size), nn.Linear(size, 1)

    @classmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return the layers and the sizes."""
        size = plan.size or _HIDDEN
        return {"layers": list(plan.layers), "hidden": encoder.hidden_size, "size": size}

    def start(self, encoder: Encoder, plan: TrainingPlan) -> None:
        """Draw the first weights from the plan's seed."""
        _draw((self.before.weight, self.after.weight, self.last.weight), plan)
        nn.init.zeros_(self.last.bias)

    def sides(self) -> Sides:
        """Return the weights of the first layer."""
        return self.before.weight, self.after.weight

    def read(self, products: Sides, n_words: Tensor) -> SpanScores:
        """Score every span of a batch."""
        # the first layer is linear: applied to both boundaries, before the difference is taken
        hidden = products[0] - products[1]
        rows = hidden.shape[1]
        if not torch.is_grad_enabled():
            rows = max(1, _AT_ONCE // hidden.numel())
        tables = []
        for starts in hidden.split(rows, dim=1):
            between = hidden[:, None, :, :] - starts[:, :, None, :] + self.first
            tables.append(self.last(self.norm(between).relu())[..., 0])
        span = torch.cat(tables, dim=1).double() * span_mask(n_words, hidden.shape[1])
        return SpanScores(torch.zeros_like(span), span, n_words)


class NameReader(BoundaryReader):
    """A part that scores names, linear in the states on both sides of the boundaries it reads.

    Attributes:
        names: the labels, or the tags.
    """

    #: Number of boundaries with their own weights, and number of biases.
    ends: ClassVar[int]
    biases: ClassVar[int]

    def __init__(self, recipe: FewShotRecipe, shape: Shape) -> None:
        super().__init__(recipe, shape)
        self.names = tuple(shape["names"])
        self.weights = nn.Parameter(torch.zeros(self.ends, 2 * self.width, len(self.names)))
        self.bias = nn.Parameter(torch.zeros(self.biases, len(self.names)))

    def sides(self) -> Sides:
        """Return the weights, for each of the boundaries those of all names."""
        before, after = self.weights.unflatten(1, (2, -1)).permute(1, 0, 3, 2).flatten(1, 2)
        return before, after

    def ends_of(self, products: Sides) -> tuple[Tensor, ...]:
        """Return the scores, (sentences, words + 1, names), of each of the boundaries."""
        return (products[0] + products[1]).unflatten(-1, (self.ends, -1)).unbind(-2)

    @torch.no_grad()
    def carry(self, other: NameReader) -> None:
        """Copy the weights of shared names from another part, if it reads the same layers."""
        if (self.layers, self.weights.shape[:2]) != (other.layers, other.weights.shape[:2]):
            return
        columns = {name: index for index, name in enumerate(other.names)}
        shared = [(target, columns[x]) for target, x in enumerate(self.names) if x in columns]
        target, source = ([pair[side] for pair in shared] for side in (0, 1))
        self.weights[..., target] = other.weights[..., source]
        self.bias[..., target] = other.bias[..., source]


class LabelPart(NameReader):
    """Probabilities of labels, linear in the states at a span's two ends before the softmax.

    The probability of a labelled tree is that of its binary tree times the probability of each
    span's label given the span::

        p(tree, labels) = exp(Σ s(i, j)) / Z · Π p(label | i, j)

    where a span that only binarisation makes has the empty label. Each span has its own
    distribution over labels, so labels do not impair the structure however few the trees.

    Single words have other weights than wider spans, and the whole sentence a further bias. The
    part's span scores are 0. The empty label is the first of the names.
    """

    #: Begin and end of a span, begin and end of a word.
    ends = 4
    #: For a span, for a word, and an addition for the whole sentence.
    biases = 3

    @classmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return the recipe's layers, or all of the plan's if it is wide, and the labels."""
        layers = plan.recipe.label_layers or plan.layers
        return {"layers": list(layers), "hidden": encoder.hidden_size, "names": ["", *plan.labels]}

    def read(self, products: Sides, n_words: Tensor) -> SpanScores:
        """Score every label of every span of a batch, before the softmax."""
        begin, end, word_begin, word_end = self.ends_of(products)
        spans = begin[:, :, None] + (end + self.bias[0])[:, None]
        spans[torch.arange(len(n_words), device=n_words.device), 0, n_words] += self.bias[2]
        word = torch.arange(spans.shape[1] - 1, device=spans.device)
        spans[:, word, word + 1] = word_begin[:, :-1] + word_end[:, 1:] + self.bias[1]
        none = spans.new_zeros(spans.shape[:3], dtype=torch.float64)
        return SpanScores(none, none, n_words, spans, self.names)


class TagPart(NameReader):
    """Scores of tags, linear in the states on both sides of where a word begins and ends.

    Each word gets the tag of the highest score; the part's span scores are 0. The weights are
    fitted like those of labels (:mod:`attree.training.label_fit`), not trained by steps. The part
    reads the same layers as labels, and has no names if the trees have no tags.
    """

    #: Begin and end of a word.
    ends = 2
    biases = 1

    @classmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return the layers of the labels, and the tags of the plan's trees."""
        return {**LabelPart.shape(plan, encoder), "names": list(plan.tags)}

    def read(self, products: Sides, n_words: Tensor) -> SpanScores:
        """Score every tag of every word of a batch."""
        sentences, boundaries, _ = products[0].shape
        none = products[0].new_zeros((sentences, boundaries, boundaries), dtype=torch.float64)
        if not self.names:
            return SpanScores(none, none, n_words)
        begin, end = self.ends_of(products)
        tags = begin[:, :-1] + end[:, 1:] + self.bias[0]
        return SpanScores(none, none, n_words, tags=tags, tag_names=self.names)


def with_tags(trees: Trees, scores: SpanScores) -> Trees:
    """Set the best tag of each word of a batch's trees, if there are scores of tags.

    Raises:
        NotFiniteError: a sentence's scores are NaN or infinite.
    """
    if scores.tags is None:
        return trees
    position = torch.arange(scores.tags.shape[1], device=scores.tags.device)
    words = scores.tags[position < scores.n_words[:, None]]
    if not words.sum().isfinite():
        raise NotFiniteError("not-finite", "a sentence's tag scores are NaN or infinite")
    return replace(trees, tags=words.argmax(-1).int().cpu().numpy(), tag_names=scores.tag_names)


#: Size of the vectors of words as dependents and as heads.
_DEPENDENCY_SIZE = 192
#: The least probability of no second head that counts.
_LEAST_HEADED = 1e-4
#: Spans that are this likely to have no second head are rewarded for being subtrees.
_REWARDED = 0.5
#: Reward of a certain subtree's labels, and of its span: nats for a trust of 1.
_REWARDS = (10.0, 10 / 3)
#: In sentences of at most 8 words, a probability ``p`` of no second head below 0.65 counts more:
#: ``p / 0.65`` to the power of 4 times ``trust`` is multiplied too.
_SHORT, _DOUBTED, _DOUBTS = 8, 0.65, 4.0


class DependencyPart(BoundaryReader):
    """What dependencies say of spans: few with two heads are phrases, most subtrees are.

    A phrase of any grammar has one word whose head lies outside it, and a word with all that
    depends on it is nearly always a phrase. A biaffine classifier (Dozat and Manning 2017) gives
    the probability ``p(h | w)`` that word ``h``, or none, is the head of word ``w``; punctuation is
    its own head. The probability that a span is a phrase is multiplied by that of heads that let it
    be one (:func:`heads_of_spans`), to the power ``trust``; the probability that it is a subtree
    raises the logits of its labels before, and the span's own score. In short sentences, where an
    impossible phrase is all that a reader sees, spans that are likely to have a second head lose
    more.

    The classifier is trained on dependency trees, beside the other parts but apart from them: a
    span's score in training trees, which the other parts know by heart, would teach that heads do
    not matter. So ``trust`` is zero until the parser is trained.

    Attributes:
        trust: :data:`attree.training.recipes.TRUST` in a trained parser.
    """

    reads_layers = True

    def __init__(self, recipe: FewShotRecipe, shape: Shape) -> None:
        super().__init__(recipe, shape)
        size = shape["size"]
        self.dependent = nn.Linear(2 * self.width, size)
        self.head = nn.Linear(2 * self.width, size)
        self.pair = nn.Parameter(torch.zeros(size + 1, size))
        self.root = nn.Parameter(torch.zeros(size))
        self.own = nn.Parameter(torch.zeros(size))
        self.trust: Tensor
        self.register_buffer("trust", torch.zeros(()))

    @classmethod
    def shape(cls, plan: TrainingPlan, encoder: Encoder) -> dict[str, Any]:
        """Return the layers and the sizes."""
        layers, hidden = list(plan.layers), encoder.hidden_size
        return {"layers": layers, "hidden": hidden, "size": _DEPENDENCY_SIZE}

    def start(self, encoder: Encoder, plan: TrainingPlan) -> None:
        """Draw the first weights from the plan's seed."""
        _draw((self.dependent.weight, self.head.weight, self.pair), plan)
        nn.init.zeros_(self.dependent.bias)
        nn.init.zeros_(self.head.bias)

    def sides(self) -> Sides:
        """Return the weights of words as dependents and as heads."""
        # the first piece of a word comes after the boundary before it
        after, before = torch.cat((self.dependent.weight, self.head.weight)).chunk(2, 1)
        return before, after

    def heads(self, products: Sides, n_words: Tensor) -> Tensor:
        """Return the log probability of each word's head, (sentences, words, words + 1)."""
        words = products[1][:, :-1] + products[0][:, 1:]
        words = words + torch.cat((self.dependent.bias, self.head.bias))
        dependent, head = words.relu().chunk(2, -1)
        with_bias = functional.pad(dependent, (0, 1), value=1.0) @ self.pair
        pairs = with_bias @ head.transpose(1, 2) + torch.diag_embed(dependent @ self.own)
        position = torch.arange(words.shape[1], device=words.device)
        outside = functional.pad(position >= n_words[:, None], (0, 1))
        logits = torch.cat((pairs, (dependent @ self.root)[..., None]), -1)
        return logits.masked_fill(outside[:, None], -1e4).log_softmax(-1)

    def read(self, products: Sides, n_words: Tensor) -> SpanScores:
        """Return the heads, and what they add to the scores of every span."""
        heads = self.heads(products, n_words)
        side = heads.shape[2]
        span = torch.zeros(len(heads), side, side, dtype=torch.float64, device=heads.device)
        phrase = None
        if trust := float(self.trust):
            words, likely = n_words.cpu().numpy(), heads.detach().exp().cpu().numpy()
            headed, subtree = heads_of_spans(likely, words)
            sure = trust * np.where(headed < _REWARDED, 0.0, subtree)
            lower = np.log(np.maximum(headed, _LEAST_HEADED))
            short = (words <= _SHORT)[:, None, None]
            lower += _DOUBTS * short * np.minimum(lower - np.log(_DOUBTED), 0.0)
            phrase = torch.from_numpy(np.stack((_REWARDS[0] * sure, trust * lower), -1)).to(heads)
            span = torch.from_numpy(_REWARDS[1] * sure).to(span)
        return SpanScores(span, span, n_words, phrase=phrase, heads=heads)


@kernel
def heads_of_spans(
    likely: NDArray[np.float32], n_words: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return how probable it is that heads let a span be a phrase, and that it is a subtree.

    A word is a head of a span where its own head lies outside: ``p(w) = Σ p(h | w)`` over the
    words ``h`` outside. A phrase has no second head, and only the whole sentence ends with its
    final punctuation, which is its own head. A span is a subtree if exactly one of its words is a
    head, no word outside has its head inside, and neither its first nor its last word is its own
    head. Words count as independent.

    Args:
        likely: (sentences, words, words + 1), probability of each word's head.
        n_words: (sentences,).

    Returns:
        two arrays, (sentences, words + 1, words + 1); 1 and 0 for single words and the whole
        sentence.
    """
    side = likely.shape[2]
    headed = np.ones((len(n_words), side, side), np.float32)
    subtrees = np.zeros((len(n_words), side, side), np.float32)
    before = np.zeros((side, side + 1), np.float32)
    for b in range(len(n_words)):
        n = n_words[b]
        for w in range(n):
            for h in range(n):
                before[w, h + 1] = before[w, h] + likely[b, w, h]
        for i in range(n):
            for j in range(i + 2, n + 1):
                one = np.float32(0.0)
                none = closed = np.float32(1.0)
                for w in range(n):
                    inside = min(before[w, j] - before[w, i], np.float32(1.0))
                    if i <= w < j:
                        outside = np.float32(1.0) - inside
                        one = one * inside + none * outside
                        none *= inside
                    else:
                        closed *= np.float32(1.0) - inside
                edges = (1.0 - likely[b, i, i]) * (1.0 - likely[b, j - 1, j - 1])
                headed[b, i, j], subtrees[b, i, j] = none + one, one * closed * edges
            if i < n - 1:
                headed[b, i, n] *= 1.0 - likely[b, n - 1, n - 1]
        headed[b, 0, n], subtrees[b, 0, n] = 1.0, 0.0
    return headed, subtrees


#: part → its class; to add a part, add a line
PARTS: dict[str, type[ScorePart]] = {
    "projection": ProjectionPart,
    "boundary": BoundaryPart,
    "heads": HeadPart,
    "labels": LabelPart,
    "tags": TagPart,
    "spans": SpanPart,
    "dependencies": DependencyPart,
}


def sum_parts(parts: list[SpanScores]) -> SpanScores:
    """Sum the span scores of several parts; take the rectangle table of the first.

    What dependencies say of phrases is put into the labels' own table.
    """
    first, *others = parts
    span = sum((part.span for part in others), first.span)
    labelled = next((part for part in parts if part.labels is not None), first)
    tagged = next((part for part in parts if part.tags is not None), first)
    headed = next((part for part in parts if part.heads is not None), first)
    labels, phrase, heads = labelled.labels, headed.phrase, headed.heads
    if labels is not None and phrase is not None:
        shares = labels.softmax(-1)
        any_label = shares[..., 1:].sum(-1).clamp(min=1e-37)
        told = told_by_heads((any_label / shares[..., 0].clamp(min=1e-37)).log(), phrase)
        if labels.requires_grad:  # the gradient needs the labels as they were
            labels = labels.clone()
        elif heads is not None and tagged.tags is not None:
            is_verb = [name in _VERBS for name in tagged.tag_names]
            verbal = headed_by(tagged.tags.softmax(-1)[..., is_verb].sum(-1), heads, first.n_words)
            told = told + _name_by_heads(labels, shares, any_label, verbal, labelled.label_names)
        labels[..., 1:] += told[..., None]
    return replace(
        labelled,
        table=first.table,
        span=span,
        labels=labels,
        tags=tagged.tags,
        tag_names=tagged.tag_names,
        phrase=phrase,
        heads=heads,
    )


#: A phrase with such a head, of Universal Dependencies, has none of these universal labels.
_VERBS, _NOT_VERBAL = ("VERB", "AUX"), ("AJP", "AVP", "NP")


def _name_by_heads(
    labels: Tensor, shares: Tensor, any_label: Tensor, verbal: Tensor, names: Sequence[str]
) -> Tensor:
    """Lower labels that no phrase with a verb as head has, in place; return what all gain by it.

    Parsers learn this from trees of few languages, and call an object with its verb a noun phrase
    where the verb comes last. The gain, (sentences, n + 1, n + 1), leaves a span as probable as it
    is.

    Args:
        labels: (sentences, n + 1, n + 1, labels), logits, the empty label first.
        shares: their softmax.
        any_label: (sentences, n + 1, n + 1), its sum over all labels but the empty one.
        verbal: (sentences, n + 1, n + 1), the probability that the head is a verb.
        names: of the labels.
    """
    lowered = labels.new_tensor([parted(name or "X")[-1] in _NOT_VERBAL for name in names])
    verbal = verbal.clamp(max=0.98).to(labels)
    share = shares @ lowered / any_label
    labels.addcmul_(torch.log1p(-verbal)[..., None], lowered)
    return -torch.log1p(-verbal * share.clamp(max=1))


@dataclass(frozen=True, slots=True)
class Batch:
    """Features of a batch of sentences.

    Attributes:
        n_words: (sentences,) int64.
        features: part → its features.
        nbytes: bytes of the encoder's output from which they were made.
    """

    n_words: Tensor
    features: dict[str, Any]
    nbytes: int = 0


class _Shared:
    """Parts that read the same boundaries, with packed copies of their weights.

    Args:
        parts: by name.
        dtype: to multiply in; scores are summed in wider types.
    """

    def __init__(self, parts: Mapping[str, BoundaryReader], dtype: torch.dtype) -> None:
        before, after = zip(*(part.sides() for part in parts.values()), strict=True)
        self._parts, self._sizes, self._dtype = parts, [len(weights) for weights in before], dtype
        self._sides = [packed(torch.cat(side).to(dtype)) for side in (before, after)]

    def scores(self, batch: Batch) -> dict[str, SpanScores]:
        """Score every span of a batch by each part, from one product for all of them."""
        pairs = zip(self._sides, batch.features[next(iter(self._parts))], strict=True)
        sides = [side(x.to(self._dtype)).float().split(self._sizes, -1) for side, x in pairs]
        parts = zip(self._parts.items(), zip(*sides, strict=True), strict=True)
        return {name: part.read(sides, batch.n_words) for (name, part), sides in parts}


class SpanScorer(nn.Module):
    """Sum the span scores of the parts of a recipe.

    Args:
        recipe: with the names of the parts.
        shapes: part → its settings.
        made: existing parts to use, sharing their weights.
    """

    def __init__(
        self,
        recipe: FewShotRecipe,
        shapes: Mapping[str, Shape],
        made: Mapping[str, ScorePart] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        self.shapes = shapes
        parts = {x: made.get(x) or PARTS[x](recipe, shapes[x]) for x in recipe.parts}
        self.parts = nn.ModuleDict(parts)
        self._shared: list[_Shared] = []

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.parameters()).device

    def each(self) -> dict[str, ScorePart]:
        """Return the parts by name."""
        return dict(self.parts.items())  # type: ignore[arg-type]

    def layout(self) -> Layout:
        """Return which of an encoder's features the parts read."""
        parts = self.each().values()
        layers = sorted({layer for part in parts for layer in part.layers})
        return Layout(tuple(layers), max(part.encoder_heads for part in parts))

    def reads(self) -> dict[str, tuple[Any, ...]]:
        """Return what the features of each part depend on."""
        return {name: part.reads() for name, part in self.each().items()}

    def lay_out(self, output: EncoderOutput) -> Batch:
        """Return the features of a batch for every part, on the device of the output.

        Parts that read the same share them.
        """
        made: dict[Any, Any] = {}
        features = {}
        for name, part in self.each().items():
            key = (type(part).lay_out, part.reads())
            if key not in made:
                made[key] = part.lay_out(output)
            features[name] = made[key]
        tensors = [output.attention, *output.states.values()]
        return Batch(output.batch.n_words, features, sum(tensor.nbytes for tensor in tensors))

    def freeze(self, dtype: torch.dtype = torch.float32) -> None:
        """Pack copies of the weights for parsing, those of parts that read the same together.

        The weights must not be trained any more.

        Args:
            dtype: of the encoder's states, which parts multiply by their weights.
        """
        groups: dict[Any, dict[str, BoundaryReader]] = {}
        for name, part in self.each().items():
            if isinstance(part, ProjectionPart):
                part.projection.freeze(dtype)
            if isinstance(part, BoundaryReader):
                groups.setdefault(part.reads(), {})[name] = part
        self._shared = [_Shared(group, dtype) for group in groups.values()]

    def scores(self, batch: Batch, noise: Noise = None) -> SpanScores:
        """Score every span of a batch, with dropout if ``noise`` is given."""
        scored: dict[str, SpanScores] = {}
        for shared in self._shared:
            scored |= shared.scores(batch)
        parts = [
            scored.get(name) or part.scores(batch.features[name], batch.n_words, noise)
            for name, part in self.each().items()
        ]
        return sum_parts(parts)

    def association(self, batch: Batch) -> Tensor:
        """Return the trained association, (sentences, words, words).

        Raises:
            AttreeError: no part has one.
        """
        part = self.each().get("projection")
        if not isinstance(part, ProjectionPart):
            problem = "this parser has no trained association"
            raise AttreeError("no-association", problem, fix="choose fpio or fpoa")
        return part.attention(batch.features["projection"])

    def groups(self) -> list[dict[str, Any]]:
        """Return the optimiser's parameter groups, each part with its own learning rate."""
        parts = self.each().values()
        return [{"params": list(part.parameters()), "lr": part.learning_rate} for part in parts]


class BatchSource:
    """Batches of kept features for a scorer.

    Args:
        features: of all layers that the scorer reads, or more.
        scorer: which reads the features, on its device.
        indices: which sentences, in the order of the training trees; all by default.
    """

    def __init__(
        self, features: Features, scorer: SpanScorer, indices: Sequence[int] | None = None
    ) -> None:
        self._layout, self._scorer = features.layout, scorer
        every = features.records
        self._records = every if indices is None else [every[index] for index in indices]

    @classmethod
    def of(
        cls, encoder: Encoder, sentences: Sequence[Sequence[str]], scorer: SpanScorer
    ) -> BatchSource:
        """Run the encoder over sentences, and keep the features that a scorer reads."""
        return cls(features_of(encoder, sentences, scorer.layout()), scorer)

    def lengths(self) -> list[int]:
        """Return the number of pieces of each sentence."""
        return [len(record.pieces.ids) for record in self._records]

    def groups(self) -> list[dict[str, Any]]:
        """Return the optimiser's parameter groups: none, since kept features do not change."""
        return []

    def batch(self, indices: Sequence[int]) -> Batch:
        """Return the features of the sentences numbered ``indices``."""
        records = [self._records[index] for index in indices]
        scorer = self._scorer
        return scorer.lay_out(read_back(records, self._layout, scorer.layout(), scorer.device))
