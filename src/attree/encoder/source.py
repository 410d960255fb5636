"""Where an encoder comes from, and what exactly it was: one resolved description, with a hash."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from attree.encoder.families import FAMILIES
from attree.errors import AttreeError
from attree.files import read_json, write_json
from attree.provenance import versions

DTYPES = ("float32", "bfloat16", "auto")

#: Packages that carry a checkpoint under another name than their module's default folder.
_MODEL_FOLDER = "model"
_TOKENISER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)
_HUB_FILES = ("config.json", "*.safetensors", "model.safetensors.index.json", *_TOKENISER_FILES)


@dataclass(frozen=True, slots=True)
class EncoderSource:
    """What a configuration says about an encoder.

    Args:
        slug: its name in configuration and in results.
        kind: ``hub``, ``path`` or ``package``.
        id: the hub's id, the folder, or the package.
        revision: commit of the hub; ``None`` lets the first run resolve it.
        dtype: ``float32``, ``bfloat16``, or ``auto``: bfloat16 where the device has it.
    """

    slug: str
    kind: str
    id: str
    revision: str | None = None
    dtype: str = "float32"


@dataclass(frozen=True, slots=True)
class ResolvedEncoder:
    """An encoder found: its folder, its shape, and a hash of configuration, weights, tokeniser.

    ``max_pieces`` counts the specials; ``stamps`` are size and time of every file hashed, so that
    loading need not hash again what has not been touched.
    """

    slug: str
    kind: str
    id: str
    revision: str | None
    folder: str
    fingerprint: str
    family: str
    n_layers: int
    n_heads: int
    hidden_size: int
    max_pieces: int
    dtype: str
    stamps: dict[str, list[int]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def write(self, path: str | Path) -> None:
        """Write the description as JSON."""
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: str | Path) -> ResolvedEncoder:
        """Read a description that :meth:`write` wrote."""
        found = read_json(path, what="encoder description")
        try:
            return cls(**found)
        except TypeError:
            raise AttreeError(
                "this is not the description of an encoder",
                file=path,
                fix="write it anew with `attree encoder resolve`",
            ) from None


def resolve(source: EncoderSource, *, record: str | Path | None = None) -> ResolvedEncoder:
    """Find an encoder and describe it.

    Args:
        source: what is asked for.
        record: a file in which the first run notes the revision of a hub encoder given without
            one; a run that finds another revision is refused.

    Raises:
        AttreeError: no such model, no safetensors, no fast tokeniser, no attention, a family that
            is not supported, no connection, or a changed revision.
    """
    if source.kind not in SOURCES:
        raise AttreeError(f"unknown kind of encoder source: {source.kind}", fix=_one_of(SOURCES))
    if source.dtype not in DTYPES:
        raise AttreeError(f"unknown dtype {source.dtype}", fix=_one_of(DTYPES))
    folder, revision = SOURCES[source.kind](source, record)
    return describe(source, folder, revision)


def describe(source: EncoderSource, folder: Path, revision: str | None) -> ResolvedEncoder:
    """Check the checkpoint in ``folder`` and return its description."""
    config = _config(folder)
    shape = _shape(config, folder)
    files = _checkpoint_files(folder)
    return ResolvedEncoder(
        slug=source.slug,
        kind=source.kind,
        id=source.id,
        revision=revision,
        folder=str(folder),
        fingerprint=_fingerprint(files),
        dtype=source.dtype,
        stamps=_stamps(files),
        versions=versions("torch", "transformers", "tokenizers"),
        **shape,
    )


def verify(encoder: ResolvedEncoder) -> Path:
    """Return the folder of a resolved encoder after checking that it is still the same.

    Files with the size and time they had are taken to be the same; others are hashed. A hub
    encoder resolved on another machine is fetched at its revision.
    """
    folder = Path(encoder.folder)
    if encoder.kind in ("hub", "package") and not folder.is_dir():
        source = EncoderSource(encoder.slug, encoder.kind, encoder.id, encoder.revision)
        folder, _ = SOURCES[encoder.kind](source, None)
    files = _checkpoint_files(folder)
    if _stamps(files) != encoder.stamps and _fingerprint(files) != encoder.fingerprint:
        raise AttreeError(
            f"the encoder {encoder.slug} has changed since it was resolved",
            file=folder,
            fix="run `attree encoder resolve` again",
        )
    return folder


def _from_path(source: EncoderSource, record: str | Path | None) -> tuple[Path, None]:
    folder = Path(source.id).expanduser()
    if not folder.is_dir():
        raise AttreeError(
            f"the encoder {source.slug} has no such folder",
            file=folder,
            fix="correct its `path`",
        )
    return folder.resolve(), None


def _from_package(source: EncoderSource, record: str | Path | None) -> tuple[Path, None]:
    # The package is looked up and not imported: it may import much that is not needed here.
    found = importlib.util.find_spec(source.id.replace("-", "_"))
    if found is None or not found.submodule_search_locations:
        raise AttreeError(
            f"the package {source.id} with the encoder {source.slug} is not installed",
            fix=f"pip install {source.id}",
        )
    root = Path(next(iter(found.submodule_search_locations)))
    for folder in (root / _MODEL_FOLDER, root, *sorted(root.iterdir())):
        if (folder / "config.json").is_file():
            return folder, None
    raise AttreeError(f"the package {source.id} holds no checkpoint", file=root)


def _from_hub(source: EncoderSource, record: str | Path | None) -> tuple[Path, str]:
    from attree.encoder.hub import fetch

    return fetch(source.id, source.revision, record, patterns=_HUB_FILES)


#: kind of source → what finds its folder and, where there is one, its revision
SOURCES = {"hub": _from_hub, "path": _from_path, "package": _from_package}


def _one_of(names: Iterable[str]) -> str:
    return "choose one of " + ", ".join(names)


def _config(folder: Path) -> dict[str, Any]:
    if not (folder / "config.json").is_file():
        raise AttreeError(
            "no checkpoint here: config.json is missing",
            file=folder,
            fix="give the folder that `save_pretrained` wrote",
        )
    config = read_json(folder / "config.json", what="model configuration")
    if not isinstance(config, dict):
        raise AttreeError("this is not a model configuration", file=folder / "config.json")
    return config


def _shape(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return family, layers, heads, hidden size and longest input that ``config.json`` states."""
    name = config.get("model_type")
    if name not in FAMILIES:
        raise AttreeError(
            f"models of type {name!r} are not supported: attree cannot read their attention",
            file=folder / "config.json",
            fix="use one of " + ", ".join(FAMILIES),
        )
    family = FAMILIES[name]
    n_layers, n_heads = config.get(family.layers, 0), config.get(family.heads, 0)
    if not n_layers or not n_heads:
        raise AttreeError(
            "this model has no attention to parse with: its configuration states no "
            + (f"attention heads ({family.heads})" if n_layers else f"layers ({family.layers})"),
            file=folder / "config.json",
            fix="choose an encoder with self-attention",
        )
    limit = config.get(family.positions, 512) - family.position_offset
    tokeniser = folder / "tokenizer_config.json"
    if tokeniser.is_file():
        stated = read_json(tokeniser, what="tokeniser configuration").get("model_max_length")
        limit = min(limit, int(stated)) if stated else limit
    return {
        "family": name,
        "n_layers": n_layers,
        "n_heads": n_heads,
        "hidden_size": config[family.hidden],
        "max_pieces": limit,
    }


def _checkpoint_files(folder: Path) -> list[Path]:
    """Return configuration, weights and tokeniser files; refuse what cannot be loaded safely."""
    weights = sorted(folder.glob("model*.safetensors"))
    if not weights:
        pickled = sorted([*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.ckpt")])
        raise AttreeError(
            f"the weights are only there as a pickle ({pickled[0].name}), which can run code"
            if pickled
            else "the weights (model.safetensors) are missing",
            file=folder,
            fix="save the model anew with `save_pretrained`, which writes model.safetensors",
        )
    tokeniser = [folder / name for name in _TOKENISER_FILES if (folder / name).is_file()]
    names = {file.name for file in tokeniser}
    if not names & {"tokenizer.json", "vocab.txt"} and not {"vocab.json", "merges.txt"} <= names:
        raise AttreeError(
            "this checkpoint has no fast tokeniser (tokenizer.json)",
            file=folder,
            fix="write one with AutoTokenizer.from_pretrained(...).save_pretrained(...)",
        )
    return [folder / "config.json", *weights, *tokeniser]


def _fingerprint(files: list[Path]) -> str:
    """Hash names and contents; about a second a gigabyte."""
    whole = hashlib.sha256()
    for file in files:
        with file.open("rb") as handle:
            content = hashlib.file_digest(handle, "sha256").hexdigest()
        whole.update(f"{file.name} {content}\n".encode())
    return whole.hexdigest()[:32]


def _stamps(files: list[Path]) -> dict[str, list[int]]:
    found = {file.name: file.stat() for file in files}
    return {name: [stat.st_size, stat.st_mtime_ns] for name, stat in found.items()}
