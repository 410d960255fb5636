"""Fixtures that all tests share."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# No test is timed: compiling alone takes longer than hypothesis' deadline.
settings.register_profile("attree", deadline=None)
settings.load_profile("attree")

#: Fixtures that run the whole workflow, minutes long.
COSTLY = ("finished", "done")

#: The folder of real treebanks.
DATA = Path(os.environ.get("ATTREE_TREEBANKS") or Path(__file__).parents[2] / "shared/data")
DATA = DATA.resolve()

#: Size (as of mount) → a file system of that size.
MakeDisk = Callable[[str], Path]

# What a shell starts in the background ignores Ctrl-C, and with nohup the end of its terminal; so
# would every command of the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of a costly fixture come first and share one process, so that it is made once."""
    for item in items:
        for name in COSTLY:
            if name in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(name))
                if name == "done":  # it takes minutes before its first test
                    item.add_marker(pytest.mark.full)
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real treebanks: $ATTREE_TREEBANKS, or ../shared/data beside the checkout."""
    if not (DATA / "constituency").is_dir():
        pytest.skip(f"no treebanks in {DATA}: set ATTREE_TREEBANKS to the folder that has them")
    return DATA


@pytest.fixture(scope="session")
def chromium() -> str:
    """The program of Chromium, installed where that is possible."""
    if shutil.which("chromium") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in ("update -qq", "install -y -qq --no-install-recommends chromium"):
            subprocess.run(["apt-get", *command.split()], capture_output=True)
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("there is no Chromium, and it cannot be installed here")
    return found


@pytest.fixture(scope="module")  # while it is open no other event loop can run
def browser(chromium: str) -> Iterator[Any]:
    """Chromium without a window, for tests that drive a page."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        yield running.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )


@pytest.fixture
def make_disk(tmp_path: Path) -> Iterator[MakeDisk]:
    """Mount small file systems that can be filled."""
    made: list[Path] = []

    def mount(size: str) -> Path:
        folder = tmp_path / f"disk-{len(made)}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True).returncode != 0:
            pytest.skip("only root can mount a small file system here")
        made.append(folder)
        return folder

    yield mount
    for folder in made:
        subprocess.run(["umount", str(folder)], check=True)
