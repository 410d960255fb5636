"""The form of a checkpoint in a zip file, which may be split over several packages."""

from __future__ import annotations

import shutil
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from attree.base.errors import AttreeError
from attree.encoder.checkpoint import READ

VERSION = 1


def convert(source: BinaryIO, folder: Path) -> None:
    """Extract the zip's checkpoint into ``folder``; see :class:`forms.Form`.

    The checkpoint is the folder of the zip with ``config.json`` and ``model.safetensors``. Only
    files that attree reads are extracted.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            names = set(archive.namelist())
            for name in sorted(names):
                above = PurePosixPath(name).parent
                if above.joinpath("config.json") == PurePosixPath(name) and (
                    str(above / "model.safetensors") in names
                ):
                    break
            else:
                raise AttreeError("no-checkpoint", "the zip holds no checkpoint")
            for wanted in READ:
                name = str(above / wanted)
                if name in names:
                    with archive.open(name) as packed, (folder / wanted).open("wb") as file:
                        shutil.copyfileobj(packed, file, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise AttreeError("damaged-zip", f"the zip is damaged ({error})") from None
