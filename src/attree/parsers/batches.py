"""Turn batches of features into trees, wherever the features come from.

A parser's *model* has two steps that differ between kinds of parsers: it runs the encoder over a
batch and keeps features, then it makes trees of them. This module does the rest: sentences that
are too long or whose scores are not finite, constraints on trees, and the order of sentences.
Features come from the encoder, from kept features, or from the attention stage's shards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from attree.base.errors import NotFiniteError
from attree.decoding.batch import decode
from attree.decoding.constrained import SplitChart, branched_right
from attree.decoding.fixed import fixed_trees
from attree.trees import FAILED, FALLBACK
from attree.trees.constraints import NOTHING_KNOWN, Constraints, Known
from attree.trees.tree import NO_LABEL
from attree.trees.trees import Trees

if TYPE_CHECKING:
    from attree.decoding.k_best import Ranked
    from attree.encoder.load import Encoder
    from attree.encoder.pieces import Pieces
    from attree.training.parser import TrainedParser


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def in_threads(
    work: Callable[[_Item], _Result], items: Iterable[_Item], count: int
) -> Iterator[_Result]:
    """Yield ``work(item)`` of each item, in order, computed in threads of one core each.

    Batches side by side use several cores better than threads that share the products of one batch:
    these are so small that sharing them, and waiting for the slowest, takes as long as it saves.

    Args:
        work: lets go of the interpreter's lock most of the time.
        items: what to work on; at most two for each thread are in work or wait to be yielded.
        count: number of threads; with 1, the calling thread works.
    """
    if count <= 1:
        yield from map(work, items)
        return
    import torch

    threads = torch.get_num_threads()
    waiting: deque[Future[_Result]] = deque()
    pool = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,))
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) >= 2 * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # which new threads of the process take over


def threads_of(model: Any) -> int:
    """Return in how many threads a model's batches are best computed: on a CPU, one for each core.

    The number of cores is that of torch's threads.
    """
    if (device := getattr(model.encoder, "device", None)) is None or device.type != "cpu":
        return 1
    import torch

    return torch.get_num_threads()


class SentenceScores(Protocol):
    """A parser's scores of one sentence."""

    def trees(self, constraints: Constraints) -> Trees:
        """Return the best tree that keeps to the constraints, as a batch of one."""

    def best(self, k: int) -> Ranked:
        """Return the best k trees, or all if there are fewer."""

    def marginals(self, constraints: Constraints) -> NDArray[np.float64]:
        """Return (n + 1, n + 1): the probability of every span under the constraints."""


class Model(Protocol):
    """The part of a parser that differs between kinds; its steps may run in different threads.

    Attributes:
        encoder: turns words into pieces.
        labelled: whether spans have labels.
        tagged: whether words have tags.
        has_distribution: whether spans have marginals.
    """

    encoder: Encoder
    labelled: bool
    tagged: bool
    has_distribution: bool

    @property
    def trained(self) -> TrainedParser | None:
        """What trees trained, if they did."""

    def features(self, pieces: Sequence[Pieces]) -> Any:
        """Run the encoder over one batch and return the features that trees are made from."""

    def trees(self, features: Any, known: Known = NOTHING_KNOWN) -> Trees:
        """Return a tree, with the scores of its spans, for each sentence of the batch.

        Args:
            features: features of the batch.
            known: position in the batch → constraints that the tree keeps to; they do not change
                the other trees.

        Raises:
            NotFiniteError: the scores of a sentence are NaN or infinite.
        """

    def chart(self, features: Any) -> SentenceScores:
        """Return the scores of the only sentence of a batch, for repeated decoding."""

    def associations(self, features: Any) -> list[NDArray[np.float32]]:
        """Return the (words, words) association of each sentence of the batch."""


@dataclass(slots=True)
class Prepared:
    """Sentences that are ready to be parsed.

    Attributes:
        decoder: makes trees of features; a :class:`Model` if the encoder computes these.
        n_words: int64 (sentences,), words.
        status: status of each sentence.
        batches: positions of the sentences of each batch.
        known: position of a sentence → constraints on its tree.
        pieces: word pieces of each sentence, if the encoder computes features.
    """

    decoder: Any
    n_words: NDArray[np.int64]
    status: NDArray[np.str_]
    batches: list[NDArray[np.int64]]
    known: Known = field(default_factory=dict)
    pieces: Sequence[Pieces] = ()

    def encode(self, batch: NDArray[np.int64]) -> Any:
        """Run the encoder over one batch; return features for :meth:`decode`."""
        return self.decoder.features(self.pieces_of(batch))

    def pieces_of(self, batch: NDArray[np.int64]) -> list[Pieces]:
        """Return the pieces of one batch."""
        return [self.pieces[position] for position in batch.tolist()]

    def decode(self, batch: NDArray[np.int64], features: Any) -> Trees:
        """Return the trees of one batch; sentences whose scores are not finite are ``failed``.

        Raises:
            NotFiniteError: there is such a sentence, and the features do not come from the encoder.
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
        """Put the trees of all batches in the order of sentences; the others branch right."""
        done = np.concatenate([np.zeros(0, np.int64), *self.batches])
        rest = np.setdiff1d(np.arange(len(self.n_words)), done)
        order = np.argsort(np.concatenate([done, rest]), kind="stable")
        return Trees.concatenate([*trees, self._branched_right(rest)]).take(order)

    def trees(self, features: Iterable[Any]) -> Trees:
        """Return the tree of every sentence, given the features of each batch."""
        return self.assemble([self.decode(*x) for x in zip(self.batches, features, strict=True)])

    def _known_of(self, positions: NDArray[np.int64]) -> dict[int, Constraints]:
        """Return row of ``positions`` → constraints on the tree of the sentence there."""
        rows = enumerate(positions.tolist())
        return {row: self.known[position] for row, position in rows if position in self.known}

    def _branched_right(self, positions: NDArray[np.int64]) -> Trees:
        """Return right-branching trees with dummy labels and tags, and NaN for scores."""
        n_words, labelled = self.n_words[positions], self.decoder.labelled
        trees = fixed_trees(FALLBACK, n_words)
        if labelled:
            trees = trees.labelled([NO_LABEL] * trees.starts.size)
        known = self._known_of(positions).items()
        trees = trees.replaced(
            {i: branched_right(int(n_words[i]), limits, labelled=labelled) for i, limits in known}
        )
        none = np.full(trees.starts.size, np.nan)
        marginals = none if self.decoder.has_distribution else None
        trees = replace(trees, scores=none, marginals=marginals)
        return trees.tagged([NO_LABEL] * int(n_words.sum())) if self.decoder.tagged else trees


class Matrices(NamedTuple):
    """Association matrices of a batch.

    Attributes:
        values: all (words, words) matrices, flattened, one after the other.
        n_words: int64 (sentences,), words.
        numbers: numbers that name the sentences in errors; their positions by default.
    """

    values: NDArray[Any]
    n_words: NDArray[np.int64]
    numbers: NDArray[np.int32] | None = None


class MatrixDecoder:
    """Makes trees of association matrices.

    Args:
        recipe: names of the association, the score and the decoder.
        scored: whether spans get the scores of their splits.
    """

    labelled = tagged = has_distribution = False

    def __init__(self, recipe: Mapping[str, Any], *, scored: bool = True) -> None:
        self.settings, self.scored = recipe, scored

    def trees(self, features: Matrices, known: Known = NOTHING_KNOWN) -> Trees:
        """Return a tree for each matrix; the score of a span is that of its split."""
        values, n_words, numbers = features
        trees = decode(values, n_words, sentences=numbers, scored=self.scored, **self.settings)
        return trees.replaced({row: self.chart(features, row).trees(x) for row, x in known.items()})

    def chart(self, features: Matrices, row: int = 0) -> SplitChart:
        """Return the split scores of one sentence of a batch."""
        values, n_words, _ = features
        begin, n = int((n_words[:row] ** 2).sum()), int(n_words[row])
        return SplitChart.of(values[begin : begin + n * n], [n], **self.settings)
