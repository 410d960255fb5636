"""The attention stage from a sentence table to a manifest, on a tiny encoder."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attree.association.columns import ALL, heads_key
from attree.association.compute import StageSettings
from attree.association.shards import read
from attree.base.files import lock, write_json
from attree.encoder import load as load_module
from attree.encoder.load import load_encoder
from attree.encoder.source import ResolvedEncoder
from attree.stages.attention import columns_for, compute_attention
from tests.association.conftest import WORDS, MakeTable
from tests.command_line import attree
from tests.refusals import refused

SETTINGS = StageSettings(partition_size=3, tokens_per_batch=30, device="cpu")
SET = [(1, 2), (0, 3)]


def matrices(manifest: Path, column: str) -> dict[int, np.ndarray]:
    found = {}
    for batch in read(manifest, column):
        start = 0
        for sentence, n in zip(batch.sentence, batch.n_associated, strict=True):
            end = start + batch.matrices_each * int(n) ** 2
            found[int(sentence)] = batch.values[start:end].reshape(batch.matrices_each, n, n)
            start = end
        assert start == len(batch.values)
    return found


def compute(
    sentences: Path,
    encoder: ResolvedEncoder,
    output: Path,
    settings: StageSettings = SETTINGS,
    **columns: Any,
) -> dict[str, Any]:
    columns = columns or {"every": True, "sets": [SET]}
    return compute_attention(sentences, encoder, columns_for(encoder, **columns), output, settings)


def test_every_head_and_a_mean(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path
) -> None:
    manifest = compute(make_table(), encoder, tmp_path / "dev.json")
    assert manifest["counts"] == {"sentences": 8, "too_long": 0, "unknown_words": 1}
    assert (manifest["language"], manifest["split"]) == ("english", "dev")
    assert len(manifest["shards"]) == 3
    every, mean = (
        matrices(tmp_path / "dev.json", ALL),
        matrices(tmp_path / "dev.json", heads_key(SET)),
    )
    loaded = load_encoder(encoder, device="cpu")
    heads = [(layer, head) for layer in range(3) for head in range(4)]
    for number, words in enumerate(WORDS):
        expected = loaded.run(loaded.tokenise([words]), heads=heads).attention[0].numpy()
        np.testing.assert_allclose(every[number], expected, atol=2e-6)
        both = expected[[heads.index(head) for head in SET]].mean(axis=0)
        np.testing.assert_allclose(mean[number][0], both, rtol=1e-3, atol=1e-6)


def test_several_selections_share_one_pass(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path
) -> None:
    for name, heads in (("a", SET), ("b", SET[::-1]), ("c", [(2, 0)])):
        write_json(tmp_path / f"{name}.json", {"heads": heads, "encoder": encoder.fingerprint})
    files = [tmp_path / f"{name}.json" for name in "abc"]
    manifest = compute(make_table(), encoder, tmp_path / "out.json", selections=files)
    assert list(manifest["columns"]) == ["0.3+1.2", "2.0"]
    assert all(one.shape[0] == 1 for one in matrices(tmp_path / "out.json", "2.0").values())


def test_whole_shards_are_not_computed_again_and_stale_ones_go(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences, output = make_table(), tmp_path / "dev.json"
    compute(sentences, encoder, output)
    folder = tmp_path / "dev.shards"
    first = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    output.unlink()  # as a workflow does before it runs a job again

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the encoder was loaded though there is nothing to compute")

    with monkeypatch.context() as patched:
        patched.setattr(load_module, "load_encoder", refuse)
        compute(sentences, encoder, output)
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == first

    # a changed word, a shard cut short, and what a killed writer left
    changed = [*WORDS[:7], ["dogs", "walked"]]
    cut = sorted(folder.iterdir())[0 if sorted(first)[0].endswith("0.parquet") else 1]
    cut.write_bytes(cut.read_bytes()[:-20])
    (folder / ".x.parquet.host-1-abc.part").touch()
    compute(make_table(changed), encoder, output)
    second = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    kept = {name for name, when in second.items() if first.get(name) == when}
    assert len(second) == 3 and len(kept) in (1, 2)
    assert set(matrices(output, ALL)) == set(range(8))
    assert not any(name.endswith("2.parquet") for name in kept), "the changed partition was kept"
    assert cut.name not in kept


def test_other_columns_of_the_table_change_nothing(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path
) -> None:
    output = tmp_path / "dev.json"
    compute(make_table(), encoder, output)
    first = sorted(file.name for file in (tmp_path / "dev.shards").iterdir())
    compute(make_table(spans=[[(0, len(words))] for words in WORDS]), encoder, output)
    assert sorted(file.name for file in (tmp_path / "dev.shards").iterdir()) == first


@pytest.mark.parametrize("policy", ["right_branching", "skip"])
def test_too_long_sentences_are_marked_and_counted(
    policy: str, make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path
) -> None:
    sentences = make_table([["a"], ["cat"] * 70, ["the", "cat"]])
    output = tmp_path / "dev.json"
    manifest = compute(sentences, encoder, output, replace(SETTINGS, too_long=policy))
    assert manifest["counts"]["too_long"] == 1 and manifest["too_long"] == policy
    rows = {
        int(number): (status, int(n))
        for batch in read(output, ALL)
        for number, status, n in zip(batch.sentence, batch.status, batch.n_words, strict=True)
    }
    assert rows == {0: ("ok", 1), 1: ("too_long", 70), 2: ("ok", 2)}


def test_too_long_sentences_can_be_an_error_that_names_them(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path
) -> None:
    sentences = make_table([["a"], ["cat"] * 70])
    with refused("too-many-pieces", "72", "64", file="dev.mrg", line=2):
        compute(sentences, encoder, tmp_path / "dev.json", replace(SETTINGS, too_long="error"))
    assert not list(tmp_path.rglob("*.part")) and not (tmp_path / "dev.json").exists()


def test_only_too_long_sentences_and_none_at_all(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path
) -> None:
    compute(make_table([["cat"] * 70]), encoder, tmp_path / "long.json")
    assert matrices(tmp_path / "long.json", ALL)[0].size == 0
    manifest = compute(make_table([]), encoder, tmp_path / "none.json")
    assert manifest["shards"] == [] and matrices(tmp_path / "none.json", ALL) == {}


def test_two_workers_give_what_one_gives(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path
) -> None:
    sentences = make_table()
    compute(sentences, encoder, tmp_path / "one.json")
    compute(sentences, encoder, tmp_path / "two.json", replace(SETTINGS, workers=2, threads=1))
    one, two = matrices(tmp_path / "one.json", ALL), matrices(tmp_path / "two.json", ALL)
    assert one.keys() == two.keys()
    assert all(np.array_equal(one[number], two[number]) for number in one)


@pytest.mark.full
def test_an_error_on_a_worker_is_the_same_line(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path
) -> None:
    sentences = make_table([["a"], ["a"], ["a"], ["cat"] * 70])
    settings = replace(SETTINGS, too_long="error", workers=2, threads=1)
    with refused("too-many-pieces", "72", file="dev.mrg", line=4):
        compute(sentences, encoder, tmp_path / "dev.json", settings)


def test_batch_size_changes_nothing(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path
) -> None:
    sentences = make_table()
    compute(sentences, encoder, tmp_path / "small.json", replace(SETTINGS, tokens_per_batch=1))
    large = replace(SETTINGS, tokens_per_batch=10_000, partition_size=100)
    compute(sentences, encoder, tmp_path / "large.json", large)
    small, large_found = (
        matrices(tmp_path / "small.json", ALL),
        matrices(tmp_path / "large.json", ALL),
    )
    for number, expected in small.items():
        np.testing.assert_allclose(large_found[number], expected, atol=2e-6)


def test_bad_requests_are_one_line(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path
) -> None:
    with refused("no-heads"):
        columns_for(encoder)
    with refused("unknown-name", "int8", "float32"):
        columns_for(encoder, every=True, precision="int8")
    with refused("no-such-head", "3.0"):
        columns_for(encoder, sets=[[(3, 0)]])
    write_json(tmp_path / "s.json", {"heads": [[0, 0]], "encoder": "another"})
    with refused("other-encoder", file="s.json"):
        columns_for(encoder, selections=[tmp_path / "s.json"])
    with refused("unknown-name", "for"):
        compute(make_table(), encoder, tmp_path / "dev.json", StageSettings(too_long="cut"))


def test_a_scheduler_that_is_not_there_is_one_line(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attree.base.cluster._SECONDS_TO_CONNECT", 1)
    nowhere = replace(SETTINGS, scheduler="tcp://127.0.0.1:1")
    with refused("no-scheduler", "tcp://127.0.0.1:1"):
        compute(make_table(), encoder, tmp_path / "dev.json", nowhere)


def test_a_full_disk_leaves_nothing_half_written(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences, output = make_table(), tmp_path / "dev.json"

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space left"):
        patched.setattr("pyarrow.parquet.ParquetWriter.write_table", full)
        compute(sentences, encoder, output)
    assert list((tmp_path / "dev.shards").iterdir()) == [] and not output.exists()
    compute(sentences, encoder, output)


def test_one_writer_at_a_time(
    make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path
) -> None:
    sentences, output = make_table(), tmp_path / "dev.json"
    with (
        lock(tmp_path / ".dev.json.lock", what="this attention"),
        refused("locked", file=".dev.json.lock"),
    ):
        compute(sentences, encoder, output)


def test_the_command(make_table: MakeTable, encoder: ResolvedEncoder, tmp_path: Path) -> None:
    encoder.write(tmp_path / "bert.json")
    command = ("attention", make_table(), "--encoder", tmp_path / "bert.json")
    command += ("--output", tmp_path / "dev.json", "--device", "cpu")
    done = attree(*command, "--heads", "list:0.1,2.3", "--heads", "all")
    assert done.status == 0 and "8 of 8 sentences" in done.err
    assert set(matrices(tmp_path / "dev.json", "0.1+2.3")) == set(range(8))
    refused = attree(*command, "--heads", "best:3")
    assert refused.status == 1 and "only `attree heads` can choose" in refused.err
    assert refused.err.count("\n") == 1
