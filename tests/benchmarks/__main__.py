"""Run every ``bench_*.py`` beside this file and print its rows: ``python -m tests.benchmarks``.

A benchmark module has ``rows()``, which returns its rows, or yields each once it is measured. A
ratio that misses its goal is marked; it does not fail the run, because a shared machine may be
noisy.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch


def modules(pattern: str) -> Iterator[Any]:
    """Yield the benchmark modules whose names hold ``pattern``."""
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        if pattern in path.stem:
            yield importlib.import_module(f"tests.benchmarks.{path.stem}")


def main() -> int:
    """Print a line for every row; return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pattern", nargs="?", default="", help="only modules whose name holds this")
    parser.add_argument("--gpu", action="store_true", help="the GPU's figures instead")
    arguments = parser.parse_args()
    if arguments.gpu and not torch.cuda.is_available():
        print("bench-gpu: skipped, there is no CUDA device here")
        return 0
    print(f"{'':4}{'ratio':>7}  {'goal':8}{'ours':>12}{'baseline':>12}  what")
    function = "gpu_rows" if arguments.gpu else "rows"
    for module in modules(arguments.pattern):
        for row in getattr(module, function, list)():
            mark = "ok  " if row.reached else "MISS"
            ours, baseline = np.median(row.ours), np.median(row.baseline)
            figures = f"{row.ratio:7.2f}  {row.goal:8}{ours:12,.4g}{baseline:12,.4g}"
            print(f"{mark}{figures}  {row.name} [{row.unit}]", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
