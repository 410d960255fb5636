"""Language-model heads: found in a checkpoint, or new and tied to the input embeddings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    set_seed,
)

from attree.encoder.load import read_checkpoint
from attree.encoder.mlm.masking import IGNORED
from attree.errors import AttreeError


def _distilbert(model: Any, states: torch.Tensor) -> torch.Tensor:
    states = model.vocab_layer_norm(model.activation(model.vocab_transform(states)))
    return model.vocab_projector(states)


#: ``model_type`` → logits (n, vocabulary) from top states (n, hidden). The models' own ``forward``
#: makes logits for every piece; only the masked ones, a seventh, are wanted.
HEADS: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "bert": lambda model, states: model.cls(states),
    "electra": lambda model, states: model.generator_lm_head(model.generator_predictions(states)),
    "roberta": lambda model, states: model.lm_head(states),
    "camembert": lambda model, states: model.lm_head(states),
    "xlm-roberta": lambda model, states: model.lm_head(states),
    "distilbert": _distilbert,
    "modernbert": lambda model, states: model.decoder(model.head(states)),
}


def load_for_masking(folder: Path, *, seed: int) -> tuple[PreTrainedModel, bool]:
    """Load a checkpoint in float32 as a masked language model.

    Args:
        folder: what ``save_pretrained`` wrote, with a language-model head or without.
        seed: of the weights of a new head.

    Returns:
        The model, and whether its head is new. A new head's decoder is the input embedding matrix
        itself; its transformation and biases are drawn at random.

    Raises:
        AttreeError: a family without masked-LM head, weights cut short or missing.
    """
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    if config.model_type not in HEADS:
        raise AttreeError(
            f"models of type {config.model_type!r} have no masked-LM head to tune",
            file=folder,
            fix="use one of " + ", ".join(HEADS),
        )
    model, missing = _load(folder, config, seed)
    inside = [name for name in missing if _is_encoder(model, name)]
    if inside:
        raise AttreeError(
            f"the checkpoint lacks {len(inside)} of the encoder's weights ({inside[0]}, …)",
            file=folder,
            fix="check that config.json and model.safetensors belong together",
        )
    if missing and not is_tied(model):
        config.tie_word_embeddings = True
        model, _ = _load(folder, config, seed)
    return model, bool(missing)


def _load(folder: Path, config: Any, seed: int) -> tuple[PreTrainedModel, list[str]]:
    """Return the model and the weights that were not there, sorted; tied ones do not count."""
    set_seed(seed)
    model, missing = read_checkpoint(
        AutoModelForMaskedLM, folder, config=config, dtype=torch.float32
    )
    return model, sorted(missing - set(model.all_tied_weights_keys))


def load_tokeniser(folder: Path) -> PreTrainedTokenizerFast:
    """Load a checkpoint's fast tokeniser."""
    tokeniser = AutoTokenizer.from_pretrained(
        folder, use_fast=True, local_files_only=True, trust_remote_code=False
    )
    if not isinstance(tokeniser, PreTrainedTokenizerFast):
        raise AttreeError("this checkpoint's tokeniser has no fast version", file=folder)
    return tokeniser


def is_tied(model: PreTrainedModel) -> bool:
    """Tell whether the decoder is the input embedding matrix itself."""
    return model.get_output_embeddings().weight is model.get_input_embeddings().weight


def freeze_encoder(model: PreTrainedModel, frozen: bool) -> None:
    """Freeze the encoder, embeddings (and so a tied decoder) included; or let it go again."""
    model.base_model.requires_grad_(not frozen)


def _is_encoder(model: PreTrainedModel, name: str) -> bool:
    return name.startswith(f"{model.base_model_prefix}.") and "pooler" not in name


def masked_loss(model: PreTrainedModel, batch: dict[str, Any], *, mean: bool = True) -> Any:
    """Return the cross-entropy of the masked pieces, in nats.

    Args:
        model: a masked language model.
        batch: ``input_ids``, ``attention_mask``, ``labels``, int64 (batch, pieces).
        mean: over the masked pieces; otherwise their sum.
    """
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    states = model.base_model(**inputs).last_hidden_state
    there = batch["labels"] != IGNORED
    logits = HEADS[model.config.model_type](model, states[there])
    wanted = batch["labels"][there]
    return functional.cross_entropy(logits.float(), wanted, reduction="mean" if mean else "sum")
