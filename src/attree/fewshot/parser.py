"""A trained parser: scorer, decoder, and what it was trained on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attree.encoder.load import Encoder
from attree.encoder.pieces import Pieces
from attree.errors import AttreeError
from attree.evaluation.metrics import f1_of_each
from attree.evaluation.spans import DistinctSpans, distinct_spans
from attree.fewshot.decoders import decode, likelihoods
from attree.fewshot.features import MemoryStore, run_batch
from attree.fewshot.gold import GoldTree
from attree.fewshot.parts import Batch
from attree.fewshot.recipes import Recipe
from attree.fewshot.scorer import Scorer, Shape, Source
from attree.fewshot.scores import SpanScores
from attree.trees import Trees

#: cells of piece-level matrices scored at a time
_CELLS_AT_A_TIME = 40_000


@dataclass(slots=True)
class TrainedParser:
    """A parser trained on a few trees.

    Attributes:
        recipe, shape: what it is.
        scorer: the weights.
        encoder: slug, fingerprint, revision of the encoder it belongs to.
        about: seed, data hash, versions, dev score and the like, as JSON.
        trained_on: :func:`attree.fewshot.draw.fingerprints` of the training sentences.
    """

    recipe: Recipe
    shape: Shape
    scorer: Scorer
    encoder: dict[str, Any]
    about: dict[str, Any] = field(default_factory=dict)
    trained_on: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))

    def check(self, encoder: Encoder) -> None:
        """Refuse an encoder that this parser was not trained with."""
        if encoder.fingerprint != self.encoder["fingerprint"]:
            raise AttreeError(
                f"this parser belongs to the encoder {self.encoder['slug']} "
                f"({self.encoder['fingerprint'][:12]}), not to {encoder.slug} "
                f"({encoder.fingerprint[:12]})",
                fix="parse with the encoder it was trained with, or train anew",
            )

    def features(self, encoder: Encoder, pieces: Sequence[Pieces]) -> Batch:
        """Run the encoder over one batch of sentences, none too long, and lay out what is read."""
        layout = self.shape.layout()
        records = run_batch(encoder, pieces, layout)
        store = MemoryStore(layout, records, [sentence.word_of for sentence in pieces])
        source = Source(store, self.shape, device=str(encoder.device))
        return source.batch(range(len(pieces)))

    @torch.inference_mode()
    def span_scores(self, batch: Batch) -> SpanScores:
        """Score every span of a batch."""
        return self.scorer.scores(batch)

    def trees(self, batch: Batch) -> Trees:
        """Parse one batch."""
        return decode(self.span_scores(batch), score=self.recipe.score, decoder=self.recipe.decoder)

    def decode(self, source: Source) -> Trees:
        """Parse every sentence of a source, in its order."""
        groups = _groups(source.lengths())
        return Trees.concatenate([self.trees(source.batch(places)) for places in groups])

    def decode_with_marginals(self, source: Source) -> tuple[Trees, NDArray[np.float64]]:
        """As :meth:`decode`, and the probability of every span among all binary trees."""
        found, likely = [], []
        for places in _groups(source.lengths()):
            batch = source.batch(places)
            found.append(self.trees(batch))
            likely.append(likelihoods(self.span_scores(batch), found[-1]))
        return Trees.concatenate(found), np.concatenate(likely)

    def f1(self, source: Source, gold: Sequence[GoldTree]) -> float:
        """Corpus F1 in percent, the whole sentence counted, on a source's sentences."""
        return float(f1_of_each(gold_spans(gold), self.decode(source)).corpus_f1[0])

    def threshold(self, text: str) -> float:
        """Read a threshold of span marginals: a number, or ``chosen``.

        Raises:
            AttreeError: no number from 0 to 1, or none was chosen.
        """
        if text == "chosen":
            if "threshold" not in self.about:
                raise AttreeError(
                    "no threshold was chosen for this parser",
                    fix="train a tree CRF with --held-out, or give a number",
                )
            return float(self.about["threshold"])
        try:
            found = float(text)
        except ValueError:
            found = -1.0
        if not 0 <= found <= 1:
            raise AttreeError(f"{text!r} is no probability", fix="give 0 to 1, or chosen")
        return found

    def describe(self) -> dict[str, Any]:
        """Everything but the weights, as JSON."""
        return {
            "recipe": asdict(self.recipe),
            "shape": asdict(self.shape),
            "encoder": self.encoder,
            "about": self.about,
        }


def gold_spans(gold: Sequence[GoldTree]) -> DistinctSpans:
    """The brackets of gold trees as the evaluation takes them."""
    brackets = [[(s, e) for s, e in tree.brackets.tolist()] for tree in gold]
    trees = Trees.from_spans([tree.n_words for tree in gold], brackets)
    return distinct_spans(trees, what="gold tree")


def _groups(lengths: Sequence[int]) -> Iterator[range]:
    """Runs of sentences whose padded matrices stay small, in their order."""
    first, longest = 0, 0
    for place, length in enumerate(lengths):
        longest = max(longest, length)
        if place > first and longest**2 * (place + 1 - first) > _CELLS_AT_A_TIME:
            yield range(first, place)
            first, longest = place, length
    if lengths:
        yield range(first, len(lengths))
