"""The model of a parser that averages attention heads: word pieces → association → tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from attree.association.compute import flatten
from attree.association.sources import HEADS, check_heads, load_source
from attree.decoding import Recipe
from attree.parsers.batches import Matrices, MatrixDecoder

if TYPE_CHECKING:
    from attree.encoder.load import Encoder
    from attree.encoder.pieces import Pieces
    from attree.encoder.source import Head


class HeadsModel(MatrixDecoder):
    """The mean of some heads, scored and decoded (a :class:`attree.parsers.batches.Model`).

    Args:
        encoder: a loaded encoder.
        heads: the heads to average.
        recipe: how their mean is parsed.
        source: the source of association whose units the heads are.
    """

    trained = None

    def __init__(
        self, encoder: Encoder, heads: Sequence[Head], recipe: Recipe, source: str = HEADS
    ) -> None:
        super().__init__(recipe.settings())
        self.heads = check_heads(source, heads, encoder.n_layers, encoder.n_heads)
        self.encoder, self.source = encoder, load_source(source)

    def features(self, pieces: Sequence[Pieces]) -> Matrices:
        """Run the encoder over one batch; return its association, as the attention stage does."""
        n_words = [sentence.n_words for sentence in pieces]
        mean = self.source.matrices(self.encoder, pieces, self.heads).mean(1, keepdim=True)
        return Matrices(flatten(mean, n_words), np.array(n_words, dtype=np.int64))

    def associations(self, features: Matrices) -> list[NDArray[np.float32]]:
        """Return each sentence's (words, words) mean matrix."""
        values, n_words, _ = features
        parts = np.split(values, np.cumsum(n_words**2)[:-1])
        return [part.reshape(n, n) for part, n in zip(parts, n_words, strict=True)]
