"""An encoder adapted to trees: low-rank weights in its layers, trained along with a parser.

The parser of this training is thrown away. Another one is trained on what the adapted encoder says
of the trees, computed once (:func:`attree.training.fit.fit`): it is as good, and the encoder is
then like any other for whatever is trained on it later.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from attree.base.errors import AttreeError
from attree.base.progress import Progress, silent
from attree.encoder import attention
from attree.encoder.load import Encoder, EncoderOutput
from attree.encoder.low_rank import adapt, weights_of
from attree.encoder.pieces import pad
from attree.encoder.weights import layers_of, read_model
from attree.training.features import pieces_of
from attree.training.fit import start_parser
from attree.training.gold import GoldTrees
from attree.training.label_fit import structure
from attree.training.objectives import train
from attree.training.parts import Batch, BatchSource, SpanScorer
from attree.training.recipes import TrainingPlan


class LiveSource(BatchSource):
    """Batches that the encoder makes anew each time, so that its weights can be trained.

    Args:
        encoder: whose tokeniser and sizes are used.
        folder: its checkpoint, loaded once more: a loaded encoder's layers are laid out for speed,
            and nothing can be trained in them.
        sentences: their words.
        scorer: what reads them; it says how many layers are adapted.
        plan: how.
    """

    def __init__(
        self,
        encoder: Encoder,
        folder: Path,
        sentences: Sequence[Sequence[str]],
        scorer: SpanScorer,
        plan: TrainingPlan,
    ) -> None:
        self._encoder, self._scorer = encoder, scorer
        self._layers = scorer.layout().layers
        if scorer.layout().heads:
            raise AttreeError(
                "cannot-adapt", "a parser that reads attention cannot adapt its encoder"
            )
        self._model = read_model(folder, torch.float32, encoder.device)
        layers = layers_of(self._model, encoder.n_layers, folder)
        attention.watch(layers)
        self._rate = plan.recipe.encoder_rate
        self.adapted = adapt(layers, max(self._layers), plan.recipe.rank, plan.seed)
        if not self.adapted:
            raise AttreeError(
                "cannot-adapt",
                f"the layers of the encoder {encoder.slug} have no linear parts to adapt",
                fix="take tree-crf-joint, which leaves the encoder as it is",
            )
        self._pieces = pieces_of(encoder, sentences)

    def groups(self) -> list[dict[str, Any]]:
        """Parameter groups for the optimiser: the low-rank weights."""
        weights = [weight for part in self.adapted.values() for weight in (part.a, part.b)]
        return [{"params": weights, "lr": self._rate}]

    def batch(self, indices: Sequence[int]) -> Batch:
        """Run the encoder over the sentences numbered ``indices`` and lay them out."""
        encoder, pieces = self._encoder, [self._pieces[index] for index in indices]
        batch = pad(pieces, encoder.pad_id).to(encoder.device)
        states = attention.forward(
            self._model,
            batch.ids,
            batch.mask,
            heads={},
            states=self._layers,
            keep=lambda layer, probabilities: None,
            n_layers=encoder.n_layers,
            n_heads=encoder.n_heads,
        )
        n = batch.max_words
        none = torch.empty((len(pieces), 0, n, n), device=encoder.device)
        return self._scorer.lay_out(EncoderOutput(none, states, batch, []))


def adapted_to(
    encoder: Encoder,
    folder: Path,
    trees: GoldTrees,
    plan: TrainingPlan,
    *,
    progress: Progress = silent,
) -> dict[str, NDArray[Any]]:
    """Train low-rank weights of an encoder on trees.

    Args:
        encoder: a loaded encoder without such weights.
        folder: its checkpoint.
        trees: to train on.
        plan: how; of its recipe's labels and structure those that are trained by steps.
        progress: shows how far it is.

    Returns:
        the weights, float16, by the names of :mod:`attree.encoder.source`.

    Raises:
        AttreeError: the encoder is adapted already; see :func:`attree.training.objectives.train`.
    """
    if encoder.adapter:
        raise AttreeError(
            "adapted-already",
            f"the encoder {encoder.slug} of this parser is adapted to trees already",
            fix="take tree-crf-joint, or start from the encoder itself",
        )
    parser, trees, plan = start_parser(encoder, trees, plan)
    learner = structure(parser)
    source = LiveSource(encoder, folder, trees.words, learner.scorer, plan)
    with progress("adapting the encoder", total=plan.steps, unit="steps") as advance:
        train(learner.scorer, source, trees, plan, advance=advance)
    return weights_of(source.adapted)
