"""Compiled code is cached where it can be, and runs where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from attree import compiled

_DECODE = """
import numpy as np
from attree.decoding import kernels
from attree.decoding.batch import decode
decode(np.ones(9), [3], score="inside", decoder="chart")
print(sum(kernels.add_best.stats.cache_hits.values()))
"""


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    hits = [
        subprocess.run(
            [sys.executable, "-c", _DECODE],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for _ in range(2)
    ]
    assert hits == ["0", "1"]


def test_without_any_folder_to_write_a_kernel_still_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(numba.core.dispatcher.Dispatcher, "enable_caching", refuse)

    @compiled.kernel
    def double(x: float) -> float:
        return 2.0 * x

    assert double(1.5) == 3.0


def test_kernels_divide_by_zero_as_numpy_does() -> None:
    @compiled.kernel
    def divide(x: float, y: float) -> float:
        return x / y

    assert np.isinf(divide(1.0, 0.0))
