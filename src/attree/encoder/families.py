"""The families of encoders: what differs between them and cannot be asked of the model.

Any family of ``transformers`` whose layers lie in one list can be read: a probe, when an encoder is
loaded, refuses what is not read rightly (:mod:`attree.encoder.load`). What is known by name stands
here: the family's masked language model, and where its positions begin. A new family needs nothing
but, to be tuned, its line of :data:`LOGITS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from attree.errors import AttreeError

if TYPE_CHECKING:
    import torch

#: a masked language model, top states (n, hidden) → logits (n, vocabulary). The models' own
#: ``forward`` makes logits for every piece; only the masked ones, a seventh, are wanted.
Logits = Callable[[Any, "torch.Tensor"], "torch.Tensor"]


def _distilbert_logits(model: Any, states: torch.Tensor) -> torch.Tensor:
    logits: torch.Tensor = model.vocab_projector(
        model.vocab_layer_norm(model.activation(model.vocab_transform(states)))
    )
    return logits


def _deberta_logits(model: Any, states: torch.Tensor) -> torch.Tensor:
    if model.legacy:
        logits: torch.Tensor = model.cls(states)
    else:
        logits = model.lm_predictions(states, model.deberta.embeddings.word_embeddings)
    return logits


def _roberta_logits(model: Any, states: torch.Tensor) -> torch.Tensor:
    logits: torch.Tensor = model.lm_head(states)
    return logits


#: ``model_type`` of ``config.json`` → what the head of ``AutoModelForMaskedLM`` does. Multilingual
#: BERT is ``bert``.
LOGITS: dict[str, Logits] = {
    "bert": lambda model, states: model.cls(states),
    "electra": lambda model, states: model.generator_lm_head(model.generator_predictions(states)),
    "roberta": _roberta_logits,
    "camembert": _roberta_logits,
    "xlm-roberta": _roberta_logits,
    "mpnet": _roberta_logits,
    "distilbert": _distilbert_logits,
    "deberta-v2": _deberta_logits,
    "modernbert": lambda model, states: model.decoder(model.head(states)),
}

#: Families whose positions begin at 0, whatever the number of the padding piece is. RoBERTa's
#: begin behind it, at 2, and so do those of most models that have it at 1.
_FROM_ZERO = ("bert", "electra", "distilbert", "deberta-v2", "modernbert")

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
    if family in LOGITS:
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
        f"a layer of this encoder has no {names[0]} projection that attree can find",
        fix="train a parser whose parts do not begin at the encoder's own projections",
    )
