"""Encoders and their descriptions: damaged, foreign, too large, not files at all."""

from __future__ import annotations

import pickle
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


def _resolve(name: str, content: Any, says: tuple[str, ...], **more: Any) -> Row:
    argv = ("encoder", "resolve", "--slug", "x", "--path", "x", "--output", "x.json")
    return Row(f"encoder-{name}", argv, says, {"x": content}, **more)


def _tune(name: str, content: Any, says: tuple[str, ...]) -> Row:
    argv = ("encoder", "tune", "--encoder", "x", "--text", "{base}/lines.txt", "--output", "out")
    return Row(f"tune-{name}", argv, says, {"x": content}, makes=(".out.checkpoints*",))


def _attention(name: str, encoder: Any, says: tuple[str, ...], **more: Any) -> Row:
    argv = (
        "attention",
        "{base}/dev.parquet",
        "--encoder",
        "x.json",
        "--heads",
        "all",
        "--output",
        "out.json",
    )
    makes = (".out.json.lock", "out.shards")
    return Row(f"description-{name}", argv, says, {"x.json": encoder}, makes=makes, **more)


def _parse(name: str, content: Any, says: tuple[str, ...], **more: Any) -> Row:
    argv = (
        "parse",
        "{base}/lines.txt",
        "--output",
        "out",
        "--encoder",
        "x",
        "--heads",
        "list:0.1",
    )
    more = {"makes": ("out", "out/.lock", "out/manifest.json"), **more}
    return Row(f"parse-encoder-{name}", argv, says, {"x": content}, **more)


def _config(**changes: Any) -> Maker:
    return copied("checkpoint", config__json=edited("config.json", **changes))


def _index(name: str) -> Maker:
    index = {"weight_map": {"embeddings.word_embeddings.weight": name}}
    return copied(
        "checkpoint",
        model__safetensors=None,
        model__safetensors__index__json=index,
        evil__bin=PICKLE,
        evil__safetensors=PICKLE,
    )


def _weights(value: float) -> Maker:
    def make(path: Path, base: Path) -> None:
        from safetensors.torch import load_file, save_file

        weights = {k: v.clone() for k, v in load_file(base / "model.safetensors").items()}
        weights["encoder.layer.0.attention.self.key.weight"][0, 0] = value
        save_file(weights, path, metadata={"format": "pt"})

    return copied("checkpoint", model__safetensors=make)


_RANGES = {
    "layers-many": ({"num_hidden_layers": 10**7}, "num_hidden_layers"),
    "layers-900": ({"num_hidden_layers": 900}, "weights or more"),
    "layers-negative": ({"num_hidden_layers": -1}, "num_hidden_layers"),
    "layers-none": ({"num_hidden_layers": ...}, "layers"),
    "layers-text": ({"num_hidden_layers": "lots"}, "num_hidden_layers"),
    "layers-float": ({"num_hidden_layers": 2.5}, "num_hidden_layers"),
    "heads-list": ({"num_attention_heads": [4]}, "num_attention_heads"),
    "heads-five": ({"num_attention_heads": 5}, "hidden_size"),
    "heads-zero": ({"num_attention_heads": 0}, "num_attention_heads"),
    "hidden-null": ({"hidden_size": None}, "hidden_size"),
    "hidden-huge": ({"hidden_size": 10**6}, "weights or more"),
    "vocabulary-huge": ({"vocab_size": 10**12}, "vocab_size"),
    "positions-two": ({"max_position_embeddings": 2}, "max_pieces"),
    "dropout-five": ({"hidden_dropout_prob": 5}, "hidden_dropout_prob"),
    "norm-text": ({"layer_norm_eps": "evil"}, "layer_norm_eps"),
    "kernel": ({"_attn_implementation": "someone/kernel"}, "_attn_implementation"),
    "kernel-plain-key": ({"attn_implementation": "a/b@c:d"}, "attn_implementation"),
    "relative-positions": ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
    "decoder": ({"is_decoder": True}, "is_decoder"),
    "quantised": ({"quantization_config": {"quant_method": "gptq"}}, "quantization_config"),
    "pruned": ({"pruned_heads": {"0": [0]}}, "pruned_heads"),
    "type-list": ({"model_type": []}, "model_type"),
}
#: What a description says of any family; loading tells.
_LOADED: dict[str, tuple[dict[str, Any], str]] = {
    "activation": ({"hidden_act": "evil"}, "x"),
    "feed-forward": ({"intermediate_size": 47}, "x"),
    "more-layers": ({"num_hidden_layers": 4}, "x"),
    "other-vocabulary": ({"vocab_size": 77}, "x"),
    "padding": ({"pad_token_id": 100_000}, "x"),
    "family": ({"model_type": "distilbert", "n_layers": 3, "n_heads": 4, "dim": 32}, "x"),
    "type-other": ({"model_type": "gpt2"}, "lacks 40 of the model's weights"),
    "type-path": ({"model_type": "../bert"}, "does not recognize"),
}
_DESCRIPTION = {
    "layers": ({"n_layers": 4}, "n_layers"),
    "layers-negative": ({"n_layers": -1}, "n_layers"),
    "layers-many": ({"n_layers": 10**7}, "n_layers"),
    "heads-text": ({"n_heads": "4"}, "n_heads"),
    "longest": ({"max_pieces": 10_000}, "max_pieces"),
    "family": ({"family": "electra"}, "family"),
    "family-evil": ({"family": "../x"}, "family"),
    "kind": ({"kind": "ftp"}, "kind"),
    "dtype": ({"dtype": "int8"}, "dtype"),
    "fingerprint": ({"fingerprint": "f" * 32, "stamps": {}}, "has changed"),
    "fingerprint-newline": ({"fingerprint": "f" * 32 + "\n"}, "fingerprint"),
    "folder": ({"folder": ["x"]}, "folder"),
    "folder-gone": ({"folder": "/nowhere"}, "/nowhere"),
    "folder-null": ({"folder": None}, "folder"),
    "slug-missing": ({"slug": ...}, "slug"),
    "stamps": ({"stamps": {"config.json": "x"}}, "stamps"),
}
_REMOTE = {"AutoConfig": "evil.C", "AutoModel": "evil.M", "AutoTokenizer": ["evil.T", "evil.T"]}


def rows() -> list[Row]:
    """Return them all."""
    found = [
        _resolve(
            f"config-{name}",
            copied("checkpoint", config__json=text),
            ("config.json",),
            full=name != "nested",
        )
        for name, text in NOT_JSON.items()
    ]
    found += [
        _resolve(
            f"tokeniser-{name}",
            copied("checkpoint", tokenizer_config__json=text),
            ("tokenizer_config.json",),
        )
        for name, text in NOT_JSON.items()
    ]
    found += [
        _resolve(
            f"weights-{name}",
            copied("checkpoint", model__safetensors=make),
            ("model.safetensors",),
            full=name not in ("fifo", "zeros"),
        )
        for name, make in NOT_FILES.items()
    ]
    found += [
        _resolve(f"{file}-{name}", copied("checkpoint", **{file: make}), (".json",))
        for file in ("tokenizer__json", "config__json")
        for name, make in NOT_FILES.items()
    ]
    found += [
        _resolve(
            name,
            _config(**changes),
            ("config.json", says),
            full=name not in ("layers-many", "kernel", "hidden-huge"),
        )
        for name, (changes, says) in _RANGES.items()
    ]
    found += [
        _resolve(
            f"index-{name.replace('/', '-')}",
            _index(name),
            ("index.json", says),
            full=name != "evil.bin",
        )
        for name, says in (
            ("evil.bin", ".safetensors"),
            ("../evil.safetensors", ".safetensors"),
            ("/etc/passwd", ".safetensors"),
            ("model-3.safetensors", "model-3"),
        )
        if name != "model-3.safetensors"
    ]
    pickled = copied("checkpoint", model__safetensors=None, pytorch_model__bin=PICKLE)
    found += [
        _resolve("pickle", pickled, ("pytorch_model.bin", "pickle"), full=False),
        _resolve("no-tokeniser", copied("checkpoint", tokenizer__json=None), ("tokeniser",)),
        _resolve("absent", folder, ("config.json is missing",)),
        _resolve("file", "x", ("no such folder",)),
        _parse("nan", _weights(float("nan")), ("x", "NaN"), full=False),
        _parse("infinite", _weights(float("inf")), ("x", "infinite")),
        _parse(
            "pickle-named-safetensors",
            copied("checkpoint", model__safetensors=PICKLE),
            ("config.json", "the files hold"),
            full=False,
        ),
        _parse(
            "indexed-pickle-inside", _index("evil.safetensors"), ("config.json", "the files hold")
        ),
        _parse(
            "cut",
            copied("checkpoint", model__safetensors=cut("model.safetensors")),
            ("cannot be loaded",),
        ),
        _parse(
            "index-text",
            copied("checkpoint", model__safetensors=None, model__safetensors__index__json="[]"),
            ("index.json",),
        ),
        _parse(
            "remote-code",
            copied(
                "checkpoint",
                config__json=edited("config.json", model_type="evil", auto_map=_REMOTE),
                evil__py=CANARY,
            ),
            ("does not recognize",),
            full=False,
        ),
        _parse(
            "remote-tokeniser",
            copied(
                "checkpoint",
                tokenizer_config__json={"auto_map": _REMOTE, "tokenizer_class": "evil.T"},
                evil__py=CANARY,
            ),
            ("x", "no unknown piece"),
        ),
    ]
    found += [
        _parse(f"loaded-{name}", _config(**changes), ("x", says))
        for name, (changes, says) in _LOADED.items()
    ]
    found += [
        _parse(f"tokeniser-{name}", copied("checkpoint", tokenizer__json=text), ("x", "tokeniser"))
        for name, text in NOT_JSON.items()
    ]
    found += [
        _attention(name, edited("bert.json", **changes), (says,), full=name != "longest")
        for name, (changes, says) in _DESCRIPTION.items()
    ]
    found += [_attention(f"is-{name}", text, ("x.json",)) for name, text in NOT_JSON.items()]
    found += [_attention(f"is-{name}", make, ("x.json",)) for name, make in NOT_FILES.items()]
    found += [
        _tune("nan", _weights(float("nan")), ("x", "NaN")),
        _tune("config", _config(num_hidden_layers=-1), ("num_hidden_layers",)),
    ]
    return found + _options()


def _options() -> list[Row]:
    resolve = ("encoder", "resolve", "--slug", "x", "--output", "x.json")
    attention = (
        "attention",
        "{base}/dev.parquet",
        "--encoder",
        "{base}/bert.json",
        "--heads",
        "all",
        "--output",
        "out.json",
    )
    tune = ("encoder", "tune", "--encoder", "{base}/checkpoint", "--text", "{base}/lines.txt")
    tune += ("--output", "out")
    return [
        Row("encoder-package-empty", (*resolve, "--package", ""), ("not installed",)),
        Row("encoder-package-main", (*resolve, "--package", "__main__"), ("not installed",)),
        Row("encoder-path-empty", (*resolve, "--path", ""), ("no such folder",)),
        Row("encoder-path-nobody", (*resolve, "--path", "~nobody-x/y"), ("no such folder",)),
        Row("encoder-hub-path", (*resolve, "--hub", "../../x"), ("hub",)),
        Row(
            "encoder-dtype",
            (*resolve, "--path", "{base}/checkpoint", "--dtype", "evil"),
            ("unknown dtype evil", "float32, bfloat16, auto"),
        ),
        Row(
            "device-cuda",
            (*attention, "--device", "cuda"),
            ("no CUDA device",),
            full=False,
            environment={"CUDA_VISIBLE_DEVICES": ""},
            makes=(".out.json.lock", "out.shards"),
        ),
        Row(
            "device-evil",
            (*attention, "--device", "evil"),
            ("unknown device 'evil'",),
            makes=(".out.json.lock", "out.shards"),
        ),
        Row(
            "device-meta",
            (*attention, "--device", "meta"),
            ("unknown device 'meta'",),
            makes=(".out.json.lock", "out.shards"),
        ),
        Row(
            "threads-parse",
            ("parse", "{base}/lines.txt", "--threads", "99999", "--output", "out"),
            ("--threads", "between 1 and 1024"),
            status=2,
        ),
        Row(
            "threads-grammar",
            ("grammar", "train", "{base}/dev.mrg", "--threads", "99999", "--output", "out"),
            ("--threads", "between 1 and 1024"),
            status=2,
            full=False,
        ),
        Row("tune-rate", (*tune, "--learning-rate", "-1"), ("learning-rate",), status=2),
        Row("tune-rate-nan", (*tune, "--learning-rate", "nan"), ("learning-rate",), status=2),
        Row("tune-pieces", (*tune, "--length", "7"), ("length",), status=2),
    ]
