"""Outputs appear whole or not at all, and one writer at a time."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from attree.base.errors import AttreeError
from attree.base.files import lock, whole_file, write_json
from attree.base.reading import read_json
from tests.refusals import refused


def test_a_failed_block_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError), whole_file(target) as part:
        part.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_a_whole_file_replaces_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "out.txt"
    with whole_file(target) as part:
        part.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"


def test_two_writers_do_not_share_a_temporary_name(tmp_path: Path) -> None:
    with whole_file(tmp_path / "x") as first, whole_file(tmp_path / "x") as second:
        assert first != second
        first.write_text("1")
        second.write_text("2")
    assert (tmp_path / "x").read_text() == "1"


def test_damaged_json_is_one_line_with_file_and_line(tmp_path: Path) -> None:
    bad = tmp_path / "x.json"
    bad.write_text('{"a": 1,\n "b": }')
    with refused("not-json", file="x.json", line=2):
        read_json(bad, what="selection")
    with refused("missing-file", file="none.json"):
        read_json(tmp_path / "none.json")


def test_equal_values_give_equal_bytes(tmp_path: Path) -> None:
    write_json(tmp_path / "a", {"x": 1, "y": "ő"})
    write_json(tmp_path / "b", {"y": "ő", "x": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_second_writer_is_refused_and_told_who_holds_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    code = (
        "import sys; from attree.base.files import lock\n"
        "with lock(sys.argv[1], what='the output'): print('in', flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code, str(path)], **pipes) as holder:
        holder.stdout.readline()
        try:
            with refused("locked", str(holder.pid)), lock(path, what="the output"):
                pass
        finally:
            holder.kill()
    with lock(path, what="the output"):  # the dead holder's lock is gone
        pass


def test_an_error_keeps_its_parts_across_processes() -> None:
    error = AttreeError("unbalanced", "unbalanced tree", file="a.mrg", line=3, fix="close it")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) == "a.mrg:3: unbalanced tree — close it"
    assert (copy.code, copy.file, copy.line) == ("unbalanced", "a.mrg", 3)
