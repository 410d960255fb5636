"""Encoders and their descriptions: damaged, foreign, too large, not files at all."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.attacks.harness import Maker, Row, copied, cut, edited, fifo, folder, link


class _Canary:
    """Writes the canary when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("import os; open(os.environ['ATTREE_CANARY'], 'w')",))


PICKLE = pickle.dumps(_Canary())
CANARY = "import os\nopen(os.environ['ATTREE_CANARY'], 'w')\n"
DEEP = {"nested": "[" * 100_000, "nested-objects": '{"a":' * 100_000}
NOT_JSON = {
    "empty": "",
    "cut": '{"a": ',
    "null": "null",
    "list": "[]",
    "text": '"lots"',
    "huge-number": "1e999",
    "digits": "9" * 5000,
    "nul": "\0",
    **DEEP,
}
NOT_FILES: dict[str, Maker] = {
    "folder": folder,
    "dangling": link("nowhere"),
    "fifo": fifo,
    "zeros": link("/dev/zero"),
}


def _resolve(name: str, content: Any, *says: str, **more: Any) -> Row:
    command = "encoder resolve --slug x --path x --output x.json"
    return Row(f"encoder-{name}", command, says, {"x": content}, **more)


def _tune(name: str, content: Any, *says: str) -> Row:
    command = "encoder tune --encoder x --text {base}/lines.txt --output out"
    return Row(f"tune-{name}", command, says, {"x": content}, makes=(".out.checkpoints*",))


_SHARDS = (".out.json.lock", "out.shards")


def _attention(name: str, encoder: Any, *says: str) -> Row:
    command = "attention {base}/dev.parquet --encoder x.json --heads all --output out.json"
    return Row(f"description-{name}", command, says, {"x.json": encoder}, makes=_SHARDS)


def _parse(name: str, content: Any, *says: str) -> Row:
    command = "parse {base}/lines.txt --output out --encoder x --heads list:0.1"
    makes = ("out", "out/.lock", "out/manifest.json")
    return Row(f"parse-encoder-{name}", command, says, {"x": content}, makes=makes)


def _config(**changes: Any) -> Maker:
    return copied("checkpoint", config__json=edited("config.json", **changes))


def _index(name: str) -> Maker:
    index = {"weight_map": {"embeddings.word_embeddings.weight": name}}
    files = {"model__safetensors": None, "model__safetensors__index__json": index}
    return copied("checkpoint", **files, evil__bin=PICKLE, evil__safetensors=PICKLE)


def _weights(value: float) -> Maker:
    def make(path: Path, base: Path) -> None:
        from safetensors.torch import load_file, save_file

        weights = {k: v.clone() for k, v in load_file(base / "model.safetensors").items()}
        weights["encoder.layer.0.attention.self.key.weight"][0, 0] = value
        save_file(weights, path, metadata={"format": "pt"})

    return copied("checkpoint", model__safetensors=make)


_FILES_HOLD = "too-few-bytes"
#: code → changes of config.json, the key of which is told
_KEYS: dict[str, dict[str, dict[str, Any]]] = {
    "bad-form": {
        "layers-many": {"num_hidden_layers": 10**7},
        "layers-negative": {"num_hidden_layers": -1},
        "layers-text": {"num_hidden_layers": "lots"},
        "layers-list": {"num_hidden_layers": [3]},
        "layers-float": {"num_hidden_layers": 2.5},
        "heads-list": {"num_attention_heads": [4]},
        "heads-zero": {"num_attention_heads": 0},
        "hidden-null": {"hidden_size": None},
        "vocabulary-huge": {"vocab_size": 10**12},
        "positions-object": {"max_position_embeddings": {}},
        "dropout-five": {"hidden_dropout_prob": 5},
        "norm-text": {"layer_norm_eps": "evil"},
        "activation-number": {"hidden_act": 3},
        "type-list": {"model_type": []},
        "type-number": {"model_type": 7},
    },
    "unknown-attention": {
        "kernel": {"_attn_implementation": "someone/kernel"},
        "kernel-plain-key": {"attn_implementation": "a/b@c:d"},
        "relative-positions": {"position_embedding_type": "relative_key"},
        "decoder": {"is_decoder": True},
        "quantised": {"quantization_config": {"quant_method": "x"}},
        "pruned": {"pruned_heads": {"0": [0]}},
    },
}
#: What config.json may not say, and what is told.
RANGES: dict[str, tuple[dict[str, Any], str]] = {
    name: (changes, f"{code} {next(iter(changes))}")
    for code, rows in _KEYS.items()
    for name, changes in rows.items()
} | {
    "layers-900": ({"num_hidden_layers": 900}, _FILES_HOLD),
    "layers-none": ({"num_hidden_layers": ...}, "no-attention"),
    "heads-five": ({"num_attention_heads": 5}, "bad-shape hidden_size 32"),
    "hidden-huge": ({"hidden_size": 10**6}, _FILES_HOLD),
    "vocabulary-large": ({"vocab_size": 10**7}, _FILES_HOLD),
    "positions-two": ({"max_position_embeddings": 2}, "bad-form max_pieces"),
    "numbers-that-are-none": ({"anything": 10**30, "more": [1, {"a": float("inf")}]}, "not-json"),
}
#: What a description says of any family; loading tells.
_LOADED: dict[str, tuple[dict[str, Any], str]] = {
    "activation": ({"hidden_act": "evil"}, "x"),
    "feed-forward": ({"intermediate_size": 47}, "x"),
    "more-layers": ({"num_hidden_layers": 4}, "x"),
    "other-vocabulary": ({"vocab_size": 77}, "x"),
    "family": ({"model_type": "distilbert", "n_layers": 3, "n_heads": 4, "dim": 32}, "x"),
    "type-other": ({"model_type": "gpt2"}, "lacking-weights 40"),
    "type-path": ({"model_type": "../bert"}, "unloadable"),
}
#: What a description of an encoder may not say, and what is told.
DESCRIPTION: dict[str, tuple[dict[str, Any], str]] = {
    "layers": ({"n_layers": 4}, "description-misfit n_layers 4 3"),
    "layers-negative": ({"n_layers": -1}, "bad-form n_layers"),
    "layers-many": ({"n_layers": 10**7}, "bad-form n_layers"),
    "heads-text": ({"n_heads": "4"}, "bad-form n_heads"),
    "longest": ({"max_pieces": 500}, "description-misfit max_pieces 500 64"),
    "family": ({"family": "electra"}, "description-misfit family electra"),
    "family-evil": ({"family": "../x"}, "description-misfit family"),
    "adapter": ({"adapter": "../../no-such-adapter"}, "missing-file"),
    "kind": ({"kind": "ftp"}, "unknown-name kind 'ftp'"),
    "dtype": ({"dtype": "int8"}, "unknown-name dtype 'int8'"),
    "fingerprint": ({"fingerprint": "f" * 32, "stamps": {}}, "encoder-changed"),
    "fingerprint-newline": ({"fingerprint": "f" * 32 + "\n"}, "bad-form fingerprint"),
    "folder": ({"folder": ["x"]}, "bad-form folder"),
    "folder-gone": ({"folder": "/nowhere"}, "missing-config /nowhere"),
    "folder-null": ({"folder": None}, "bad-form folder"),
    "slug-missing": ({"slug": ...}, "bad-form slug"),
    "stamps": ({"stamps": {"config.json": "x"}}, "bad-form"),
}
_REMOTE = {"AutoConfig": "evil.C", "AutoModel": "evil.M", "AutoTokenizer": ["evil.T", "evil.T"]}


def rows() -> list[Row]:
    """Return them all."""
    return [*_files(), *_values(), *_weights_and_code(), *_options()]


def _files() -> Iterator[Row]:
    """What stands in a file's place is no JSON, no weights, no file."""
    for name, text in NOT_JSON.items():
        config, tokeniser, pieces = (
            copied("checkpoint", **{file: text})
            for file in ("config__json", "tokenizer_config__json", "tokenizer__json")
        )
        yield _resolve(f"config-{name}", config, "config.json")
        yield _resolve(f"tokeniser-{name}", tokeniser, "tokenizer_config.json")
        yield _parse(f"tokeniser-{name}", pieces, "x", "unloadable")
        yield _attention(f"is-{name}", text, "x.json")
    for name, make in NOT_FILES.items():
        weights = copied("checkpoint", model__safetensors=make)
        yield _resolve(f"weights-{name}", weights, "model.safetensors")
        for file in ("tokenizer__json", "config__json"):
            yield _resolve(f"{file}-{name}", copied("checkpoint", **{file: make}), ".json")
        yield _attention(f"is-{name}", make, "x.json")


def _values() -> Iterator[Row]:
    """What a description says cannot be."""
    for name, (changes, says) in RANGES.items():
        yield _resolve(name, _config(**changes), "config.json", says)
    for name, (changes, says) in _LOADED.items():
        yield _parse(f"loaded-{name}", _config(**changes), "x", says)
    for name, (changes, says) in DESCRIPTION.items():
        yield _attention(name, edited("bert.json", **changes), says)
    for name in ("evil.bin", "../evil.safetensors", "/etc/passwd"):
        file = f"index-{name.replace('/', '-')}"
        yield _resolve(file, _index(name), "index.json", ".safetensors")


def _weights_and_code() -> list[Row]:
    pickled = copied("checkpoint", model__safetensors=None, pytorch_model__bin=PICKLE)
    renamed = copied("checkpoint", model__safetensors=PICKLE)
    shortened = copied("checkpoint", model__safetensors=cut("model.safetensors"))
    named = _index("evil.safetensors")
    listed = copied("checkpoint", model__safetensors=None, model__safetensors__index__json="[]")
    model = edited("config.json", model_type="evil", auto_map=_REMOTE)
    model = copied("checkpoint", config__json=model, evil__py=CANARY)
    tokeniser = {"auto_map": _REMOTE, "tokenizer_class": "evil.T"}
    tokeniser = copied("checkpoint", tokenizer_config__json=tokeniser, evil__py=CANARY)
    return [
        _resolve("pickle", pickled, "pytorch_model.bin", "pickle"),
        _resolve("no-tokeniser", copied("checkpoint", tokenizer__json=None), "no-tokeniser"),
        _resolve("absent", folder, "missing-config"),
        _resolve("file", "x", "missing-folder"),
        _parse("nan", _weights(float("nan")), "x", "not-finite"),
        _parse("not-finite", _weights(float("inf")), "x", "infinite"),
        _parse("pickle-named-safetensors", renamed, "config.json", "too-few-bytes"),
        _parse("indexed-pickle-inside", named, "config.json", "too-few-bytes"),
        _parse("cut", shortened, "unloadable"),
        _parse("index-text", listed, "index.json"),
        _parse("remote-code", model, "unloadable"),
        _parse("remote-tokeniser", tokeniser, "x", "bad-tokeniser"),
        _tune("nan", _weights(float("nan")), "x", "not-finite"),
        _tune("config", _config(num_hidden_layers=-1), "num_hidden_layers"),
    ]


def _options() -> Iterator[Row]:
    for name, options, *says in (
        ("package-main", "--package __main__", "not-installed"),
        ("path-nobody", "--path ~nobody-x/y", "missing-folder"),
        ("hub-path", "--hub ../../x", "no-hub"),
        ("dtype", "--path {base}/checkpoint --dtype evil", "unknown-name dtype evil",
         "float32, bfloat16, auto"),
    ):  # fmt: skip
        command = f"encoder resolve --slug x --output x.json {options}"
        yield Row(f"encoder-{name}", command, tuple(says))
    attention = "attention {base}/dev.parquet --encoder {base}/bert.json --heads all"
    for device in ("cuda", "evil", "meta"):
        says = "no-device CUDA" if device == "cuda" else f"unknown device '{device}'"
        command = f"{attention} --output out.json --device {device}"
        hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cuda" else {}
        yield Row(f"device-{device}", command, (says,), makes=_SHARDS, environment=hidden)
    for name, start in (("parse", "parse {base}/lines.txt"),
                        ("grammar", "grammar train {base}/dev.mrg")):  # fmt: skip
        command = f"{start} --threads 99999 --output out"
        yield Row(f"threads-{name}", command, ("--threads", "Must be <= 1024"), status=2)
    tune = "encoder tune --encoder {base}/checkpoint --text {base}/lines.txt --output out"
    for name, option in (("rate", "learning-rate -1"), ("rate-nan", "learning-rate nan"),
                         ("pieces", "length 7")):  # fmt: skip
        yield Row(f"tune-{name}", f"{tune} --{option}", (option.split()[0],), status=2)
