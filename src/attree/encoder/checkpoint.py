"""Check and hash the files of a checkpoint's folder before any is loaded.

Only files that are checked and hashed here are read: :func:`only_checked` gives ``transformers`` a
folder with these files and no others.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from attree.base.errors import AttreeError
from attree.base.reading import check_regular, described, read_described

_CONFIG = "config.json"
_WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TOKENISER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)
#: The files read of a checkpoint whose weights are in one file.
READ = (_CONFIG, _WEIGHTS, *TOKENISER_FILES)
_LARGEST_TOKENISER = 256 * 2**20

Count = Annotated[int, Meta(ge=1, le=10_000_000)]
Layers = Annotated[int, Meta(ge=1, le=1_000)]

#: Keys of ``config.json`` that choose the function of attention.
_IMPLEMENTATION = ("attn_implementation", "_attn_implementation", "_attn_implementation_internal")
#: Keys of ``config.json`` that change the output of ``forward``, or how it is computed.
_NOT_THE_MODEL_S = {
    *_IMPLEMENTATION,
    *("auto_map", "return_dict", "use_return_dict", "torchscript"),
    *("output_attentions", "output_hidden_states", "torch_dtype", "dtype"),
}


#: type → keys of ``config.json`` that families share; all are optional
_KEYS: dict[Any, str] = {
    Count: "vocab_size hidden_size embedding_size intermediate_size max_position_embeddings dim "
    "hidden_dim",
    Annotated[int, Meta(ge=0, le=10_000_000)]: "type_vocab_size",
    Layers: "num_hidden_layers num_attention_heads n_layers n_heads",
    Annotated[float, Meta(ge=0, le=1)]: "hidden_dropout_prob attention_probs_dropout_prob dropout "
    "attention_dropout embedding_dropout mlp_dropout classifier_dropout layer_norm_eps norm_eps",
    Annotated[float, Meta(ge=0, le=1_000)]: "initializer_range",
    Annotated[int, Meta(ge=-10_000_000, le=10_000_000)]: "pad_token_id",
    str: "model_type hidden_act hidden_activation activation position_embedding_type "
    + " ".join(_IMPLEMENTATION),
    bool: "is_decoder add_cross_attention",
    dict[str, Any]: "quantization_config pruned_heads",
}
_Config = msgspec.defstruct(
    "_Config", [(key, form | None, None) for form, keys in _KEYS.items() for key in keys.split()]
)

#: Implementations of transformers, which attree's replaces, and attree's own.
_REPLACED = ("eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention", "attree")
#: Keys that a plain encoder has not set.
_UNSET = ("is_decoder", "add_cross_attention", "quantization_config", "pruned_heads")
#: key of ``config.json`` that could keep attree from capturing attention → its allowed values
_ALLOWED: dict[str, tuple[Any, ...]] = {
    "position_embedding_type": (None, "absolute"),
    **dict.fromkeys(_IMPLEMENTATION, (None, *_REPLACED)),
    **dict.fromkeys(_UNSET, (None, False, {})),
}

#: Families whose positions begin at 0, whatever the padding piece's id is.
_FROM_ZERO = ("bert", "electra", "distilbert", "deberta-v2", "modernbert")
#: Families whose positions begin after that id, as in most models whose padding piece has id 1.
_BEHIND_PADDING = ("roberta", "camembert", "xlm-roberta", "mpnet")

#: size → its keys in ``config.json``, which differ by family
_SIZES = {
    "n_layers": ("num_hidden_layers", "n_layers", "num_layers", "n_layer"),
    "n_heads": ("num_attention_heads", "n_heads", "n_head"),
    "hidden_size": ("hidden_size", "dim", "d_model", "emb_dim", "n_embd"),
    "max_pieces": ("max_position_embeddings", "n_positions"),
}

_SAVED = "give the folder that `save_pretrained` wrote"


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes in ``config.json``, under whichever keys the family has."""

    family: str
    n_layers: Layers
    n_heads: Layers
    hidden_size: Count
    max_pieces: Annotated[int, Meta(ge=3, le=10_000_000)]


class _TokeniserConfig(msgspec.Struct):
    # "no limit" is written as an integer of thirty digits
    model_max_length: Annotated[float, Meta(ge=3)] | None = None
    tokenizer_class: str | None = None


class _Index(msgspec.Struct):
    weight_map: Annotated[dict[str, str], Meta(min_length=1, max_length=1_000_000)]


def read_config(folder: Path) -> dict[str, Any]:
    """Read and check ``config.json``; return the settings to build the model from.

    Raises:
        AttreeError: the file is missing or damaged, or has a value that is wrong or keeps attree
            from capturing attention.
    """
    if not (path := folder / _CONFIG).is_file():
        problem = "no checkpoint here: config.json is missing"
        raise AttreeError("missing-config", problem, file=folder, fix=_SAVED)
    name = "model configuration"
    values = read_described(path, dict[str, Any], what=name)
    described(values, _Config, file=path, what=name)
    for key, allowed in _ALLOWED.items():
        if values.get(key) not in allowed:
            problem = f"{key}: attree cannot capture attention of this kind ({values[key]!r})"[:300]
            fix = "remove the key" if key in _IMPLEMENTATION else "use another encoder"
            raise AttreeError("unknown-attention", problem, file=path, fix=fix)
    if not values.get("model_type"):
        problem = "this model configuration does not state the model's type (model_type)"
        raise AttreeError("no-model-type", problem, file=path, fix=_SAVED)
    return {key: value for key, value in values.items() if key not in _NOT_THE_MODEL_S}


def _stated(config: Mapping[str, Any], size: str) -> tuple[str, Any]:
    """Return the key of ``config.json`` for a size of ``_SIZES``, and its value.

    If there is none, return the size's first key and None.
    """
    names = _SIZES[size]
    key = next((name for name in names if config.get(name)), names[0])
    return key, config.get(key)


def _unused_positions(config: Mapping[str, Any]) -> int:
    """Return the number of positions before the first that is used."""
    family, padding = config.get("model_type"), config.get("pad_token_id")
    if family in _FROM_ZERO:
        return 0
    if family in _BEHIND_PADDING:
        return (1 if padding is None else int(padding)) + 1
    return 2 if padding == 1 else 0


def shape_of(folder: Path) -> Shape:
    """Return family, layers, heads, hidden size and longest input, as stated in ``config.json``.

    Raises:
        AttreeError: as for :func:`read_config`; or no attention, or more weights than the files.
    """
    config, path = read_config(folder), folder / _CONFIG
    stated = {size: _stated(config, size) for size in _SIZES}
    for size, name in (("n_layers", "layers"), ("n_heads", "attention heads")):
        key, value = stated[size]
        if not value:
            problem = f"this model has no attention to parse with: it states no {name} ({key})"
            fix = "choose an encoder with self-attention"
            raise AttreeError("no-attention", problem, file=path, fix=fix)
    sizes = {size: value for size, (_, value) in stated.items()}
    sizes |= {"family": config["model_type"], "max_pieces": _longest(config, folder)}
    shape = described(sizes, Shape, file=path, what="model configuration")
    if shape.hidden_size % shape.n_heads:
        hidden, _ = stated["hidden_size"]
        problem = f"{hidden}: {shape.hidden_size} is not divisible by {shape.n_heads} heads"
        fix = "check that the download or copy is whole"
        raise AttreeError("bad-shape", problem, file=path, fix=fix)
    # Refused before memory is taken: every layer has four square projections at least, and a
    # weight has a byte at least.
    narrow = min(shape.hidden_size, config.get("embedding_size") or shape.hidden_size)
    least = 4 * shape.n_layers * shape.hidden_size**2 + narrow * (config.get("vocab_size") or 0)
    size_of_files = sum(file.stat().st_size for file in weight_files(folder))
    if least > size_of_files:
        problem = f"config.json describes {least:,} weights, the files have {size_of_files:,} bytes"
        fix = "check that config.json and model.safetensors belong together"
        raise AttreeError("too-few-bytes", problem, file=path, fix=fix)
    return shape


def _longest(config: dict[str, Any], folder: Path) -> int:
    """Return the most pieces that both the model and its tokeniser allow."""
    limit = (_stated(config, "max_pieces")[1] or 512) - _unused_positions(config)
    if (path := folder / "tokenizer_config.json").is_file():
        settings = read_described(path, _TokeniserConfig, what="tokeniser configuration")
        limit = min(limit, int(settings.model_max_length or limit))
    return limit


def checkpoint_files(folder: Path) -> list[Path]:
    """Return configuration, weights and tokeniser files; refuse files that are unsafe to load."""
    weights = weight_files(folder)
    tokeniser = [folder / name for name in TOKENISER_FILES if os.path.lexists(folder / name)]
    for file in tokeniser:
        check_regular(file, what="tokeniser file", largest=_LARGEST_TOKENISER)
    names = {file.name for file in tokeniser}
    if not names & {"tokenizer.json", "vocab.txt"} and not {"vocab.json", "merges.txt"} <= names:
        problem = "this checkpoint has no fast tokeniser (tokenizer.json)"
        fix = "write one with AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        raise AttreeError("no-tokeniser", problem, file=folder, fix=fix)
    return [folder / _CONFIG, *weights, *tokeniser]


def weight_files(folder: Path) -> list[Path]:
    """Return ``model.safetensors``, or the index and the files that it names.

    Raises:
        AttreeError: there are no weights or only pickles, a file is not regular, or the index names
            other files than ``.safetensors`` files in this folder.
    """
    fix = "save the model again with `save_pretrained`, which writes model.safetensors"
    if os.path.lexists(folder / _WEIGHTS):
        check_regular(folder / _WEIGHTS, what="file of weights")
        return [folder / _WEIGHTS]
    if not os.path.lexists(folder / INDEX):
        pickled = sorted([*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.ckpt")])
        problem = "the weights (model.safetensors) are missing"
        if pickled:
            problem = f"the weights are only a pickle ({pickled[0].name}), which can run code"
        raise AttreeError("no-safetensors", problem, file=folder, fix=fix)
    files = [folder / INDEX]
    index = read_described(folder / INDEX, _Index, what="index of weights")
    for name in sorted(set(index.weight_map.values())):
        if not name.endswith(".safetensors") or Path(name).name != name or "\0" in name:
            problem = f"this index names {name!r}: only .safetensors files beside it are read"
            raise AttreeError("bad-index", problem, file=folder / INDEX, fix=fix)
        check_regular(folder / name, what="file of weights")
        files.append(folder / name)
    return files


def fingerprint(files: list[Path]) -> str:
    """Hash names and contents of files, at about a gigabyte per second."""
    whole = hashlib.sha256()
    for file in files:
        with file.open("rb") as handle:
            content = hashlib.file_digest(handle, "sha256").hexdigest()
        whole.update(f"{file.name} {content}\n".encode())
    return whole.hexdigest()[:32]


def stamps(files: Sequence[Path], *, whole: bool = False) -> dict[str, list[int]]:
    """Return name (or ``whole`` path) of each file → its size and time of change."""
    stats = {str(file) if whole else file.name: file.stat() for file in files}
    return {name: [stat.st_size, stat.st_mtime_ns] for name, stat in stats.items()}


@contextlib.contextmanager
def only_checked(folder: Path) -> Iterator[Path]:
    """Yield a private folder with links to a checkpoint's checked files and no others.

    So only files in the fingerprint are read: no adapter, no further tokeniser file, no code. Its
    ``config.json`` has no setting for the implementation of attention.
    """
    files = checkpoint_files(folder)
    with tempfile.TemporaryDirectory(prefix="attree-") as name:
        view = Path(name)
        for file in files:
            if file.name != _CONFIG:
                (view / file.name).symlink_to(file.absolute())
        (view / _CONFIG).write_text(json.dumps(read_config(folder)), encoding="utf-8")
        yield view
