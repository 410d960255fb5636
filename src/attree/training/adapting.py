"""Adapt an encoder to trees: train low-rank weights in its layers together with a parser."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from attree.base.errors import AttreeError
from attree.base.terminal import Progress, silent
from attree.encoder import attention
from attree.encoder.device import dtype_on
from attree.encoder.load import Encoder, EncoderOutput
from attree.encoder.low_rank import adapt, weights_of
from attree.encoder.pieces import Pieces, batches, pad
from attree.encoder.weights import layers_of, read_model
from attree.training.features import pieces_of
from attree.training.fit import Learned, start_parser
from attree.training.gold import GoldTrees
from attree.training.label_fit import structure
from attree.training.objectives import train
from attree.training.parts import Batch, BatchSource, SpanScorer
from attree.training.recipes import TrainingPlan
from attree.training.state import TrainingState

#: Word pieces that the encoder is run over at a time, padding included.
_TOKENS_AT_ONCE = 1024


class LiveSource(BatchSource):
    """Run the encoder anew for each batch, so that its weights can be trained.

    Args:
        encoder: whose tokeniser and sizes are used.
        folder: the encoder's checkpoint, loaded once more: the layers of a loaded encoder are laid
            out for speed and cannot be trained.
        sentences: the words of each sentence.
        scorer: the parser's scorer; layers up to the highest one that it reads are adapted.
        plan: of the training.
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
        # the encoder's own weights do not change: in bfloat16 a step takes four fifths of the time
        dtype = getattr(torch, dtype_on(encoder.device))
        self._model = read_model(folder, torch.float32, encoder.device).to(dtype)
        layers = layers_of(self._model, encoder.n_layers, folder)
        attention.watch(layers)
        self._rate = plan.recipe.encoder_rate
        self.adapted = adapt(layers, max(self._layers), plan.recipe.rank, plan.seed)
        if not self.adapted:
            problem = f"the layers of the encoder {encoder.slug} have no linear parts to adapt"
            fix = "take tree-crf-joint, which leaves the encoder as it is"
            raise AttreeError("cannot-adapt", problem, fix=fix)
        self._pieces = pieces_of(encoder, sentences)

    def groups(self) -> list[dict[str, Any]]:
        """Return the optimiser's parameter groups: the low-rank weights."""
        weights = [weight for part in self.adapted.values() for weight in (part.a, part.b)]
        return [{"params": weights, "lr": self._rate}]

    def batch(self, indices: Sequence[int]) -> Batch:
        """Run the encoder over the sentences numbered ``indices`` and lay them out."""
        encoder, pieces = self._encoder, [self._pieces[index] for index in indices]
        batch = pad(pieces, encoder.pad_id).to(encoder.device)
        # sentences of like length together, since a third of a batch would be padding
        lengths = [len(sentence.ids) for sentence in pieces]
        groups = batches(lengths, tokens_per_batch=_TOKENS_AT_ONCE)
        parts = [self._states([pieces[index] for index in group]) for group in groups]
        back = torch.from_numpy(np.argsort(np.concatenate(groups))).to(encoder.device)
        rows = {layer: [row for part in parts for row in part[layer]] for layer in self._layers}
        states = {layer: pad_sequence(each, batch_first=True)[back] for layer, each in rows.items()}
        n = batch.max_words
        none = torch.empty((len(pieces), 0, n, n), device=encoder.device)
        return self._scorer.lay_out(EncoderOutput(none, states, batch, []))

    def _states(self, pieces: Sequence[Pieces]) -> dict[int, Tensor]:
        """Return layer → hidden states of some sentences, (sentences, pieces, hidden)."""
        encoder = self._encoder
        batch = pad(pieces, encoder.pad_id).to(encoder.device)
        states = attention.forward(
            self._model, batch, encoder.n_layers, encoder.n_heads, heads={}, states=self._layers
        )
        return {layer: values.float() for layer, values in states.items()}


def train_adapter(
    encoder: Encoder,
    folder: Path,
    trees: GoldTrees,
    plan: TrainingPlan,
    *,
    resume: Path | None = None,
    progress: Progress = silent,
) -> tuple[dict[str, NDArray[Any]], Learned]:
    """Train low-rank weights of an encoder on trees, and a parser of the adapted encoder.

    Args:
        encoder: a loaded encoder without such weights.
        folder: the encoder's checkpoint.
        trees: to train on.
        plan: of the training; only the parts that are trained by steps are used.
        resume: file that keeps the state of the training, which goes on from it.
        progress: shows how far the training is.

    Returns:
        weight name (see :mod:`attree.encoder.source`) → float16 array, and what
        :func:`attree.training.fit.fit` makes the parser of.

    Raises:
        AttreeError: the encoder is adapted already; see :func:`attree.training.objectives.train`.
    """
    if encoder.adapter:
        problem = f"the encoder {encoder.slug} of this parser is adapted to trees already"
        fix = "take tree-crf-joint, or start from the encoder itself"
        raise AttreeError("adapted-already", problem, fix=fix)
    parser, trees, plan = start_parser(encoder, trees, plan)
    learner = structure(parser)
    source = LiveSource(encoder, folder, trees.words, learner.scorer, plan)
    state = TrainingState(resume)
    how = {"total": plan.steps, "unit": "steps", "done": len(state.losses)}
    with progress("adapting the encoder", **how) as advance:
        report = train(learner.scorer, source, trees, plan, state=state, advance=advance)
    return weights_of(source.adapted), (learner.scorer.state_dict(), report)
