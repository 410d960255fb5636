from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from attree.base.schemas import SENTENCES_SCHEMA, write_table
from attree.encoder.source import ResolvedEncoder, resolve
from tests.encoder.checkpoints import TEXT, save

WORDS = [line.split() for line in TEXT] + [["a"], ["the", "\u200b", "cat"], ["dogs", "barked"]]

MakeTable = Callable[..., Path]


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> ResolvedEncoder:
    """A tiny BERT: 3 layers, 4 heads, at most 64 pieces."""
    return resolve(save("bert", tmp_path_factory.mktemp("bert")))


@pytest.fixture
def make_table(tmp_path: Path) -> MakeTable:
    """Write a sentence table; by default right-branching trees over a few sentences."""

    def make(
        words: Sequence[Sequence[str]] = WORDS,
        name: str = "dev",
        spans: Sequence[Sequence[tuple[int, int]]] | None = None,
    ) -> Path:
        if spans is None:
            spans = [[(i, len(one)) for i in range(max(1, len(one) - 1))] for one in words]
        columns = {
            "sentence": range(len(words)),
            "file": ["dev.mrg"] * len(words),
            "line": range(1, len(words) + 1),
            "words": words,
            "tags": [["X"] * len(one) for one in words],
            "starts": [[start for start, _ in one] for one in spans],
            "ends": [[end for _, end in one] for one in spans],
            "labels": [["NP"] * len(one) for one in spans],
        }
        path = tmp_path / f"{name}.parquet"
        table = pa.table({name: list(column) for name, column in columns.items()}, SENTENCES_SCHEMA)
        metadata = {"language": "english", "split": name}
        write_table(path, table, schema=SENTENCES_SCHEMA, metadata=metadata)
        return path

    return make
