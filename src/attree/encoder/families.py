"""The families of encoders: what differs between them and cannot be asked of the model.

Any family of ``transformers`` whose layers lie in one list can be read: a probe, when an encoder is
loaded, refuses what is not read rightly (:mod:`attree.encoder.load`). What is known by name stands
here: where a family's positions begin. A new family needs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attree.base.errors import AttreeError

if TYPE_CHECKING:
    import torch

#: Families whose positions begin at 0, whatever the number of the padding piece is.
_FROM_ZERO = ("bert", "electra", "distilbert", "deberta-v2", "modernbert")
#: Families whose positions begin behind it, as those of most models do that have it at 1.
_BEHIND_PADDING = ("roberta", "camembert", "xlm-roberta", "mpnet")

#: What ``config.json`` may call a size, by family.
_SIZES = {
    "layers": ("num_hidden_layers", "n_layers", "num_layers", "n_layer"),
    "attention heads": ("num_attention_heads", "n_heads", "n_head"),
    "hidden size": ("hidden_size", "dim", "d_model", "emb_dim", "n_embd"),
    "positions": ("max_position_embeddings", "n_positions"),
}

#: What families call the query and key projections of a layer; one matrix may have both.
_FUSED = ("Wqkv", "qkv", "qkv_proj")
_PROJECTIONS = (
    ("query", "q", "q_lin", "q_proj", "query_proj", *_FUSED),
    ("key", "k", "k_lin", "k_proj", "key_proj", *_FUSED),
)


def stated(config: Mapping[str, Any], size: str) -> tuple[str, Any]:
    """Return the key of ``config.json`` that states a size of ``_SIZES``, and its value.

    Where there is none the first key and None.
    """
    names = _SIZES[size]
    key = next((name for name in names if config.get(name)), names[0])
    return key, config.get(key)


def unused_positions(config: Mapping[str, Any]) -> int:
    """Return how many positions come before the first that is used."""
    family, padding = config.get("model_type"), config.get("pad_token_id")
    if family in _FROM_ZERO:
        return 0
    if family in _BEHIND_PADDING:
        return (1 if padding is None else int(padding)) + 1
    return 2 if padding == 1 else 0


def query_key(layer: torch.nn.Module) -> tuple[torch.Tensor, ...]:
    """Return the query and key projections of one layer: ``q = W_q x + b_q``.

    Returns:
        ``W_q`` (hidden, hidden), ``b_q`` (hidden,), ``W_k``, ``b_k`` as float32 copies on the
        CPU; output features are rows. A family without biases gets zeros.

    Raises:
        AttreeError: the layer has no such projections.
    """
    parts = []
    for place, names in enumerate(_PROJECTIONS):
        linear = _projection(layer, names)
        rows = slice(None)
        if len(linear.weight) == 3 * linear.weight.shape[1]:  # query, key and value in one
            size = linear.weight.shape[1]
            rows = slice(place * size, (place + 1) * size)
        weight = linear.weight[rows].detach().float().cpu().clone()
        bias = weight.new_zeros(len(weight)) if linear.bias is None else linear.bias[rows]
        parts += [weight, bias.detach().float().cpu().clone()]
    return tuple(parts)


def _projection(layer: torch.nn.Module, names: tuple[str, ...]) -> Any:
    for path, module in layer.named_modules():
        weight = getattr(module, "weight", None)
        if path.rpartition(".")[2] in names and weight is not None and weight.ndim == 2:
            return module
    raise AttreeError(
        "no-projection",
        f"a layer of this encoder has no {names[0]} projection that attree can find",
        fix="train a parser whose parts do not begin at the encoder's own projections",
    )
