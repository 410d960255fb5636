"""Encoders from the Hugging Face hub: a named commit, safetensors only, and no code of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attree.errors import AttreeError
from attree.files import read_json, write_json

_SECONDS_TO_ANSWER = 10


def fetch(
    name: str, wanted: str | None, record: str | Path | None, *, patterns: Sequence[str]
) -> tuple[Path, str]:
    """Return the folder of the hub's encoder ``name``, fetched if need be, and its commit.

    Without a ``wanted`` revision the one in ``record`` is used, and where there is none yet the
    hub's current one, which is then recorded. A hub that has moved on since is refused.

    Raises:
        AttreeError: unknown model or revision, no access, no connection, a changed revision.
    """
    recorded = _recorded(name, record)
    if wanted is None and recorded is not None:
        _refuse_change(name, recorded, record)
    folder = _download(name, wanted or recorded, patterns)
    commit = folder.name  # the cache keeps each commit in a folder of its name
    if record is not None and wanted is None and recorded is None:
        write_json(record, {"id": name, "revision": commit})
    return folder, commit


def _recorded(name: str, record: str | Path | None) -> str | None:
    if record is None or not Path(record).is_file():
        return None
    found = read_json(record, what="record of the encoder's revision")
    return found["revision"] if found.get("id") == name else None


def _refuse_change(name: str, recorded: str, record: str | Path | None) -> None:
    current = _current_revision(name)
    if current is not None and current != recorded:
        raise AttreeError(
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


def _download(name: str, revision: str | None, patterns: Sequence[str]) -> Path:
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
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(patterns)))
    except GatedRepoError:
        problem, fix = f"the hub asks for a login for {named}", "run `hf auth login`"
    except (RepositoryNotFoundError, HFValidationError):
        problem, fix = f"the hub has no model {named}", "correct its `id`"
    except RevisionNotFoundError:
        problem, fix = f"the hub has no {named}", "correct its `revision`"
    except (LocalEntryNotFoundError, OfflineModeIsEnabled, HfHubHTTPError, OSError):
        problem = f"the hub cannot be reached, and {named} is not in the local cache"
        fix = "fetch it once with a connection, or use an encoder of kind `path` or `package`"
    raise AttreeError(problem, fix=fix)
