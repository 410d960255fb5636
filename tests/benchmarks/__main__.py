"""Run every ``bench_*.py`` beside this file and print its rows: ``python -m tests.benchmarks``.

A benchmark module has ``rows() -> list[dict]``; a row has ``name``, ``ratio``, ``goal`` (such as
``<= 1.0`` or ``>= 0.9``), and the absolute figures ``ours`` and ``baseline`` in ``unit``, which are
printed for information. A ratio that misses its goal is marked; it does not fail the run, because
a shared machine may be noisy.
"""

from __future__ import annotations

import argparse
import importlib
import operator
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_COMPARE = {"<=": operator.le, ">=": operator.ge}


def modules(pattern: str) -> Iterator[Any]:
    """Yield the benchmark modules whose names hold ``pattern``."""
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        if pattern in path.stem:
            yield importlib.import_module(f"tests.benchmarks.{path.stem}")


def reached(row: dict[str, Any]) -> bool:
    """Tell whether a row's ratio meets its goal."""
    sign, bound = row["goal"].split()
    return bool(_COMPARE[sign](row["ratio"], float(bound)))


def main() -> int:
    """Print a line for every row; return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pattern", nargs="?", default="", help="only modules whose name holds this")
    parser.add_argument("--gpu", action="store_true", help="the GPU's figures instead")
    arguments = parser.parse_args()
    if arguments.gpu:
        import torch

        if not torch.cuda.is_available():
            print("bench-gpu: skipped, there is no CUDA device here")
            return 0
    print(f"{'':4}{'ratio':>7}  {'goal':8}{'ours':>12}{'baseline':>12}  what")
    function = "gpu_rows" if arguments.gpu else "rows"
    for module in modules(arguments.pattern):
        for row in getattr(module, function, list)():
            mark = "ok  " if reached(row) else "MISS"
            figures = f"{row['ours']:12,.4g}{row['baseline']:12,.4g}"
            print(
                f"{mark}{row['ratio']:7.2f}  {row['goal']:8}{figures}  "
                f"{row['name']} [{row['unit']}]",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
