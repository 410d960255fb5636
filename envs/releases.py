"""Try the releases that pyproject.toml allows: install attree's wheel beside them, run quick tests.

    python envs/releases.py newest      # of every dependency
    python envs/releases.py oldest      # of those that pyproject.toml names

The environment is new (``.venv-newest``, ``.venv-oldest``) and does not see the repository's code.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
with (ROOT / "pyproject.toml").open("rb") as file:
    EXTRAS = ",".join(tomllib.load(file)["project"]["optional-dependencies"])
#: PyTorch's own index has a small CPU build; PyPI's brings gigabytes of CUDA packages.
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
#: Quick, and together they touch every dependency.
TESTS = [
    *(f"tests/{room}" for room in ("association", "decoding", "encoder", "evaluation")),
    *(f"tests/{room}" for room in ("reports", "scoring", "training", "treebank", "trees")),
    "tests/base/test_cluster.py",
    "tests/parsers/test_parser.py",
    "tests/plan/test_configuration.py",
    "tests/bulk/test_output.py",
    "tests/workflow/test_dry_runs.py",
]


def main(which: str) -> int:
    """Install, parse a sentence outside the repository, run the tests; return their exit status."""
    folder = ROOT / f".venv-{which}"
    venv.create(folder, clear=True, with_pip=True)
    python = folder / "bin/python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([str(python), "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(ROOT)])
    (wheel,) = folder.glob("attree-*.whl")
    wanted = [f"{wheel}[{EXTRAS}]", *(oldest() if which == "oldest" else [])]
    torch = next((one for one in wanted if one.startswith("torch==")), "torch")
    if reachable(f"{CPU_INDEX}/torch/"):
        run([*pip, torch, "--index-url", CPU_INDEX])
    run([*pip, *wanted])
    packages = ("torch", "transformers", "numpy", "numba", "pyarrow", "dask", "snakemake", "spacy")
    run([str(python), "-m", "pip", "show", *packages], keep=("Name", "Version"))
    run([str(python), "-m", "pip", "check"])
    with tempfile.TemporaryDirectory() as elsewhere:
        run([str(folder / "bin/attree"), "try", "The old man walked home."], cwd=elsewhere)
    tests = [str(python), "-m", "pytest", "-q", "-m", "not full", *TESTS]
    return subprocess.run(tests, cwd=ROOT, env=environment()).returncode


def oldest() -> list[str]:
    """Return the oldest release of each dependency that is named, and of what they need."""
    extras = [word for extra in EXTRAS.split(",") for word in ("--extra", extra)]
    command = ["uv", "pip", "compile", "--quiet", "--no-annotate", "--no-header", *extras]
    command += ["--resolution", "lowest-direct", "--python", sys.executable, "pyproject.toml"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split("\n")[:-1]


def reachable(address: str) -> bool:
    """Tell whether an address answers."""
    try:
        with urllib.request.urlopen(address, timeout=5):
            return True
    except OSError:
        return False


def environment() -> dict[str, str]:
    """Return this process's environment, offline and without the repository's code."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return kept | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def run(command: list[str], *, cwd: str | None = None, keep: tuple[str, ...] = ()) -> None:
    """Run a command that must succeed; of what it prints, keep lines that begin in some way."""
    done = subprocess.run(
        command, cwd=cwd, env=environment(), stdout=subprocess.PIPE, text=True, check=True
    )
    for line in done.stdout.splitlines():
        if line.startswith(keep or ""):
            print(line, flush=True)


if __name__ == "__main__":
    if sys.argv[1:] not in (["newest"], ["oldest"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
