"""The folders of a run: checkpoints beside the output, and the output, whole or not at all."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attree.errors import AttreeError
from attree.files import lock, read_json, whole_folder, write_json
from attree.provenance import digest, provenance, versions
from attree.text import safe

if TYPE_CHECKING:
    from transformers import PreTrainedModel

PROVENANCE = "provenance.json"
#: Folder of the tokeniser that a run trains, among its checkpoints.
TOKENISER = "tokeniser"
#: Everything that a tokeniser may consist of: copied as it is, so that pieces stay what they were.
_TOKENISER_FILES = (
    "tokenizer*",
    "vocab.*",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "*.model",
)
_RUN = "run.json"
_WHOLE = "whole.json"
_CHECKPOINT = "checkpoint-"


def note(text: str) -> None:
    """Say one line on stderr."""
    print(safe(text), file=sys.stderr, flush=True)


def already_made(output: Path, identity: Mapping[str, Any], *, restart: bool) -> bool:
    """Tell whether ``output`` holds the result of this very run.

    Raises:
        AttreeError: it holds something else: the result of another run, which ``restart`` lets the
            new one replace, or what no run made.
    """
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return False
    described = output / PROVENANCE
    if described.is_file():
        made = read_json(described, what="provenance")
        if isinstance(made, dict) and made.get("configuration") == digest(identity):
            return True
        if restart:
            return False
        raise AttreeError(
            "this folder holds the result of other settings, text or code",
            file=output,
            fix="pass --restart to replace it, or choose another output folder",
        )
    raise AttreeError(
        "this exists and is no result of such a run",
        file=output,
        fix="choose another output folder",
    )


def has_new_head(folder: str | Path) -> bool:
    """Tell whether an encoder was tuned through a head that its first checkpoint did not have.

    Every table marks its rows *new head*. An encoder that attree did not make has none.
    """
    described = Path(folder) / PROVENANCE
    made = read_json(described, what="provenance") if described.is_file() else {}
    return isinstance(made, dict) and bool(made.get("new_head", False))


@contextlib.contextmanager
def working_folder(output: Path, identity: Mapping[str, Any], *, restart: bool) -> Iterator[Path]:
    """Yield the folder of a run's checkpoints, ``.<output>.checkpoints`` beside its output.

    It outlives a kill, so that the same command continues from there, and is removed
    when the block ends well.

    Raises:
        AttreeError: another process is at work in it, or it holds another run's checkpoints, which
            ``restart`` drops.
    """
    work = output.with_name(f".{output.name}.checkpoints")
    with lock(work / "lock", what=str(output)):
        described = work / _RUN
        run = digest(identity)
        if not described.exists() or read_json(described, what="run").get("run") != run:
            begun = [found.parent for found in work.glob(f"*/{_CHECKPOINT}*")]
            if begun and not restart:
                raise AttreeError(
                    "here are checkpoints of another run that was interrupted",
                    file=work,
                    fix="repeat that run's options to continue it, or pass --restart to drop it",
                )
            for folder in (*begun, work / TOKENISER):
                shutil.rmtree(folder, ignore_errors=True)
            write_json(described, {"run": run, **identity})
        yield work
        shutil.rmtree(work)


def write_result(
    output: Path,
    model: PreTrainedModel,
    tokeniser: Path,
    identity: Mapping[str, Any],
    about: Mapping[str, Any],
) -> None:
    """Write a checkpoint folder, whole or not at all.

    Args:
        output: the folder; it does not exist, or is empty.
        model: saved as safetensors.
        tokeniser: the folder whose tokeniser files are copied.
        identity: what was asked for, in hashes and settings; ``kind`` is the module that made it.
        about: what else ``provenance.json`` is to say.
    """
    more = {
        "versions": versions("torch", "transformers", "tokenizers", "accelerate"),
        **about,
    }
    with whole_folder(output, over=PROVENANCE) as part:
        model.save_pretrained(part)
        for pattern in _TOKENISER_FILES:
            for file in tokeniser.glob(pattern):
                shutil.copyfile(file, part / file.name)
        write_json(
            part / PROVENANCE,
            provenance(code=[f"attree.encoder.mlm.{identity['kind']}"], settings=identity, **more),
        )
    note(f"{output}: written")


def seal(checkpoint: Path) -> None:
    """Mark a checkpoint as whole, once everything is written, by the sizes of its files."""
    write_json(checkpoint / _WHOLE, _sizes(checkpoint))


def last_checkpoint(folder: Path) -> Path | None:
    """Return the last whole checkpoint; those cut short by a kill are named and removed."""
    found = sorted(folder.glob(f"{_CHECKPOINT}*"), key=_step, reverse=True)
    for checkpoint in found:
        try:
            sizes = read_json(checkpoint / _WHOLE)
        except AttreeError:
            sizes = None
        if sizes == _sizes(checkpoint):
            return checkpoint
        note(f"{checkpoint}: this checkpoint was cut short — going back to the one before it")
        shutil.rmtree(checkpoint)
    return None


def checkpoint_folder(folder: Path, step: int) -> Path:
    """Return where ``transformers`` writes the checkpoint of a step."""
    return folder / f"{_CHECKPOINT}{step}"


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix(_CHECKPOINT))


def _sizes(checkpoint: Path) -> dict[str, int]:
    return {
        str(file.relative_to(checkpoint)): file.stat().st_size
        for file in checkpoint.rglob("*")
        if file.is_file() and file.name != _WHOLE
    }
