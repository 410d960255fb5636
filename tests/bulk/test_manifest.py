from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attree.bulk import manifest as module
from attree.bulk.manifest import Manifest, Shard, check_same, cut, payloads
from attree.raw_text import inputs
from attree.raw_text.inputs import find_inputs
from tests.refusals import refused


def _manifest(*paths: Path, shard_lines: int = 10, limit: int | None = None) -> Manifest:
    files, _ = find_inputs(paths)
    shards = tuple(cut(files, shard_lines=shard_lines, column="text", limit=limit))
    return Manifest({"parser": {"heads": "1.2"}}, tuple(files), shards)


def _lines(manifest: Manifest, shards: tuple[Shard, ...] | None = None) -> list[bytes]:
    chosen = manifest.shards if shards is None else shards
    parts = payloads(manifest, chosen, column="text")
    found = b"".join(source.payload for _, sources in parts for source in sources)
    return found.split(b"\n")[:-1]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(0, 25), min_size=1, max_size=6),
    shard_lines=st.integers(1, 12),
    limit=st.one_of(st.none(), st.integers(1, 60)),
)
def test_shards_hold_every_line_once_in_order(
    tmp_path: Path, sizes: list[int], shard_lines: int, limit: int | None
) -> None:
    expected = []
    paths = []
    for number, size in enumerate(sizes):
        lines = [f"{number} {line}".encode() for line in range(size)]
        path = tmp_path / f"{number}.txt"
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        paths.append(path)
        expected += lines
    manifest = _manifest(*paths, shard_lines=shard_lines, limit=limit)
    assert _lines(manifest) == expected[:limit]
    assert [s.lines for s in manifest.shards[:-1]] == [shard_lines] * (len(manifest.shards) - 1)
    assert _lines(manifest, manifest.shards[1::2]) == [
        line for place, line in enumerate(expected[:limit]) if (place // shard_lines) % 2 == 1
    ]


def test_a_manifest_comes_back_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\nb\nc\n" * 20)
    manifest = _manifest(tmp_path / "a.txt")
    manifest.write(tmp_path / "m.json")
    assert Manifest.read(tmp_path / "m.json") == manifest
    (tmp_path / "m.json").write_text('{"version": 99}')
    with refused("other-version", file="m.json"):
        Manifest.read(tmp_path / "m.json")


def test_long_lines_end_a_shard_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SHARD_BYTES", 1000)
    monkeypatch.setattr(inputs, "_BLOCK", 300)
    monkeypatch.setattr(inputs, "LINE_BYTES", 300)
    (tmp_path / "a.txt").write_text(("x" * 299 + "\n") * 20)
    manifest = _manifest(tmp_path / "a.txt")
    assert {shard.lines for shard in manifest.shards} == {4}
    assert len(_lines(manifest)) == 20


def test_changed_lines_are_noticed_when_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{n:03}\n" for n in range(40)))
    manifest = _manifest(path)
    path.write_text(path.read_text().replace("025", "xxx"))
    assert len(_lines(manifest, manifest.shards[:2])) == 20
    with refused("input-changed", file="a.txt", line=21):
        _lines(manifest)


def test_a_file_that_changes_while_it_is_cut_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a\n" * 100)
    files, _ = find_inputs([path])
    with refused("unreadable", file="a.txt"):
        for _ in cut(files, shard_lines=10, column="text"):
            with path.open("a") as file:
                file.write("more\n")


def test_other_settings_and_inputs_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n" * 100)
    old = _manifest(tmp_path / "a.txt")
    check_same(old, old, tmp_path)
    other = Manifest({"parser": {"heads": "1.3"}}, old.files, ())
    with refused("other-settings", "parser.heads", "1.2", "1.3"):
        check_same(old, other, tmp_path)
    (tmp_path / "b.txt").write_text("a\n" * 100)
    with refused("other-inputs"):
        check_same(old, _manifest(tmp_path / "a.txt", tmp_path / "b.txt"), tmp_path)
    (tmp_path / "a.txt").write_text("a\n" * 101)
    with refused("input-changed", file="a.txt"):
        check_same(old, _manifest(tmp_path / "a.txt"), tmp_path)


def test_time_alone_does_not_change_a_shard(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a\n" * 100)
    before = _manifest(path)
    os.utime(path, (0, 0))
    assert _manifest(path).shards == before.shards
