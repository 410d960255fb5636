"""One record a finished row, under a name that says all it rests on."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attree.encoder.source import ResolvedEncoder
from attree.experiments.grid import Row
from attree.files import read_json, write_json
from attree.provenance import code_hash, digest

#: What decides a row's result, by the row's kind.
CODE = {
    "heads": ("attree.experiments.heads", "attree.experiments.data"),
    "trained": ("attree.experiments.trained", "attree.experiments.data"),
}


def key(row: Row, *, encoder: ResolvedEncoder, sets: Mapping[str, str], used: int) -> str:
    """Return the name of a row's record: a hash of everything that its numbers rest on.

    Args:
        row: of the grid. How many trees it asked for does not count, only how many there were: a
            row that asks for more than there are is the one that asks for all of them.
        encoder: of the row; its files and its dtype count.
        sets: what is read of each set, see :func:`content`.
        used: trees that the row draws.
    """
    asked = asdict(row) | {"trees": "apart" if row.trees == "apart" else used}
    if row.trees == "all":
        asked["trees"] = "all"
    read = {name: sets[name] for name in (row.train, row.test)}
    return digest([asked, encoder.fingerprint, encoder.dtype, read, _code(row.kind)])


@functools.cache
def _code(kind: str) -> str:
    return code_hash(*CODE[kind])


def content(trees: str, manifest: Path | None) -> str:
    """Return a hash of what rows read of a set.

    Args:
        trees: the hash of its sentences and gold trees.
        manifest: the attention of every head, for rows of heads. How it is cut into shards does
            not count, but the code, the encoder and the settings that made it do.
    """
    if manifest is None:
        return trees
    found = read_json(manifest, what="attention manifest")
    made = found["provenance"]
    how = [made["code"], made["encoder"], found["columns"], found["too_long"]]
    return digest([trees, how])


class Records:
    """Records in a folder.

    Args:
        folder: where they lie, those of all experiments.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        """Return where a record lies."""
        return self.folder / f"{name}.json"

    def get(self, name: str) -> dict[str, Any] | None:
        """Return a record if it is there and whole."""
        path = self.path(name)
        return read_json(path, what="record of a row") if path.is_file() else None

    def put(self, name: str, record: Mapping[str, Any]) -> None:
        """Write a record, whole or not at all."""
        write_json(self.path(name), record)
