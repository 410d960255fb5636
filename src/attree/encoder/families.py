"""The families of encoders: what their configurations call things, and where their weights lie.

Everything that differs between families and cannot be asked of the model stands in this table; a
further family is one more line. Attention itself is captured by one mechanism for all of them
(:mod:`attree.encoder.attention`).
"""

from __future__ import annotations

from dataclasses import dataclass


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
