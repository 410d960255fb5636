"""From batches of features to trees: the one way, wherever features are from.

A parser's *model* does what differs between kinds of parsers, in two steps: it runs the encoder
over a batch and keeps what trees are made from, then makes the trees. Everything else is here:
what becomes of sentences that the encoder cannot take or whose numbers are not finite, what is
known of trees, and the order. Features come from the encoder, from those that were kept, or from
the attention stage's shards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from attree.base.errors import NotFiniteError
from attree.base.schemas import FAILED, FALLBACK
from attree.decoding.batch import decode
from attree.decoding.constrained import SplitChart, branched_right
from attree.decoding.fixed import fixed_trees
from attree.trees.constraints import NOTHING_KNOWN, Constraints, Known
from attree.trees.tree import NO_LABEL
from attree.trees.trees import Trees

if TYPE_CHECKING:
    from attree.decoding.k_best import Ranked
    from attree.encoder.load import Encoder
    from attree.encoder.pieces import Pieces


class SentenceScores(Protocol):
    """What kinds of parsers keep of one sentence."""

    def trees(self, constraints: Constraints) -> Trees:
        """Return the one tree that keeps to constraints."""

    def best(self, k: int) -> Ranked:
        """Return the best k trees, or all where there are fewer."""

    def marginals(self, constraints: Constraints) -> NDArray[np.float64]:
        """(n + 1, n + 1): the probability of every phrase under constraints."""

    def entropy(self) -> float:
        """Return the entropy of the distribution over binary trees, in nats."""


class Decoder(Protocol):
    """What makes trees of features.

    Attributes:
        labelled: whether spans of trees have labels.
        tagged: whether words of trees have tags.
        has_distribution: whether spans of trees have marginals.
    """

    labelled: bool
    tagged: bool
    has_distribution: bool

    def trees(self, features: Any, known: Known = NOTHING_KNOWN) -> Trees:
        """Return a tree, with the scores of its spans, for each sentence of the batch.

        Args:
            features: of the batch.
            known: position in the batch → what is known of the tree, which keeps to it. The other
                trees are as they are without.

        Raises:
            NotFiniteError: a sentence's scores are NaN or infinite.
        """


class Model(Decoder, Protocol):
    """What kinds of parsers differ in; the steps may be taken by different threads.

    Attributes:
        encoder: turns words into pieces.
    """

    encoder: Encoder

    def features(self, pieces: Sequence[Pieces]) -> Any:
        """Run the encoder over one batch and keep what trees are made from."""

    def chart(self, features: Any) -> SentenceScores:
        """Keep the scores of the one sentence of a batch, to be decoded again."""

    def associations(self, features: Any) -> list[NDArray[np.float32]]:
        """Return the (words, words) association of each sentence of the batch."""


@dataclass(slots=True)
class Prepared:
    """Sentences on their way through a parser.

    Attributes:
        decoder: makes trees of features; a :class:`Model` where the encoder gives these.
        n_words: words of each sentence.
        status: of each sentence.
        batches: positions of the sentences of each batch.
        known: position → what is known of that sentence's tree.
        pieces: word pieces of each sentence, where the encoder gives features.
    """

    decoder: Any
    n_words: NDArray[np.int64]
    status: NDArray[np.str_]
    batches: list[NDArray[np.int64]]
    known: Known = field(default_factory=dict)
    pieces: Sequence[Pieces] = ()

    def encode(self, batch: NDArray[np.int64]) -> Any:
        """Run the encoder over one batch; return what :meth:`decode` takes."""
        return self.decoder.features(self.pieces_of(batch))

    def pieces_of(self, batch: NDArray[np.int64]) -> list[Pieces]:
        """Return the pieces of one batch."""
        return [self.pieces[position] for position in batch.tolist()]

    def decode(self, batch: NDArray[np.int64], features: Any) -> Trees:
        """Return the trees of one batch; a sentence whose scores are not finite is ``failed``.

        Raises:
            NotFiniteError: there is such a sentence, and the encoder does not give the features.
        """
        try:
            trees: Trees = self.decoder.trees(features, self._known_of(batch))
            return trees
        except NotFiniteError:
            if not self.pieces:
                raise
        if len(batch) > 1:
            rows = np.split(batch, len(batch))
            return Trees.concatenate([self.decode(row, self.encode(row)) for row in rows])
        self.status[batch] = FAILED
        return self._branched_right(batch)

    def assemble(self, trees: Sequence[Trees]) -> Trees:
        """Put the trees of all batches in the sentences' order; the others are branched right."""
        done = np.concatenate([np.zeros(0, np.int64), *self.batches])
        rest = np.setdiff1d(np.arange(len(self.n_words)), done)
        order = np.argsort(np.concatenate([done, rest]), kind="stable")
        return Trees.concatenate([*trees, self._branched_right(rest)]).take(order)

    def trees(self, features: Iterable[Any] | None = None) -> Trees:
        """Return the tree of every sentence.

        Args:
            features: of each batch; by default the encoder is run.
        """
        encoded = map(self.encode, self.batches) if features is None else features
        return self.assemble([self.decode(*x) for x in zip(self.batches, encoded, strict=True)])

    def _known_of(self, positions: NDArray[np.int64]) -> dict[int, Constraints]:
        """Return what is known of the trees of some sentences, by their rows among these."""
        rows = enumerate(positions.tolist())
        return {row: self.known[position] for row, position in rows if position in self.known}

    def _branched_right(self, positions: NDArray[np.int64]) -> Trees:
        """Return right-branching trees without scores; labels and tags are dummies."""
        n_words, labelled = self.n_words[positions], self.decoder.labelled
        trees = fixed_trees(FALLBACK, n_words)
        if labelled:
            trees = trees.labelled([NO_LABEL] * trees.starts.size)
        known = self._known_of(positions).items()
        trees = trees.replaced(
            {i: branched_right(int(n_words[i]), x, labelled=labelled) for i, x in known}
        )
        none = np.full(trees.starts.size, np.nan)
        marginals = none if self.decoder.has_distribution else None
        trees = replace(trees, scores=none, marginals=marginals)
        return trees.tagged([NO_LABEL] * int(n_words.sum())) if self.decoder.tagged else trees


class Matrices(NamedTuple):
    """Association matrices of a batch.

    Attributes:
        values: all (words, words) matrices, flat, one after the other.
        n_words: int64 (sentences,).
        numbers: by which errors name sentences; their positions by default.
    """

    values: NDArray[Any]
    n_words: NDArray[np.int64]
    numbers: NDArray[np.int32] | None = None


class MatrixDecoder:
    """Makes a tree of a sentence's association matrix.

    Args:
        recipe: names of the association, the score and the decoder.
        scored: whether spans have the scores of their splits.
    """

    labelled = tagged = has_distribution = False

    def __init__(self, recipe: Mapping[str, Any], *, scored: bool = True) -> None:
        self.settings, self.scored = recipe, scored

    def trees(self, features: Matrices, known: Known = NOTHING_KNOWN) -> Trees:
        """Decode; the score of a span is that of its split."""
        values, n_words, numbers = features
        trees = decode(values, n_words, sentences=numbers, scored=self.scored, **self.settings)
        return trees.replaced({row: self.chart(features, row).trees(x) for row, x in known.items()})

    def chart(self, features: Matrices, row: int = 0) -> SplitChart:
        """Keep the scores of one sentence of a batch."""
        values, n_words, _ = features
        begin, n = int((n_words[:row] ** 2).sum()), int(n_words[row])
        return SplitChart.of(values[begin : begin + n * n], [n], **self.settings)
