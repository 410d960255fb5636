"""The families of encoders: all that differs between them and cannot be asked of the model.

What their configurations call things, where the query and key projections lie, and how a masked
language model of the family makes its logits. A new family is one line of :data:`FAMILIES`.
Attention itself is captured by one mechanism for all of them (:mod:`attree.encoder.attention`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

#: a masked language model, top states (n, hidden) → logits (n, vocabulary). The models' own
#: ``forward`` makes logits for every piece; only the masked ones, a seventh, are wanted.
Logits = Callable[[Any, "torch.Tensor"], "torch.Tensor"]


@dataclass(frozen=True, slots=True)
class Family:
    """Names of one family.

    Args:
        query, key: path of the projections inside one layer; the same path where query, key and
            value are one matrix (rows in that order).
        logits: what the language-model head of ``AutoModelForMaskedLM`` does.
        layers, heads, hidden, positions: keys of ``config.json``.
        starts_after_padding: RoBERTa counts positions from ``pad_token_id + 1``; the ones before
            are never used.
    """

    query: str
    key: str
    logits: Logits
    layers: str = "num_hidden_layers"
    heads: str = "num_attention_heads"
    hidden: str = "hidden_size"
    positions: str = "max_position_embeddings"
    starts_after_padding: bool = False

    def query_key(self, layer: torch.nn.Module) -> tuple[torch.Tensor, ...]:
        """Return the query and key projections of one layer: ``q = W_q x + b_q``.

        Returns:
            ``W_q`` (hidden, hidden), ``b_q`` (hidden,), ``W_k``, ``b_k`` as float32 copies on the
            CPU; output features are rows. A family without biases gets zeros.
        """
        parts = []
        for place, path in enumerate((self.query, self.key)):
            linear: Any = layer.get_submodule(path)
            rows = slice(None)
            if self.query == self.key:
                size = len(linear.weight) // 3
                rows = slice(place * size, (place + 1) * size)
            weight = linear.weight[rows].detach().float().cpu().clone()
            bias = weight.new_zeros(len(weight)) if linear.bias is None else linear.bias[rows]
            parts += [weight, bias.detach().float().cpu().clone()]
        return tuple(parts)


def _bert(logits: Logits, *, starts_after_padding: bool = False) -> Family:
    query, key = "attention.self.query", "attention.self.key"
    return Family(query, key, logits, starts_after_padding=starts_after_padding)


def _distilbert_logits(model: Any, states: torch.Tensor) -> torch.Tensor:
    logits: torch.Tensor = model.vocab_projector(
        model.vocab_layer_norm(model.activation(model.vocab_transform(states)))
    )
    return logits


_ROBERTA = _bert(lambda model, states: model.lm_head(states), starts_after_padding=True)

#: ``model_type`` of ``config.json`` → family. Multilingual BERT is ``bert``.
FAMILIES = {
    "bert": _bert(lambda model, states: model.cls(states)),
    "electra": _bert(
        lambda model, states: model.generator_lm_head(model.generator_predictions(states))
    ),
    "roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "distilbert": Family(
        query="attention.q_lin",
        key="attention.k_lin",
        logits=_distilbert_logits,
        layers="n_layers",
        heads="n_heads",
        hidden="dim",
    ),
    "modernbert": Family(
        query="attn.Wqkv",
        key="attn.Wqkv",
        logits=lambda model, states: model.decoder(model.head(states)),
    ),
}
