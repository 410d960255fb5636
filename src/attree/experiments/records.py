"""One record a finished row, under a name that says all it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attree.experiments.grid import Row
from attree.files import read_json, write_json
from attree.provenance import code_hash, digest

_SHARED = ("experiments.data", "scoring", "decoding", "evaluation")
#: The modules that decide a row's result, by the row's kind.
CODE = {
    "heads": (*_SHARED, "experiments.heads", "heads.ranking", "heads.selection"),
    "trained": (*_SHARED, "experiments.trained", "fewshot", "fewshot.projection"),
}


def key(row: Row, *, encoder: str, sets: Mapping[str, str], used: int) -> str:
    """Return the name of a row's record.

    Args:
        row: of the grid. How many trees it asked for does not count, only how many there were: a
            row that asks for more than there are is the one that asks for all of them.
        encoder: its fingerprint.
        sets: the hash of each set that the row reads.
        used: trees that the row draws.
    """
    content = asdict(row) | {"trees": "apart" if row.trees == "apart" else used}
    if row.trees == "all":
        content["trees"] = "all"
    read = {name: sets[name] for name in (row.train, row.test)}
    return digest([content, encoder, read, code_hash(*CODE[row.kind])])


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
