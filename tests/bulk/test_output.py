from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from attree.bulk.manifest import whole_shards
from attree.bulk.options import RowSettings
from attree.bulk.output import (
    Rows,
    Statistics,
    is_output,
    make_folders,
    read_trees,
    shard_path,
    shard_statistics,
    write_shard,
)
from attree.trees.trees import Trees
from tests.refusals import refused

STATISTICS = Statistics(lines=3, sentences=3, words=4)


def _rows() -> Rows:
    trees = Trees(
        n_words=np.array([3, 0, 1]),
        offsets=np.array([0, 2, 2, 2]),
        starts=np.array([0, 1], np.int32),
        ends=np.array([3, 3], np.int32),
        scores=np.array([0.5, 0.0]),
    )
    return Rows(
        file=["a", "a", "b"],
        line=[1, 2, 1],
        sentence=[0, 0, 0],
        status=["ok", "control", "ok"],
        words=[["x", "y", "z"], [], ["w"]],
        trees=trees,
    )


def _written(folder: Path, *formats: str, shards: int = 1) -> None:
    settings = RowSettings(formats=formats)
    make_folders(folder, settings)
    for number in range(shards):
        write_shard(folder, number, _rows(), STATISTICS, settings)


def test_rows_come_back_with_words_and_half_open_spans(tmp_path: Path) -> None:
    _written(tmp_path, "brackets")
    rows = list(read_trees(tmp_path))
    assert [row["spans"] for row in rows] == [[(0, 3), (1, 3)], [], []]
    assert [row["words"] for row in rows] == [["x", "y", "z"], [], ["w"]]
    assert [row["score"] for row in rows] == [0.25, None, None]
    assert [(row["file"], row["line"]) for row in rows] == [("a", 1), ("a", 2), ("b", 1)]
    assert shard_statistics(shard_path(tmp_path, 0)) == STATISTICS
    brackets = (tmp_path / "brackets/shard-00000.txt").read_text()
    assert brackets == "(X (X x) (X (X y) (X z)))\n()\n(X (X w))\n"


def test_one_read_of_the_folder_reads_every_shard(tmp_path: Path) -> None:
    _written(tmp_path, shards=3)
    assert pq.read_table(tmp_path / "trees").num_rows == 9


def test_other_files_beside_the_shards_are_passed_over(tmp_path: Path) -> None:
    _written(tmp_path, shards=11)
    for name in ("shard-train.parquet", "shard-00000-of-00002.parquet"):
        (tmp_path / "trees" / name).write_bytes(b"of another program")
        (tmp_path / name).write_bytes(b"of another program")
    assert list(whole_shards(tmp_path / "trees")) == list(range(11))
    assert len(list(read_trees(tmp_path))) == 33
    assert not is_output(tmp_path / "brackets") and not whole_shards(tmp_path)


def test_a_damaged_name_of_a_column_is_told(tmp_path: Path) -> None:
    _written(tmp_path)
    path = shard_path(tmp_path, 0)
    path.write_bytes(path.read_bytes().replace(b"lengths", b"mengths"))
    with refused("damaged-shard", file="shard-00000.parquet"):
        list(read_trees(tmp_path))


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    path = shard_path(tmp_path, 7)
    path.parent.mkdir()
    path.write_bytes(b"PAR1 not really")
    with refused("damaged-shard", file="shard-00007.parquet"):
        shard_statistics(path)


def test_statistics_add_up() -> None:
    one, two = Statistics(lines=2), Statistics(lines=3)
    one.status["ok"], two.status["ok"], two.status["empty"] = 2, 1, 2
    assert (one + two).as_dict()["status"] == {"empty": 2, "ok": 3}
    assert Statistics.of((one + two).as_dict()) == one + two


def test_a_changed_byte_is_noticed_when_trees_are_read(tmp_path: Path) -> None:
    _written(tmp_path)
    path = shard_path(tmp_path, 0)
    column = pq.read_metadata(path).row_group(0).column(3)  # the words
    whole = path.read_bytes()
    last = column.data_page_offset + column.total_compressed_size - 2
    damaged = bytearray(whole)
    damaged[last] ^= 1
    path.write_bytes(damaged)
    with refused("damaged-shard", file="shard-00000.parquet"):
        list(read_trees(tmp_path))
    path.write_bytes(whole)
    assert len(list(read_trees(tmp_path))) == 3
