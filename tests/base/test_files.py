"""Outputs appear whole or not at all, and one writer at a time."""

from __future__ import annotations

import os
import pickle
import pwd
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from attree.base import files
from attree.base.errors import AttreeError
from attree.base.files import lock, made_private, private_cache, whole_file, write_json
from attree.base.reading import read_json
from attree.base.schemas import read_table, write_table
from tests.command_line import python
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


def test_the_colon_of_a_folder_is_no_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = pa.table({"a": [1]})
    write_table("at:noon/a.parquet", table, schema=table.schema, metadata={})
    assert read_table("at:noon/a.parquet")[0] == table


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


_REPLACES = """
import os, pathlib, sys
from attree.base import files

folder, moment = pathlib.Path(sys.argv[1]), int(sys.argv[2])
moments = iter(range(100))

def deadly(step):
    def call(*arguments):
        if next(moments) == moment:
            os._exit(9)
        done = step(*arguments)
        if next(moments) == moment:
            os._exit(9)
        return done
    return call

files._exchange = deadly(files._exchange)
pathlib.Path.replace = deadly(pathlib.Path.replace)
with files.whole_folder(folder, over="a") as part:
    (part / "a").write_text("new")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges two folders")
def test_a_folder_that_is_replaced_is_there_whenever_the_writer_is_killed(tmp_path: Path) -> None:
    seen = []
    for moment in range(4):
        folder = tmp_path / str(moment)
        folder.mkdir()
        (folder / "a").write_text("old")
        done = python(_REPLACES, folder, moment)
        seen.append((done.returncode, (folder / "a").read_text()))
    assert seen == [(9, "old"), (9, "new"), (0, "new"), (0, "new")]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] != ".") == list("0123")


@pytest.mark.parametrize("home", ["", "/nowhere"])
def test_an_empty_home_is_none(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the user ``root`` would write into ``/.cache``."""
    made = []
    monkeypatch.setattr(files, "made_private", made.append)
    monkeypatch.setenv("HOME", home)
    monkeypatch.setenv("XDG_CACHE_HOME", "below/here")  # no absolute path: it does not count
    private_cache("x")
    own = home or pwd.getpwuid(os.getuid()).pw_dir
    assert made == [Path(own) / ".cache" / "attree" / "x"]


def test_a_cache_whose_name_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="not UTF-8"):
        made_private(tmp_path / "\udcff")
    assert not list(tmp_path.iterdir())


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
