"""Scorers: the parts of a parser put together, and the batches that feed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attree.fewshot.features import Layout, Record, Store
from attree.fewshot.parts import Batch, BoundaryPart, HeadPart, ProjectionPart, added
from attree.fewshot.projection import Projection, state_batch
from attree.fewshot.recipes import Recipe
from attree.fewshot.scores import SpanScores


@dataclass(frozen=True, slots=True)
class Shape:
    """What the weights of a parser look like.

    Attributes:
        layers: hidden states that the projection reads; none without one.
        boundary: hidden states that the boundary part reads; none without one.
        encoder_heads: heads of the encoder, all layers together; 0 without head weights.
        hidden: size of the encoder's states.
        size: of the projection.
        heads: of the projection.
        specials: whether ``[CLS]`` and ``[SEP]`` take part in the projection's softmax.
    """

    layers: tuple[int, ...]
    boundary: tuple[int, ...]
    encoder_heads: int
    hidden: int
    size: int
    heads: int
    specials: bool = False

    def layout(self) -> Layout:
        """Return the features that this parser reads."""
        layers = tuple(sorted({*self.layers, *self.boundary}))
        return Layout(layers, self.encoder_heads, self.hidden)


class Scorer(nn.Module):
    """The untrained scorer of a recipe: span scores that are the sum over its parts.

    Args:
        recipe: which parts.
        shape: how large.
    """

    def __init__(self, recipe: Recipe, shape: Shape) -> None:
        super().__init__()
        self.parts = nn.ModuleDict()
        if shape.layers:
            projection = Projection(len(shape.layers), shape.hidden, shape.size, heads=shape.heads)
            self.parts["projection"] = ProjectionPart(
                projection, association=recipe.association, rate=recipe.dropout
            )
        if shape.encoder_heads:
            self.parts["heads"] = HeadPart(
                shape.encoder_heads,
                combination=recipe.combination,
                separate=recipe.separate,
                # beside a trained association the heads begin silent
                first=0.0 if shape.layers else 1.0 / shape.encoder_heads,
            )
        if shape.boundary:
            width = len(shape.boundary) * shape.hidden
            self.parts["boundary"] = BoundaryPart(width, rate=recipe.dropout)
        self.rates = {"projection": recipe.learning_rate, "heads": recipe.head_rate}
        self.rates["boundary"] = recipe.learning_rate

    def scores(self, batch: Batch, generator: torch.Generator | None = None) -> SpanScores:
        """Score every span; with a generator, under dropout drawn from it."""
        return added([part.scores(batch, generator) for part in self.parts.values()])  # type: ignore[operator]

    def groups(self) -> list[dict[str, Any]]:
        """Parameter groups for the optimiser, each part at its own learning rate."""
        return [
            {"params": list(part.parameters()), "lr": self.rates[name]}
            for name, part in self.parts.items()
        ]


class Source:
    """Batches for a scorer out of a store.

    Args:
        store: features; of more layers than the shape's if need be.
        shape: what the scorer reads.
        places: which sentences, in the order that the trainer knows them by; all by default.
        device: where batches go.
    """

    def __init__(
        self,
        store: Store,
        shape: Shape,
        places: Sequence[int] | None = None,
        *,
        device: str = "cpu",
    ) -> None:
        self._store, self._shape, self._device = store, shape, device
        self._places = range(len(store.word_of)) if places is None else places
        self._layers = [store.layout.layers.index(layer) for layer in shape.layers]
        self._boundary = [store.layout.layers.index(layer) for layer in shape.boundary]

    def __len__(self) -> int:
        """Sentences."""
        return len(self._places)

    def lengths(self) -> list[int]:
        """Pieces of each sentence."""
        return [len(self._store.word_of[place]) for place in self._places]

    def batch(self, indices: Sequence[int]) -> Batch:
        """Lay out the sentences numbered ``indices``."""
        places = [self._places[index] for index in indices]
        records = [self._store.record(place) for place in places]
        word_of = [self._store.word_of[place] for place in places]
        n_words = torch.tensor([int(words.max()) + 1 for words in word_of], device=self._device)
        states = before = after = attention = None
        if self._layers:
            kept = [np.flatnonzero((words >= 0) | self._shape.specials) for words in word_of]
            chosen = [
                record.states[self._layers][:, pieces]
                for record, pieces in zip(records, kept, strict=True)
            ]
            words = [words[pieces] for words, pieces in zip(word_of, kept, strict=True)]
            states = state_batch(chosen, words, device=self._device)
        if self._boundary:
            before, after = self._sides(records, word_of)
        if self._shape.encoder_heads:
            attention = self._padded([record.attention for record in records])
        return Batch(n_words, states, before, after, attention)

    def _sides(
        self, records: Sequence[Record], word_of: Sequence[NDArray[np.int32]]
    ) -> tuple[Tensor, Tensor]:
        """States of the pieces before and after every boundary between words."""
        before, after = [], []
        for record, words in zip(records, word_of, strict=True):
            real = np.flatnonzero(words >= 0)
            first = real[np.flatnonzero(np.diff(words[real], prepend=-1))]
            last_special = min(int(real[-1]) + 1, len(words) - 1)
            boundaries = np.append(first, last_special)
            states = record.states[self._boundary].transpose(1, 0, 2)
            after.append(states[boundaries].reshape(len(boundaries), -1))
            left = np.append(np.maximum(boundaries[:-1] - 1, 0), real[-1])
            before.append(states[left].reshape(len(boundaries), -1))
        return self._padded(before), self._padded(after)

    def _padded(self, arrays: Sequence[NDArray[Any]]) -> Tensor:
        """Stack arrays of the same number of axes, zero-padded along each."""
        most = np.max([array.shape for array in arrays], axis=0)
        out = np.zeros((len(arrays), *most), np.float32)
        for row, array in zip(out, arrays, strict=True):
            row[tuple(slice(size) for size in array.shape)] = array
        return torch.from_numpy(out).to(self._device)
