from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attree.association.columns import ALL
from attree.association.compute import StageSettings
from attree.association.shards import read
from attree.base.schemas import SENTENCES_SCHEMA, write_table
from attree.encoder.load import Encoder, load_encoder
from attree.encoder.source import ResolvedEncoder, resolve
from attree.stages.attention import columns_for, compute_attention
from tests.encoder.checkpoints import TEXT, save

WORDS = [line.split() for line in TEXT] + [["a"], ["the", "\u200b", "cat"], ["dogs", "barked"]]
SETTINGS = StageSettings(partition_size=3, tokens_per_batch=30, device="cpu")

MakeTable = Callable[..., Path]


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> ResolvedEncoder:
    """A tiny BERT: 3 layers, 4 heads, at most 64 pieces."""
    return resolve(save("bert", tmp_path_factory.mktemp("bert")))


@pytest.fixture(scope="module")
def loaded(encoder: ResolvedEncoder) -> Encoder:
    return load_encoder(encoder, device="cpu")


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


@dataclass(frozen=True)
class Stage:
    """The attention stage on the tiny encoder, in a folder of the test's own."""

    encoder: ResolvedEncoder
    folder: Path
    make_table: MakeTable

    def compute(
        self,
        words: Sequence[Sequence[str]] = WORDS,
        name: str = "dev",
        settings: StageSettings = SETTINGS,
        spans: Sequence[Sequence[tuple[int, int]]] | None = None,
        **columns: Any,
    ) -> dict[str, Any]:
        """Write the table of ``words`` and ``name``.json, by default of every head."""
        wanted = columns_for(self.encoder, **columns or {"every": True})
        table, output = self.make_table(words, spans=spans), self.folder / f"{name}.json"
        return compute_attention(table, self.encoder, wanted, output, settings)

    def matrices(self, name: str = "dev", column: str = ALL) -> dict[int, np.ndarray]:
        """Read (heads, words, words) of each sentence."""
        found = {}
        for batch in read(self.folder / f"{name}.json", column):
            start = 0
            for sentence, n in zip(batch.sentence, batch.n_associated, strict=True):
                end = start + batch.matrices_each * int(n) ** 2
                found[int(sentence)] = batch.values[start:end].reshape(batch.matrices_each, n, n)
                start = end
            assert start == len(batch.values)
        return found


@pytest.fixture
def stage(encoder: ResolvedEncoder, tmp_path: Path, make_table: MakeTable) -> Stage:
    return Stage(encoder, tmp_path, make_table)
