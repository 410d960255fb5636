"""The treebank's folder: whole or not at all, one writer, nothing of others is touched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from attree.annotate.folder import BEGIN, LOG, TREES, Folder, LogRecord, opened
from tests.conftest import MakeDisk
from tests.refusals import refused

TREE = "(X (X a) (X b))\n"
RECORDS: list[dict[str, Any]] = [dict(BEGIN), {"action": "accept", "words": ["a", "b"]}]


def begun(path: Path) -> Folder:
    with opened(path) as folder:
        folder.save(TREE, RECORDS)
    return folder


def test_what_was_saved_is_read_again(tmp_path: Path) -> None:
    begun(tmp_path / "bank")
    with opened(tmp_path / "bank") as folder:
        assert folder.trees == TREE
        assert folder.records == msgspec.convert(RECORDS, list[LogRecord])
        assert [one.words for one in folder.sentences] == [("a", "b")]


def test_lines_corrected_by_hand_stay(tmp_path: Path) -> None:
    begun(tmp_path / "bank")
    own = "# mine\n(S (NP (X a))\n   (VP (X b)))"
    (tmp_path / "bank" / TREES).write_text(own, encoding="utf-8")
    with opened(tmp_path / "bank") as folder:
        folder.save(folder.trees + TREE, [])
    assert (tmp_path / "bank" / TREES).read_text(encoding="utf-8") == own + "\n" + TREE


@pytest.mark.parametrize("name", ["train.mrg", "test.ptb", "dev.conllu", TREES, LOG])
def test_a_treebank_of_someone_else_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("(S (X a))", encoding="utf-8")
    with refused("foreign-folder", name), opened(tmp_path):
        pass
    assert (tmp_path / name).read_text(encoding="utf-8") == "(S (X a))"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_log_that_is_no_utf8_is_someone_else_s(tmp_path: Path) -> None:
    (tmp_path / TREES).write_text(TREE, encoding="utf-8")
    (tmp_path / LOG).write_bytes(b'{"time": "x", "action": "begin\xff"}')
    with refused("foreign-folder", TREES), opened(tmp_path):
        pass


def test_a_test_set_may_be_added_later(tmp_path: Path) -> None:
    begun(tmp_path)
    (tmp_path / "test.ptb").write_text(TREE, encoding="utf-8")
    with opened(tmp_path) as folder:
        assert folder.trees == TREE


@pytest.mark.parametrize("name", [TREES, LOG])
def test_links_are_refused(tmp_path: Path, name: str) -> None:
    begun(tmp_path / "bank")
    other = tmp_path / "other"
    (tmp_path / "bank" / name).rename(other)
    (tmp_path / "bank" / name).symlink_to(other)
    with refused("link", file="bank"), opened(tmp_path / "bank"):
        pass


@pytest.mark.parametrize(
    "line",
    [
        '{"action": "acc',
        '{"action": "accept", "words": ["a"], "edits": NaN}',
        '{"action": "accept", "words": ["a"], "edits": 1e999}',
        '{"action": "accept", "words": ["a"], "edits": -1}',
        '{"action": "accept", "words": null}',
        '{"action": "skip", "words": [1]}',
        '{"action": ["skip"]}',
        '{"action": "accept", "edits": ' + "9" * 5000 + "}",
        "1",
        "null",
        "[" * 5000,
        "\x00",
    ],
)
def test_a_line_that_is_no_record_is_told_by_its_number_and_left_out(
    tmp_path: Path, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(tmp_path)
    with (tmp_path / LOG).open("a", encoding="utf-8") as log:
        log.write(f'{line}\n{{"action": "skip", "words": ["c"]}}\n')
    with opened(tmp_path) as folder:
        actions = [one.action for one in folder.records]
    assert actions == ["begin", "accept", "skip"]
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"{LOG}:3: " in said and "left out" in said


@pytest.mark.parametrize("name", [TREES, LOG])
def test_what_another_program_wrote_meanwhile_is_not_replaced(tmp_path: Path, name: str) -> None:
    with opened(tmp_path) as folder:
        folder.save(TREE, RECORDS)
        (tmp_path / name).write_text("(S (X mine))\n", encoding="utf-8")
        with refused("changed-meanwhile"):
            folder.save(TREE * 2, [])
        assert folder.trees == TREE
    assert (tmp_path / name).read_text(encoding="utf-8") == "(S (X mine))\n"


def test_what_was_removed_is_written_again(tmp_path: Path) -> None:
    with opened(tmp_path / "bank") as folder:
        folder.save(TREE, RECORDS)
        (tmp_path / "bank" / TREES).unlink()
        folder.save(TREE * 2, [])
    assert (tmp_path / "bank" / TREES).read_text(encoding="utf-8") == TREE * 2


def test_a_second_process_is_refused_and_the_first_named(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from attree.annotate.folder import opened\n"
        "with opened(pathlib.Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "bank")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as first:  # type: ignore[call-overload]
        assert first.stdout.readline() == b"held\n"
        with refused("locked", str(first.pid)), opened(tmp_path / "bank"):
            pass
        first.send_signal(signal.SIGKILL)
    with opened(tmp_path / "bank"):
        pass


def test_a_full_disk_loses_nothing_and_can_be_tried_again(make_disk: MakeDisk) -> None:
    disk = make_disk("64k")
    with opened(disk / "bank") as folder:
        folder.save(TREE, RECORDS)
        with (disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError):
            while True:
                filler.write(bytes(4096))
        with pytest.raises(OSError, match="space"):
            folder.save(TREE * 300, [{"action": "accept", "words": ["a"] * 900}])
        assert (disk / "bank" / TREES).read_text(encoding="utf-8") == folder.trees == TREE
        assert not list((disk / "bank").glob("*.part"))
        (disk / "filler").unlink()
        folder.save(TREE * 300, [])
        assert (disk / "bank" / TREES).read_text(encoding="utf-8") == TREE * 300


def test_killed_while_saving_the_earlier_files_are_whole(tmp_path: Path) -> None:
    """A process that dies before each of its renames leaves files of before, or of after."""
    code = (
        "import os, pathlib, sys\n"
        "from attree.annotate.folder import opened\n"
        "left, real = int(sys.argv[2]), pathlib.Path.replace\n"
        "def dying(self, other):\n"
        "    global left\n"
        "    left -= 1\n"
        "    if left < 0: os.kill(os.getpid(), 9)\n"
        "    return real(self, other)\n"
        "with opened(pathlib.Path(sys.argv[1])) as folder:\n"
        "    pathlib.Path.replace = dying\n"
        "    folder.save(folder.trees * 2, [{'action': 'accept', 'words': ['a', 'b']}])\n"
    )
    for renames in (0, 1):
        path = tmp_path / str(renames)
        begun(path)
        done = subprocess.run([sys.executable, "-c", code, str(path), str(renames)], env=os.environ)
        assert done.returncode == -signal.SIGKILL
        log = (path / LOG).read_text(encoding="utf-8")
        assert [json.loads(line) for line in log.splitlines()] == RECORDS
        assert (path / TREES).read_text(encoding="utf-8") == TREE * (1 + renames)
        with opened(path) as folder:  # the next run goes on from there
            assert not list(path.glob(".*.part"))
            folder.save(folder.trees + TREE, [])
