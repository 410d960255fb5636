"""Cut an input into shards, and keep them in a manifest that never changes.

A shard is a run of input lines, of one file or of several small ones, with a hash of its bytes.
Every later read checks the hash, so that a changed input is never parsed.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from attree.base.errors import AttreeError
from attree.base.files import write_text
from attree.base.reading import described, read_json
from attree.raw_text.inputs import InputFile, Reader, open_input

_VERSION = 1
#: A shard ends early at this many bytes, to bound memory.
_SHARD_BYTES = 1 << 25


#: The hash of a shard's bytes.
_hash = functools.partial(hashlib.blake2b, digest_size=16)


_From0 = Annotated[int, Meta(ge=0)]


class ManifestPart(NamedTuple):
    """Lines ``first`` (1-based) to ``first + lines - 1`` of one file, from ``offset`` on."""

    file: _From0
    first: _From0
    lines: _From0
    offset: _From0


@dataclass(frozen=True, slots=True)
class Shard:
    """A run of input lines."""

    number: int
    parts: tuple[ManifestPart, ...]
    hash: str

    @property
    def lines(self) -> int:
        """The number of input lines."""
        return sum(part.lines for part in self.parts)


@dataclass(frozen=True, slots=True)
class LinesOfFile:
    """One part of a shard's payload: lines of one file.

    Attributes:
        file: the file's name in the output.
        kind: a key of :data:`attree.raw_text.lines.PARSERS`.
        first: 1-based number of the first line.
        payload: bytes of the lines.
    """

    file: str
    kind: str
    first: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class _Written:
    """The form of the file: a shard is a list of its hash and its parts."""

    settings: dict[str, Any]
    files: list[InputFile]
    shards: list[list[str | ManifestPart]]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The input, settings and shards of an output folder.

    Attributes:
        settings: everything besides the input that decides the output: the parser with its
            encoder, the tokeniser, the code. A run with other settings is refused.
        files: the input files.
        shards: the shards in input order.
    """

    settings: Mapping[str, Any]
    files: tuple[InputFile, ...]
    shards: tuple[Shard, ...]

    @property
    def lines(self) -> int:
        """The number of input lines."""
        return sum(shard.lines for shard in self.shards)

    def write(self, path: Path) -> None:
        """Write the manifest as JSON, with a line for each shard."""
        head = {
            "version": _VERSION,
            "settings": self.settings,
            "files": [asdict(file) for file in self.files],
            "lines": self.lines,
        }
        text = json.dumps(head, indent=1, sort_keys=True, ensure_ascii=False)
        rows = [json.dumps([shard.hash, *shard.parts]) for shard in self.shards]
        write_text(path, text[:-2] + ',\n "shards": [\n' + ",\n".join(rows) + "\n]}\n")

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read a manifest that :meth:`write` wrote."""
        data, fix = read_json(path, what="corpus manifest"), "use a new folder"
        if not isinstance(data, dict) or data.get("version") != _VERSION:
            problem = "this manifest is of another version of attree"
            raise AttreeError("other-version", problem, file=path, fix=fix)
        written = described(data, _Written, file=path, what="corpus manifest", fix=fix)
        shards = []
        for number, (hashed, *rest) in enumerate(shard or [""] for shard in written.shards):
            parts = [part for part in rest if isinstance(part, ManifestPart)]
            inside = all(part.file < len(written.files) for part in parts)
            if not isinstance(hashed, str) or len(parts) < max(len(rest), 1) or not inside:
                problem = f"shard {number} of this manifest is damaged"
                raise AttreeError("bad-form", problem, file=path, fix=fix)
            shards.append(Shard(number, tuple(parts), hashed))
        return cls(written.settings, tuple(written.files), tuple(shards))


def cut(
    files: Iterable[InputFile], *, shard_lines: int, column: str, limit: int | None = None
) -> Iterator[Shard]:
    """Cut an input into shards of ``shard_lines`` lines, reading it once.

    Args:
        files: the input files in order.
        shard_lines: lines of a shard; fewer if they are very long.
        column: field of JSON Lines, column of Parquet.
        limit: the most lines to read.

    Raises:
        AttreeError: a file is damaged, or changed while it was read.
    """
    shards = done = held = size = 0
    parts, hashed = list[ManifestPart](), _hash()
    for number, file in enumerate(files):
        with open_input(file, column=column) as reader:
            first = 1
            while limit is None or done < limit:
                wanted = min(shard_lines - held, shard_lines if limit is None else limit - done)
                offset = reader.offset
                payload, lines = reader.take(wanted, _SHARD_BYTES - size)
                if not lines:
                    break
                hashed.update(payload)
                parts.append(ManifestPart(number, first, lines, offset))
                first, held, done = first + lines, held + lines, done + lines
                size += len(payload)
                if held == shard_lines or size >= _SHARD_BYTES:
                    yield Shard(shards, tuple(parts), hashed.hexdigest())
                    shards, held, size, parts, hashed = shards + 1, 0, 0, [], _hash()
        _check_unchanged(file)
    if parts:
        yield Shard(shards, tuple(parts), hashed.hexdigest())


def _check_unchanged(file: InputFile) -> None:
    """Refuse a file whose size or time differs from the recorded one."""
    try:
        now = Path(file.path).stat()
    except OSError:
        problem = "this input is gone"
        raise AttreeError("input-gone", problem, file=file.path, fix="put it back") from None
    if (now.st_size, now.st_mtime_ns) != (file.size, file.changed):
        problem = "this input changed while it was read"
        fix = "wait until it is written, then name a new output folder"
        raise AttreeError("unreadable", problem, file=file.path, fix=fix)


def payloads(
    manifest: Manifest, wanted: Iterable[Shard], *, column: str
) -> Iterator[tuple[Shard, list[LinesOfFile]]]:
    """Yield shards in ascending order, each with the lines of its parts.

    A file without random access is read through once.

    Raises:
        AttreeError: a file is damaged, or its lines have changed since they were cut.
    """
    with ExitStack() as stack:
        readers: dict[int, Reader] = {}  # the last file's
        for shard in wanted:
            sources = []
            for part in shard.parts:
                file = manifest.files[part.file]
                if part.file not in readers:
                    stack.close()
                    readers = {part.file: stack.enter_context(open_input(file, column=column))}
                readers[part.file].seek(part.offset)
                payload, _ = readers[part.file].take(part.lines)
                sources.append(LinesOfFile(file.name, file.kind, part.first, payload))
            if _hash(b"".join(source.payload for source in sources)).hexdigest() != shard.hash:
                first = shard.parts[0]
                raise input_changed(manifest.files[first.file].path, first.first)
            yield shard, sources


def whole_shards(trees: Path) -> dict[int, Path]:
    """Return number → complete shard of a folder, in order; other files may lie there too."""
    names = {path.stem.removeprefix("shard-"): path for path in trees.glob("shard-*.parquet")}
    return dict(sorted((int(name), names[name]) for name in names if name.isdecimal()))


def input_changed(file: str, line: int | None = None) -> AttreeError:
    """Return the error for an input that has changed since it was cut."""
    problem = "this input has changed since it was cut into shards"
    fix = "parse it into a new output folder"
    return AttreeError("input-changed", problem, file=file, line=line, fix=fix)


def check_same(old: Manifest, new: Manifest, folder: Path) -> None:
    """Refuse a folder that was begun with other settings or another input.

    ``new`` need not have shards: a file of the same size and time is taken to be unchanged until
    its shards are read and their hashes checked.
    """
    for key in sorted(set(old.settings) | set(new.settings)):
        before, now = old.settings.get(key), new.settings.get(key)
        if before != now:
            problem = f"the run in this folder has another setting: {_difference(key, before, now)}"
            fix = "repeat its settings, pass --restart to replace its trees, or name a new folder"
            raise AttreeError("other-settings", problem, file=folder, fix=fix)
    names = [[file.name for file in manifest.files] for manifest in (old, new)]
    if names[0] != names[1]:
        differing = sorted(set(names[0]) ^ set(names[1])) or names[1]
        problem = f"the run in this folder has other input files (such as {differing[0]})"
        fix = "name the same input again, or a new folder"
        raise AttreeError("other-inputs", problem, file=folder, fix=fix)
    for before_file, now_file in zip(old.files, new.files, strict=True):
        if before_file.size != now_file.size:
            raise input_changed(now_file.path)


def _difference(key: str, before: Any, now: Any) -> str:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for inner in sorted(set(before) | set(now)):
            if before.get(inner) != now.get(inner):
                return _difference(f"{key}.{inner}", before.get(inner), now.get(inner))
    key = "language or tokenizer" if key == "tokenizer" else key
    return f"{key} was {json.dumps(before)}, is {json.dumps(now)}"
