"""The attention stage from a sentence table to a manifest, on a tiny encoder; through kills."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
import psutil
import pytest

from attree.association.columns import ALL, heads_key
from attree.association.compute import StageSettings
from attree.association.shards import read, shard_metadata
from attree.base.files import lock, write_json
from attree.encoder import load as load_module
from attree.encoder.load import Encoder, load_encoder
from attree.encoder.source import ResolvedEncoder
from attree.stages import workers as cluster
from attree.stages.attention import columns_for
from tests.association.conftest import SETTINGS, WORDS, Stage
from tests.command_line import attree
from tests.refusals import refused

SET = [(1, 2), (0, 3)]


def test_every_head_and_a_mean(stage: Stage, loaded: Encoder) -> None:
    manifest = stage.compute(every=True, sets=[SET])
    assert manifest["counts"] == {"sentences": 8, "too_long": 0, "unknown_words": 1}
    assert (manifest["language"], manifest["split"]) == ("english", "dev")
    assert len(manifest["shards"]) == 3
    every, mean = stage.matrices(), stage.matrices(column=heads_key(SET))
    heads = [(layer, head) for layer in range(3) for head in range(4)]
    for number, words in enumerate(WORDS):
        expected = loaded.run(loaded.tokenise([words]), heads=heads).attention[0].numpy()
        np.testing.assert_allclose(every[number], expected, atol=2e-6)
        both = expected[[heads.index(head) for head in SET]].mean(axis=0)
        np.testing.assert_allclose(mean[number][0], both, rtol=1e-3, atol=1e-6)


def test_several_selections_share_one_pass(stage: Stage) -> None:
    files = []
    for name, heads in (("a", SET), ("b", SET[::-1]), ("c", [(2, 0)])):
        files.append(stage.folder / f"{name}.json")
        write_json(files[-1], {"heads": heads, "encoder": stage.encoder.fingerprint})
    manifest = stage.compute(selections=files)
    assert list(manifest["columns"]) == ["0.3+1.2", "2.0"]
    assert all(one.shape[0] == 1 for one in stage.matrices(column="2.0").values())


def test_whole_shards_are_not_computed_again_and_stale_ones_go(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = stage.folder / "dev.shards"

    def times() -> dict[str, int]:
        return {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}

    stage.compute()
    first = times()
    (stage.folder / "dev.json").unlink()  # as a workflow does before it runs a job again

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the encoder was loaded though there is nothing to compute")

    with monkeypatch.context() as patched:
        patched.setattr(load_module, "load_encoder", refuse)
        stage.compute()
        # other columns of the table change nothing
        stage.compute(spans=[[(0, len(words))] for words in WORDS])
    assert times() == first

    # a changed word, a shard cut short, and what a killed writer left
    changed = [*WORDS[:7], ["dogs", "walked"]]
    cut = sorted(folder.iterdir())[0 if sorted(first)[0].endswith("0.parquet") else 1]
    cut.write_bytes(cut.read_bytes()[:-20])
    (folder / ".x.parquet.host-1-abc.part").touch()
    stage.compute(changed)
    second = times()
    kept = {name for name, when in second.items() if first.get(name) == when}
    assert len(second) == 3 and len(kept) in (1, 2)
    assert set(stage.matrices()) == set(range(8))
    assert not any(name.endswith("2.parquet") for name in kept), "the changed partition was kept"
    assert cut.name not in kept


def test_a_table_that_is_written_anew_is_read_anew(stage: Stage) -> None:
    stage.compute([["a"]])
    stage.compute([["the", "cat"]])  # in the same process, as on workers of a scheduler
    assert stage.matrices()[0].shape[1:] == (2, 2)


def test_a_table_that_changes_while_it_is_read_makes_no_shard_of_the_one_before(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(*given: Any, **asked: Any) -> Encoder:
        stage.make_table([["the", "cat"]])
        return load_encoder(*given, **asked)

    monkeypatch.setattr(load_module, "load_encoder", slowly)
    with refused("input-changed", file="dev.parquet"):
        stage.compute([["dogs", "barked"]])
    assert not list(stage.folder.glob("**/*-0*.parquet"))


@pytest.mark.parametrize("policy", ["right_branching", "skip"])
def test_too_long_sentences_are_marked_and_counted(policy: str, stage: Stage) -> None:
    sentences = [["a"], ["cat"] * 70, ["the", "cat"]]
    manifest = stage.compute(sentences, settings=replace(SETTINGS, too_long=policy))
    assert manifest["counts"]["too_long"] == 1 and manifest["too_long"] == policy
    rows = {
        int(number): (status, int(n))
        for batch in read(stage.folder / "dev.json", ALL)
        for number, status, n in zip(batch.sentence, batch.status, batch.n_words, strict=True)
    }
    assert rows == {0: ("ok", 1), 1: ("too_long", 70), 2: ("ok", 2)}


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.full)])
def test_too_long_sentences_can_be_an_error_that_names_them(workers: int, stage: Stage) -> None:
    settings = replace(SETTINGS, too_long="error", workers=workers, threads=1)
    with refused("too-many-pieces", "72", "64", file="dev.mrg", line=4):
        stage.compute([["a"], ["a"], ["a"], ["cat"] * 70], settings=settings)
    assert not list(stage.folder.rglob("*.part")) and not (stage.folder / "dev.json").exists()


def test_only_too_long_sentences_and_none_at_all(stage: Stage) -> None:
    stage.compute([["cat"] * 70])
    assert stage.matrices()[0].size == 0
    assert stage.compute([], "none")["shards"] == [] and stage.matrices("none") == {}


def test_workers_and_sizes_of_batches_change_nothing(stage: Stage) -> None:
    stage.compute()
    expected = stage.matrices()
    stage.compute(name="two", settings=replace(SETTINGS, workers=2, threads=1))
    found = stage.matrices("two")
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[number], expected[number]) for number in expected)
    large = replace(SETTINGS, tokens_per_batch=10_000, partition_size=100)
    for name, settings in (("small", replace(SETTINGS, tokens_per_batch=1)), ("large", large)):
        stage.compute(name=name, settings=settings)
        for number, matrices in stage.matrices(name).items():
            np.testing.assert_allclose(matrices, expected[number], atol=2e-6)


def test_bad_requests_are_one_line(stage: Stage, encoder: ResolvedEncoder) -> None:
    write_json(stage.folder / "s.json", {"heads": [[0, 0]], "encoder": "another"})
    with refused("no-heads"):
        columns_for(encoder)
    with refused("no-such-head", "3.0"):
        columns_for(encoder, sets=[[(3, 0)]])
    with refused("other-encoder", file="s.json"):
        columns_for(encoder, selections=[stage.folder / "s.json"])


def test_a_scheduler_that_is_not_there_is_one_line(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attree.base.cluster._SECONDS_TO_CONNECT", 1)
    with refused("no-scheduler", "tcp://127.0.0.1:1"):
        stage.compute(settings=replace(SETTINGS, scheduler="tcp://127.0.0.1:1"))


def test_a_full_disk_leaves_nothing_half_written(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space left"):
        patched.setattr("attree.association.shards.ShardWriter.flush", full)
        stage.compute()
    assert list((stage.folder / "dev.shards").iterdir()) == []
    assert not (stage.folder / "dev.json").exists()
    stage.compute()


def test_one_writer_at_a_time(stage: Stage) -> None:
    path = stage.folder / ".dev.json.lock"
    with lock(path, what="this attention"), refused("locked", file=path):
        stage.compute()


def test_the_command(stage: Stage) -> None:
    stage.encoder.write(stage.folder / "bert.json")
    command = ("attention", stage.make_table(), "--encoder", stage.folder / "bert.json")
    command += ("--output", stage.folder / "dev.json", "--device", "cpu")
    done = attree(*command, "--heads", "list:0.1,2.3", "--heads", "all")
    assert done.status == 0 and "8 of 8 sentences" in done.err
    assert set(stage.matrices(column="0.1+2.3")) == set(range(8))
    refused = attree(*command, "--heads", "best:3")
    assert refused.status == 1 and "only `attree heads` can choose" in refused.err
    assert refused.err.count("\n") == 1


#: Sentences of one to five words.
MANY = [["the", "old", "man", "walked", "home"][: 1 + number % 5] for number in range(60)]


@pytest.mark.full
def test_a_killed_run_goes_on_where_it_was(stage: Stage) -> None:
    sentences, output = stage.make_table(MANY), stage.folder / "dev.json"
    stage.encoder.write(stage.folder / "bert.json")
    words = ["attention", sentences, "--heads", "all", "--encoder", stage.folder / "bert.json"]
    words += ["--output", output, "--partition-size", "1", "--device", "cpu"]
    command = [sys.executable, "-m", "attree.cli.main", *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    folder = stage.folder / "dev.shards"
    run = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while run.poll() is None and len(list(folder.glob("*.parquet"))) < 3:
        assert time.monotonic() < until
        time.sleep(0.002)
    run.send_signal(signal.SIGKILL)
    run.wait()
    whole = {file: file.stat().st_mtime_ns for file in folder.glob("*.parquet")}
    assert len(whole) >= 3 and all(shard_metadata(file) for file in whole)
    subprocess.run(command, env=environment, stderr=subprocess.DEVNULL, check=True)
    assert all(file.stat().st_mtime_ns == when for file, when in whole.items())
    assert set(stage.matrices()) == set(range(60))
    assert not list(folder.glob(".*.part"))


@pytest.mark.full
def test_a_worker_that_dies_is_replaced(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.compute(MANY, settings=StageSettings(device="cpu"))
    as_completed, killed = cluster.as_completed, []

    def completed_with_a_kill(futures: list[object], **options: object) -> object:
        for number, future in enumerate(as_completed(futures, **options)):
            if number == 1:
                killed.append(kill_a_worker())
            yield future

    monkeypatch.setattr(cluster, "as_completed", completed_with_a_kill)
    settings = StageSettings(partition_size=2, workers=2, threads=1, device="cpu")
    stage.compute(MANY, "two", settings)
    assert killed
    one, two = stage.matrices(), stage.matrices("two")
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
