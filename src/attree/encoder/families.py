"""The families of encoders: what their configurations call things, and where their weights lie.

Everything that differs between families and cannot be asked of the model stands in this table; a
further family is one more line. Attention itself is captured by one mechanism for all of them
(:mod:`attree.encoder.attention`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from attree.errors import AttreeError

if TYPE_CHECKING:
    import torch

    from attree.encoder.load import Encoder


@dataclass(frozen=True, slots=True)
class Family:
    """Names of one family.

    Args:
        layers, heads, hidden, positions: keys of ``config.json``.
        query, key: path of the projections inside one layer; the same path where query, key and
            value are one matrix (rows in that order).
        position_offset: positions that are never used: RoBERTa counts from ``pad_token_id + 1``.
    """

    query: str
    key: str
    layers: str = "num_hidden_layers"
    heads: str = "num_attention_heads"
    hidden: str = "hidden_size"
    positions: str = "max_position_embeddings"
    position_offset: int = 0


_BERT = Family(query="attention.self.query", key="attention.self.key")
_ROBERTA = Family(
    query="attention.self.query",
    key="attention.self.key",
    position_offset=2,
)

#: ``model_type`` of ``config.json`` → family. Multilingual BERT is ``bert``.
FAMILIES = {
    "bert": _BERT,
    "electra": _BERT,
    "roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "distilbert": Family(
        query="attention.q_lin",
        key="attention.k_lin",
        layers="n_layers",
        heads="n_heads",
        hidden="dim",
    ),
    "modernbert": Family(query="attn.Wqkv", key="attn.Wqkv"),
}


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
    import torch

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
