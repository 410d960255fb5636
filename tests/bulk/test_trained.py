"""A parser of ``attree train`` in bulk: the trees of ``attree apply``, wherever it runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from attree.bulk.output import read_trees
from attree.cli.main import app
from tests.bulk.conftest import tree_bytes
from tests.command_line import CliRunner
from tests.training.conftest import resolved, table, treebank

__all__ = ["resolved", "treebank"]  # fixtures


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("parser", ["fpoa", "fpio", "tree-crf-full", "tree-crf-labelled"])
def test_bulk_trees_are_those_of_apply(
    parser: str, resolved: Path, treebank: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "parser"
    run("train", "--sentences", treebank, "--encoder", resolved, "--parser", parser, "--trees", 5,
        "--steps", 3, "--output", folder, "--device", "cpu")  # fmt: skip
    test = table(tmp_path / "test.parquet", 30, 5)
    words = pq.read_table(test)["words"].to_pylist()
    (tmp_path / "lines.txt").write_text("".join(" ".join(one) + "\n" for one in words))
    run("apply", test, "--parser", folder, "--encoder", resolved,
        "--output", tmp_path / "applied.parquet", "--allow-overlap", "--device", "cpu")  # fmt: skip
    options = ("--parser", folder, "--encoder", resolved, "--device", "cpu", "--threads", 1,
               "--tokenizer", "whitespace")  # fmt: skip
    run("parse", tmp_path / "lines.txt", *options, "--output", tmp_path / "out")
    applied = pq.read_table(tmp_path / "applied.parquet").to_pylist()
    rows = list(read_trees(tmp_path / "out"))
    assert [row["words"] for row in rows] == words
    for row, other in zip(rows, applied, strict=True):
        assert row["spans"] == list(zip(other["starts"], other["ends"], strict=True))
        assert row.get("labels") == other.get("labels")
        assert row.get("tags") == other.get("tags")
        assert ("labels" in row) == ("tags" in row) == (parser == "tree-crf-labelled")
        assert (row["score"] is None) == (len(row["words"]) < 2)
        assert row["score"] is None or np.isfinite(row["score"])


@pytest.mark.full  # that workers change nothing of other parsers' trees is tested in test_parse.py
def test_workers_change_nothing(resolved: Path, treebank: Path, tmp_path: Path) -> None:
    folder = tmp_path / "parser"
    run("train", "--sentences", treebank, "--encoder", resolved, "--parser", "tree-crf-full",
        "--trees", 5, "--steps", 3, "--output", folder, "--device", "cpu")  # fmt: skip
    words = pq.read_table(treebank)["words"].to_pylist()
    (tmp_path / "lines.txt").write_text("".join(" ".join(one) + "\n" for one in words))
    options = ("--parser", folder, "--encoder", resolved, "--device", "cpu", "--threads", 1,
               "--tokenizer", "whitespace")  # fmt: skip
    for workers in (1, 2):
        run("parse", tmp_path / "lines.txt", *options, "--shard-lines", 10, "--workers", workers,
            "--output", tmp_path / str(workers))  # fmt: skip
    assert tree_bytes(tmp_path / "1") == tree_bytes(tmp_path / "2")
