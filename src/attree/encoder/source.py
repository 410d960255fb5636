"""Where an encoder comes from, and what exactly it was: one resolved description, with a hash."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from attree.base.errors import AttreeError
from attree.base.files import write_json
from attree.base.provenance import versions
from attree.base.reading import check_regular, read_described, read_json
from attree.base.registry import check_name
from attree.encoder import checkpoint
from attree.encoder.converted import carried, converted, identity

#: (layer, head), both 0-based
Head = tuple[int, int]

#: Types to compute an encoder in; ``auto`` is bfloat16 if the device supports it.
DTYPES = ("float32", "bfloat16", "auto")

#: Default folder of the checkpoint in a package.
_MODEL_FOLDER = "model"
#: Files to fetch from the hub: safetensors only, and no code.
_HUB_FILES = ("config.json", "*.safetensors", checkpoint.INDEX, *checkpoint.TOKENISER_FILES)
_SECONDS_TO_ANSWER = 10
#: Prefix of the names of weights that adapt an encoder.
ADAPTER_PREFIX = "encoder."


@dataclass(frozen=True, slots=True)
class EncoderSource:
    """The configuration of an encoder.

    Args:
        slug: its name in the configuration and in results.
        kind: ``hub``, ``path`` or ``package``.
        id: id on the hub, path of the folder, or name of the package.
        revision: commit of the hub; None lets the first run resolve it.
        dtype: ``float32``, ``bfloat16``, or ``auto``: bfloat16 if the device supports it.
    """

    slug: str
    kind: str
    id: str
    revision: str | None = None
    dtype: str = "float32"


@dataclass(frozen=True, slots=True)
class ResolvedEncoder(checkpoint.Shape):
    """A resolved encoder: its folder, sizes, and a hash of configuration, weights and tokeniser.

    ``max_pieces`` includes special pieces. ``stamps`` are size and time of every hashed file, so
    that unchanged files are not hashed again. ``adapter`` is a parser's file of weights whose
    low-rank weights are added to the encoder's.
    """

    slug: str
    kind: str
    id: str
    revision: str | None
    folder: str
    fingerprint: Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]
    dtype: str
    adapter: str = ""
    stamps: dict[str, list[int]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def write(self, path: str | Path) -> None:
        """Write the description as JSON."""
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: str | Path) -> ResolvedEncoder:
        """Read a description from a file of :meth:`write`."""
        name = "encoder description"
        encoder = read_described(path, cls, what=name, fix=_RESOLVE)
        for key, names in (("kind", SOURCES), ("dtype", DTYPES)):
            value = getattr(encoder, key)
            problem = f"this {name} is not valid: {key}: unknown {value!r}"
            check_name(value, names, problem, file=path)
        return encoder


_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")
_RESOLVE = "write it again with `attree encoder resolve`"


#: Folder of the workflow's descriptions of encoders, named after the encoders.
DESCRIPTIONS = Path("results/encoders")


def find_encoder(name: str | Path, *, dtype: str = DTYPES[0]) -> ResolvedEncoder:
    """Find an encoder by name; all commands use this function.

    Args:
        name: a description (``….json``), a folder of ``save_pretrained``, the name of an encoder
            that the workflow resolved (``results/encoders/NAME.json``), an installed package, or
            the id of a model on the hub (``owner/name``). The first of these that exists is used.
        dtype: dtype of an encoder without a description.

    Raises:
        AttreeError: there is none of these, or it cannot be used.
    """
    path, text = Path(name), str(name)
    if path.suffix == ".json":
        return ResolvedEncoder.read(path)
    if text and path.is_dir():
        return resolve(EncoderSource(path.resolve().name, "path", text, dtype=dtype))
    if (described := DESCRIPTIONS / f"{text}.json").is_file():
        return ResolvedEncoder.read(described)
    kind = "hub" if _HUB_ID.fullmatch(text) else "package"
    try:
        return resolve(EncoderSource(path.name, kind, text, dtype=dtype))
    except AttreeError as error:
        if carried(text) is not None or error.code != "not-installed":
            raise
        problem = f"no encoder {text!r}: no such file, folder, name in {DESCRIPTIONS} or package"
        fix = (
            "give results/encoders/….json, a folder of save_pretrained, an installed package, or a "
            "hub id such as FacebookAI/xlm-roberta-base"
        )
        raise AttreeError("unknown-encoder", problem, fix=fix) from None


def resolve(source: EncoderSource, *, record: str | Path | None = None) -> ResolvedEncoder:
    """Find an encoder and describe it.

    Args:
        source: the encoder's configuration.
        record: a file for the revision of a hub encoder that is configured without one: the first
            run writes it, and later runs are refused if the hub has another revision.

    Raises:
        AttreeError: the model does not exist, has no safetensors, fast tokeniser or attention, or
            another revision, or the hub cannot be reached.
    """
    check_name(source.kind, SOURCES, f"unknown kind of encoder source: {source.kind}")
    check_name(source.dtype, DTYPES, f"unknown dtype {source.dtype}")
    folder, revision = SOURCES[source.kind](source, record)
    shape, files = checkpoint.shape_of(folder), checkpoint.checkpoint_files(folder)
    return ResolvedEncoder(
        **asdict(source) | {"revision": revision},
        folder=str(folder),
        fingerprint=identity(folder) or checkpoint.fingerprint(files),
        stamps=checkpoint.stamps(files),
        versions=versions("torch", "transformers", "tokenizers"),
        **asdict(shape),
    )


def verify(encoder: ResolvedEncoder) -> Path:
    """Check that a resolved encoder has not changed, and return its folder.

    Files with the same size and time are assumed to be unchanged; others are hashed. A hub encoder
    that was resolved on another machine is fetched at its revision; an encoder that a package
    carries in another form is converted.
    """
    folder = Path(encoder.folder)
    if encoder.kind == "package" or (encoder.kind == "hub" and not folder.is_dir()):
        source = EncoderSource(encoder.slug, encoder.kind, encoder.id, encoder.revision)
        folder, _ = SOURCES[encoder.kind](source, None)
    shape, files = checkpoint.shape_of(folder), checkpoint.checkpoint_files(folder)
    adapter = [Path(encoder.adapter)] if encoder.adapter else []
    for file in adapter:
        check_regular(file, what="file of weights")
    if checkpoint.stamps([*files, *adapter]) != encoder.stamps:
        current = identity(folder) or checkpoint.fingerprint(files)
        if adapter:
            current = adapted_fingerprint(current, read_adapter(encoder.adapter))
        if current != encoder.fingerprint:
            problem = f"the encoder {encoder.slug} has changed since it was resolved"
            fix = "run `attree encoder resolve` again"
            raise AttreeError("encoder-changed", problem, file=folder, fix=fix)
    for key, value in asdict(shape).items():
        if (described := getattr(encoder, key)) != value:
            problem = f"the encoder {encoder.slug} does not fit its description: {key} is"
            problem += f" {described} there, {value} here"
            raise AttreeError("description-misfit", problem, file=folder, fix=_RESOLVE)
    return folder


def read_adapter(path: str | Path) -> dict[str, NDArray[Any]]:
    """Read the low-rank weights in a parser's file: name → weights, empty if it has none.

    Raises:
        AttreeError: the file is missing or damaged, or the weights are no finite float16 numbers.
    """
    check_regular(Path(path), what="file of weights")
    fix = "train it again"
    try:
        with safe_open(path, framework="numpy") as file:
            names = [name for name in file.keys() if name.startswith(ADAPTER_PREFIX)]  # noqa: SIM118
            weights = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError, TypeError, AttributeError):
        problem = "these weights are damaged or belong to another parser"
        raise AttreeError("damaged-weights", problem, file=path, fix=fix) from None
    for name, tensor in weights.items():
        if tensor.dtype != np.float16 or not np.isfinite(tensor).all():
            problem = f"the weights {name} are not finite numbers of 16 bits"
            raise AttreeError("damaged-weights", problem, file=path, fix=fix)
    return weights


def adapted_fingerprint(encoder: str, weights: Mapping[str, NDArray[Any]]) -> str:
    """Return the fingerprint of an encoder with low-rank weights, a hash of both.

    Args:
        encoder: fingerprint of the encoder alone.
        weights: name → weights.
    """
    whole = hashlib.sha256(encoder.encode())
    for name, tensor in sorted(weights.items()):
        whole.update(f" {name} {tensor.shape} ".encode())
        whole.update(np.ascontiguousarray(tensor).tobytes())
    return whole.hexdigest()[:32]


def with_adapter(encoder: ResolvedEncoder, weights: Path) -> ResolvedEncoder:
    """Return an encoder with the low-rank weights of a trained parser's file, if it has any.

    Raises:
        AttreeError: the file is damaged.
    """
    if not (adapter := read_adapter(weights)):
        return encoder
    path = weights.absolute()
    fingerprint = adapted_fingerprint(encoder.fingerprint, adapter)
    stamps = encoder.stamps | checkpoint.stamps([path])
    return replace(encoder, adapter=str(path), fingerprint=fingerprint, stamps=stamps)


def has_new_head(folder: Path) -> bool:
    """Tell whether an encoder was tuned with a new language-model head; tables mark such encoders.

    An encoder that attree did not tune has none.
    """
    path = folder / "provenance.json"
    record = read_json(path, what="provenance") if path.is_file() else {}
    return isinstance(record, dict) and bool(record.get("new_head"))


def _from_path(source: EncoderSource, record: str | Path | None) -> tuple[Path, None]:
    # Path.expanduser raises for ~name of an unknown user
    folder = Path(os.path.expanduser(source.id))  # noqa: PTH111
    if not source.id or not folder.is_dir():
        problem = f"the folder of the encoder {source.slug} does not exist"
        raise AttreeError("missing-folder", problem, file=folder, fix="correct its `path`")
    return folder.resolve(), None


def _from_package(source: EncoderSource, record: str | Path | None) -> tuple[Path, None]:
    if (folder := converted(source.id)) is not None:
        return folder, None
    # The package is located without importing it, which may import much else. A name with dots
    # would import its parent packages.
    name = source.id.replace("-", "_")
    spec = importlib.util.find_spec(name) if name.isidentifier() and name != "__main__" else None
    if spec is None or not spec.submodule_search_locations:
        problem = f"the package {source.id!r} with the encoder {source.slug!r} is not installed"
        fix = "name an encoder that is installed, or a folder, with --encoder"
        raise AttreeError("not-installed", problem, fix=fix)
    root = Path(next(iter(spec.submodule_search_locations)))
    for folder in (root / _MODEL_FOLDER, root, *sorted(root.iterdir())):
        if (folder / "config.json").is_file():
            return folder, None
    raise AttreeError("no-checkpoint", f"the package {source.id} holds no checkpoint", file=root)


class _Record(msgspec.Struct):
    id: str
    revision: str


def _from_hub(source: EncoderSource, record: str | Path | None) -> tuple[Path, str]:
    """Return the folder of a hub's encoder, fetched if necessary, and its commit.

    Without a revision, the one in ``record`` is used; if there is none, the hub's current revision
    is used and recorded. An error is raised if the hub's revision is no longer the recorded one.
    """
    name, revision = source.id, source.revision
    recorded = None
    if record is not None and Path(record).is_file():
        previous = read_described(record, _Record, what="record of the encoder's revision")
        recorded = previous.revision if previous.id == name else None
    if revision is None and recorded is not None:
        current = _current_revision(name)
        if current is not None and current != recorded:
            problem = f"the hub's {name} is now at revision {current}, it was at {recorded} before"
            fix = f"set `revision: {recorded}` to keep it, or delete this file to use the new one"
            raise AttreeError("revision-changed", problem, file=record, fix=fix)
    folder = _download(name, revision or recorded)
    commit = folder.name  # the cache keeps each commit in a folder of its name
    if record is not None and revision is None and recorded is None:
        write_json(record, {"id": name, "revision": commit})
    return folder, commit


#: kind of source → function that finds the folder and the revision, if any
SOURCES = {"hub": _from_hub, "path": _from_path, "package": _from_package}


def _current_revision(name: str) -> str | None:
    """Return the hub's current commit; None if the hub does not answer."""
    from huggingface_hub import HfApi, errors

    try:
        return HfApi().model_info(name, timeout=_SECONDS_TO_ANSWER).sha
    except (errors.HfHubHTTPError, OSError, RuntimeError):
        return None


def _download(name: str, revision: str | None) -> Path:
    from huggingface_hub import errors, snapshot_download
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()
    description = name + (f" at revision {revision}" if revision else "")
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(_HUB_FILES)))
    except errors.GatedRepoError:
        problem, fix = f"the hub asks for a login for {description}", "run `hf auth login`"
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        problem, fix = f"the hub has no model {description}", "correct its `id`"
    except errors.RevisionNotFoundError:
        problem, fix = f"the hub has no {description}", "correct its `revision`"
    except (errors.HfHubHTTPError, OSError):  # offline too
        problem = f"the hub cannot be reached, and {description} is not in the local cache"
        fix = "fetch it once with a connection, or use an encoder of kind `path` or `package`"
    raise AttreeError("no-hub", problem, fix=fix)
