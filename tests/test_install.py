"""The wheel: what is in it, and the first tree in an environment that had nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

from tests.workflow.conftest import ROOT

#: PyTorch's own index has a small CPU build; where it cannot be reached, pip's must do.
CPU_INDEX = "https://download.pytorch.org/whl/cpu"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the files that git knows."""
    folder = tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / "source" / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(folder), str(folder / "source")]
    subprocess.run(command, check=True)
    (made,) = folder.glob("attree-*.whl")
    return made


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    here = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path)
    }
    assert here - inside == {"attree/README.md"}  # of the code, for those who change it
    assert inside <= here
    assert wheel.stat().st_size < 16e6


def _run(command: list[str], home: Path) -> str:
    """Run a command that sees nothing of this environment but its pip's settings."""
    kept = {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_"))}
    path = os.pathsep.join((str(Path(command[0]).parent), "/usr/bin", "/bin"))
    environment = {**kept, "HOME": str(home), "PATH": path, "COLUMNS": "80"}
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _reachable(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except OSError:
        return False


@pytest.mark.full
def test_the_first_tree_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """2 GB are installed; as in a terminal, in another folder, with an empty cache."""
    venv.create(tmp_path / "empty", with_pip=True)
    programs, home = tmp_path / "empty/bin", tmp_path / "home"
    home.mkdir()
    pins = ["--constraint", str(ROOT / "envs/constraints.txt")]
    install = [str(programs / "python"), "-m", "pip", "install", "--quiet", *pins]
    if _reachable(f"{CPU_INDEX}/torch/"):
        install += ["--extra-index-url", CPU_INDEX]
    _run([*install, str(wheel)], home)
    command, shown = re.findall(
        r"^\$ attree (try [^\n]*)\nattree: [^\n]*\n(.*?)^```$",
        (ROOT / "README.md").read_text(),
        re.M | re.S,
    )[0]
    printed = _run([str(programs / "attree"), "try", command.split('"')[1]], home)
    assert printed == shown
    python = "from attree import Parser; print(len(Parser.load().parse('It rained. A cat slept.')))"
    assert _run([str(programs / "python"), "-c", python], home) == "2\n"
    assert (home / ".cache/attree").is_dir()
