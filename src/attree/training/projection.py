"""The trained association: attention through query and key projections tuned on a few trees.

A :class:`Projection` maps frozen hidden states to a word × word log association: per head
``softmax(QKᵀ/√d)`` over the pieces of the sentence, heads averaged, pieces merged to words
(*to* a word the sum, *from* a word the mean), then ``log(a + 1e-6)``; the logs of several layers
are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attree.base.errors import AttreeError
from attree.base.registry import check_name
from attree.encoder.load import EncoderOutput
from attree.encoder.packed import packed
from attree.encoder.pieces import PieceBatch, WordMerger
from attree.scoring import FLOOR
from attree.training.recipes import STARTS


@dataclass(frozen=True, slots=True)
class StateBatch:
    """Flat hidden states of a batch of sentences, and the positions of their pieces and words.

    Attributes:
        states: (layers, rows, hidden), the sentences one after the other, in the encoder's type.
        rows: (rows,), each piece's index in the flattened (sentence, piece) grid; None if the
            states are those of the whole grid.
        pieces: the padded grid, without pieces that are not in the softmax.
    """

    states: Tensor
    rows: Tensor | None
    pieces: PieceBatch

    @classmethod
    def of(
        cls, output: EncoderOutput, layers: Sequence[int], *, specials: bool, whole: bool = False
    ) -> StateBatch:
        """Take the hidden states of a batch, on the device of the encoder's output.

        Args:
            output: of the encoder.
            layers: which hidden states.
            specials: whether ``[CLS]`` and ``[SEP]`` are in the softmax.
            whole: whether to keep the states of the whole grid, which spares copies.
        """
        batch = output.batch
        kept = batch.mask.bool() if specials else batch.word_of >= 0
        rows = None if whole else kept.flatten().nonzero()[:, 0]
        each = (output.states[layer].flatten(0, 1) for layer in layers)
        flat = torch.stack([x if rows is None else x[rows] for x in each])
        return cls(flat, rows, PieceBatch(batch.ids, kept.long(), batch.word_of, batch.n_words))

    def words(self) -> Tensor:
        """Return a mask of the words of each sentence, (sentences, words) bool."""
        position = torch.arange(self.pieces.max_words, device=self.states.device)
        return position < self.pieces.n_words[:, None]


class Projection(nn.Module):
    """Query and key projections of one or several layers.

    Attributes:
        query, key: (layers, hidden, size) weights, applied on the right of the states.
        query_bias, key_bias: (layers, 1, size).
        heads: number of heads that the size is divided into, each with its own softmax.
        frozen: for each layer the product with query and key, if the weights no longer change.
    """

    def __init__(self, layers: int, hidden: int, size: int, *, heads: int = 1) -> None:
        super().__init__()
        if size % heads:
            problem = f"a projection of size {size} does not divide into {heads} heads"
            fix = "choose a size that is a multiple of the number of heads"
            raise AttreeError("bad-size", problem, fix=fix)
        self.heads = heads
        self.query = nn.Parameter(torch.zeros(layers, hidden, size))
        self.key = nn.Parameter(torch.zeros(layers, hidden, size))
        self.query_bias = nn.Parameter(torch.zeros(layers, 1, size))
        self.key_bias = nn.Parameter(torch.zeros(layers, 1, size))
        self.frozen: Sequence[nn.Module] = ()
        self._dtype = torch.float32

    def freeze(self, dtype: torch.dtype) -> None:
        """Pack a copy of the weights for parsing, query and key of a layer together.

        Args:
            dtype: to multiply in; the softmax is of float32.
        """
        self._dtype = dtype
        weights = torch.cat((self.query, self.key), 2).transpose(1, 2).to(dtype)
        biases = torch.cat((self.query_bias, self.key_bias), 2)[:, 0].to(dtype)
        self.frozen = tuple(map(packed, weights, biases))

    def forward(self, batch: StateBatch, states: Tensor) -> Tensor:
        """Return raw word-level associations, (layers, sentences, words, words), zero-padded.

        Args:
            batch: where the hidden states belong.
            states: these states, after dropout.
        """
        size = self.query.shape[2]
        sentences, pieces = batch.pieces.mask.shape
        width = size // self.heads

        hidden_key = batch.pieces.mask[:, None, None, :].log()  # 0, or -inf where there is none
        attention = []
        for layer, flat in enumerate(states):
            if self.frozen:
                grid = self.frozen[layer](flat.to(self._dtype))
            else:
                flat = flat.float()
                query = torch.addmm(self.query_bias[layer], flat, self.query[layer])
                key = torch.addmm(self.key_bias[layer], flat, self.key[layer])
                grid = torch.cat((query, key), 1)
            if batch.rows is not None:
                grid = grid.new_zeros(sentences * pieces, 2 * size).index_copy(0, batch.rows, grid)
            parts = grid.view(sentences, pieces, 2, self.heads, width).permute(2, 0, 3, 1, 4)
            queries, keys = parts.to(torch.float32, memory_format=torch.contiguous_format)
            logits = (queries / math.sqrt(width)) @ keys.transpose(-1, -2)
            logits += hidden_key
            attention.append(logits.softmax(-1).mean(1))  # (sentences, pieces, pieces)
        # the merger takes any number of matrices a sentence: layers here, in place of heads
        return WordMerger(batch.pieces)(torch.stack(attention, 1)).transpose(0, 1)


def association_of(raw: Tensor, words: Tensor, association: str) -> Tensor:
    """Average raw matrices over layers to one association a sentence, (sentences, words, words).

    ``raw`` averages the layers; ``log`` averages their ``log(a + 1e-6)``. Padding is 0.

    Args:
        raw: (layers, sentences, words, words), non-negative, zero-padded.
        words: (sentences, words) bool, a mask of words.
        association: ``raw`` or ``log``.
    """
    if association == "raw":
        return raw.mean(0)
    return (raw + FLOOR).log().mean(0) * (words[:, :, None] & words[:, None, :])


def initialise(
    projection: Projection,
    weights: Sequence[Sequence[Tensor]],
    *,
    how: str = "encoder",
    generator: torch.Generator | None = None,
) -> None:
    """Set a projection from the encoder's own query and key, or at random.

    If the projection is narrower than the encoder's, each head takes the truncated SVD of its share
    of the query-key product, biases included. The first logits are then the best approximation of
    the encoder's at that rank.

    Args:
        projection: changed in place.
        weights: (query (size, hidden), query bias (size,), key, key bias) of each layer, as
            :meth:`attree.encoder.load.Encoder.query_key` returns them.
        how: ``encoder`` or ``random`` (normal, deviation 0.02, no bias).
        generator: of random weights.

    Raises:
        AttreeError: an unknown start, or a size that the encoder's projection cannot be cut to.
    """
    layers, hidden, size = projection.query.shape
    check_name(how, STARTS, f"unknown start {how!r}")
    with torch.no_grad():
        if how == "random":
            for parameter in (projection.query, projection.key):
                parameter.normal_(0.0, 0.02, generator=generator)
            return
        for layer in range(layers):
            q, qb, k, kb = (part.double() for part in weights[layer])
            query = torch.cat([q.T, qb[None]])
            key = torch.cat([k.T, kb[None]])
            if query.shape[1] != size:
                query, key = _truncate(query, key, size, projection.heads)
            projection.query[layer], projection.query_bias[layer, 0] = query[:hidden], query[hidden]
            projection.key[layer], projection.key_bias[layer, 0] = key[:hidden], key[hidden]


def _truncate(query: Tensor, key: Tensor, size: int, heads: int) -> tuple[Tensor, Tensor]:
    """Return (hidden + 1, size) factors of the query-key products of all heads, by SVD."""
    rank, width = size // heads, query.shape[1] // heads
    if rank > min(width, query.shape[0]) or query.shape[1] % heads:
        problem = f"a projection of size {size} with {heads} heads cannot start from the encoder's "
        problem += f"query and key of size {query.shape[1]}"
        raise AttreeError("bad-size", problem, fix="choose a smaller size, or a random start")
    queries, keys = [], []
    scale = (rank / width) ** 0.25  # logits are divided by the square root of the head's width
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        u, s, v = torch.linalg.svd(query[:, part] @ key[:, part].T)
        root = s[:rank].sqrt() * scale
        queries.append(u[:, :rank] * root)
        keys.append(v[:rank].T * root)
    return torch.cat(queries, 1), torch.cat(keys, 1)
