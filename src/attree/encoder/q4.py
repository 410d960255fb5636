"""The form ``E5S1``: a BERT with its Unigram tokeniser in one file, at four bits per weight.

Rows of quantised tensors are blocks of 32 weights in 18 bytes: a float16 scale, then 16 bytes whose
low halves are the weights 0-15 and high halves 16-31, each minus 8. They are converted to float32,
as float16 cannot represent every product of scale and weight. A file comes here only if it has the
hash that :mod:`attree.encoder.converted` knows, so its content is not questioned again.
"""

import json
import os
import struct
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

_BLOCK_BYTES, _FLOAT = 18, 0

_SPACE = "▁"

#: Keys in ``config.json`` of the sizes in the file's header, in their order.
_SIZES = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
    "type_vocab_size",
)

#: Parts of a layer: name in the file → name in a ``BertModel``.
_OF_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "aln": "attention.output.LayerNorm",
    "oln": "output.LayerNorm",
}


def convert(source: BinaryIO, folder: Path) -> None:
    """Convert ``source`` to a checkpoint in ``folder``, a form of an encoder."""
    _take(source, "4si")  # the form and its version
    sizes = dict(zip(_SIZES, _take(source, "7i"), strict=True))
    epsilon, _ = _take(source, "fi")
    pieces = _Pieces(source)
    _, size = _take(source, "iI")  # a map of single characters that NMT and NFKC stand for here
    source.seek(size, os.SEEK_CUR)
    weights = _read_weights(source, sizes)
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        **sizes,
        "layer_norm_eps": epsilon,
        "hidden_act": "gelu",
        "bos_token_id": pieces.bos,
        "eos_token_id": pieces.eos,
        "pad_token_id": pieces.pad,
    }
    _write_json(folder / "config.json", config)
    pieces.tokeniser().save(str(folder / "tokenizer.json"), pretty=False)
    _write_json(folder / "tokenizer_config.json", pieces.settings(sizes["max_position_embeddings"]))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False) + "\n", encoding="utf-8")


def _take(source: BinaryIO, form: str) -> tuple[Any, ...]:
    """Return the next little-endian numbers, in a format of :mod:`struct`."""
    return struct.unpack("<" + form, source.read(struct.calcsize("<" + form)))


class _Pieces:
    """The word pieces, their scores, and the special pieces."""

    def __init__(self, source: BinaryIO) -> None:
        count, self.bos, self.eos, self.pad, self.unknown, size = _take(source, "5iQ")
        offsets = np.frombuffer(source.read(4 * (count + 1)), "<u4").tolist()
        self.scores = np.frombuffer(source.read(4 * count), "<f4").tolist()
        text = source.read(size)
        self.names = [text[start:end].decode() for start, end in pairwise(offsets)]
        self.start, self.end = self.names[self.bos], self.names[self.eos]

    def settings(self, positions: int) -> dict[str, Any]:
        """Return the content of ``tokenizer_config.json``."""
        settings = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": positions,
            "bos_token": self.start,
            "cls_token": self.start,
            "eos_token": self.end,
            "sep_token": self.end,
            "unk_token": self.names[self.unknown],
            "pad_token": self.names[self.pad],
        }
        return settings | ({"mask_token": "<mask>"} if "<mask>" in self.names else {})

    def tokeniser(self) -> Tokenizer:
        """Return XLM-RoBERTa's tokeniser with these pieces."""
        start, end = self.start, self.end
        special = {self.bos, self.eos, self.pad, self.unknown}
        if "<mask>" in self.names:
            special.add(self.names.index("<mask>"))
        vocabulary = list(zip(self.names, self.scores, strict=True))
        tokeniser = Tokenizer(models.Unigram(vocabulary, self.unknown, byte_fallback=False))
        tokeniser.normalizer = normalizers.Sequence(
            [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
        )
        tokeniser.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(_SPACE, "always")]
        )
        tokeniser.post_processor = processors.TemplateProcessing(
            single=[start, "$A", end],
            pair=[start, "$A", end, end, "$B", end],
            special_tokens=[(start, self.bos), (end, self.eos)],
        )
        tokeniser.decoder = decoders.Metaspace(_SPACE, "always")
        tokeniser.add_special_tokens([self.names[number] for number in sorted(special)])
        return tokeniser


def _read_weights(source: BinaryIO, sizes: Mapping[str, int]) -> dict[str, NDArray[np.float32]]:
    """Return name in the checkpoint → tensor."""
    (count,) = _take(source, "i")
    entries: dict[str, tuple[int, int, int, int]] = {}
    for _ in range(count):
        (length,) = _take(source, "H")
        name = source.read(length).decode("ascii", "replace")
        entries[name] = _take(source, "BIQQ")

    def tensor(name: str) -> NDArray[np.float32]:
        kind, _, position, length = entries[name]
        source.seek(position)
        return _tensor(source.read(length), kind)

    weights = {}
    for short, long in (("word", "word"), ("pos", "position"), ("type", "token_type")):
        table = tensor(f"emb.{short}").reshape(-1, sizes["hidden_size"])
        weights[f"embeddings.{long}_embeddings.weight"] = table
    modules = {"emb.ln": "embeddings.LayerNorm"}
    for layer in range(sizes["num_hidden_layers"]):
        named = _OF_LAYER.items()
        modules |= {f"l{layer}.{short}": f"encoder.layer.{layer}.{long}" for short, long in named}
    for short, long in modules.items():
        weight, bias = tensor(f"{short}.w"), tensor(f"{short}.b")
        is_norm = weight.size == bias.size
        weights[f"{long}.weight"] = weight if is_norm else weight.reshape(bias.size, -1)
        weights[f"{long}.bias"] = bias
    return weights


def _tensor(data: bytes, kind: int) -> NDArray[np.float32]:
    """Return the weights of a tensor as float32, in one dimension."""
    if kind == _FLOAT:
        return np.frombuffer(data, "<f4").astype(np.float32)
    blocks = np.frombuffer(data, np.uint8).reshape(-1, _BLOCK_BYTES)
    scales = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    halves = blocks[:, 2:]
    weights = np.concatenate([halves & 15, halves >> 4], axis=1, dtype=np.float32)
    weights -= 8
    weights *= scales
    return weights.reshape(-1)
