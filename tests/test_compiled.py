"""Compiled code is cached where it can be, and runs where it cannot."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np
import pytest

from attree.base import compiled
from tests.command_line import python

_DECODE = """
import numpy as np
from attree.decoding import kernels
from attree.decoding.batch import decode
decode(np.ones(9), [3], score="inside", decoder="chart")
print(sum(kernels.add_best.stats.cache_hits.values()))
"""


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    hits = [python(_DECODE, NUMBA_CACHE_DIR=str(tmp_path)).stdout for _ in range(2)]
    assert hits == ["0\n", "1\n"]


def test_without_any_folder_to_write_a_kernel_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(numba.core.dispatcher.Dispatcher, "enable_caching", refuse)

    @compiled.kernel
    def double(x: float) -> float:
        return 2.0 * x

    assert double(1.5) == 3.0


@pytest.fixture
def fresh() -> Iterator[None]:
    compiled.cache_folder.cache_clear()
    yield
    compiled.cache_folder.cache_clear()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o1777])
def test_a_folder_that_others_can_write_is_passed_over(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(shared))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = compiled.cache_folder()
    assert found == tmp_path / "cache/attree/compiled"
    assert found.stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("fresh")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "cache/attree/compiled"
    theirs.mkdir(parents=True)
    os.chown(theirs, 1234, 1234)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert compiled.cache_folder() is None


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_beside_the_code_nothing_is_cached_that_others_could_change(
    tmp_path: Path, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(compiled.__file__).parent.parent
    shutil.copytree(package, tmp_path / "src/attree", ignore=shutil.ignore_patterns("__pycache__"))
    kernels = tmp_path / "src/attree/decoding"
    kernels.chmod(mode)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    more = {"PYTHONPATH": str(tmp_path / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    assert python(_DECODE, **more).returncode == 0
    beside = list(kernels.rglob("*.nbi"))
    own = list((tmp_path / "cache/attree/compiled").rglob("kernels*.nbi"))
    assert (bool(beside), bool(own)) == (mode == 0o755, mode == 0o777)


def test_kernels_divide_by_zero_as_numpy_does() -> None:
    @compiled.kernel
    def divide(x: float, y: float) -> float:
        return x / y

    assert np.isinf(divide(1.0, 0.0))
