"""The query and key projections of an encoder's layer."""

from __future__ import annotations

import torch

from attree.encoder.families import FAMILIES
from attree.encoder.load import Encoder
from attree.errors import AttreeError


def query_key(
    encoder: Encoder, layer: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """Return the query and key projections that read ``hidden_states[layer]``.

    They are those of encoder layer ``layer``; for the top state, which no layer reads, those of the
    last layer.

    Args:
        encoder: a loaded encoder.
        layer: 0 (the embeddings) to ``encoder.n_layers``.

    Returns:
        ``W_q`` (hidden, hidden), ``b_q`` (hidden,), ``W_k``, ``b_k`` as float32 copies on the CPU
        (output features are rows: ``q = W_q x + b_q``; a head is a run of ``hidden / n_heads``
        rows), and the number of heads. A family without biases gets zeros.

    Raises:
        AttreeError: there is no such layer.
    """
    if not 0 <= layer <= encoder.n_layers:
        raise AttreeError(
            f"the encoder {encoder.slug} has no hidden states of layer {layer}",
            fix=f"choose a layer from 0 to {encoder.n_layers}",
        )
    family = FAMILIES[encoder.family]
    module = encoder.layers[min(layer, encoder.n_layers - 1)]
    parts = []
    for place, path in enumerate((family.query, family.key)):
        linear = module.get_submodule(path)
        assert isinstance(linear, torch.nn.Linear)
        rows = slice(None)
        if family.query == family.key:
            rows = slice(place * encoder.hidden_size, (place + 1) * encoder.hidden_size)
        weight = linear.weight[rows].detach().float().cpu().clone()
        bias = torch.zeros(len(weight)) if linear.bias is None else linear.bias[rows]
        parts += [weight, bias.detach().float().cpu().clone()]
    return parts[0], parts[1], parts[2], parts[3], encoder.n_heads
