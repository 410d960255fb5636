"""The parser that averages attention heads, loaded: word pieces → association → tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attree.association.compute import flatten
from attree.association.sources import HEADS, checked, load_source
from attree.decoding import Recipe
from attree.decoding.batch import decode
from attree.decoding.constrained import SplitChart
from attree.encoder.load import Encoder
from attree.encoder.pieces import Pieces
from attree.encoder.source import Head
from attree.trees.constraints import NOTHING_KNOWN, Known
from attree.trees.trees import Trees

#: The flat associations of a batch, float32, and the words of each sentence.
Features = tuple[NDArray[Any], NDArray[np.int64]]


class HeadsModel:
    """The mean of some heads, scored and decoded (a :class:`attree.parsers.find.Model`).

    Args:
        encoder: a loaded encoder.
        heads: averaged.
        recipe: how their mean is parsed.
        source: whose units the heads are.
    """

    labelled = tagged = has_distribution = False

    def __init__(
        self, encoder: Encoder, heads: Sequence[Head], recipe: Recipe, source: str = HEADS
    ) -> None:
        self.heads = checked(source, heads, encoder.n_layers, encoder.n_heads)
        self.encoder, self.recipe, self.source = encoder, recipe, load_source(source)

    def features(self, pieces: Sequence[Pieces]) -> Features:
        """Run the encoder over one batch and keep its association, as the attention stage does."""
        n_words = [one.n_words for one in pieces]
        mean = self.source.matrices(self.encoder, pieces, self.heads).mean(1, keepdim=True)
        return flatten(mean, n_words), np.array(n_words, dtype=np.int64)

    def trees(self, features: Features, known: Known = NOTHING_KNOWN) -> Trees:
        """Decode; the score of a span is that of its split."""
        found = decode(*features, **self.recipe.settings(), scored=True)
        kept = {place: self.chart(features, place).trees(one) for place, one in known.items()}
        return found.replaced(kept)

    def chart(self, features: Features, place: int = 0) -> SplitChart:
        """Keep the scores of one sentence of a batch."""
        values, n_words = features
        begin, n = int((n_words[:place] ** 2).sum()), int(n_words[place])
        return SplitChart.of(values[begin : begin + n * n], [n], **self.recipe.settings())

    def associations(self, features: Features) -> list[NDArray[np.float32]]:
        """Return each sentence's (words, words) mean matrix."""
        values, n_words = features
        parts = np.split(values, np.cumsum(n_words**2)[:-1])
        return [part.reshape(n, n) for part, n in zip(parts, n_words, strict=True)]
