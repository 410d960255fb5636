"""Tiny random checkpoints, one a family, saved as `save_pretrained` saves real ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenizers
import torch
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, PreTrainedTokenizerFast

from attree.encoder.source import EncoderSource, ResolvedEncoder, resolve

TEXT = (
    "the old man who lived near the harbour walked home when the rain began",
    "a cat chased the mice and the dogs barked loudly at them",
    "Die Übersetzung war schwieriger als gedacht",
    "l' arrivée des invités a surpris tout le monde",
    "unbelievable misunderstandings happened again and again in 1998 !",
)
VOCABULARY = 300
_SHAPE = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 32}
_TABLES = {"vocab_size": VOCABULARY, "max_position_embeddings": 64}
_BERT: dict[str, Any] = _SHAPE | _TABLES | {"intermediate_size": 48}


def _word_pieces(specials: list[str]) -> tokenizers.Tokenizer:
    """A tokeniser of the words of ``TEXT``: short words, letters, beginnings and ends.

    It is not trained: a trainer orders pieces of like frequency by chance, and so every run would
    have another encoder.
    """
    normalizer = normalizers.BertNormalizer(lowercase=True)
    split = pre_tokenizers.BertPreTokenizer()
    text = " ".join(map(normalizer.normalize_str, TEXT))
    words = {word for word, _ in split.pre_tokenize_str(text)}
    pieces = {piece for word in words for piece in (word[0], word[:3], f"##{word[-2:]}")}
    pieces |= {f"##{letter}" for word in words for letter in word}
    pieces |= {word for word in words if len(word) <= 7}
    vocabulary = {piece: place for place, piece in enumerate([*specials, *sorted(pieces)])}
    assert len(vocabulary) <= VOCABULARY
    backend = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer, backend.pre_tokenizer = normalizer, split
    backend.add_special_tokens(specials)
    return backend


def _word_piece() -> PreTrainedTokenizerFast:
    backend = _word_pieces(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


_ROBERTA_SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def _roberta_like(backend: tokenizers.Tokenizer) -> PreTrainedTokenizerFast:
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
    )


def _byte_level() -> PreTrainedTokenizerFast:
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=_ROBERTA_SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    backend.train_from_iterator(TEXT, trainer)
    return _roberta_like(backend)


def _unigram() -> PreTrainedTokenizerFast:
    backend = tokenizers.Tokenizer(models.Unigram())
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    trainer = trainers.UnigramTrainer(
        vocab_size=VOCABULARY, special_tokens=_ROBERTA_SPECIALS, unk_token="<unk>"
    )
    backend.train_from_iterator(TEXT, trainer)
    # the trainer gives pieces of like score in another order every time
    scores = json.loads(backend.to_str())["model"]["vocab"]
    trained = [(piece, round(score, 2)) for piece, score in scores]
    specials = len(_ROBERTA_SPECIALS)
    trained[specials:] = sorted(trained[specials:])
    backend.model = models.Unigram(trained, unk_id=_ROBERTA_SPECIALS.index("<unk>"))
    return _roberta_like(backend)


def _mpnet_pieces() -> PreTrainedTokenizerFast:
    """Word pieces whose padding is number 1, behind which positions begin."""
    backend = _word_pieces(["<s>", "<pad>", "</s>", "[UNK]", "<mask>"])
    tokeniser = _roberta_like(backend)
    tokeniser.unk_token = "[UNK]"
    return tokeniser


_DISTILBERT = {"n_layers": 3, "n_heads": 4, "dim": 32, "hidden_dim": 48}
_WINDOWS = {"local_attention": 8, "global_attn_every_n_layers": 2}
_ENDS = {"cls_token_id": 0, "bos_token_id": 0, "sep_token_id": 2, "eos_token_id": 2}
_BEHIND_PADDING = {**_BERT, "pad_token_id": 1}
_ROBERTA = {**_BEHIND_PADDING, "type_vocab_size": 1}

#: family → its configuration, tokeniser
FAMILIES: dict[str, tuple[dict[str, Any], Callable[[], PreTrainedTokenizerFast]]] = {
    "bert": (_BERT, _word_piece),
    "roberta": (_ROBERTA, _byte_level),
    "xlm-roberta": (_ROBERTA, _unigram),
    "distilbert": (_DISTILBERT | _TABLES, _word_piece),
    "electra": ({**_BERT, "embedding_size": 24}, _word_piece),
    "camembert": (_ROBERTA, _unigram),
    "mpnet": (_BEHIND_PADDING, _mpnet_pieces),
    "deberta-v2": (
        {
            **_BERT,
            "relative_attention": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_buckets": 16,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": False,
            "position_biased_input": False,
            "type_vocab_size": 0,
        },
        _unigram,
    ),
    "modernbert": (_BEHIND_PADDING | _WINDOWS | _ENDS, _byte_level),
}

#: Families that attree knows nothing of by name.
UNKNOWN = {"ernie": (_BERT, _word_piece)}
#: Families whose products are in no linear layer of torch.
QUANTISED = {"ibert": (_ROBERTA, _byte_level)}

_GPT2 = {"n_layer": 3, "n_head": 4, "n_embd": 32, "vocab_size": VOCABULARY, "n_positions": 64}
_T5 = {"num_layers": 3, "num_heads": 4, "d_model": 32, "d_kv": 8, "d_ff": 48}
#: What attree does not read.
REFUSED = {
    "gpt2": (_GPT2, _byte_level),
    "t5": ({**_T5, "vocab_size": VOCABULARY}, _unigram),
    "albert": ({**_BERT, "embedding_size": 24}, _word_piece),
}


def save(family: str, folder: Path, *, seed: int = 0) -> EncoderSource:
    """Save a random checkpoint of ``family`` in ``folder``; its attention is far from uniform."""
    settings, make_tokeniser = (FAMILIES | UNKNOWN | QUANTISED | REFUSED)[family]
    torch.manual_seed(seed)
    model = AutoModel.from_config(AutoConfig.for_model(family, **settings)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(8)
    model.save_pretrained(folder)
    make_tokeniser().save_pretrained(folder)
    return EncoderSource(slug=family, kind="path", id=str(folder))


def headless(family: str, folder: Path) -> ResolvedEncoder:
    """Save a checkpoint without a language-model head."""
    return resolve(save(family, folder))


def headed(family: str, folder: Path) -> ResolvedEncoder:
    """Save a checkpoint with one."""
    source = save(family, folder)
    AutoModelForMaskedLM.from_pretrained(folder).save_pretrained(folder)
    return resolve(source)


def at(folder: Path, dtype: str = "float32") -> EncoderSource:
    """Return the source of the checkpoint in a folder."""
    return EncoderSource("tiny", "path", str(folder), dtype=dtype)


def edit(folder: Path, name: str = "config.json", /, **changes: Any) -> None:
    """Change values of a JSON file of a checkpoint; None takes a key out."""
    path = folder / name
    values = (json.loads(path.read_text()) if path.exists() else {}) | changes
    path.write_text(json.dumps({key: x for key, x in values.items() if x is not None}))
