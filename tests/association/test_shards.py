"""Shards are written whole or not at all, and read back as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attree import trees as status
from attree.association import shards
from attree.association.columns import ALL, Column, mean_column
from attree.association.shards import open_shard, read, shard_metadata
from attree.base.errors import AttreeError
from attree.base.files import write_json
from tests.command_line import python
from tests.refusals import refused

EVERY = Column(((0, 0), (0, 1)), mean=False)
NAME, MEAN = mean_column([(0, 1), (0, 0)])
COLUMNS = {ALL: EVERY, NAME: MEAN}
N_WORDS = np.array([3, 1, 0, 5], dtype=np.int32)
CELLS = int((N_WORDS.astype(int) ** 2).sum())


def write(folder: Path) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    values = {
        ALL: generator.random(2 * CELLS, dtype=np.float32),
        NAME: generator.random(CELLS, dtype=np.float32),
    }
    numbers = np.array([4, 2, 9, 7], dtype=np.int32)
    unknown = np.zeros(4, dtype=np.int32)
    with open_shard(folder / "dev.shards/k-00000.parquet", COLUMNS, metadata={"key": "k"}) as one:
        one.add(numbers, N_WORDS, unknown, status=status.OK, values=values)
        nothing = {name: flat[:0] for name, flat in values.items()}
        long = np.array([1], dtype=np.int32)
        one.add(long, np.array([900], np.int32), long, status=status.TOO_LONG, values=nothing)
    manifest = {
        "columns": {
            name: {"units": one.units, "matrices": one.matrices} for name, one in COLUMNS.items()
        },
        "shards": [{"file": "dev.shards/k-00000.parquet"}],
    }
    write_json(folder / "dev.json", manifest)
    return values


@pytest.mark.parametrize("column", [ALL, NAME])
@pytest.mark.parametrize("at_a_time", [1, 10**6])
def test_what_is_written_is_read_back(
    column: str, at_a_time: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "_VALUES_AT_A_TIME", at_a_time)
    values = write(tmp_path)
    batches = list(read(tmp_path / "dev.json", column))
    assert len(batches) == (2 if at_a_time == 1 else 1)
    assert np.concatenate([one.sentence for one in batches]).tolist() == [4, 2, 9, 7, 1]
    assert np.concatenate([one.n_words for one in batches]).tolist() == [3, 1, 0, 5, 900]
    associated = np.concatenate([one.n_associated for one in batches])
    assert associated.tolist() == [3, 1, 0, 5, 0]
    read_back = np.concatenate([one.values for one in batches])
    assert read_back.dtype == values[column].dtype
    assert np.array_equal(read_back, values[column])
    assert {one.matrices_each for one in batches} == {COLUMNS[column].matrices}
    assert shard_metadata(tmp_path / "dev.shards/k-00000.parquet") == {"key": "k"}


def test_rows_are_taken_with_their_values(tmp_path: Path) -> None:
    values = write(tmp_path)[ALL]
    (batch,) = read(tmp_path / "dev.json", ALL)
    taken = batch.take(np.array([3, 4, 0]))
    assert taken.sentence.tolist() == [7, 1, 4] and taken.status.tolist() == [
        "ok",
        "too_long",
        "ok",
    ]
    assert np.array_equal(taken.values, np.concatenate([values[20:], values[:18]]))
    assert batch.take(np.array([], dtype=int)).values.size == 0


def test_a_shard_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "k.parquet"
    with pytest.raises(RuntimeError), open_shard(path, COLUMNS, metadata={}):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    write(tmp_path)
    with refused("unknown-association", "5.5", "0.0+0.1", file="dev.json"):
        list(read(tmp_path / "dev.json", "5.5"))
    shard = tmp_path / "dev.shards/k-00000.parquet"
    whole = pq.read_table(shard)
    lists = whole[ALL].to_pylist()
    short = pa.array([lists[0][:-1], *lists[1:]], whole.schema.field(ALL).type)
    pq.write_table(whole.set_column(4, whole.schema.field(ALL), short), shard)
    with refused("damaged-shard", "too few values", file="k-00000.parquet"):
        list(read(tmp_path / "dev.json", ALL))
    shard.write_bytes(shard.read_bytes().replace(b"n_words", b"n_w\xfdrds"))
    assert shard_metadata(shard) is None
    shard.write_bytes(shard.read_bytes()[:-10])
    with refused("damaged-shard", file="k-00000.parquet") as caught:
        list(read(tmp_path / "dev.json", ALL))
    assert "\n" not in str(caught.value)
    assert shard_metadata(shard) is None
    shard.unlink()
    with refused("missing-shard", file="k-00000.parquet"):
        list(read(tmp_path / "dev.json", ALL))
    write_json(tmp_path / "dev.json", {"columns": {}})
    with refused("not-a-manifest", file="dev.json"):
        list(read(tmp_path / "dev.json", ALL))


def test_a_shard_is_checked_though_python_leaves_assertions_out(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / "dev.shards/k-00000.parquet"
    table = pq.read_table(path)
    fewer = pa.array([2, 1, 0, 4, 900], pa.int32())
    where = table.schema.get_field_index("n_words")
    pq.write_table(table.set_column(where, table.schema.field(where), fewer), path)
    code = "import sys; from attree.association.shards import read; list(read(*sys.argv[1:]))"
    done = python(code, tmp_path / "dev.json", ALL, PYTHONOPTIMIZE="1")
    assert done.returncode and "k-00000.parquet" in done.stderr


def test_a_changed_byte_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    values = write(tmp_path)[ALL]
    shard = tmp_path / "dev.shards/k-00000.parquet"
    whole = shard.read_bytes()
    noticed = 0
    for place in np.random.default_rng(0).choice(len(whole), 200, replace=False).tolist():
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        shard.write_bytes(damaged)
        try:
            batches = list(read(tmp_path / "dev.json", ALL))
        except AttreeError as error:
            assert str(error).startswith(str(shard))
            noticed += 1
            continue
        assert np.array_equal(np.concatenate([one.values for one in batches]), values)
        assert [one.sentence.tolist() for one in batches] == [[4, 2, 9, 7, 1]]
    assert noticed > 50
