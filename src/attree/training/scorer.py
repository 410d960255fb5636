"""Scorers: the parts of a parser put together, and the batches that feed them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from attree.base.errors import AttreeError
from attree.encoder.load import Encoder, EncoderOutput
from attree.training.features import Features, Layout, features_of, read_back
from attree.training.parts import (
    BoundaryPart,
    HeadPart,
    LabelPart,
    ProjectionPart,
    ScorePart,
    Shape,
    SpanPart,
    TagPart,
)
from attree.training.recipes import FewShotRecipe
from attree.training.scores import SpanScores

#: part → what it is; adding one is adding its line
PARTS: dict[str, type[ScorePart]] = {
    "projection": ProjectionPart,
    "boundary": BoundaryPart,
    "heads": HeadPart,
    "labels": LabelPart,
    "tags": TagPart,
    "spans": SpanPart,
}


def added(parts: list[SpanScores]) -> SpanScores:
    """Sum the span scores of several parts; the rectangle table is that of the first."""
    first, *others = parts
    span = first.span
    for other in others:
        span = span + other.span
    labelled = next((part for part in parts if part.labels is not None), first)
    tagged = next((part for part in parts if part.tags is not None), first)
    return SpanScores(
        first.table,
        span,
        first.n_words,
        labelled.labels,
        labelled.label_names,
        tagged.tags,
        tagged.tag_names,
    )


@dataclass(frozen=True, slots=True)
class Batch:
    """Features of a batch of sentences.

    Attributes:
        n_words: (sentences,) int64.
        features: part → what it reads.
        nbytes: bytes of the encoder's output that they were made from.
    """

    n_words: Tensor
    features: dict[str, Any]
    nbytes: int = 0


class SpanScorer(nn.Module):
    """Span scores that are the sum over the parts of a recipe.

    Args:
        recipe: which parts.
        shapes: the settings of each part.
        made: parts that exist already, whose weights are shared.
    """

    def __init__(
        self,
        recipe: FewShotRecipe,
        shapes: Mapping[str, Shape],
        made: Mapping[str, ScorePart] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        kinds = {name: PARTS[name] for name in recipe.parts}
        self.parts = nn.ModuleDict(
            {name: made.get(name) or kind(recipe, shapes[name]) for name, kind in kinds.items()}
        )
        self._rates = {name: kind.learning_rate(recipe) for name, kind in kinds.items()}

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return next(self.parameters()).device

    def each(self) -> dict[str, ScorePart]:
        """Return the parts by name."""
        return dict(self.parts.items())  # type: ignore[arg-type]

    def layout(self) -> Layout:
        """Return what is read of an encoder."""
        parts = self.each().values()
        layers = sorted({layer for part in parts for layer in part.layers})
        return Layout(tuple(layers), max(part.encoder_heads for part in parts))

    def reads(self) -> dict[str, tuple[Any, ...]]:
        """Return what the features of a batch depend on."""
        return {name: part.reads() for name, part in self.each().items()}

    def lay_out(self, output: EncoderOutput) -> Batch:
        """Lay out what an encoder said of a batch for every part, on its device."""
        features = {name: part.lay_out(output) for name, part in self.each().items()}
        tensors = [output.attention, *output.states.values()]
        return Batch(output.n_words, features, sum(tensor.nbytes for tensor in tensors))

    def scores(self, batch: Batch, generator: torch.Generator | None = None) -> SpanScores:
        """Score every span; with a generator, under dropout drawn from it."""
        features, n_words = batch.features, batch.n_words
        return added(
            [part.scores(features[x], n_words, generator) for x, part in self.each().items()]
        )

    def association(self, batch: Batch) -> Tensor:
        """(sentences, words, words): the trained association.

        Raises:
            AttreeError: no part has one.
        """
        for name, part in self.each().items():
            found = part.attention(batch.features[name])
            if found is not None:
                return found
        raise AttreeError("this parser has no trained association", fix="choose fpio or fpoa")

    def groups(self) -> list[dict[str, Any]]:
        """Parameter groups for the optimiser, each part at its own learning rate."""
        return [
            {"params": list(part.parameters()), "lr": self._rates[name]}
            for name, part in self.parts.items()
        ]


class BatchSource:
    """Batches for a scorer out of features that were kept.

    Args:
        features: of more layers than the scorer reads if need be.
        scorer: what lays them out, on its device.
        places: which sentences, in the order that the trainer knows them by; all by default.
    """

    def __init__(
        self, features: Features, scorer: SpanScorer, places: Sequence[int] | None = None
    ) -> None:
        self._layout, self._scorer = features.layout, scorer
        every = features.records
        self._records = every if places is None else [every[place] for place in places]

    @classmethod
    def of(
        cls, encoder: Encoder, sentences: Sequence[Sequence[str]], scorer: SpanScorer
    ) -> BatchSource:
        """Run the encoder over sentences, and keep what a scorer reads of them."""
        return cls(features_of(encoder, sentences, scorer.layout()), scorer)

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self._records)

    def lengths(self) -> list[int]:
        """Return the number of pieces of each sentence."""
        return [len(record.word_of) for record in self._records]

    def batch(self, indices: Sequence[int]) -> Batch:
        """Lay out the sentences numbered ``indices``."""
        records = [self._records[index] for index in indices]
        scorer = self._scorer
        return scorer.lay_out(read_back(records, self._layout, scorer.layout(), scorer.device))
