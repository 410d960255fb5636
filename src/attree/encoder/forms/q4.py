"""The form ``E5S1``: a BERT with its Unigram tokeniser in one file, four bits a weight.

Rows of quantised tensors are blocks of 32 weights in 18 bytes: a float16 scale, then 16 bytes whose
low halves are the weights 0-15 and high halves 16-31, each minus 8. They are written as float32:
float16 cannot hold every product of scale and weight.
"""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from attree.base.errors import AttreeError

VERSION = 1

_MAGIC, _FORMAT = b"E5S1", 1
_BLOCK, _BLOCK_BYTES = 32, 18
_FLOAT, _QUANTISED = 0, 1
#: More of any dimension is no encoder.
_LARGEST = 10_000_000

_SPACE = "▁"

#: name in the file → name in a ``BertModel``, "{}" being the layer
_LINEAR = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "fi": "intermediate.dense",
    "fo": "output.dense",
}
_NORMS = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}


def convert(source: BinaryIO, folder: Path) -> None:
    """Write the checkpoint that ``source`` holds into ``folder``; see :class:`forms.Form`."""
    reader = _Reader(source.read())
    shape = _Shape(reader)
    pieces = _Pieces(reader)
    _, size = reader.take("iI")  # a map of single characters that NMT and NFKC stand for here
    reader.skip(size)
    weights = _weights(reader, shape)
    if pieces.count > shape.vocabulary:
        raise AttreeError(
            "piece-count", f"{pieces.count} word pieces, but {shape.vocabulary} embeddings"
        )
    _write_json(folder / "config.json", shape.config(pieces))
    pieces.tokeniser().save(str(folder / "tokenizer.json"), pretty=False)
    _write_json(folder / "tokenizer_config.json", pieces.settings(shape.positions))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False) + "\n", encoding="utf-8")


class _Reader:
    """Little-endian numbers of a file, one after the other, never past its end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def bytes(self, count: int) -> bytes:
        """Return the next bytes."""
        start = self.at
        self.skip(count)
        return self.data[start : self.at]

    def skip(self, count: int) -> None:
        """Pass over bytes."""
        if not 0 <= count <= len(self.data) - self.at:
            raise AttreeError("cut-short", "the file ends too early, or a length in it is wrong")
        self.at += count

    def take(self, form: str) -> tuple[Any, ...]:
        """Return numbers of a form of :mod:`struct`."""
        return struct.unpack("<" + form, self.bytes(struct.calcsize("<" + form)))

    def array(self, kind: str, count: int) -> NDArray[Any]:
        """Return ``count`` numbers of a type of numpy's."""
        return np.frombuffer(self.bytes(count * np.dtype(kind).itemsize), kind)


class _Shape:
    """The head of the file: what ``config.json`` is to say."""

    def __init__(self, reader: _Reader) -> None:
        if reader.bytes(4) != _MAGIC:
            raise AttreeError("not-e5s1", "this is no E5S1 file")
        (version,) = reader.take("i")
        if version != _FORMAT:
            raise AttreeError(
                "format-version", f"E5S1 of version {version}, attree reads {_FORMAT}"
            )
        sizes = reader.take("7i")
        self.hidden, self.layers, self.heads, self.inner = sizes[:4]
        self.vocabulary, self.positions, self.types = sizes[4:]
        self.epsilon, block = reader.take("fi")
        if block != _BLOCK:
            raise AttreeError("block-size", f"blocks of {block} weights, attree reads {_BLOCK}")
        if not all(0 < size <= _LARGEST for size in sizes) or self.hidden % self.heads:
            raise AttreeError(
                "impossible-sizes", f"sizes that cannot be: {', '.join(map(str, sizes))}"
            )

    def config(self, pieces: _Pieces) -> dict[str, Any]:
        """Return what ``config.json`` says."""
        return {
            "architectures": ["BertModel"],
            "model_type": "bert",
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": self.inner,
            "vocab_size": self.vocabulary,
            "max_position_embeddings": self.positions,
            "type_vocab_size": self.types,
            "layer_norm_eps": self.epsilon,
            "hidden_act": "gelu",
            "bos_token_id": pieces.bos,
            "eos_token_id": pieces.eos,
            "pad_token_id": pieces.pad,
        }

    def tensors(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Return name in the checkpoint → name in the file, and shape."""
        hidden = (self.hidden,)
        found: dict[str, tuple[str, tuple[int, ...]]] = {}
        for table, rows in (("word", self.vocabulary), ("position", self.positions)):
            short = {"word": "word", "position": "pos"}[table]
            found[f"embeddings.{table}_embeddings.weight"] = (f"emb.{short}", (rows, *hidden))
        found["embeddings.token_type_embeddings.weight"] = ("emb.type", (self.types, *hidden))
        for suffix, short in (("weight", "w"), ("bias", "b")):
            found[f"embeddings.LayerNorm.{suffix}"] = (f"emb.ln.{short}", hidden)
            for layer in range(self.layers):
                for name, long in (_LINEAR | _NORMS).items():
                    place = f"encoder.layer.{layer}.{long}.{suffix}"
                    n_in = self.inner if name == "fo" else self.hidden
                    n_out = self.inner if name == "fi" else self.hidden
                    square = short == "w" and name in _LINEAR
                    found[place] = (f"l{layer}.{name}.{short}", (n_out, n_in)[: 1 + square])
        return found


class _Pieces:
    """The word pieces, their scores, and which of them are special."""

    def __init__(self, reader: _Reader) -> None:
        self.count, self.bos, self.eos, self.pad, self.unknown = reader.take("5i")
        (size,) = reader.take("Q")
        if not 0 < self.count <= _LARGEST:
            raise AttreeError("piece-count", f"{self.count} word pieces")
        offsets = reader.array("<u4", self.count + 1).tolist()
        self.scores = reader.array("<f4", self.count).tolist()
        text = reader.bytes(size)
        if offsets[0] != 0 or offsets[-1] > size or offsets != sorted(offsets):
            raise AttreeError(
                "piece-offsets", "the word pieces' places are not in order, or past the end"
            )
        try:
            self.names = [text[start:end].decode() for start, end in pairwise(offsets)]
        except UnicodeDecodeError:
            raise AttreeError("encoding", "a word piece is no UTF-8") from None
        for special in (self.bos, self.eos, self.pad, self.unknown):
            if not 0 <= special < self.count:
                raise AttreeError("no-special-piece", f"no word piece has the number {special}")

    def settings(self, positions: int) -> dict[str, Any]:
        """Return what ``tokenizer_config.json`` says."""
        start, end = self.names[self.bos], self.names[self.eos]
        found = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": positions,
            "bos_token": start,
            "cls_token": start,
            "eos_token": end,
            "sep_token": end,
            "unk_token": self.names[self.unknown],
            "pad_token": self.names[self.pad],
        }
        return found | ({"mask_token": "<mask>"} if "<mask>" in self.names else {})

    def tokeniser(self) -> Tokenizer:
        """Return XLM-RoBERTa's tokeniser with these pieces."""
        start, end = self.names[self.bos], self.names[self.eos]
        special = {self.bos, self.eos, self.pad, self.unknown}
        if "<mask>" in self.names:
            special.add(self.names.index("<mask>"))
        vocabulary = list(zip(self.names, self.scores, strict=True))
        found = Tokenizer(models.Unigram(vocabulary, self.unknown, byte_fallback=False))
        several = normalizers.Replace(Regex(" {2,}"), " ")
        found.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), several])
        found.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(_SPACE, "always")]
        )
        found.post_processor = processors.TemplateProcessing(
            single=[start, "$A", end],
            pair=[start, "$A", end, end, "$B", end],
            special_tokens=[(start, self.bos), (end, self.eos)],
        )
        found.decoder = decoders.Metaspace(_SPACE, "always")
        found.add_special_tokens([self.names[number] for number in sorted(special)])
        return found


def _weights(reader: _Reader, shape: _Shape) -> dict[str, NDArray[np.float32]]:
    """Return name in the checkpoint → tensor."""
    (count,) = reader.take("i")
    there: dict[str, tuple[int, int, int, int]] = {}
    for _ in range(count):
        (length,) = reader.take("H")
        name = reader.bytes(length).decode("ascii", "replace")
        there[name] = reader.take("BIQQ")
    found = {}
    for name, (short, size) in shape.tensors().items():
        if short not in there:
            raise AttreeError("missing-tensor", f"the tensor {short} is missing")
        kind, count, start, length = there[short]
        if count != np.prod(size, dtype=np.int64):
            raise AttreeError(
                "tensor-size",
                f"the tensor {short} has {count:,} weights, not {' × '.join(map(str, size))}",
            )
        reader.at = 0
        reader.skip(start)
        found[name] = _tensor(reader.bytes(length), kind, count, short).reshape(size)
    return found


def _tensor(data: bytes, kind: int, count: int, name: str) -> NDArray[np.float32]:
    """Return the ``count`` weights of a tensor as float32."""
    if kind == _FLOAT and len(data) == 4 * count:
        found = np.frombuffer(data, "<f4").astype(np.float32)
    elif kind == _QUANTISED and len(data) * _BLOCK == count * _BLOCK_BYTES:
        blocks = np.frombuffer(data, np.uint8).reshape(-1, _BLOCK_BYTES)
        scales = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
        halves = blocks[:, 2:]
        found = np.empty((len(blocks), _BLOCK), np.float32)
        found[:, : _BLOCK // 2] = halves & 15
        found[:, _BLOCK // 2 :] = halves >> 4
        found -= 8
        found *= scales
        found = found.reshape(-1)
    else:
        raise AttreeError(
            "tensor-size",
            f"the tensor {name}: {len(data):,} bytes of type {kind} are not {count:,} weights",
        )
    if not np.isfinite(found.sum()):
        raise AttreeError("not-finite", f"the tensor {name} holds NaN or infinite numbers")
    return found
