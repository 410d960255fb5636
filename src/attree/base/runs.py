"""Manage the folders of a run: its checkpoints, and whether its output exists already."""

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from attree.base.errors import AttreeError
from attree.base.files import lock, whole_file, write_json
from attree.base.provenance import digest
from attree.base.reading import read_json
from attree.base.terminal import say

PROVENANCE = "provenance.json"
_RUN = "run.json"


def already_made(output: Path, identity: Mapping[str, Any], *, restart: bool) -> bool:
    """Tell whether ``output`` holds the result of this very run, and print it.

    Raises:
        AttreeError: it holds the result of another run, unless ``restart`` lets the new run replace
            it, or files that no run wrote.
    """
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return False
    described = output / PROVENANCE
    if not described.is_file():
        problem, fix = "this is not the result of such a run", "choose another output folder"
        raise AttreeError("foreign-output", problem, file=output, fix=fix)
    made = read_json(described, what="provenance")
    if isinstance(made, dict) and made.get("configuration") == digest(identity):
        say(f"{output}: this run is finished")
        return True
    if not restart:
        problem = "this folder holds the result of other settings, text or code"
        fix = "pass --restart to replace it, or choose another output folder"
        raise AttreeError("other-run", problem, file=output, fix=fix)
    return False


@contextlib.contextmanager
def working_folder(output: Path, identity: Mapping[str, Any], *, restart: bool) -> Iterator[Path]:
    """Yield the folder of a run's checkpoints, ``.<output>.checkpoints`` beside its output.

    A run writes them as ``checkpoint…`` into a subfolder. They outlive a kill, so that the same
    command continues from them. When the block ends well, or fails without any, the folder goes.

    Raises:
        AttreeError: another process works in it, or it holds another run's checkpoints, which
            ``restart`` removes.
    """
    work = output.with_name(f".{output.name}.checkpoints")
    with lock(work / "lock", what=str(output)):
        described = work / _RUN
        run = digest(identity)
        if not described.exists() or read_json(described, what="run").get("run") != run:
            runs = {checkpoint.parent for checkpoint in work.glob("*/checkpoint*")}
            if runs and not restart:
                problem = "this folder holds checkpoints of another, interrupted run"
                fix = "repeat that run's options to continue it, or pass --restart to drop it"
                raise AttreeError("other-run", problem, file=work, fix=fix)
            for folder in runs:
                say(f"{folder}: of another, interrupted run: removed")
                shutil.rmtree(folder)
            write_json(described, {"run": run, **identity})
        ended = False
        try:
            yield work
            ended = True
        finally:
            if ended or not any(work.glob("*/checkpoint*")):
                shutil.rmtree(work)


def read_state(file: Path) -> dict[str, Any] | None:
    """Return what :func:`write_state` wrote, or None if it wrote nothing.

    Raises:
        AttreeError: the file is damaged.
    """
    import torch

    if not file.is_file():
        return None
    try:  # weights_only: run no code from the file
        return dict(torch.load(file, map_location="cpu", weights_only=True))
    except (RuntimeError, EOFError, UnpicklingError):
        problem, fix = "this checkpoint is damaged", "remove it, and training starts anew"
        raise AttreeError("damaged-checkpoint", problem, file=file, fix=fix) from None


def write_state(file: Path, state: Mapping[str, Any]) -> None:
    """Write tensors, generators' states and numbers, whole or not at all."""
    import torch

    with whole_file(file) as part:
        torch.save(state, part)
