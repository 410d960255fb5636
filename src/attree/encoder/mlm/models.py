"""The models and tokenisers of a run: loaded, given a new language-model head, or trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch.nn import functional
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    set_seed,
)

from attree.encoder.checkpoint import read_config
from attree.encoder.families import LOGITS
from attree.encoder.mlm.examples import IGNORED
from attree.encoder.weights import read_checkpoint
from attree.errors import AttreeError
from attree.files import whole_folder

_SPECIALS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
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
        AttreeError: a family that is not supported, weights cut short or missing.
    """
    values = read_config(folder)
    if values["model_type"] not in LOGITS:
        raise AttreeError(
            f"models of type {values['model_type']!r} cannot be tuned: attree does not know their "
            "language-model head",
            file=folder,
            fix="use one of " + ", ".join(LOGITS),
        )
    config = AutoConfig.for_model(values.pop("model_type"), **values)
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
    logits = LOGITS[model.config.model_type](model, states[there])
    wanted = batch["labels"][there]
    return functional.cross_entropy(logits.float(), wanted, reduction="mean" if mean else "sum")


def train_tokeniser(
    lines: Callable[[], Iterator[str]], *, vocabulary: int, cased: bool
) -> Tokenizer:
    """Train BERT's kind of tokeniser; the same text gives the same one.

    Unlike BERT's own, the uncased one keeps accents: many languages tell words apart by them, and
    taking them off would take Korean syllables apart.

    Args:
        lines: gives the text, from its start each time.
        vocabulary: pieces, specials included; a quarter of it at most are characters.
        cased: keep upper case.
    """
    made = Tokenizer(models.WordPiece(unk_token=_SPECIALS["unk_token"]))
    made.normalizer = normalizers.BertNormalizer(lowercase=not cased, strip_accents=False)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    specials = list(_SPECIALS.values())
    starting, continuing = _alphabet(map(made.normalizer.normalize_str, lines()), vocabulary // 4)
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary,
        min_frequency=2,
        initial_alphabet=starting,
        limit_alphabet=len(starting),
        # Left to itself the trainer numbers these as it meets them, in another order each time,
        # and breaks ties between merges by number.
        special_tokens=[*specials, *(f"##{character}" for character in continuing)],
        show_progress=False,
    )
    made.train_from_iterator(lines(), trainer)
    pieces = sorted(set(made.get_vocab()) - set(specials))
    numbers = {piece: number for number, piece in enumerate([*specials, *pieces])}
    # Anew, since in the trained one the pieces of one character would be special.
    again = Tokenizer(models.WordPiece(numbers, unk_token=_SPECIALS["unk_token"]))
    again.normalizer, again.pre_tokenizer = made.normalizer, made.pre_tokenizer
    first, last = _SPECIALS["cls_token"], _SPECIALS["sep_token"]
    again.post_processor = processors.BertProcessing((last, numbers[last]), (first, numbers[first]))
    return again


def _alphabet(lines: Iterator[str], limit: int) -> tuple[list[str], list[str]]:
    """Return the ``limit`` commonest characters, and those of them that words go on with."""
    counts, continuing = Counter[str](), set[str]()
    for line in lines:
        for word in line.split():
            counts.update(word)
            continuing.update(word[1:])
    kept = sorted(counts, key=lambda character: (-counts[character], character))[:limit]
    return sorted(kept), sorted(continuing.intersection(kept))


def save_tokeniser(trained: Tokenizer, folder: Path, *, length: int) -> None:
    """Write it as ``transformers`` reads it, for a model that takes ``length`` pieces."""
    tokeniser = PreTrainedTokenizerFast(
        tokenizer_object=trained, model_max_length=length, **_SPECIALS
    )
    with whole_folder(folder) as part:
        tokeniser.save_pretrained(part)
