"""Measure sentences with a parser: its uncertainty, their vectors, and brackets to annotate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from attree.choosing.ranking import SentenceMeasures
from attree.decoding.constrained import no_distribution
from attree.training.features import Layout, run
from attree.training.inside import entropy
from attree.training.parser import TrainedModel

if TYPE_CHECKING:
    from attree.parsers.parser import Parser


@torch.inference_mode()
def measure(
    parser: Parser,
    words: Sequence[Sequence[str]],
    *,
    advance: Callable[[int], None] = lambda count: None,
) -> SentenceMeasures:
    """Parse sentences once and measure each.

    Args:
        parser: a trained tree CRF.
        words: words of each sentence.
        advance: called with the number of sentences done.

    Returns:
        the measures; the uncertainty of a sentence that cannot be parsed is NaN.

    Raises:
        AttreeError: the parser has no distribution over trees.
    """
    model = parser.model
    if not isinstance(model, TrainedModel) or not model.trained.recipe.has_distribution:
        raise no_distribution()
    scorer, encoder = model.trained.scorer, parser.encoder
    layout = scorer.layout()
    layers = layout.layers or (encoder.n_layers // 2,)
    prepared = parser.prepare(words)
    unsure, brackets = np.full(len(words), np.nan), np.zeros(len(words), np.int64)
    vectors = np.zeros((len(words), encoder.hidden_size), np.float32)
    for batch in prepared.batches:
        output = run(encoder, prepared.pieces_of(batch), Layout(layers, layout.heads))
        finite = output.finite.cpu().numpy()
        if finite.all():
            features = scorer.lay_out(output)
            span = model.trained.span_scores(features).span.cpu().numpy()
            lengths = features.n_words.cpu().numpy()
            unsure[batch] = entropy(span, lengths) / lengths
            brackets[batch] = model.trees(features).n_spans
            states = output.states[layers[len(layers) // 2]].float()  # numpy has no bfloat16
            mask = output.batch.mask[:, :, None].to(states)
            vectors[batch] = ((states * mask).sum(1) / mask.sum(1)).cpu().numpy()
        advance(len(batch))
    return SentenceMeasures(unsure, vectors, brackets)
