from __future__ import annotations

import multiprocessing
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from attree.bulk.folder import Writer, check_output, only_run, status
from tests.bulk.conftest import OPTIONS, Parse, Undisturbed, tree_bytes, wait_until
from tests.conftest import MakeDisk
from tests.refusals import refused


def _write(folder: Path) -> None:
    writer = Writer(folder)
    time.sleep(60)
    writer.close()


def begin(folder: Path, *, wait: float = 0.0, unlock: bool = False) -> None:
    """Begin a run on a folder, and end it at once."""
    with only_run(folder, wait=wait, unlock=unlock):
        pass


@pytest.fixture
def orphan(tmp_path: Path) -> Iterator[multiprocessing.Process]:
    """A writer that a killed run left."""
    process = multiprocessing.get_context("spawn").Process(target=_write, args=(tmp_path,))
    process.start()
    wait_until(lambda: any((tmp_path / ".writers").glob("*.lock")))
    time.sleep(0.2)
    yield process
    process.kill()
    process.join()


def test_a_left_writer_is_named(tmp_path: Path, orphan: multiprocessing.Process) -> None:
    with refused("still-writing", str(orphan.pid), socket.gethostname()):
        begin(tmp_path, wait=0.3)
    begin(tmp_path, unlock=True)


def test_a_left_writer_is_waited_for(tmp_path: Path, orphan: multiprocessing.Process) -> None:
    orphan.kill()
    with only_run(tmp_path, wait=10.0, unlock=False):
        assert not list((tmp_path / ".writers").iterdir())


def test_a_writer_on_another_machine_is_taken_for_dead_after_a_while(tmp_path: Path) -> None:
    mark = tmp_path / ".writers/elsewhere-17.lock"
    mark.parent.mkdir()
    mark.touch()
    with refused("still-writing", "17"):
        begin(tmp_path, wait=0.3)
    old = time.time() - 120
    os.utime(mark, (old, old))
    begin(tmp_path, wait=0.3)


def test_what_killed_writers_left_half_done_is_removed(tmp_path: Path) -> None:
    (tmp_path / "trees").mkdir()
    (tmp_path / "manifest.json").write_text("{}")
    left = tmp_path / "trees/.shard-00001.parquet.host-1-abcd.part"
    left.touch()
    with only_run(tmp_path, wait=0.0, unlock=False):
        assert not left.exists()


def test_at_the_end_only_what_a_living_writer_has_in_flight_stays(tmp_path: Path) -> None:
    (tmp_path / "trees").mkdir()
    (tmp_path / "manifest.json").write_text("{}")
    with only_run(tmp_path, wait=0.0, unlock=False):
        living = Writer(tmp_path)
        ours = f"{socket.gethostname()}-{os.getpid()}"
        in_flight = tmp_path / f"trees/.shard-00001.parquet.{ours}-abcd.part"
        of_a_dead_one = tmp_path / f"trees/.shard-00002.parquet.{ours}0-abcd.part"
        in_flight.touch()
        of_a_dead_one.touch()
    assert in_flight.exists()
    assert not of_a_dead_one.exists()
    living.close()


def test_status_of_a_folder_where_nothing_was_begun(tmp_path: Path) -> None:
    with refused("no-run"):
        status(tmp_path)


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.full)])
def test_a_full_disk_is_one_line_and_the_run_goes_on_once_there_is_room(
    parse: Parse, corpus: Path, make_disk: MakeDisk, workers: str, undisturbed: Undisturbed
) -> None:
    options = (*OPTIONS, "--workers", workers)
    small_disk = make_disk("96k")
    ran = parse(corpus, small_disk / "out", *options)
    assert ran.status == 1
    assert "the disk is full" in ran.err.splitlines()[-1]
    assert not list(small_disk.rglob("*.part"))
    whole = tree_bytes(small_disk / "out")
    assert 0 < len(whole) < len(undisturbed.content)
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    parse.ok(corpus, small_disk / "out", *options)
    assert tree_bytes(small_disk / "out") == undisturbed.content
    assert whole.items() <= undisturbed.content.items()


def test_a_folder_of_something_else_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    check_output(tmp_path / "new")
    check_output(tmp_path)
    (tmp_path / "summary.json").write_text("mine")
    with refused("foreign-folder", "summary.json"):
        begin(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]


@pytest.mark.parametrize("exists", [True, False])
def test_an_output_that_is_a_file_or_a_dangling_link_is_refused(
    tmp_path: Path, exists: bool
) -> None:
    (tmp_path / "target").write_text("mine") if exists else None
    (tmp_path / "out").symlink_to(tmp_path / "target")
    with refused("not-a-folder", file="out"):
        check_output(tmp_path / "out")


def test_no_link_is_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / ".lock").symlink_to(victim)
    with refused("not-a-lock", file=".lock"):
        begin(out)
    (out / ".lock").unlink()
    (out / "manifest.json").write_text("{}")
    (out / "trees").symlink_to(tmp_path, target_is_directory=True)
    with refused("link", file="out"):
        check_output(out)
    assert victim.read_text() == "mine"


def test_parts_of_other_programs_stay(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "mine").mkdir()
    foreign = [tmp_path / ".film.mkv.part", tmp_path / "mine/.notes.part"]
    for path in foreign:
        path.write_text("mine")
    begin(tmp_path)
    assert all(path.is_file() for path in foreign)


@pytest.mark.full
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_folder_that_is_removed_meanwhile_stops_the_run_and_can_be_begun_anew(
    parse: Parse, corpus: Path, tmp_path: Path, workers: str
) -> None:
    out, options = tmp_path / "out", ("--shard-lines", "20", "--workers", workers)
    process = parse.start(corpus, out, *options)
    wait_until(lambda: any(out.glob("trees/*.parquet")), 120)
    while out.exists():  # what a worker writes just now may stand in the way
        shutil.rmtree(out, ignore_errors=True)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert f"{out}: this folder was removed while a run wrote to it" in err
    assert "Traceback" not in err
    assert not out.exists()
    parse.ok(corpus, out, *options)
    assert len(list((out / "trees").iterdir())) == 50
