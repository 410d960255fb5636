"""The attention stage through kills: nothing half-written is seen, nothing whole is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from attree.association.columns import ALL
from attree.association.compute import StageSettings
from attree.association.shards import shard_metadata
from attree.encoder.source import ResolvedEncoder
from attree.stages import workers as cluster
from attree.stages.attention import columns_for, compute_attention
from tests.association.conftest import MakeTable
from tests.association.test_stage import matrices

pytestmark = pytest.mark.full

WORDS = [["the", "old", "man", "walked", "home"][: 1 + number % 5] for number in range(60)]


def test_a_killed_run_goes_on_where_it_was(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path
) -> None:
    sentences, output = make_table(WORDS), tmp_path / "dev.json"
    encoder.write(tmp_path / "bert.json")
    command = [
        sys.executable,
        "-m",
        "attree.cli.main",
        "attention",
        str(sentences),
        "--heads",
        "all",
    ]
    command += ["--encoder", str(tmp_path / "bert.json"), "--output", str(output)]
    command += ["--partition-size", "1", "--device", "cpu"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    folder = tmp_path / "dev.shards"
    run = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while run.poll() is None and len(list(folder.glob("*.parquet"))) < 3:
        assert time.monotonic() < until
        time.sleep(0.002)
    run.send_signal(signal.SIGKILL)
    run.wait()
    there = {file: file.stat().st_mtime_ns for file in folder.glob("*.parquet")}
    assert len(there) >= 3 and all(shard_metadata(file) for file in there)
    subprocess.run(command, env=environment, stderr=subprocess.DEVNULL, check=True)
    assert all(file.stat().st_mtime_ns == when for file, when in there.items())
    assert set(matrices(output, ALL)) == set(range(60))
    assert not list(folder.glob(".*.part"))


def test_a_worker_that_dies_is_replaced(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences, columns = make_table(WORDS), columns_for(encoder, every=True)
    settings = StageSettings(partition_size=2, workers=2, threads=1, device="cpu")
    compute_attention(
        sentences, encoder, columns, tmp_path / "one.json", StageSettings(device="cpu")
    )
    as_completed, killed = cluster.as_completed, []

    def completed_with_a_kill(futures: list[object], **options: object) -> object:
        for number, future in enumerate(as_completed(futures, **options)):
            if number == 1:
                killed.append(kill_a_worker())
            yield future

    monkeypatch.setattr(cluster, "as_completed", completed_with_a_kill)
    compute_attention(sentences, encoder, columns, tmp_path / "two.json", settings)
    assert killed
    one, two = matrices(tmp_path / "one.json", ALL), matrices(tmp_path / "two.json", ALL)
    assert one.keys() == two.keys() == set(range(60))
    for number, expected in one.items():
        np.testing.assert_allclose(two[number], expected, atol=2e-6)


def kill_a_worker() -> int:
    """Kill the child of this process with the most memory: a worker with its encoder."""
    children = psutil.Process().children(recursive=True)
    largest = 0, 0
    for child in children:
        with contextlib.suppress(psutil.Error):
            largest = max(largest, (child.memory_info().rss, child.pid))
    os.kill(largest[1], signal.SIGKILL)
    return largest[1]
